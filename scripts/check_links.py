#!/usr/bin/env python3
"""Checks every link between files of this repository, offline: that the file is there, and the heading in it.

Reads all Markdown, and in all other text files what looks like the path of a page or image of docs/. Pages of the book must be in its
SUMMARY.md and say in their first sentence for whom they are, and decisions must be in its list of them.
"""

import pathlib
import re
import subprocess
import sys

from book_text import anchors, outside_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs/book/src"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)
PATH = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|png|svg)(?:#[\w-]+)?")


def files() -> list[pathlib.Path]:
    """Every text file under version control, and those that will be."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    there = [ROOT / name for name in listed.stdout.splitlines()]
    return [file for file in there if file.is_file() and file.suffix not in {".png", ".svg", ".lock"}]


def links_of(file: pathlib.Path) -> list[str]:
    """The links of a file, those to other servers left out."""
    text = file.read_text(errors="replace")
    found: list[str] = []
    if file.suffix == ".md":

        def note(part: str) -> str:
            found.extend(first or second for first, second in LINK.findall(part))
            return part

        outside_code(text, note)
    elif file.name != "CHANGELOG.md":
        found = [f"/{path}" for path in PATH.findall(text)]
    return [link for link in found if "://" not in link and not link.startswith("mailto:")]


def fault(file: pathlib.Path, link: str) -> str | None:
    path, _, anchor = link.partition("#")
    target = ROOT / path[1:] if path.startswith("/") else (file.parent / path).resolve() if path else file
    if not target.exists():
        return "there is no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
        return "there is no such heading"
    return None


def main() -> None:
    faults = []
    count = 0
    for file in files():
        for link in links_of(file):
            count += 1
            if reason := fault(file, link):
                faults.append(f"{file.relative_to(ROOT)}: {link}: {reason}")

    summary = (SOURCES / "SUMMARY.md").read_text()
    for page in SOURCES.rglob("*.md"):
        if page.name != "SUMMARY.md" and f"({page.relative_to(SOURCES)})" not in summary:
            faults.append(f"{page.relative_to(ROOT)} is not in SUMMARY.md")
        if page.name != "SUMMARY.md" and not re.match(r"# .+\n\n(?:<!--.*-->\n\n)?For ", page.read_text()):
            faults.append(f"{page.relative_to(ROOT)} does not say first for whom it is (`For …`)")
    decisions = (SOURCES / "about/decisions.md").read_text()
    for page in (ROOT / "docs/adr").glob("*.md"):
        if f"/{page.name})" not in decisions:
            faults.append(f"{page.relative_to(ROOT)} is not in docs/book/src/about/decisions.md")

    if faults:
        sys.exit("\n".join(faults))
    print(f"{count} links")


if __name__ == "__main__":
    main()
