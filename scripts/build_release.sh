#!/usr/bin/env bash
# Builds the program as it is released: by a profile (profile-guided optimisation, see docs/adr/0019). A first build counts which way each
# branch goes while `timer bench` puts it under load, on SQLite, PostgreSQL and MariaDB; the second is compiled by what was counted. Takes
# three quarters of an hour on two processors, five minutes of it for the load.
#
#   scripts/build_release.sh [TARGET]      default: the target of this machine
#
# The program is left where `cargo build --release --target TARGET` leaves it, the profile beside it as timer.profdata. PROFILE=FILE names a
# profile that exists already: then nothing is measured, and the same compiler makes the same program of it. LLVM_PROFDATA is the program
# that merges what was counted (default: the one of rustup's component llvm-tools). BENCH_DIRECTORY says on which disk the databases are
# (default: /var/tmp).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need_rust.sh
host=$(rustc --version --verbose | sed -n 's/^host: //p')
target=${1:-$host}
built=${CARGO_TARGET_DIR:-$PWD/target}
profile=$built/$target/release/timer.profdata
merge=${LLVM_PROFDATA:-$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata}

build() {
  cargo build --release --locked --package server --target "$target" "$@"
}

# On each of the databases that SQL is spoken with. What is not called here is compiled as if there were no profile.
put_under_load() {
  local store workloads=(w1 w1b w2 w2x cancels updates)
  load "${workloads[@]}"
  load mixed --pending 20000 --rate 500
  for store in postgres mariadb; do
    "start_$store"
    ask "$store" "CREATE DATABASE bench"
    load "${workloads[@]}" --database-url "${server[$store]}/bench" --leave
    load mixed --pending 20000 --rate 500 --database-url "${server[$store]}/bench" --leave
  done
}

load() {
  LLVM_PROFILE_FILE=$home/counted/%m-%p.profraw "$built/counting/$target/release/timer" bench --embedded --directory "$home" "$@"
}

if [[ -z ${PROFILE:-} ]]; then
  if ! [[ -x $merge ]]; then
    echo "llvm-profdata is missing: install it (rustup component add llvm-tools), or name it in LLVM_PROFDATA, and run this again." >&2
    exit 1
  fi
  scripts/setup.sh
  # The names of functions are those of the second build only if both divide crates alike, which the link does not matter for.
  CARGO_PROFILE_RELEASE_LTO=off RUSTFLAGS="-Cprofile-generate" build --target-dir "$built/counting"
  home=$(mktemp --directory "${BENCH_DIRECTORY:-/var/tmp}/timer-profile-XXXXXX")
  # shellcheck source=scripts/bench_servers.sh
  . scripts/bench_servers.sh
  # A database that the environment names must not be used here.
  unset BENCH_DATABASE_URL
  put_under_load
  mkdir --parents "$(dirname "$profile")"
  # Without the functions that were never called, which would be compiled for size.
  "$merge" merge --sparse=true --output="$profile" "$home/counted"
else
  mkdir --parents "$(dirname "$profile")"
  cp "$PROFILE" "$profile"
fi
RUSTFLAGS="-Cprofile-use=$profile -Cllvm-args=-pgo-warn-missing-function=false" build
echo "$built/$target/release/timer"
