#!/bin/sh
# Lints and tests of the Go SDK and its examples. Prints a line `go NAME pass|fail` for each file of the conformance suite.
# TIMER_BIN names the binary of the service; CONFORMANCE_DIR the suite, if it is not beside this directory.
set -eu
cd "$(dirname "$0")"

unformatted=$(gofmt -l . ../../examples/go)
if [ -n "$unformatted" ]; then
  echo "gofmt: $unformatted" >&2
  exit 1
fi
go vet ./...
(cd ../../examples/go && go vet ./...)

if command -v staticcheck > /dev/null; then
  staticcheck ./...
else
  echo "staticcheck: left out, not installed" >&2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
go test -count=1 -race -v ./... > "$log" 2>&1 || status=$?
(cd ../../examples/go && go test -count=1 -v ./...) >> "$log" 2>&1 || status=$?
grep -E '^go .* (pass|fail)$' "$log" || true
if [ "$status" != 0 ]; then
  grep -vE '^(=== |--- PASS|    --- PASS|go .* pass$)' "$log" >&2
fi
exit "$status"
