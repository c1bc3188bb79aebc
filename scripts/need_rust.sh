#!/usr/bin/env bash
# Ends with one sentence when the code cannot be compiled here.
set -euo pipefail

if ! command -v cargo >/dev/null; then
  echo "Cargo is missing: install Rust from https://rustup.rs and run this again." >&2
  exit 1
fi
# The bundled SQLite and the TLS library are compiled from C.
if ! command -v cc >/dev/null; then
  echo "A C compiler is missing: install the package gcc (or clang) and run this again." >&2
  exit 1
fi
