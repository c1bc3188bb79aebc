#!/usr/bin/env bash
# Counts the instructions of a create and of a fire on an optimised build, and refuses a rise.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need_rust.sh with-lints
scripts/setup.sh

cargo build --package server --release --locked
scripts/check_instructions.py "${CARGO_TARGET_DIR:-target}/release/timer"
