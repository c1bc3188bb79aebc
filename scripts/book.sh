#!/usr/bin/env bash
# Builds the book of docs/book into target/book/html. Compiles mdBook once, into target/tools/mdbook, where there is none on PATH: without
# its own server, which takes half of the time.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
home=$PWD/target/tools/mdbook

if [[ -x $home/bin/mdbook ]]; then
  mdbook=$home/bin/mdbook
elif ! mdbook=$(type -P mdbook); then
  echo "compiling mdBook $version, once" >&2
  CARGO_TARGET_DIR=$home/build cargo install --quiet --locked --root "$home" --no-default-features --features search "mdbook@$version"
  rm -rf "$home/build"
  mdbook=$home/bin/mdbook
fi

python3 scripts/stage_book.py target/book/stage
"$mdbook" build --dest-dir "$PWD/target/book/html" target/book/stage
echo "target/book/html/index.html"
