#!/usr/bin/env python3
"""Unpacks packages of another release of Debian into a directory of their own; nothing is installed.

    scripts/debian_packages.py SUITE DIRECTORY PACKAGE…

They come with the packages that they depend on, from the mirror that apt uses, each checked against the index of the release.
"""

import hashlib
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

# What is only needed to install a package, or is no library.
NOT_NEEDED = {"adduser", "debconf", "dpkg", "init-system-helpers", "lsb-base", "mysql-common", "passwd", "perl", "perl-base", "util-linux"}


def output_of(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=300) as answer:
        return answer.read()


def index_of(mirror: str, suite: str) -> dict[str, dict[str, str]]:
    architecture = output_of("dpkg", "--print-architecture").strip()
    text = lzma.decompress(read(f"{mirror}/dists/{suite}/main/binary-{architecture}/Packages.xz")).decode()
    entries = (dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", entry, re.MULTILINE)) for entry in text.split("\n\n"))
    return {entry["Package"]: entry for entry in entries if "Package" in entry}


def needed(index: dict[str, dict[str, str]], names: list[str]) -> list[str]:
    """The packages and what they depend on: of alternatives the first."""
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name in found or name in NOT_NEEDED or name not in index:
            continue
        found.add(name)
        depends = ",".join(index[name].get(field, "") for field in ("Depends", "Pre-Depends"))
        left += [re.sub(r"[ :(|].*", "", depended.strip()) for depended in depends.split(",") if depended.strip()]
    return sorted(found)


def main():
    suite, directory, *names = sys.argv[1:]
    mirrors = [uri.rstrip("/") for uri in output_of("apt-get", "indextargets", "--format", "$(REPO_URI)").split()]
    mirror = next(uri for uri in mirrors if uri.endswith("/debian"))
    index = index_of(mirror, suite)
    missing = [name for name in names if name not in index]
    if missing:
        sys.exit(f"{suite} has no package {', '.join(missing)}.")
    for name in needed(index, names):
        package = read(f"{mirror}/{index[name]['Filename']}")
        if hashlib.sha256(package).hexdigest() != index[name]["SHA256"]:
            sys.exit(f"{name} is not the package that the index of {suite} names.")
        with tempfile.NamedTemporaryFile(suffix=".deb") as file:
            file.write(package)
            file.flush()
            subprocess.run(["dpkg", "--extract", file.name, directory], check=True)
        print(name, index[name]["Version"], file=sys.stderr)
    # Programs are linked with /lib64/…, which packages of a merged /usr no longer bring.
    for link in ("bin", "lib", "lib64", "sbin"):
        path = pathlib.Path(directory, link)
        if not path.exists() and not path.is_symlink():
            path.symlink_to(f"usr/{link}")


if __name__ == "__main__":
    main()
