#!/usr/bin/env bash
# Fetches a package from Maven Central, and all that it needs, into a directory: scripts/maven_jars.sh GROUP ARTIFACT VERSION DIRECTORY
# Libraries that are not Java come beside the jars.
set -euo pipefail

group=$1 artifact=$2 version=$3 directory=$4

if ! command -v mvn >/dev/null; then
  echo "Maven is missing: $artifact $version cannot be fetched." >&2
  exit 1
fi
mkdir -p "$(dirname "$directory")"
work=$(mktemp --directory "$directory.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>throwaway</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>$group</groupId>
      <artifactId>$artifact</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --quiet --batch-mode --file "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$work/jars"
# Another run may have been faster.
mv --no-target-directory "$work/jars" "$directory" 2>/dev/null || true
