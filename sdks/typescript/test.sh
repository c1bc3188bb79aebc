#!/usr/bin/env bash
# Lints, both builds, unit tests and conformance of the TypeScript SDK. TIMER_BIN names the service.
set -euo pipefail
cd "$(dirname "$0")"

# Not `npm ci`: it refuses a lock file that lacks programs for other platforms.
if ! cmp --silent package-lock.json node_modules/.installed; then
  npm install --no-audit --no-fund --loglevel=error >&2
  cp package-lock.json node_modules/.installed
fi
export PATH="$PWD/node_modules/.bin:$PATH"

rm -rf dist build
biome ci --error-on-warnings . >&2
npm run --silent build >&2
tsc -p tsconfig.tests.json >&2

# What `npm install` does in the directory of the examples, without fetching anything again.
examples=../../examples/typescript
rm -rf "$examples/build"
mkdir -p "$examples/node_modules"
ln -sfn ../../../sdks/typescript "$examples/node_modules/timer-platform"
tsc -p "$examples" >&2

node --test --test-reporter=dot build/tests/*.test.js "$examples"/build/*/*.test.js >&2
node build/tests/conformance.js
