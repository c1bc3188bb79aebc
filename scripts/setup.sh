#!/usr/bin/env bash
# Installs what the tests need besides Rust: the PostgreSQL server programs, libfaketime for tests that move the clock, and curl.
# Does nothing when all are there; ends with one sentence when they are not and cannot be installed.
set -euo pipefail

# The programs stand together, on PATH or where Debian keeps them (one directory a version, none on PATH).
has_postgres() {
  local directory
  local initdb
  initdb=$(command -v initdb || true)
  for directory in ${initdb:+"$(dirname "$(readlink -f "$initdb")")"} /usr/lib/postgresql/*/bin; do
    if [[ -x $directory/initdb && -x $directory/postgres && -x $directory/pg_ctl && -x $directory/psql ]]; then
      return 0
    fi
  done
  return 1
}

has_libfaketime() {
  compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || compgen -G '/usr/lib/faketime/libfaketimeMT.so.1' >/dev/null
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

install_packages() {
  command -v apt-get >/dev/null || return 1
  [[ $(id -u) == 0 ]] || command -v sudo >/dev/null || return 1
  # One unreachable source among many fails the update; whether the packages can be had is for the install to say.
  as_root apt-get update || true
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y "$@"
}

missing=()
has_postgres || missing+=(postgresql)
has_libfaketime || missing+=(libfaketime)
command -v curl >/dev/null || missing+=(curl)
type -P kill >/dev/null || missing+=(procps)

if ((${#missing[@]} > 0)) && ! install_packages "${missing[@]}"; then
  echo "The tests need what is not installed here: install the package(s) ${missing[*]} and run this again." >&2
  exit 1
fi
