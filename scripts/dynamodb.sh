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
  "$(dirname "$0")/maven_jars.sh" com.amazonaws DynamoDBLocal "$version" "$cache/$version"
}

if find_jars; then
  exit 0
fi
if [[ ${1:-} == --fetch ]]; then
  fetch_jars >&2 && find_jars && exit 0
fi
echo "There is no DynamoDB Local $version here: name its jars in DYNAMODB_LOCAL_JARS, or run scripts/dynamodb.sh --fetch, which needs Maven." >&2
exit 1
