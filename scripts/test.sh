#!/usr/bin/env bash
# The whole of CI: set-up, lints, tests. Everything is compiled once, by clippy.
set -euo pipefail
cd "$(dirname "$0")/.."

heading() { printf '\n=== %s ===\n' "$1"; }

scripts/need_rust.sh with-lints

heading "set-up"
scripts/setup.sh

scripts/lint.sh text

# With the idle time of the tests, most of which wait.
dependencies=$(mktemp)
nice -n 19 scripts/check_dependencies.sh >"$dependencies" 2>&1 &
checking=$!
trap 'rm -f "$dependencies"; kill "$checking" 2>/dev/null || true' EXIT

heading "build and clippy"
source scripts/lint_while_building.sh
cargo test --workspace --locked --no-run

# For examples that are tests of a service.
export TIMER_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug/timer

heading "unit tests, conformance, brokers and databases"
scripts/run_tests.py --workspace --locked --lib --bins --examples --test '[!e]*'
cargo test --workspace --locked --doc

# Most of these tests wait for a time to come; what limits those that work is in crates/server/tests/e2e/rig/machine.rs.
heading "promises"
scripts/run_tests.py --workspace --locked --test e2e -- --test-threads "${E2E_THREADS:-12}"

# After the promises, whose limits of time they would strain.
scripts/sdk_test.sh || { heading "SDKs, once more"; scripts/sdk_test.sh; }

heading "the code of the book"
scripts/book_test.py

# Not beside the promises: both want all of the machine, and pages are held to limits of time.
heading "the console in a browser"
scripts/browser_test.sh

heading "licences, bans and sources of dependencies"
wait "$checking" || { cat "$dependencies"; exit 1; }
cat "$dependencies"
