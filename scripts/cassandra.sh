#!/usr/bin/env bash
# Prints the directory of the jars of Cassandra CASSANDRA_VERSION: the one that CASSANDRA_JARS names, or the one that an earlier run has
# fetched. With --fetch they are fetched from Maven Central where there are none: 70 MB, with Maven. They lie in a cache outside every
# checkout. The crate `throwaway` looks at the same places. A server needs Java 11 or 17 besides.
set -euo pipefail

version=${CASSANDRA_VERSION:-5.0.9}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/timer-platform/cassandra

find_jars() {
  local directory
  for directory in "${CASSANDRA_JARS:-}" "$cache/$version"; do
    if [[ -n $directory && -n $(compgen -G "$directory/jamm-*.jar") ]]; then
      echo "$directory"
      return 0
    fi
  done
  return 1
}

fetch_jars() {
  "$(dirname "$0")/maven_jars.sh" org.apache.cassandra cassandra-all "$version" "$cache/$version"
}

if find_jars; then
  exit 0
fi
if [[ ${1:-} == --fetch ]]; then
  fetch_jars >&2 && find_jars && exit 0
fi
echo "There is no Cassandra $version here: name its jars in CASSANDRA_JARS, or run scripts/cassandra.sh --fetch, which needs Maven." >&2
exit 1
