#!/bin/sh
# Lints (every warning of javac is an error) and tests of the Java SDK and its examples. Prints a line `java NAME pass|fail` for each
# file of the conformance suite. TIMER_BIN names the binary of the service; CONFORMANCE_DIR the suite, if it is not beside this directory.
# One run of Maven: without the network if everything is there already.
set -eu
cd "$(dirname "$0")"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
mvn --batch-mode --quiet --offline test > "$log" 2>&1 || status=$?
if [ "$status" != 0 ] && grep -qE 'offline mode|has not been downloaded' "$log"; then
  status=0
  mvn --batch-mode --quiet test > "$log" 2>&1 || status=$?
fi
# Maven puts codes for colours in front of the first line even if it shows none.
sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -E '^java .* (pass|fail)$' || true
if [ "$status" != 0 ]; then
  grep -vE '^java .* pass$' "$log" >&2
fi
exit "$status"
