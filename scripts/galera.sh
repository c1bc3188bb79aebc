#!/usr/bin/env bash
# Fetches what MariaDB servers need to replicate to each other (Galera), for a test that `make soak` runs: packages of Debian of the
# version that is installed here, unpacked into target/tools/galera and not installed. The crate `throwaway` looks for them there.
set -euo pipefail
cd "$(dirname "$0")/.."

home=$PWD/target/tools/galera
packages=(galera-4 mariadb-server rsync libpopt0)

if [[ -f $home/usr/lib/galera/libgalera_smm.so ]]; then
  exit 0
fi
part=$home.part
rm -rf "$part"
mkdir -p "$part/packages"
if ! (cd "$part/packages" && apt-get download "${packages[@]}") >/dev/null 2>"$part/complaint"; then
  cat "$part/complaint" >&2
  echo "Galera could not be fetched: it needs apt and the packages ${packages[*]}." >&2
  exit 1
fi
for package in "$part"/packages/*.deb; do
  dpkg --extract "$package" "$part"
done
rm -rf "$part/packages" "$part/complaint" "$home"
chmod 755 "$part"
mv "$part" "$home"
