#!/usr/bin/env bash
# Prints the directory of the jars of DynamoDB Local: the one that DYNAMODB_LOCAL_JARS names, or the one that an earlier run has fetched.
# With --fetch they are fetched from Maven Central where there are none: 50 MB, with Maven. They lie in a cache outside every checkout.
# The crate `throwaway` looks at the same places. A server needs Java 17 besides.
set -euo pipefail

version=2.6.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/timer-platform/dynamodb

find_jars() {
  local directory
  for directory in "${DYNAMODB_LOCAL_JARS:-}" "$cache/$version"; do
    if [[ -n $directory && -n $(compgen -G "$directory/DynamoDBLocal-*.jar") ]]; then
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
  <artifactId>dynamodb</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>com.amazonaws</groupId>
      <artifactId>DynamoDBLocal</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
</project>
POM
  # The engine below it, SQLite, comes as a library beside the jars.
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
echo "There is no DynamoDB Local $version here: name its jars in DYNAMODB_LOCAL_JARS, or run scripts/dynamodb.sh --fetch, which needs Maven." >&2
exit 1
