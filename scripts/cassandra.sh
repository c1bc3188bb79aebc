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
  local work
  command -v mvn >/dev/null || return 1
  mkdir -p "$cache"
  work=$(mktemp --directory "$cache/fetch.XXXXXX")
  # shellcheck disable=SC2064 # The directory of this run, whatever the variable says later.
  trap "rm -rf '$work'" EXIT
  cat >"$work/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>throwaway</groupId>
  <artifactId>cassandra</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
</project>
POM
  mvn --quiet --batch-mode --file "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    "-DoutputDirectory=$work/jars"
  # Another run may have been faster.
  mv --no-target-directory "$work/jars" "$cache/$version" 2>/dev/null || true
}

if find_jars; then
  exit 0
fi
if [[ ${1:-} == --fetch ]]; then
  fetch_jars >&2
  find_jars && exit 0
fi
echo "There is no Cassandra $version here: name its jars in CASSANDRA_JARS, or run scripts/cassandra.sh --fetch, which needs Maven." >&2
exit 1
