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

# PostgreSQL refuses to run as root.
as_server=()
if [[ $EUID == 0 ]]; then
  as_server=(setpriv --reuid=postgres --regid=postgres --clear-groups --)
fi
# As in setup.sh: on PATH, or in Debian's directory.
find_postgres() {
  local directory
  for directory in "$(dirname "$(readlink -f "$(command -v initdb || echo /none/initdb)")")" /usr/lib/postgresql/*/bin; do
    if [[ -x $directory/initdb && -x $directory/postgres && -x $directory/pg_ctl && -x $directory/psql ]]; then
      echo "$directory"
      return
    fi
  done
}
programs=$(find_postgres)
data=$home/postgres/data

stores=${BENCH_STORES:-sqlite postgres}

clean_up() {
  end_throwaway
  if [[ -f $home/mariadb/pid ]]; then
    kill -KILL "$(cat "$home/mariadb/pid")" || true
  fi
  if [[ -f $data/postmaster.pid ]]; then
    (cd "$home/postgres" && "${as_server[@]}" "$programs/pg_ctl" --pgdata "$data" --mode=immediate --silent stop) || true
  fi
  rm -rf "$home"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# shared_buffers: a quarter of the memory, and at most 2 GiB.
memory_kib=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)
shared_buffers_mib=$((memory_kib / 4 / 1024 < 2048 ? memory_kib / 4 / 1024 : 2048))
settings="shared_buffers=${shared_buffers_mib}MB max_wal_size=4GB fsync=on synchronous_commit=on"

start_postgres() {
  mkdir "$home/postgres"
  chmod a+rx "$home"
  if [[ $EUID == 0 ]]; then
    chown postgres "$home/postgres"
  fi
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  local options="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$home/postgres" setting
  for setting in $settings; do
    options+=" -c $setting"
  done
  (
    cd "$home/postgres"
    "${as_server[@]}" "$programs/initdb" --pgdata "$data" --username timer --auth=trust --encoding=UTF8 --locale=C.UTF-8 \
      --no-instructions >/dev/null
    "${as_server[@]}" "$programs/pg_ctl" --pgdata "$data" --log "$home/postgres/log" --options "$options" --wait --silent start
  )
  server=postgres://timer@127.0.0.1:$port
}

# With as much memory for pages as PostgreSQL gets for its buffers, and durable as it is by default.
start_mariadb() {
  mkdir "$home/mariadb"
  chmod a+rx "$home"
  if [[ $EUID == 0 ]]; then
    chown postgres "$home/mariadb"
  fi
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  # A statement a line.
  printf '%s\n' "CREATE USER IF NOT EXISTS 'timer'@'127.0.0.1';" "GRANT ALL ON *.* TO 'timer'@'127.0.0.1';" \
    >"$home/mariadb/init.sql"
  (
    cd "$home/mariadb"
    "${as_server[@]}" mariadb-install-db --no-defaults --datadir="$home/mariadb/data" --skip-test-db \
      --auth-root-authentication-method=normal >/dev/null
    "${as_server[@]}" /usr/sbin/mariadbd --no-defaults --datadir="$home/mariadb/data" --port="$port" --bind-address=127.0.0.1 \
      --socket="$home/mariadb/socket" --pid-file="$home/mariadb/pid" --init-file="$home/mariadb/init.sql" --skip-name-resolve \
      --skip-ssl --skip-log-bin --innodb-buffer-pool-size="${shared_buffers_mib}M" --innodb-log-file-size=1G \
      >"$home/mariadb/log" 2>&1 &
  )
  for _ in {1..300}; do
    if grep --quiet 'ready for connections' "$home/mariadb/log"; then
      break
    fi
    sleep 0.2
  done
  server=mariadb://timer@127.0.0.1:$port
  settings="innodb_buffer_pool_size=${shared_buffers_mib}M innodb_log_file_size=1G innodb_flush_log_at_trx_commit=1"
}

# A server of the tests, which ends with its standard input. Each measurement takes a database of its own.
end_throwaway() {
  if [[ -n ${serving:-} ]]; then
    exec {serving}>&-
    wait "$server_pid" || true
    serving=
  fi
}
start_throwaway() {
  end_throwaway
  mkfifo "$home/$1-in" "$home/$1-out"
  cargo run --quiet --release --locked --package throwaway --example serve -- "$1" <"$home/$1-in" >"$home/$1-out" &
  server_pid=$!
  exec {serving}>"$home/$1-in"
  read -r server <"$home/$1-out"
}
start_mongodb() {
  start_throwaway mongodb
  settings="a standalone server, w: 1, j: true"
}
start_cassandra() {
  start_throwaway cassandra
  settings="one node, one copy, commitlog_sync: group, 2 ms"
}

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
    "$timer" bench "${options[@]}" --leave --database-url "${server/\/bench/\/bench_$databases}" --note "$settings" "$@"
    return
  fi
  ask "CREATE DATABASE bench"
  "$timer" bench "${options[@]}" --leave --database-url "$server/bench" --note "$settings" "$@"
  ask "DROP DATABASE bench"
}
ask() {
  if [[ $store == mariadb ]]; then
    mariadb --no-defaults --protocol=tcp --host=127.0.0.1 --port="$port" --user=timer --execute="$1"
  else
    "$programs/psql" --no-psqlrc --quiet --dbname "$server/postgres" --command "$1"
  fi
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
