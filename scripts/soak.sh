#!/usr/bin/env bash
# What takes too long for every change, or means something on an idle machine only: the fault suite at scale, 100,000 seeds of the
# simulation, 5,000 of that between the single writes of a partitioned database, ten minutes of each fuzz target, the tests that
# measure or need minutes of load or gigabytes of disk, and every limit of time as it is written down (SOAK=1, see
# crates/server/tests/e2e/rig/tolerance.rs), on an optimised build. Several hours.
#
# Usage: soak.sh [PART…], where a part is searches, stores or service. All of them by default; in CI each is a job of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

heading() { printf '\n=== %s ===\n' "$1"; }

# Simulations with many seeds, and inputs that a fuzzer makes up.
searches() {
  heading "simulation"
  SIM_SEEDS=${SIM_SEEDS:-100000} cargo test --locked --package engine --test simulation -- --nocapture

  heading "simulation of a partitioned database"
  SIM_SEEDS=${PARTITIONED_SIM_SEEDS:-5000} cargo test --locked --package store-partitioned --test simulation -- --nocapture

  heading "fuzz targets"
  scripts/fuzz.sh

  heading "what Timer Platform is measured beside"
  # No member of the workspace, so that no other part compiles it.
  cargo test --release --locked --manifest-path bench/floor/Cargo.toml --target-dir target/floor
  cargo clippy --release --locked --manifest-path bench/floor/Cargo.toml --target-dir target/floor --all-targets -- -D warnings

  heading "clippy, on what only this builds"
  # What DynamoDB adds, and the tests with `test = false` in their manifest, which are no part of --all-targets.
  cargo clippy --locked --package store-dynamodb --package server --features store-dynamodb/sdk,server/dynamodb --all-targets -- -D warnings
  cargo clippy --locked --workspace --features store-dynamodb/sdk --test 'every_*' -- -D warnings
}

# Every database, one after the other.
stores() {
  heading "the whole contract of stores, and promises, on MySQL"
  if [[ -x target/tools/mysql/bin/mysqld ]]; then
    cargo test --locked --package store-mysql --test every_server mysql
    MARIADB_TESTS_ON=mysql cargo test --locked --package server --test e2e on_mariadb -- \
      --include-ignored --test-threads=1 --skip each_engine --skip many_kills
  else
    echo "left out: scripts/setup.sh has found no MySQL"
  fi
  if root=$(scripts/mysql.sh --fetch); then
    MYSQL_SERVER_ROOT=$root cargo test --locked --package store-mysql --test every_server mysql
  else
    echo "left out on a later MySQL: none could be fetched"
  fi

  heading "the whole contract of stores, and promises, on TiDB"
  # One behaviour at a time: its locks go one after the other, and two behaviours at once would wait for each other's processor.
  if scripts/tidb.sh --build >/dev/null; then
    cargo test --locked --package store-mysql --test every_server tidb -- --test-threads=1
    # A backup is made by other tools there.
    MARIADB_TESTS_ON=tidb cargo test --locked --package server --test e2e on_mariadb -- \
      --include-ignored --test-threads=1 --skip each_engine --skip many_kills --skip backup_under_load
  else
    echo "left out: there is no TiDB, and none could be built"
  fi

  heading "the whole contract of drivers and stores on MongoDB"
  if scripts/mongodb.sh --fetch; then
    cargo test --locked --package store-mongodb --test every_mongodb -- --test-threads=4
  else
    echo "left out: there is no MongoDB for tests (see scripts/mongodb.sh)"
  fi

  heading "the whole contract of drivers and stores on DynamoDB"
  if scripts/dynamodb.sh --fetch; then
    cargo test --locked --package store-dynamodb --features sdk --lib --test every_dynamodb -- --test-threads=4
    cargo test --locked --package server --features dynamodb --bin timer stores::
    cargo test --locked --package server --features dynamodb --test e2e -- --ignored --test-threads=1 on_dynamodb
  else
    echo "left out: DynamoDB Local could not be fetched"
  fi

  heading "the whole contract of stores on Cassandra"
  for version in 5.0.9 4.1.10; do
    if CASSANDRA_VERSION=$version scripts/cassandra.sh --fetch; then
      CASSANDRA_VERSION=$version cargo test --locked --package store-cassandra --test every_cassandra
    else
      echo "left out: Cassandra $version could not be fetched"
    fi
  done
}

# The optimised binary under load.
service() {
  heading "servers for promises on several nodes"
  scripts/galera.sh || echo "left out: the test of a Galera cluster"
  scripts/mongodb.sh --fetch || echo "left out: promises on MongoDB"
  scripts/cassandra.sh --fetch || echo "left out: promises on Cassandra"

  heading "promises, load and size, optimised"
  SOAK=1 cargo test --release --locked --package server --test e2e -- --include-ignored --nocapture --test-threads=1

  heading "the console in a browser, with a million timers"
  cargo build --release --locked --package server
  SOAK=1 scripts/browser_test.sh "${CARGO_TARGET_DIR:-target}/release/timer" --many-timers 1000000

  heading "searches and bulk operations among a million timers"
  # The p99 of lateness beside bulk operations, in times of that without them: BULK_TOLERATED=2 where the disk is idle.
  for store in sqlite postgres; do
    scripts/million_timers.py "${CARGO_TARGET_DIR:-target}/release/timer" --store "$store" --tolerated "${BULK_TOLERATED:-20}"
  done

  heading "load beside open consoles"
  # Two runs differ by more than the promised 3 % on a machine that is not idle: CONSOLES_TOLERATED=3 where it is.
  for store in sqlite postgres; do
    scripts/consoles_beside_load.py "${CARGO_TARGET_DIR:-target}/release/timer" --store "$store" --pairs 3 \
      --tolerated "${CONSOLES_TOLERATED:-10}"
  done

  heading "fairness between tenants"
  # Timers that fail or are lost end it. The attackers share the cores with the service, so milliseconds are judged only where that is
  # asked for: FAIRNESS_TOLERATED_MS=20.
  scripts/fairness.py "${CARGO_TARGET_DIR:-target}/release/timer" --tolerated-ms "${FAIRNESS_TOLERATED_MS:-0}"

  heading "instructions of a create and of a fire"
  scripts/instructions.sh

  heading "faults"
  scripts/fault.sh
}

parts=("$@")
[[ $# -gt 0 ]] || parts=(searches stores service)
for part in "${parts[@]}"; do
  case $part in
    searches | stores | service) ;;
    *) echo "soak.sh: there is no part \"$part\": searches, stores or service" >&2 && exit 2 ;;
  esac
done

scripts/need_rust.sh with-lints
scripts/setup.sh
for part in "${parts[@]}"; do
  "$part"
done
