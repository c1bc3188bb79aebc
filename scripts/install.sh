#!/bin/sh
# Installs the program of a release for Linux, once its checksum is that of the release's own list.
#
#   TIMER_RELEASE=https://github.com/OWNER/REPOSITORY/releases/download/vVERSION sh install.sh
#
# TIMER_RELEASE is where the files of the release are; the program goes to TIMER_PREFIX/bin, /usr/local/bin by default.
# The list guards against a damaged download. It is as trustworthy as the place that it comes from.
set -eu

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

fetch() {
  curl --fail --silent --show-error --location --output "$2" "$TIMER_RELEASE/$1" || fail "$TIMER_RELEASE/$1 could not be fetched"
}

# A function, so that nothing is done when only a part of this file arrives.
main() {
  [ -n "${TIMER_RELEASE:-}" ] || fail 'set TIMER_RELEASE to where the files of the release are'
  [ "$(uname -s)" = Linux ] || fail 'there are programs for Linux alone; elsewhere: cargo install --locked --path crates/server'
  prefix=${TIMER_PREFIX:-/usr/local}
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT

  fetch SHA256SUMS "$work/SHA256SUMS"
  grep --extended-regexp "  timer-[0-9][^ /]*-$(uname -m)-linux\.tar\.gz\$" "$work/SHA256SUMS" >"$work/wanted" ||
    fail "the release has no program for $(uname -m)"
  archive=$(cut -d ' ' -f 3 "$work/wanted")
  fetch "$archive" "$work/$archive"
  (cd "$work" && sha256sum --check --quiet wanted) || fail "$archive is damaged: nothing was installed"
  tar -xzf "$work/$archive" -C "$work"
  install -D -m 755 "$work/${archive%.tar.gz}/timer" "$prefix/bin/timer" || fail "$prefix/bin cannot be written: run this as root, or set TIMER_PREFIX"
  echo "$prefix/bin/timer: $("$prefix/bin/timer" --version)"
}

main
