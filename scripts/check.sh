#!/usr/bin/env bash
# What to run after each small change: formatting, lints, unit tests, conformance on SQLite and the model, 200 seeds of the
# simulation. No database server and no NATS server is started; `make test` does all the rest, and shares what is compiled here.
set -euo pipefail
cd "$(dirname "$0")/.."

heading() { printf '\n=== %s ===\n' "$1"; }

scripts/lint.sh text

heading "build and clippy"
source scripts/lint_while_building.sh
cargo test --workspace --locked --no-run

# Of these crates the unit tests start servers, as those of every store do whose database is one.
servers=(nats throwaway)
for manifest in $(grep --files-with-matches '^throwaway' crates/store-*/Cargo.toml); do
  servers+=("$(basename "$(dirname "$manifest")")")
done
heading "unit tests"
cargo test --workspace --locked --lib --bins "${servers[@]/#/--exclude=}" -- --skip nats::tests

heading "conformance on SQLite and the model, migrations, scheduler, properties, simulation with 200 seeds"
cargo test --workspace --locked \
  --test conformance --test measured --test migrations --test model --test planted_bugs --test properties --test scheduler \
  --test simulation
