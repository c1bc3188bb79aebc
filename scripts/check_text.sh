#!/usr/bin/env bash
# Checks what is written for people: every link between files, the table of the fields of the log, the length of lines of prose, and the
# spelling of Markdown, scripts and deploy/. Fetches the speller once, into target/tools/typos; where that cannot be had, only spelling is
# left out, and that not under CI.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.51.1
home=$PWD/target/tools/typos

# The wheel holds the program and no Python at all.
install_typos() {
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --only-binary=:all: \
    --upgrade --target "$home" "typos==$version"
}

# Lines of prose in Markdown: tables, code, what is generated, and the targets of links may be longer.
check_lines() {
  git ls-files --cached --others --exclude-standard -z -- '*.md' ':!bench/results' | LC_ALL=C xargs --null awk '
    FNR == 1 { is_code = is_generated = 0 }
    /^ *```/ { is_code = !is_code }
    /^<!-- Generated/ { is_generated = 1 }
    { text = $0; gsub(/\]\([^)]*\)|https?:[^ ]*/, "]", text) }
    length(text) > 140 && !is_code && !is_generated && !/^ *\|/ { print FILENAME ":" FNR ": more than 140 bytes of prose in a line"; is_bad = 1 }
    END { exit is_bad }' >&2
  echo "lines of prose"
}

scripts/check_links.py
scripts/check_log_fields.py
check_lines

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
