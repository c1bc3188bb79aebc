#!/usr/bin/env bash
# Everything that reads the code without running it; the quick ones first. `lint.sh text` stops before what compiles.
set -euo pipefail
cd "$(dirname "$0")/.."

heading() { printf '\n=== %s ===\n' "$1"; }

scripts/need_rust.sh with-lints

heading "formatting"
cargo fmt --all --check

heading "arrows between crates"
scripts/check_arrows.py --self-test
scripts/check_arrows.py

heading "links and spelling"
scripts/check_text.sh

if [[ ${1:-} == text ]]; then
  exit
fi

heading "licences, bans and sources of dependencies"
scripts/check_dependencies.sh

heading "clippy"
cargo clippy --workspace --all-targets --locked -- -D warnings
