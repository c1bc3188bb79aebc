#!/usr/bin/env bash
# Generates clients from the OpenAPI document with two generators of the field, and compiles what a compiler is here for. What they
# stumble over is not what the document says but how it says it, and no validator tells.
#
#   scripts/check_openapi.sh [DOCUMENT]     without one: what target/debug/timer serves
set -euo pipefail
cd "$(dirname "$0")/.."

OPENAPI_GENERATOR=7.25.0
OAPI_CODEGEN=v2.8.1
TYPESCRIPT=5.9.3

heading() { printf '\n=== %s ===\n' "$1"; }

tools=${CARGO_TARGET_DIR:-target}/openapi-tools
work=$(mktemp -d)
service=
# shellcheck disable=SC2329  # called by the trap
cleanup() {
  if [[ -n $service ]]; then kill "$service" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT

# The document of a service on loopback with an empty database, which is thrown away.
served() {
  local timer port
  timer=$(realpath "${CARGO_TARGET_DIR:-target}/debug/timer")
  (cd "$work" && exec "$timer" dev --port 0 >dev.log 2>&1) &
  service=$!
  for _ in $(seq 200); do
    port=$(sed -n 's#.*API  *http://127\.0\.0\.1:\([0-9]*\).*#\1#p' "$work/dev.log")
    if [[ -n $port ]]; then
      curl -sSf "http://127.0.0.1:$port/openapi.json" -o "$work/openapi.json"
      return
    fi
    sleep 0.1
  done
  cat "$work/dev.log" >&2
  return 1
}

if [[ $# -gt 0 ]]; then cp "$1" "$work/openapi.json"; else served; fi

jar=$tools/openapi-generator-cli-$OPENAPI_GENERATOR.jar
if [[ ! -f $jar ]]; then
  mkdir -p "$tools"
  curl -sSf -o "$jar.part" \
    "https://repo1.maven.org/maven2/org/openapitools/openapi-generator-cli/$OPENAPI_GENERATOR/$(basename "$jar")"
  mv "$jar.part" "$jar"
fi

generate() {
  local language=$1
  shift
  heading "openapi-generator $OPENAPI_GENERATOR: $language"
  java -jar "$jar" generate -g "$language" -i "$work/openapi.json" -o "$work/$language" "$@" >"$work/$language.log" 2>&1 ||
    { tail -30 "$work/$language.log" >&2; return 1; }
  echo "$(find "$work/$language" -type f | wc -l) files"
}

generate python --additional-properties=packageName=timer_client
python3 -m compileall -q "$work/python/timer_client"

generate typescript-fetch
npx --yes --package "typescript@$TYPESCRIPT" tsc --noEmit --strict --target es2022 --module es2022 --moduleResolution bundler \
  --lib es2022,dom "$work/typescript-fetch/index.ts"

if command -v go >/dev/null; then
  # Constants of different enumerations have the same names otherwise.
  generate go --additional-properties=enumClassPrefix=true,isGoSubmodule=false --git-user-id example --git-repo-id timer
  rm -rf "$work/go/test"
  (cd "$work/go" && go mod tidy >/dev/null 2>&1 && go build ./...)

  heading "oapi-codegen $OAPI_CODEGEN: go"
  mkdir "$work/oapi"
  (
    cd "$work/oapi"
    go run "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$OAPI_CODEGEN" \
      -generate types,client -package timer -o client.go ../openapi.json
    go mod init example/timer >/dev/null 2>&1
    go mod tidy >/dev/null 2>&1
    go build ./...
  )
  echo "$(wc -l <"$work/oapi/client.go") lines"
elif [[ -n ${CI:-} ]]; then
  echo "go is not installed: two of the four clients cannot be generated" >&2
  exit 1
else
  echo "left out: go is not installed"
fi
