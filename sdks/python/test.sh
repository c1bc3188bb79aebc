#!/usr/bin/env bash
# Lints, types, unit tests and conformance of the Python SDK. TIMER_BIN names the service; the environment is kept in
# target/tools/sdk-python of the checkout.
set -euo pipefail
cd "$(dirname "$0")"

home=${SDK_TOOLS:-$PWD/../../target/tools}/sdk-python
if ! cmp --silent requirements.txt "$home/installed"; then
  rm -rf "$home"
  python3 -m venv "$home"
  PIP_DISABLE_PIP_VERSION_CHECK=1 "$home/bin/pip" install --quiet --only-binary=:all: --requirement requirements.txt
  cp requirements.txt "$home/installed"
fi
export PATH="$home/bin:$PATH" PYTHONPATH="$PWD/src" PYTHONDONTWRITEBYTECODE=1

examples=../../examples/python
ruff format --config pyproject.toml --check --quiet . "$examples"
ruff check --config pyproject.toml --quiet . "$examples"
mypy --cache-dir "$home/mypy" >&2
for example in "$examples"/*/*.py; do mypy --cache-dir "$home/mypy" "$example"; done >&2
pytest -p timer_platform.pytest_plugin -p no:cacheprovider tests "$examples" >&2
python tests/conformance.py "$@"
