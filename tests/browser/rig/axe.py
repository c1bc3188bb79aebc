"""The rules of axe-core, which scripts/setup.sh fetches."""

import os
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

HOME = Path(os.environ.get("AXE_HOME", Path(__file__).resolve().parents[3] / "target/tools/axe"))
# Rows and bars beyond the first few have the markup of those before them.
REPEATED = "tbody tr:nth-child(n + 7), svg a:nth-of-type(n + 4)"


@cache
def source() -> str:
    path = HOME / "axe.min.js"
    assert path.exists(), f"{path} is missing: scripts/setup.sh fetches it"
    return path.read_text(encoding="utf-8")


# The rules of axe that look at colours, of those that are on by default, and what they apply to. Their tag has others as well.
OF_COLOURS = {"color-contrast": ("*",), "link-in-text-block": ("a[href]", "[role=link]")}
# Marks the first element of each look: of those that have text or can be acted on, and have the same colours, sizes and backgrounds, their
# own and those of all that they stand in. What the rules of colours say of one of them they say of all.
MARKED = "data-first-of-its-look"
MARK = """marked => {
  const looks = new Map([[null, { all: "", own: "" }]]);
  const lookOf = part => {
    if (looks.has(part)) return looks.get(part);
    const above = lookOf(part.parentElement), style = getComputedStyle(part);
    const own = [style.color, style.backgroundColor, style.backgroundImage, style.opacity, style.fontSize, style.fontWeight,
      style.textDecorationLine, style.textShadow, style.position, style.display].join();
    const look = { all: own === above.own ? above.all : `${above.all} > ${own}`, own };
    looks.set(part, look);
    return look;
  };
  const seen = new Set();
  for (const part of document.querySelectorAll("body *")) {
    part.removeAttribute(marked);
    const hasText = [...part.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim());
    if (!hasText && !part.matches("a, button, input, select, textarea") || !part.getClientRects().length) continue;
    const look = `${part.localName}: ${lookOf(part).all}`;
    if (!seen.has(look)) part.setAttribute(marked, "");
    seen.add(look);
  }
}"""
# The script is evaluated by the debugger, so that the policy of the page stays as it is.
RUN = """async ([options, selectors]) => {
  axe.configure({ rules: Object.entries(selectors).map(([id, selector]) => ({ id, selector })) });
  return (await axe.run(options)).violations;
}"""


def violations_in_both_themes(page: Page, *, is_named: bool = False, is_whole: bool = False) -> list[str]:
    """All rules in the light theme, and then in the dark one those that look at colours, without another load: of a page that follows
    the system, or whose viewer has named the theme. The markup is the same in both, and so is what all other rules say of it. What is
    repeated is taken out of the page first, unless the whole of it is asked for."""
    if not is_whole:
        page.evaluate("repeated => document.querySelectorAll(repeated).forEach(part => part.remove())", REPEATED)
    light = violations(page)
    if is_named:
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
    else:
        page.emulate_media(color_scheme="dark")
    dark = violations(page, rules=tuple(OF_COLOURS))
    if is_named:
        page.evaluate("delete document.documentElement.dataset.theme")
    else:
        page.emulate_media(color_scheme="light")
    return light + [f"dark: {one}" for one in dark]


def violations(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """Of these rules, or of all: each with the first elements that break it. Those of colours look at one element of each look."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(source())
    options = {"resultTypes": ["violations"], "preload": False, "selectors": False, "iframes": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    page.evaluate(MARK, MARKED)
    selectors = {rule: ", ".join(f"{one}[{MARKED}]" for one in of) for rule, of in OF_COLOURS.items()}
    found = page.evaluate(RUN, [options, selectors])
    return [
        f"{one['id']}: {one['help']}: "
        + "; ".join(f"{node['html'][:160]} ({(node.get('failureSummary') or '')[:200]})" for node in one["nodes"][:4])
        for one in found
    ]
