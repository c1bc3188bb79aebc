#!/usr/bin/env bash
# The console in a real browser, on both stores: tests/browser in several processes, each with Chromium and services of its own.
#
#   scripts/browser_test.sh [BINARY] [PYTEST-OPTION…]     without a binary: target/debug/timer
#
#   --screenshots DIRECTORY    pictures of every page at three widths, in both themes
#   --many-timers COUNT        how many timers the budgets are checked with, 5,000 unless given; with SOAK=1 the
#                              limits are those that are promised, for an idle machine and an optimised build
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${CARGO_TARGET_DIR:-target}/debug/timer
if [[ $# -gt 0 && $1 != -* && -x $1 ]]; then
  binary=$1
  shift
fi

scripts/setup.sh

# What pip installed for this checkout, and nothing that a developer has beside it.
export PYTHONPATH=$PWD/target/tools/python
export PYTHONDONTWRITEBYTECODE=1
TIMER_BINARY=$(realpath "$binary")
export TIMER_BINARY
# Nothing outlives the run, so that nothing waits for a disk where memory has room for it. What SOAK=1 measures does wait.
if [[ ${SOAK:-} != 1 && -w /dev/shm && $(df --output=avail --block-size=1M /dev/shm | tail -1) -gt 2048 ]]; then
  export TMPDIR=/dev/shm
fi
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
run() { python3 -m pytest tests/browser --quiet --override-ini "cache_dir=$cache" --dist loadscope "$@"; }

# One process for each part of the suite, of which one waits for an operation for long.
# As scripts/run_tests.py does: a test that failed on a machine that stood still passes when it runs alone.
run --numprocesses "${BROWSER_PROCESSES:-5}" "$@" && exit
[[ -s $cache/v/cache/lastfailed ]] || exit 1
printf '\n=== once more, one at a time ===\n'
run --numprocesses 1 --last-failed "$@"
