"""What the scripts that read Markdown share: its code, its links and its headings."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(FENCE.pattern + r"|`[^`\n]+`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass
class Block:
    """A block of code between fences."""

    line: int
    language: str
    marks: list[str]
    code: str


def blocks(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        language, *marks = match["info"].strip().split(",")
        yield Block(text.count("\n", 0, match.start()) + 1, language, marks, match["code"])


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with everything changed but what is code. A link whose text is code is no code itself."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\x00{len(kept) - 1}\x00"

    changed = change(CODE.sub(keep, text))
    return re.sub("\x00(\\d+)\x00", lambda match: kept[int(match[1])], changed)


def anchors(text: str) -> set[str]:
    """What `#…` can name, as GitHub and mdBook make it from headings."""
    found: dict[str, int] = {}
    names = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        again = found.get(name, 0)
        found[name] = again + 1
        names.add(f"{name}-{again}" if again else name)
    return names | set(re.findall(r'<a id="([\w-]+)"></a>', text))
