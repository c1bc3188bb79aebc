#!/usr/bin/env bash
# Holds the dependencies against deny.toml.
#
# cargo-deny is compiled here, once, without optimisation (about a minute and a half on two cores): the binaries that package
# registries offer are too old for the answers of today's cargo.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
tools=$PWD/target/tools
deny=$tools/bin/cargo-deny

if [[ $("$deny" --version 2>/dev/null || true) != "cargo-deny $version" ]]; then
  CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --version "$version" --locked --debug --quiet --root "$tools"
fi

# Advisories are left out: their database is a Git repository that not every build machine can reach.
"$deny" --locked check --hide-inclusion-graph licenses bans sources
