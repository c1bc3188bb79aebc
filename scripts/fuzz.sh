#!/usr/bin/env bash
# Lets a fuzzer make up inputs, guided by coverage: scripts/fuzz.sh [TARGET…], FUZZ_SECONDS each (600).
# A stable compiler is enough: it can count coverage, and the address sanitizer that only a nightly one has would find nothing in
# this repository, which has no `unsafe` in what is tried here.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
  for file in fuzz/fuzz_targets/*.rs; do
    targets+=("$(basename "$file" .rs)")
  done
fi

host=$(rustc --version --verbose | sed -n 's/^host: //p')
# With a named target, these do not apply to build scripts and macros.
export RUSTFLAGS="--cfg fuzzing -C debug-assertions -C codegen-units=1 -C passes=sancov-module
  -C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-inline-8bit-counters
  -C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares"
cargo build --release --manifest-path fuzz/Cargo.toml --target "$host" --target-dir target/fuzz --bins

for target in "${targets[@]}"; do
  mkdir -p "fuzz/corpus/$target" fuzz/artifacts
  "target/fuzz/$host/release/$target" -max_total_time="${FUZZ_SECONDS:-600}" -artifact_prefix="fuzz/artifacts/$target-" -print_final_stats=1 \
    "fuzz/corpus/$target" "fuzz/seeds/$target"
done
