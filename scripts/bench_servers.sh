# Servers of databases to measure on, each thrown away in the end. For scripts that have set `home`, their directory, and start what they
# need: `start_postgres`, `start_mariadb`, `start_mongodb` and `start_cassandra` fill `server[NAME]`, its URL without a database, and `settings[NAME]`. `ask NAME SQL` asks one.
# shellcheck shell=bash

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

stop_servers() {
  end_throwaway
  if [[ -f $home/mariadb/pid ]]; then
    kill -KILL "$(cat "$home/mariadb/pid")" || true
  fi
  if [[ -f $data/postmaster.pid ]]; then
    (cd "$home/postgres" && "${as_server[@]}" "$programs/pg_ctl" --pgdata "$data" --mode=immediate --silent stop) || true
  fi
  rm -rf "$home"
}
trap stop_servers EXIT
trap 'exit 130' INT TERM

# shared_buffers: a quarter of the memory, and at most 2 GiB.
memory_kib=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)
shared_buffers_mib=$((memory_kib / 4 / 1024 < 2048 ? memory_kib / 4 / 1024 : 2048))
declare -A settings=(
  [postgres]="shared_buffers=${shared_buffers_mib}MB max_wal_size=4GB fsync=on synchronous_commit=on"
  [mongodb]="a standalone server, w: 1, j: true"
  [cassandra]="one node, one copy, commitlog_sync: group, 2 ms"
  [mariadb]="innodb_buffer_pool_size=${shared_buffers_mib}M innodb_log_file_size=1G innodb_flush_log_at_trx_commit=1"
)
declare -A server

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start_postgres() {
  mkdir "$home/postgres"
  chmod a+rx "$home"
  if [[ $EUID == 0 ]]; then
    chown postgres "$home/postgres"
  fi
  local port setting
  port=$(free_port)
  local options="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$home/postgres"
  for setting in ${settings[postgres]}; do
    options+=" -c $setting"
  done
  (
    cd "$home/postgres"
    "${as_server[@]}" "$programs/initdb" --pgdata "$data" --username timer --auth=trust --encoding=UTF8 --locale=C.UTF-8 \
      --no-instructions >/dev/null
    "${as_server[@]}" "$programs/pg_ctl" --pgdata "$data" --log "$home/postgres/log" --options "$options" --wait --silent start
  )
  server[postgres]=postgres://timer@127.0.0.1:$port
}

# With as much memory for pages as PostgreSQL gets for its buffers, and durable as it is by default.
start_mariadb() {
  mkdir "$home/mariadb"
  chmod a+rx "$home"
  if [[ $EUID == 0 ]]; then
    chown postgres "$home/mariadb"
  fi
  local port
  port=$(free_port)
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
    if grep --quiet --no-messages 'ready for connections' "$home/mariadb/log"; then
      server[mariadb]=mariadb://timer@127.0.0.1:$port
      return
    fi
    sleep 0.2
  done
  cat "$home/mariadb/log" >&2
  return 1
}

ask() {
  case $1 in
    mariadb)
      mariadb --no-defaults --protocol=tcp --host=127.0.0.1 --port="${server[mariadb]##*:}" --user=timer --execute="$2"
      ;;
    postgres)
      "$programs/psql" --no-psqlrc --quiet --dbname "${server[postgres]}/postgres" --command "$2"
      ;;
  esac
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
  read -r "server[$1]" <"$home/$1-out"
}
start_mongodb() {
  start_throwaway mongodb
}
start_cassandra() {
  start_throwaway cassandra
}
