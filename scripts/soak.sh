#!/usr/bin/env bash
# What takes too long for every change: the fault suite at scale, 100,000 seeds of the simulation, and the tests that need
# minutes of load or gigabytes of disk, on an optimised build. Several hours.
set -euo pipefail
cd "$(dirname "$0")/.."

heading() { printf '\n=== %s ===\n' "$1"; }

scripts/need_rust.sh
scripts/setup.sh

heading "simulation"
SIM_SEEDS=${SIM_SEEDS:-100000} cargo test --locked --package engine --test simulation -- --nocapture

heading "load and size, optimised"
cargo test --release --locked --package server --test e2e -- --ignored --nocapture

heading "fairness between tenants"
cargo build --release --locked --package server
scripts/fairness.py "${CARGO_TARGET_DIR:-target}/release/timer"

heading "faults"
scripts/fault.sh
