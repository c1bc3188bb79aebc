#!/usr/bin/env bash
# Builds and starts `timer dev`.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need_rust.sh
exec cargo run --release --locked --bin timer -- dev
