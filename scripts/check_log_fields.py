#!/usr/bin/env python3
"""Compares the fields of the log with the table of them in the book: every field of a `tracing::…!` call, and no other.

Lists both kinds of differences and ends with 1 where there are any.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/book/src/reference/events.md"
CALL = re.compile(r"\btracing::(?:trace|debug|info|warn|error|event)!\(")
FIELD = re.compile(r"[%?]?([a-z_][\w.]*)\s*(?:=(?!=)|$)")
# Texts, which may hold brackets and commas, then what matters outside of them.
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|[()\[\]{},]', re.DOTALL)


def arguments(text: str, start: int) -> Iterator[str]:
    """The arguments of the call whose bracket was opened before `start`."""
    depth, begin = 1, start
    for token in TOKEN.finditer(text, start):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        if depth == 0 or (depth == 1 and token[0] == ","):
            yield text[begin : token.start()].strip()
            begin = token.end()
        if depth == 0:
            return


def fields_of(text: str) -> Iterator[str]:
    for call in CALL.finditer(text):
        for argument in arguments(text, call.end()):
            # The message ends the fields; what follows it is formatted into it.
            if argument.startswith(('"', "r\"")):
                break
            if field := FIELD.match(argument):
                yield field[1]


def logged() -> dict[str, pathlib.Path]:
    found: dict[str, pathlib.Path] = {}
    for file in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        for field in fields_of(file.read_text()):
            found.setdefault(field, file.relative_to(ROOT))
    return found


def documented() -> set[str]:
    section = PAGE.read_text().split("## Logs")[1].split("\n## ")[0]
    first_cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return {name for cell in first_cells for name in re.findall(r"`([\w.]+)`", cell)}


def main() -> None:
    in_code, in_book = logged(), documented()
    page = PAGE.relative_to(ROOT)
    faults = [f"{page} lacks `{field}`, which {in_code[field]} logs" for field in sorted(in_code.keys() - in_book)]
    faults += [f"{page} has `{field}`, which nothing logs" for field in sorted(in_book - in_code.keys())]
    if len(in_code) < 20:
        faults.append(f"only {len(in_code)} fields were found in the code: this check cannot read it any more")
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(in_code)} fields of the log")


if __name__ == "__main__":
    main()
