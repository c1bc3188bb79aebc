#!/usr/bin/env bash
# Prints where a later MySQL than that of scripts/setup.sh is, for tests: the directory that MYSQL_SERVER_ROOT names, or that of an earlier
# fetch. With --fetch it is fetched where there is none: the server of Debian sid with the libraries that it was linked with; two minutes,
# 250 megabytes. It lies in a cache outside every checkout, so that it is fetched once for all of them.
#
#   MYSQL_SERVER_ROOT=$(scripts/mysql.sh --fetch) cargo test --package store-mysql --test every_server mysql
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/timer-platform/mysql

find_server() {
  local root
  for root in "${MYSQL_SERVER_ROOT:-}" "$cache"; do
    if [[ -n $root && -x $root/bin/mysqld ]]; then
      echo "$root"
      return 0
    fi
  done
  return 1
}

# The server starts with the C library that it came with, and has its messages and plugins beside it. `--no-defaults` has to be the first
# of its options; of an option that is given twice the last counts.
write_program() {
  cat >"$1" <<'PROGRAM'
#!/bin/sh
root=$(dirname "$(dirname "$(readlink -f "$0")")")
libraries=$(dirname "$(ls -d "$root"/usr/lib/*/libc.so.6)")
exec "$(ls "$root"/usr/lib*/ld-linux-*.so.* | head -n 1)" --library-path "$libraries:$root/usr/lib/mysql/private" "$root/usr/sbin/mysqld" "$@" \
  --basedir="$root/usr" --lc-messages-dir="$root/usr/share/mysql" --character-sets-dir="$root/usr/share/mysql/charsets" \
  --plugin-dir="$root/usr/lib/mysql/plugin" --secure-file-priv= --user="$(id -un)"
PROGRAM
  chmod +x "$1"
}

fetch_server() {
  local work
  mkdir -p "$(dirname "$cache")"
  work=$(mktemp --directory "$cache.XXXXXX")
  # shellcheck disable=SC2064 # The directory of this run, whatever the variable says later.
  trap "rm -rf '$work'" EXIT
  scripts/debian_packages.py sid "$work/root" mysql-server-core
  # The link to usr/bin would be that of every program of the release.
  rm "$work/root/bin"
  mkdir "$work/root/bin"
  write_program "$work/root/bin/mysqld"
  "$work/root/bin/mysqld" --no-defaults --version
  rm -rf "$cache"
  mv "$work/root" "$cache"
}

if find_server; then
  exit 0
fi
if [[ ${1:-} == --fetch ]]; then
  fetch_server >&2
  find_server && exit 0
fi
echo "There is no later MySQL here: name one in MYSQL_SERVER_ROOT, or run scripts/mysql.sh --fetch." >&2
exit 1
