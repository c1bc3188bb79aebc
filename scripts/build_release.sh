#!/usr/bin/env bash
# Builds the program as it is released: by a profile (profile-guided optimisation, see docs/adr/0019). A first build counts which way each
# branch goes while `timer bench` puts it under load, on SQLite, PostgreSQL and MariaDB; the second is compiled by what was counted. Takes
# about an hour on two processors, five minutes of it for the load.
#
#   scripts/build_release.sh [TARGET]      default: the target of this machine
#
# The program is left where `cargo build --release --target TARGET` leaves it, the profile beside it as timer.profdata. PROFILE=FILE names a
# profile that exists already: then nothing is measured, and the same compiler makes the same program of it. LLVM_PROFDATA is the program
# that merges what was counted (default: the one of rustup's component llvm-tools). BENCH_DIRECTORY says on which disk the databases are
# (default: /var/tmp).
set -euo pipefail
given=${PROFILE:+$(realpath "$PROFILE")}
[[ ${LLVM_PROFDATA:-} != */* ]] || LLVM_PROFDATA=$(realpath "$LLVM_PROFDATA")
disk=$(realpath "${BENCH_DIRECTORY:-/var/tmp}")
cd "$(dirname "$0")/.."

scripts/need_rust.sh
host=$(rustc --version --verbose | sed -n 's/^host: //p')
target=${1:-$host}
built=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
made=$built/$target/release
counted=$built/counted
profile=$made/timer.profdata
profdata=${LLVM_PROFDATA:-$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata}

# need PACKAGE PROGRAM…: ends with one sentence where one of them is missing.
need() {
  local program
  for program in "${@:2}"; do
    if ! command -v "$program" >/dev/null; then
      echo "$program is missing: install $1, and run this again." >&2
      exit 1
    fi
  done
}

# With a flag of the compiler. Both builds have the same settings, for the names of functions follow from them.
build() {
  CARGO_ENCODED_RUSTFLAGS=$1 cargo build --release --locked --package server --target "$target" "${@:2}"
}

# What is not called here is compiled as if there were no profile.
count_under_load() (
  home=$(mktemp --directory "$disk/timer-profile-XXXXXX")
  # The servers end with this subshell.
  # shellcheck source=scripts/bench_servers.sh
  . scripts/bench_servers.sh
  load() {
    "$built/counting/$target/release/timer" bench --embedded --directory "$home" "$@"
  }
  workloads=(w1 w1b w2 w2x cancels updates)
  # A database that the environment or a file .env names must not be used here.
  export BENCH_DATABASE_URL=
  load "${workloads[@]}"
  load mixed --pending 20000 --rate 500
  for store in postgres mariadb; do
    "start_$store"
    ask "$store" "CREATE DATABASE bench"
    load "${workloads[@]}" --database-url "${server[$store]}/bench" --leave
    load mixed --pending 20000 --rate 500 --database-url "${server[$store]}/bench" --leave
  done
)

need "rustup's component llvm-tools, or name it in LLVM_PROFDATA" "$profdata"
need binutils nm
mkdir --parents "$made"
if [[ -n $given ]]; then
  [[ $given == "$profile" ]] || cp "$given" "$profile"
else
  need MariaDB /usr/sbin/mariadbd mariadb-install-db mariadb
  # As bench_servers.sh looks for it.
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || need PostgreSQL initdb
  need Python python3
  # Where the counts go is a part of the program: the service under load has an environment of its own.
  build "-Cprofile-generate=$counted" --target-dir "$built/counting"
  rm -rf "$counted"
  count_under_load
  # Without the functions that were never called, which would be compiled for size.
  "$profdata" merge --sparse=true --output="$profile" "$counted"
fi
# Named by its content: Cargo compiles again what was compiled by another one.
rm -f "$made"/timer-*.profdata
used=$made/timer-$(sha256sum <"$profile" | head --bytes=16).profdata
cp "$profile" "$used"
build "-Cprofile-use=$used"

# A profile of other names does nothing, and nobody would notice. The store is a part of the service that the load generator does not have.
export LC_ALL=C
names=$(mktemp)
trap 'rm -f "$names"' EXIT
"$profdata" show --all-functions "$profile" | { grep --only-matching '_[RZ][A-Za-z0-9_.$]*store_sql[A-Za-z0-9_.$]*' || true; } |
  sort --unique >"$names"
counted_functions=$(wc --lines <"$names")
found=$(nm "$made/timer" | awk '{ print $NF }' | sort --unique | comm -12 - "$names" | wc --lines)
echo "$made/timer: of $counted_functions functions of the stores in the profile, $found have a symbol of their own"
if ((found == 0)); then
  echo "The profile is not of this program: was it made by another compiler, or with other settings?" >&2
  exit 1
fi
