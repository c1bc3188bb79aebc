#!/usr/bin/env bash
# What to run after each small change: formatting, lints, unit tests, conformance on SQLite and the model, 200 seeds of the
# simulation. No database server and no NATS server is started; `make test` does all the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

heading() { printf '\n=== %s ===\n' "$1"; }

scripts/need_rust.sh with-lints

heading "formatting"
cargo fmt --all --check

heading "arrows between crates"
scripts/check_arrows.py

heading "clippy"
cargo clippy --workspace --all-targets --locked -- -D warnings

heading "unit tests"
cargo test --workspace --locked --lib --bins \
  --exclude nats --exclude store-postgres --exclude throwaway -- --skip nats::tests

heading "conformance on SQLite and the model, scheduler, simulation with 200 seeds"
SIM_SEEDS=${SIM_SEEDS:-200} cargo test --locked \
  --package store-conformance --package store-sqlite --package scheduler --package engine --tests
