#!/usr/bin/env bash
# Prints the path of a TiDB server program: the one that TIDB_SERVER_BIN names, the one on PATH, or the one that an earlier run has
# built. With --build it is built where there is none: ten minutes of two cores, six gigabytes of disk while it lasts, and Go.
# It lies in a cache outside every checkout, so that one build serves them all. The crate `throwaway` looks at the same places.
set -euo pipefail

# A branch has no tag that Go accepts, so the state of branch release-8.5 is named by its time and commit. The parser is a module of
# its own and has to be of the same commit.
commit_time=20260903095844
commit=ac41d7e3c8fc
server_module=github.com/pingcap/tidb
server_version=v1.1.0-beta.0.$commit_time-$commit
parser_module=$server_module/pkg/parser
parser_version=v0.0.0-$commit_time-$commit
# The server ends at its start when another minor version of Go has built it.
toolchain=go1.25.12

cache=${XDG_CACHE_HOME:-$HOME/.cache}/timer-platform/tidb

is_server() {
  [[ -n $1 && -f $1 && -x $1 ]] && "$1" -V >/dev/null 2>&1
}

find_server() {
  local program
  for program in "${TIDB_SERVER_BIN:-}" "$(type -P tidb-server || true)" "$cache/tidb-server"; do
    if is_server "$program"; then
      echo "$program"
      return 0
    fi
  done
  return 1
}

# The directory of a module in Go's own cache, fetched if need be.
fetch() {
  (cd "$1" && go mod download -json "$2@$3") | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'
}

build_server() {
  local work parser server
  command -v go >/dev/null || return 1
  mkdir -p "$cache"
  work=$(mktemp --directory "$cache/build.XXXXXX")
  # shellcheck disable=SC2064 # The directory of this build, whatever the variable says later.
  trap "rm -rf '$work'" EXIT
  mkdir "$work/fetch"
  (cd "$work/fetch" && go mod init fetch) 2>/dev/null
  server=$(fetch "$work/fetch" "$server_module" "$server_version")
  parser=$(fetch "$work/fetch" "$parser_module" "$parser_version")
  cp --recursive --no-preserve=mode "$server" "$work/source"
  rm -rf "$work/source/pkg/parser"
  cp --recursive --no-preserve=mode "$parser" "$work/source/pkg/parser"
  (cd "$work/source" && GOTOOLCHAIN=$toolchain CGO_ENABLED=0 go build -p 2 -ldflags '-s -w' -o "$work/tidb-server" ./cmd/tidb-server)
  is_server "$work/tidb-server" && mv "$work/tidb-server" "$cache/tidb-server"
}

if find_server; then
  exit 0
fi
if [[ ${1:-} == --build ]]; then
  build_server >&2
  find_server && exit 0
fi
echo "There is no TiDB here: name one in TIDB_SERVER_BIN, put tidb-server on PATH, or run scripts/tidb.sh --build." >&2
exit 1
