#!/usr/bin/env python3
"""Prints the medians of what `timer bench --against … --json FILE` has measured of both sides, as a table in Markdown.

bench_medians.py FILE OURS OTHER
"""

import json
import statistics
import sys

HEAD = ["workload", "pending", "database", "runs", "per second", "p50 ms", "p99 ms", "CPU µs each", "lost", "other load", "steal"]


def main() -> None:
    file, *names = sys.argv[1:]
    with open(file, encoding="utf-8") as text:
        comparison = json.load(text)
    groups: dict[tuple[str, int], list[dict]] = {}
    for pair in comparison["pairs"]:
        groups.setdefault((pair["ours"]["workload"], pair["ours"]["pending"]), []).append(pair)
    print("| " + " | ".join(HEAD) + " |")
    print("|---" * len(HEAD) + "|")
    for (workload, pending), pairs in groups.items():
        for side, name in zip(["ours", "other"], names, strict=True):
            runs = [pair[side] for pair in pairs]
            cells = [workload, f"{pending:,}", name, len(runs), *measured(runs)]
            print("| " + " | ".join(str(cell) for cell in cells) + " |")


def measured(runs: list[dict]) -> list[str]:
    """The lateness where there are calls, otherwise the answer times."""
    times = [run.get("lateness") or run.get("answers") or {} for run in runs]
    return [
        median([run["rate"] for run in runs], "{:,.0f}"),
        median([time.get("p50") for time in times], "{:.2f}"),
        median([time.get("p99") for time in times], "{:.2f}"),
        median([run.get("cpu_micros_each") for run in runs], "{:.1f}"),
        str(sum(run["lost"] for run in runs)),
        median([run["usage"].get("foreign_share") for run in runs], "{:.0%}"),
        median([run["usage"].get("stolen_share") for run in runs], "{:.1%}"),
    ]


def median(values: list, form: str) -> str:
    known = [value for value in values if value is not None]
    return form.format(statistics.median(known)) if known else "–"


if __name__ == "__main__":
    main()
