#!/usr/bin/env bash
# The whole of CI: set-up, lints, tests.
set -euo pipefail
cd "$(dirname "$0")/.."

heading() { printf '\n=== %s ===\n' "$1"; }

scripts/need_rust.sh with-lints

heading "set-up"
scripts/setup.sh

scripts/lint.sh

heading "tests"
cargo test --workspace --locked

heading "instructions of a create and of a fire"
cargo build --package server --release --locked
scripts/check_instructions.py "${CARGO_TARGET_DIR:-target}/release/timer"
