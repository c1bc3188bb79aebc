#!/usr/bin/env bash
# Ends with one sentence when the code cannot be compiled here.
set -euo pipefail

if ! command -v cargo >/dev/null; then
  echo "Cargo is missing: install Rust from https://rustup.rs and run this again." >&2
  exit 1
fi
# Components that rustup's minimal profile lacks are needed for the tests only, so `make run` does not require them.
if [[ ${1:-} == with-lints ]]; then
  for tool in rustfmt cargo-clippy python3; do
    if ! command -v "$tool" >/dev/null; then
      echo "$tool is missing: install it (rustup component add rustfmt clippy; python3 comes from your system) and run this again." >&2
      exit 1
    fi
  done
fi
# The bundled SQLite and the TLS library are compiled from C.
if ! command -v cc >/dev/null; then
  echo "A C compiler is missing: install the package gcc (or clang) and run this again." >&2
  exit 1
fi
