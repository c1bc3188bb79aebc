#!/usr/bin/env bash
# Makes what a release consists of from a program that is built: a Debian package, an archive, a list of its components (SBOM) where
# cargo-cyclonedx is installed, and their checksums. But for that list, which has a number and a time of its own, two runs over the same
# program and commit give the same bytes.
# Usage: scripts/package.sh BINARY DIRECTORY      PACKAGE_LEVEL=1 compresses less, for a quick check
set -euo pipefail
cd "$(dirname "$0")/.."

binary=$(realpath "$1")
mkdir -p "$2"
into=$(realpath "$2")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
machine=$(uname -m)
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
level=${PACKAGE_LEVEL:-9}

# Everything has the time of the commit, so that the same commit is the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

archive() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --create --directory "$work" "$1" |
    gzip --no-name "-$level" >"$2"
}

# A static program needs nothing; any other at least the C library that it was linked with.
dependencies() {
  local needed
  needed=$(readelf --version-info "$binary" 2>/dev/null | grep --only-matching 'GLIBC_[0-9.]*' | sort --version-sort | tail -1 || true)
  if [[ -n $needed ]]; then
    echo "libc6 (>= ${needed#GLIBC_}), libgcc-s1"
  fi
}

debian_package() {
  local root=$work/deb depends
  install -D --mode=755 "$binary" "$root/usr/bin/timer"
  install -D --mode=644 deploy/systemd/timer.service "$root/usr/lib/systemd/system/timer.service"
  install -D --mode=600 .env.example "$root/etc/timer/timer.env"
  install -D --mode=644 deploy/debian/copyright "$root/usr/share/doc/timer/copyright"
  install -D --mode=644 deploy/debian/lintian-overrides "$root/usr/share/lintian/overrides/timer"
  install -d "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions"
  "$binary" man "$root/usr/share/man/man1"
  gzip --no-name --best "$root"/usr/share/man/man1/*
  "$binary" completion bash >"$root/usr/share/bash-completion/completions/timer"
  gzip --no-name --best <CHANGELOG.md >"$root/usr/share/doc/timer/CHANGELOG.md.gz"
  sed -e "s/@VERSION@/$version/" -e "s/@DATE@/$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")/" deploy/debian/changelog |
    gzip --no-name --best >"$root/usr/share/doc/timer/changelog.gz"
  install -d "$root/DEBIAN"
  install --mode=755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$root/DEBIAN/"
  install --mode=644 deploy/debian/conffiles "$root/DEBIAN/"
  depends=$(dependencies)
  sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" \
    -e "s/@INSTALLED_SIZE@/$(du --summarize --apparent-size --block-size=1024 "$root" | cut --fields=1)/" \
    -e "$([[ -n $depends ]] && echo "s/@DEPENDS@/$depends/" || echo '/@DEPENDS@/d')" deploy/debian/control >"$root/DEBIAN/control"
  find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb -Zxz "-z$level" --root-owner-group --build "$root" "$into/timer_${version}_$architecture.deb" >/dev/null
}

plain_archive() {
  local name=timer-$version-$machine-linux
  install -D --mode=755 "$binary" "$work/$name/timer"
  install --mode=644 README.md LICENSE CHANGELOG.md .env.example deploy/systemd/timer.service "$work/$name/"
  archive "$name" "$into/$name.tar.gz"
}

# What the program is made of, for operators who must know when a part of it has a flaw.
components() {
  local library=musl
  if [[ ${PACKAGE_SBOM:-on} == on ]] && cargo cyclonedx --version >/dev/null 2>&1; then
    # What is linked differs with the processor and with the C library.
    [[ -z $(dependencies) ]] || library=gnu
    cargo cyclonedx --quiet --manifest-path crates/server/Cargo.toml --format json --override-filename timer.cdx \
      --target "$machine-unknown-linux-$library"
    mv crates/server/timer.cdx.json "$into/timer-$version-$machine.cdx.json"
    find crates -name timer.cdx.json -delete
  fi
}

debian_package
plain_archive
components
(cd "$into" && sha256sum timer* | LC_ALL=C sort --key=2 >SHA256SUMS)
