"""The rules of axe-core, which scripts/setup.sh fetches."""

import os
from functools import cache
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

HOME = Path(os.environ.get("AXE_HOME", Path(__file__).resolve().parents[3] / "target/tools/axe"))
# Rows and bars beyond the first few have the markup of those before them.
REPEATED = "tbody tr:nth-child(n + 7), svg a:nth-of-type(n + 4)"


@cache
def source() -> str:
    path = HOME / "axe.min.js"
    assert path.exists(), f"{path} is missing: scripts/setup.sh fetches it"
    return path.read_text(encoding="utf-8")


def put_into(context: BrowserContext):
    """Puts axe into every page of a window that opens many, so that it need not be sent for each of them."""
    context.add_init_script(source())


# The rules of axe that look at colours, of those that are on by default. Their tag has others as well.
OF_COLOURS = ("color-contrast", "link-in-text-block")


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
    dark = violations(page, rules=OF_COLOURS)
    if is_named:
        page.evaluate("delete document.documentElement.dataset.theme")
    else:
        page.emulate_media(color_scheme="light")
    return light + [f"dark: {one}" for one in dark]


# What has just come fades in, and has a colour of neither look meanwhile.
RUN = """options => {
  document.getAnimations().filter(one => one.effect?.getComputedTiming().endTime < Infinity).forEach(one => one.finish());
  return axe.run(options).then(found => found.violations);
}"""


def violations(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """Of these rules, or of all: each with the first elements that break it. The script is evaluated by the debugger, so that the policy
    of the page stays as it is."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(source())
    options = {"resultTypes": ["violations"], "preload": False, "selectors": False, "iframes": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    found = page.evaluate(RUN, options)
    return [
        f"{one['id']}: {one['help']}: "
        + "; ".join(f"{node['html'][:160]} ({(node.get('failureSummary') or '')[:200]})" for node in one["nodes"][:4])
        for one in found
    ]
