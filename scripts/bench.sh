#!/usr/bin/env bash
# Measures the service on SQLite and PostgreSQL, in less than ten minutes after the build, and writes bench/results/<day>.md with its charts.
# BENCH_STORES="sqlite postgres mariadb mongodb cassandra" says on which stores (default: the first two; each other one takes five minutes
# more, and the last two are fetched by scripts/mongodb.sh and scripts/cassandra.sh with --fetch).
# BENCH_PENDING=5000000 adds that many pending timers to w4, and takes longer. BENCH_DIRECTORY says on which disk (default: /var/tmp).
# BENCH_QUICK=1 is a short run that shows that it works, not how well. BENCH_RESULTS is the directory of the page.
#
# The results belong to this machine in this hour: nothing else should run on it. The report says how much other processes took.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need_rust.sh
scripts/setup.sh
cargo build --release --locked --bin timer

timer=$PWD/target/release/timer
sizes=200000,1000000${BENCH_PENDING:+,$BENCH_PENDING}
if [[ ${BENCH_QUICK:-} ]]; then
  sizes=20000
fi
results=${BENCH_RESULTS:-bench/results}/$(date --utc +%F).md
home=$(mktemp --directory "${BENCH_DIRECTORY:-/var/tmp}/timer-bench-XXXXXX")
begun=$SECONDS

# shellcheck source=scripts/bench_servers.sh
. scripts/bench_servers.sh
stores=${BENCH_STORES:-sqlite postgres}

# Quick workloads are run three times, the rest once. What a million timers take is measured in a fresh process.
measure() {
  local store=$1 options=(--embedded --directory "$home" --json "$home/$1-$2.json" ${BENCH_QUICK:+--quick})
  shift
  if [[ $store == sqlite ]]; then
    "$timer" bench "${options[@]}" "$@"
    return
  fi
  if [[ $store == mongodb || $store == cassandra ]]; then
    databases=$((databases + 1))
    "$timer" bench "${options[@]}" --leave --database-url "${server[$store]/\/bench/\/bench_$databases}" --note "${settings[$store]}" "$@"
    return
  fi
  ask "$store" "CREATE DATABASE bench"
  "$timer" bench "${options[@]}" --leave --database-url "${server[$store]}/bench" --note "${settings[$store]}" "$@"
  ask "$store" "DROP DATABASE bench"
}

# A database that the environment names must not be used here.
unset BENCH_DATABASE_URL
measured=()
databases=0
for store in $stores; do
  if [[ $store != sqlite ]]; then
    "start_$store"
  fi
  measure "$store" w1 w1c w1b w2 --runs 3
  measure "$store" w2x w3 w5
  measure "$store" w4 --sizes "$sizes"
  measured+=("$home/$store"-{w1,w2x,w4}.json)
done

"$timer" bench report "${measured[@]}" --out "$results"
echo "Measured in $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s."
