#!/usr/bin/env bash
# Lints, tests, examples and conformance of every SDK whose toolchain is here, side by side; then the table scenario × language, and
# whether the SDKs have everything that the API has.
#
#   scripts/sdk_test.sh [LANGUAGE…]
#
# TIMER_BIN names the service; without it, target/debug/timer is used, and built where it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

# Nothing is compiled twice: cargo is told the same as by scripts/test.sh.
source scripts/lint_while_building.sh

heading() { printf '\n=== %s ===\n' "$1"; }

# A language is a function that says what it lacks here, if anything, and one that runs its tests and prints a line for each file of
# sdks/conformance.
lacks_python() {
  if ! command -v python3 >/dev/null; then
    echo python3
  elif ! python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "Python 3.10 with venv"
  fi
}
run_python() { sdks/python/test.sh; }

lacks_typescript() { lacks node npm; }
run_typescript() { sdks/typescript/test.sh; }

lacks_go() { lacks go; }
run_go() { sdks/go/test.sh; }

lacks_java() { lacks java mvn; }
run_java() { sdks/java/test.sh; }

lacks_rust() { lacks cargo; }
# From the build of the whole workspace: for one package alone its dependencies would be compiled again, with other features.
run_rust() {
  local test tests
  tests=$(cargo test --locked --workspace --no-run --message-format=json | python3 -c '
import json, sys
for built in map(json.loads, sys.stdin):
    if built.get("executable") and built["profile"]["test"] and "/crates/client#" in built["package_id"]:
        print(built["executable"])')
  for test in $tests; do (cd crates/client && "$test" --include-ignored --nocapture); done
}

# What starts the runner of a language. One that has none is left out, with a line that says so.
declare -A runners=(
  [python]=sdks/python/test.sh
  [typescript]=sdks/typescript/test.sh
  [go]=sdks/go/test.sh
  [java]=sdks/java/test.sh
  [rust]=crates/client/tests/conformance/main.rs
)

# The first of the given programs that is not installed.
lacks() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || { echo "$program"; return; }
  done
}

if [[ -z ${TIMER_BIN:-} ]]; then
  TIMER_BIN=${CARGO_TARGET_DIR:-target}/debug/timer
  [[ -x $TIMER_BIN ]] || cargo build --locked --package server
fi
TIMER_BIN=$(realpath "$TIMER_BIN")
export TIMER_BIN

work=$(mktemp -d)
declare -A running=()
# shellcheck disable=SC2329  # called by the trap
cleanup() {
  local language
  for language in "${!running[@]}"; do kill "${running[$language]}" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

heading "SDKs"
languages=("$@")
((${#languages[@]} > 0)) || languages=(python typescript go java rust)
for language in "${languages[@]}"; do
  missing=$("lacks_$language")
  if [[ ! -e ${runners[$language]} ]]; then
    echo "$language: left out, there is no ${runners[$language]}"
  elif [[ -n $missing ]]; then
    echo "$language: left out, $missing is not installed"
  else
    "run_$language" >"$work/$language.out" 2>"$work/$language.err" &
    running[$language]=$!
  fi
done

failed=()
tables=()
for language in "${languages[@]}"; do
  [[ -n ${running[$language]:-} ]] || continue
  tables+=("$language=$work/$language.out")
  began=$SECONDS
  if wait "${running[$language]}"; then
    echo "$language: passed"
    grep 'left out' "$work/$language.err" | sed "s/^/$language: /" || true
  else
    failed+=("$language")
    echo "$language: FAILED, after $((SECONDS - began)) s more"
    grep -v ' pass$' "$work/$language.out" | tail -40 || true
    tail -60 "$work/$language.err"
  fi
  unset "running[$language]"
done

heading "conformance"
((${#tables[@]} == 0)) || python3 sdks/table.py "${tables[@]}" || failed+=(conformance)

heading "coverage of the API"
sdks/check_coverage.py || failed+=(coverage)

if ((${#failed[@]} > 0)); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
