#!/usr/bin/env python3
"""Fails when the API has an operation or a field that an SDK lacks, or that no scenario of the conformance suite uses.

    sdks/check_coverage.py [openapi.json]     without a document: that of TIMER_BIN, else of target/debug/timer

An operation is covered by a call in conformance/operations.json that a scenario makes and that the runner of each SDK knows; the runs
then show that it works. A field is covered when the sources of an SDK name it, in the case of their language. The packages of the SDKs
must have the version of the service.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

SDKS = Path(__file__).resolve().parent
ROOT = SDKS.parent
CONFORMANCE = SDKS / "conformance"

# Where each SDK has its sources and its runner of the conformance suite. One without a runner is named and not checked.
LANGUAGES = {
    "python": ("sdks/python/src/**/*.py", "sdks/python/tests/*.py"),
    "typescript": ("sdks/typescript/src/**/*.ts", "sdks/typescript/tests/*.ts"),
    "go": ("sdks/go/**/*.go", "sdks/go/**/*_test.go"),
    "java": ("sdks/java/src/main/**/*.java", "sdks/java/src/test/**/*.java"),
    "rust": ("crates/client/src/**/*.rs", "crates/client/tests/conformance/*.rs"),
}
# Where a package says its version; a Go module has it in its tag.
VERSIONS = {
    "sdks/python/pyproject.toml": r'^version = "(.+)"',
    "sdks/typescript/package.json": r'^  "version": "(.+)"',
    "sdks/java/pom.xml": r"^  <version>(.+)</version>",
}
METHODS = {"get", "put", "post", "delete", "patch"}
# What scenarios call by another name: see "Calls" in conformance/README.md.
IN_SCENARIOS = {"delay": "in", "execute_at": "at"}


def served() -> dict:
    """The document of a service with an empty store, which is thrown away."""
    binary = Path(os.environ.get("TIMER_BIN") or ROOT / "target" / "debug" / "timer").resolve()
    with tempfile.TemporaryDirectory() as directory:
        command = [str(binary), "dev", "--port", "0", "--ready-json"]
        environment = {"PATH": os.environ["PATH"], "HOME": directory}
        with subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                ready = json.loads(process.stdout.readline())
                with urllib.request.urlopen(ready["url"] + "/openapi.json") as answer:
                    return json.load(answer)
            finally:
                process.terminate()


class Document:
    def __init__(self, document: dict) -> None:
        self._document = document

    def operations(self) -> dict[str, dict]:
        found = {}
        for methods in self._document["paths"].values():
            for method, operation in methods.items():
                if method in METHODS:
                    found[operation["operationId"]] = operation
        return found

    def fields_in(self, operation: dict) -> set[str]:
        """What a request may say: members of its body, and parameters of its query."""
        parameters = {parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"}
        return parameters | self._members(operation.get("requestBody", {}), set())

    def fields_out(self, operation: dict) -> set[str]:
        """What a successful answer may say."""
        good = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
        return self._members(good, set()) - {"code", "message", "data"}

    def _members(self, node: object, seen: set[str]) -> set[str]:
        """The names of all properties below a node; references are followed once."""
        found: set[str] = set()
        if isinstance(node, list):
            for part in node:
                found |= self._members(part, seen)
        elif isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                found |= self._members(self._resolve(reference), seen)
            properties = node.get("properties")
            if isinstance(properties, dict):
                found |= set(properties)
                found |= self._members(list(properties.values()), seen)
            found |= self._members([part for name, part in node.items() if name not in ("properties", "example", "examples")], seen)
        return found

    def _resolve(self, reference: str) -> object:
        node: object = self._document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        return node


def spelled(field: str) -> re.Pattern[str]:
    """The field in snake_case, camelCase, PascalCase and CONSTANT_CASE, with a `_` behind where it is a word of the language."""
    words = field.split("_")
    camel = words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])
    pascal = camel[:1].upper() + camel[1:]
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{re.escape(field)}|{field.upper()}|{camel}|{pascal})_?(?![A-Za-z0-9_])")


def text_of(pattern: str, leave_out: str = "") -> str:
    paths = [path for path in ROOT.glob(pattern) if not (leave_out and path.match(leave_out))]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def is_left_out(name: str, patterns: dict[str, str]) -> bool:
    return any(re.fullmatch(pattern.replace("*", ".*"), name) for pattern in patterns)


def names_in(value: object) -> set[str]:
    """All names of members in a scenario."""
    if isinstance(value, list):
        return {name for part in value for name in names_in(part)}
    if isinstance(value, dict):
        return set(value) | {name for part in value.values() for name in names_in(part)}
    return set()


def complaints(document: Document, table: dict) -> list[str]:
    found = []
    operations = {name: each for name, each in document.operations().items() if not is_left_out(name, table["left_out"])}
    called = {operation for made in table["calls"].values() for operation in made}
    found += [f"no call of conformance/operations.json makes the operation {name}" for name in sorted(set(operations) - called)]
    found += [f"the API has no operation {name}, which conformance/operations.json names" for name in sorted(called - set(operations))]

    steps = [step for path in CONFORMANCE.glob("scenarios/*.json") for step in json.loads(path.read_text())["steps"]]
    used = {step["call"] for step in steps if "call" in step} | {"timers.watch" for step in steps if "watch" in step}
    found += [f"no scenario makes the call {name}" for name in sorted(set(table["calls"]) - used)]
    given = names_in(steps)

    fields_in = {field for each in operations.values() for field in document.fields_in(each)}
    fields_out = {field for each in operations.values() for field in document.fields_out(each)}
    fields_in = {field for field in fields_in if not is_left_out(field, table["left_out_fields"])}
    fields_out = {field for field in fields_out if not is_left_out(field, table["left_out_fields"])}
    found += [f"no scenario sends the field {field}" for field in sorted(fields_in) if IN_SCENARIOS.get(field, field) not in given]

    for language, (sources, runner) in LANGUAGES.items():
        source, tests = text_of(sources, leave_out="*_test.go"), text_of(runner)
        if not tests:
            print(f"{language}: not checked, it has no runner")
            continue
        missing = [f"{language}: its runner does not know the call {name}" for name in table["calls"] if not names(name, tests)]
        missing += [f"{language}: lacks the field {field}" for field in sorted(fields_in | fields_out) if not spelled(field).search(source)]
        print(f"{language}: {len(table['calls'])} calls, {len(fields_in | fields_out)} fields, {len(missing)} missing")
        found += missing
    return found


def other_versions() -> list[str]:
    """Packages that do not have the version of the service."""
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    found = []
    for file, pattern in VERSIONS.items():
        if (ROOT / file).exists():
            said = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
            if said is None or said[1] != version:
                found.append(f"{file} has not the version of Cargo.toml, {version}")
    return found


def names(call: str, tests: str) -> bool:
    """As a text, or as the name of a member. Watching is a step of its own."""
    if call == "timers.watch":
        return "watch" in tests
    return f'"{call}"' in tests or re.search(rf"^\s*{re.escape(call)}:", tests, re.MULTILINE) is not None


def main() -> None:
    document = json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else served()
    found = complaints(Document(document), json.loads((CONFORMANCE / "operations.json").read_text()))
    found += other_versions()
    for line in found:
        print(line, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
