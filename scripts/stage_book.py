#!/usr/bin/env python3
"""Gathers what mdBook builds: stage_book.py DIRECTORY.

The sources of the book are docs/book. Some of its pages have their home elsewhere in the repository, and are joined to it here:
ARCHITECTURE.md, CHANGELOG.md, SECURITY.md and the decisions of docs/adr. Links are written so that they hold in the repository; here
they are turned to the pages of the book. Images of other directories are copied. What a link names beside that is not part of the
book: it becomes plain text, or a link below BOOK_REPOSITORY, if that is set, such as https://git.example/timer/blob/main.
"""

import os
import pathlib
import re
import shutil
import sys

from book_text import outside_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs/book"
SOURCES = BOOK / "src"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
INCLUDE = re.compile(r"^\{\{#include (\S+)\}\}$", re.MULTILINE)
IMAGES = {".png", ".svg"}


def joined() -> dict[pathlib.Path, str]:
    """Pages with a home outside of the book, and where they stand in it."""
    pages = {ROOT / f"{name.upper()}.md": f"about/{name}.md" for name in ("architecture", "changelog", "security")}
    return pages | {page: f"about/adr/{page.name}" for page in sorted((ROOT / "docs/adr").glob("*.md"))}


def title(page: pathlib.Path) -> str:
    return page.read_text().split("\n", 1)[0].lstrip("# ")


class Stage:
    def __init__(self, target: pathlib.Path) -> None:
        self.sources = target / "src"
        self.joined = joined()
        self.repository = os.environ.get("BOOK_REPOSITORY", "").rstrip("/")

    def place(self, file: pathlib.Path) -> str | None:
        """Where a file of the repository stands in the book, if it does."""
        if file in self.joined:
            return self.joined[file]
        if file.is_relative_to(SOURCES):
            return str(file.relative_to(SOURCES))
        if file.suffix in IMAGES and file.is_file():
            return f"images/{file.name}"
        return None

    def link(self, match: re.Match[str], page: pathlib.Path, place: str) -> str:
        bang, text, address = match.groups()
        if "://" in address or address.startswith(("#", "mailto:")):
            return match[0]
        path, _, anchor = address.partition("#")
        file = (page.parent / path).resolve()
        to = self.place(file)
        if to is None:
            address = f"{self.repository}/{file.relative_to(ROOT)}"
            return f"[{text}]({address})" if self.repository else text
        if file.suffix in IMAGES and not (self.sources / to).exists():
            shutil.copy(file, self.sources / to)
        relative = os.path.relpath(to, pathlib.PurePath(place).parent)
        return f"{bang}[{text}]({relative}{'#' + anchor if anchor else ''})"

    def write(self, page: pathlib.Path, place: str) -> None:
        text = INCLUDE.sub(lambda match: (page.parent / match[1]).resolve().read_text().rstrip(), page.read_text())
        text = outside_code(text, lambda part: LINK.sub(lambda match: self.link(match, page, place), part))
        if place == "SUMMARY.md":
            adrs = [f"  - [{title(file)}]({to})" for file, to in self.joined.items() if "/adr/" in to]
            text = text.replace("(about/decisions.md)", "\n".join(["(about/decisions.md)", *adrs]))
        (self.sources / place).parent.mkdir(parents=True, exist_ok=True)
        (self.sources / place).write_text(text)


def first_sentence(page: pathlib.Path) -> str:
    """For whom a page is, or what it begins with."""
    text = re.sub(r"<!--.*?-->", "", page.read_text()).split("\n", 1)[1].strip()
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.split("\n\n", 1)[0].replace("\n", " "))
    return re.split(r"(?<=[.])\s", plain, maxsplit=1)[0]


def write_llms(stage: Stage) -> None:
    """llms.txt: the pages with a line each, for programs that read documentation."""
    lines = ["# Timer Platform", "", "> A durable timer service: registers calls for later and makes them on time."]
    for line in (stage.sources / "SUMMARY.md").read_text().splitlines()[1:]:
        if line.startswith("# "):
            lines += ["", f"## {line[2:]}", ""]
        elif match := re.match(r" *- \[(.+)\]\((.+)\.md\)$", line):
            lines.append(f"- [{match[1]}]({match[2]}.html): {first_sentence(stage.sources / f'{match[2]}.md')}")
    (stage.sources / "llms.txt").write_text("\n".join(lines) + "\n")


def main(directory: str) -> None:
    target = pathlib.Path(directory)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(BOOK, target)
    stage = Stage(target)
    for page in sorted(SOURCES.rglob("*.md")):
        stage.write(page, str(page.relative_to(SOURCES)))
    for page, place in stage.joined.items():
        stage.write(page, place)
    write_llms(stage)


if __name__ == "__main__":
    main(*sys.argv[1:])
