#!/usr/bin/env bash
# The fault suite for longer than a build has time for: real processes on real servers, most on PostgreSQL, killed, paused and cut off.
# FAULT_SCALE multiplies the number of faults (30 takes about an hour and a half); FAULT_SEED repeats the choices of a run.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need_rust.sh
scripts/setup.sh

export FAULT_SCALE="${FAULT_SCALE:-30}"
cargo test --package server --test e2e --locked -- --nocapture --include-ignored --test-threads=1 faults:: nodes::pauses nodes::stopping
