#!/usr/bin/env bash
# Measures one build of the service on MariaDB beside PostgreSQL, in turns, so that both meet the same weather: each workload runs on one, then
# on the other, on an emptied database each time. Prints the ratios (MariaDB divided by PostgreSQL) and, in the end, the medians of both.
#
#   scripts/bench_in_turns.sh [WORKLOAD...]      default: w1 w1c w1b w2 w3 w4 w5
#
# BENCH_PAIRS=3 says how many pairs of runs there are of each. BENCH_TIMER is the program (default: an optimised build of this checkout).
# BENCH_SIZES=200000 is how many timers are pending in w4, BENCH_DIRECTORY on which disk the databases are (default: /var/tmp),
# BENCH_JSON=FILE keeps everything that was measured. BENCH_QUICK=1 is a short run that shows that it works, not how well.
#
# The results belong to this machine in this hour: nothing else should run on it.
set -euo pipefail
cd "$(dirname "$0")/.."

workloads=("$@")
if [[ $# == 0 ]]; then
  workloads=(w1 w1c w1b w2 w3 w4 w5)
fi
timer=${BENCH_TIMER:-}
if [[ -z $timer ]]; then
  scripts/need_rust.sh
  scripts/setup.sh
  cargo build --release --locked --bin timer
  timer=${CARGO_TARGET_DIR:-$PWD/target}/release/timer
fi
timer=$(readlink -f "$timer")
home=$(mktemp --directory "${BENCH_DIRECTORY:-/var/tmp}/timer-bench-XXXXXX")
json=${BENCH_JSON:-$home/pairs.json}
begun=$SECONDS

# shellcheck source=scripts/bench_servers.sh
. scripts/bench_servers.sh
start_postgres
start_mariadb

# What `timer bench` takes for another build is this one on the other database.
on_postgres=$home/on-postgres
printf '%s\n' '#!/bin/sh' "DATABASE_URL=${server[postgres]}/bench exec '$timer' \"\$@\"" >"$on_postgres"
chmod +x "$on_postgres"

# Each run is on an empty database. No service uses either of them by then.
empty=$home/empty
{
  echo '#!/usr/bin/env bash'
  declare -p programs server
  declare -f ask
  echo 'set -euo pipefail'
  for store in mariadb postgres; do
    echo "ask $store 'DROP DATABASE IF EXISTS bench'"
    echo "ask $store 'CREATE DATABASE bench'"
  done
} >"$empty"

# A database that the environment names must not be used here.
unset BENCH_DATABASE_URL
"$timer" bench "${workloads[@]}" --embedded --directory "$home" --database-url "${server[mariadb]}/bench" --against "$on_postgres" \
  --before "bash '$empty'" --runs "${BENCH_PAIRS:-3}" --sizes "${BENCH_SIZES:-200000}" --json "$json" ${BENCH_QUICK:+--quick} \
  --note "MariaDB: ${settings[mariadb]}; PostgreSQL: ${settings[postgres]}"

python3 scripts/bench_medians.py "$json" MariaDB PostgreSQL
echo "Measured in $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s."
