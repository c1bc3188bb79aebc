#!/usr/bin/env bash
# The whole of CI: set-up, lints, tests. Everything is compiled once, by clippy. What waits runs beside what works, with its output
# kept for when its turn to be read has come.
set -euo pipefail
cd "$(dirname "$0")/.."

heading() { printf '\n=== %s ===\n' "$1"; }

scripts/need_rust.sh with-lints

logs=$(mktemp -d)
declare -A beside=()
# shellcheck disable=SC2329  # called by the trap
cleanup() {
  local process
  for process in "${beside[@]}"; do kill "$process" 2>/dev/null || true; done
  rm -rf "$logs"
}
trap cleanup EXIT

# begin NAME COMMAND…: starts a command beside what follows.
begin() {
  local name=$1
  shift
  "$@" >"$logs/$name" 2>&1 &
  beside[$name]=$!
}

# finish NAME HEADING: waits for it, and prints what it said.
finish() {
  local status=0
  wait "${beside[$1]}" || status=$?
  unset "beside[$1]"
  heading "$2"
  cat "$logs/$1"
  return "$status"
}

# What it fetches is needed after the build. Only where pip is missing do the lints of texts need it before.
begin setup scripts/setup.sh
python3 -m pip --version >/dev/null 2>&1 || finish setup "set-up"

scripts/lint.sh text

# With the idle time of the tests, many of which wait.
begin dependencies nice -n 19 scripts/check_dependencies.sh

heading "build and clippy"
source scripts/lint_while_building.sh
cargo test --workspace --locked --no-run

[[ -z ${beside[setup]:-} ]] || finish setup "set-up"

# For examples that are tests of a service.
export TIMER_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug/timer

# Nice to the promises, whose limits of time are those of users: half of what the promises do is to wait.
give_way() { renice -n 2 -p "$BASHPID" >/dev/null; }
programs() {
  give_way
  echo "left to make soak: the suites of stores on TiDB, MongoDB, Cassandra and DynamoDB, most of that on MySQL, and most promises on MariaDB"
  # Without the promises, which run beside it, and without the examples of the Rust SDK, which scripts/sdk_test.sh runs. Tests with
  # `test = false` in their manifest need servers that are not installed, and are no part of --tests.
  # More at once than there are cores, because they get little of them while the promises run: what only waits must not be left for the end.
  TEST_PROGRAMS=3 scripts/run_tests.py --except 'server e2e' --except 'client examples' --workspace --locked --lib --bins --examples --tests
}
clients_and_texts() {
  give_way
  scripts/sdk_test.sh || { heading "SDKs, once more"; scripts/sdk_test.sh; }
  heading "the code of the book"
  scripts/book_test.py
  heading "the code of comments"
  cargo test --workspace --locked --doc --quiet
}
begin programs programs
begin clients_and_texts clients_and_texts

heading "promises"
scripts/run_tests.py --workspace --locked --test e2e

finish programs "unit tests, conformance, brokers, databases"

finish clients_and_texts "SDKs, and code in texts"

finish dependencies "licences, bans and sources of dependencies"

# Alone, so that its time is its own.
heading "the console in a browser"
scripts/browser_test.sh
