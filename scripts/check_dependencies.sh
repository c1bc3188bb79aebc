#!/usr/bin/env bash
# Holds the dependencies against deny.toml: licences, bans and sources always, advisories where their database can be reached.
#
# cargo-deny is compiled once for all checkouts, without optimisation (about a minute and a half on two cores): the binaries that
# package registries offer are too old for the answers of today's cargo.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
tools=${XDG_CACHE_HOME:-$HOME/.cache}/timer-platform/cargo-deny
deny=$tools/bin/cargo-deny
advisories=https://github.com/rustsec/advisory-db

if [[ $("$deny" --version 2>/dev/null || true) != "cargo-deny $version" ]]; then
  CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --version "$version" --locked --debug --quiet --root "$tools"
fi

checks=(licenses bans sources)
# A build machine without the Internet must not fail for it; one with a slow connection must not hang.
if GIT_TERMINAL_PROMPT=0 timeout 20 git ls-remote --quiet "$advisories" HEAD >/dev/null 2>&1; then
  checks=(advisories "${checks[@]}")
else
  echo "Advisories were not checked: $advisories cannot be reached from here."
fi
"$deny" --locked check --hide-inclusion-graph "${checks[@]}"
