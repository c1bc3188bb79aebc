#!/usr/bin/env bash
# Checks what is written for people: every link between files, the table of the fields of the log, and the spelling of Markdown, scripts and
# deploy/. Fetches the speller once, into target/tools/typos; where that cannot be had, only spelling is left out, and that not under CI.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.51.1
home=$PWD/target/tools/typos

# The wheel holds the program and no Python at all.
install_typos() {
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --only-binary=:all: \
    --upgrade --target "$home" "typos==$version"
}

scripts/check_links.py
scripts/check_log_fields.py

if [[ $("$home/bin/typos" --version 2>/dev/null) != "typos-cli $version" ]] && ! install_typos; then
  echo "spelling is not checked: typos $version could not be installed from PyPI" >&2
  if [[ -n ${CI:-} ]]; then
    exit 1
  fi
  exit
fi
git ls-files --cached --others --exclude-standard -z -- '*.md' '.env.example' scripts deploy |
  xargs --null --no-run-if-empty "$home/bin/typos" --force-exclude
echo "spelling"
