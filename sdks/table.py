#!/usr/bin/env python3
"""Prints the table scenario × language from the lines of the runners; fails unless every cell is a pass.

    sdks/table.py LANGUAGE=FILE…     FILE has lines `LANGUAGE NAME pass` and `LANGUAGE NAME fail REASON`; a language may print for several
"""
from __future__ import annotations

import sys
from pathlib import Path

CONFORMANCE = Path(__file__).resolve().parent / "conformance"


def rows() -> list[str]:
    vectors = [f"vectors/{path.stem}" for path in sorted(CONFORMANCE.glob("vectors/*.json"))]
    return vectors + [path.stem for path in sorted(CONFORMANCE.glob("scenarios/*.json"))]


def read(arguments: list[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The cells of each column, and the reasons of failures. A language that printed nothing has an empty column."""
    columns: dict[str, dict[str, str]] = {}
    reasons = []
    for argument in arguments:
        language, _, file = argument.partition("=")
        columns.setdefault(language, {})
        for line in Path(file).read_text(encoding="utf-8", errors="replace").splitlines():
            column, name, verdict, *reason = line.split(" ", 3) + [""] * 3
            if column.split("-")[0] == language and verdict in ("pass", "fail"):
                columns.setdefault(column, {})[name] = verdict
                if verdict == "fail":
                    reasons.append(f"{column} {name}: {reason[0]}")
    return columns, reasons


def main() -> None:
    columns, reasons = read(sys.argv[1:])
    wide = max(map(len, rows()))
    print(" " * wide, *columns)
    good = True
    for name in rows():
        cells = [cells.get(name, "-") for cells in columns.values()]
        good = good and set(cells) <= {"pass"}
        print(name.ljust(wide), *(cell.ljust(len(column)) for column, cell in zip(columns, cells)))
    for reason in reasons:
        print(reason)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
