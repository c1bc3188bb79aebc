"""The rules of axe-core, which scripts/setup.sh fetches."""

import os
from functools import cache
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from .service import STORES

HOME = Path(os.environ.get("AXE_HOME", Path(__file__).resolve().parents[3] / "target/tools/axe"))
# Rows and bars beyond the first few have the markup of those before them.
REPEATED = "tbody tr:nth-child(n + 7), svg a:nth-of-type(n + 4)"


@cache
def source() -> str:
    path = HOME / "axe.min.js"
    assert path.exists(), f"{path} is missing: scripts/setup.sh fetches it"
    return path.read_text(encoding="utf-8")


def is_for(store: str) -> bool:
    """Whether the pages of every viewer are judged on this store. They are written alike on all: in a build one will do."""
    return store == STORES[0] or os.environ.get("SOAK") == "1"


def put_into(context: BrowserContext):
    """Puts axe into every page of a window that opens many, so that it need not be sent for each of them."""
    context.add_init_script(source())


# The rules of axe that look at colours, of those that are on by default. Their tag has others as well.
OF_COLOURS = ("color-contrast", "link-in-text-block")


def violations_in_both_themes(page: Page, *, is_named: bool = False, is_whole: bool = False) -> list[str]:
    """All rules in the light theme, and then in the dark one those that look at colours, without another load: of a page that follows
    the system, or whose viewer has named the theme. The markup is the same in both, and so is what all other rules say of it. What is
    repeated is taken out of the page first, unless the whole of it is asked for."""
    light = violations(page, without="" if is_whole else REPEATED)
    if is_named:
        dark = violations(page, rules=OF_COLOURS, theme="dark")
    else:
        page.emulate_media(color_scheme="dark")
        dark = violations(page, rules=OF_COLOURS)
        page.emulate_media(color_scheme="light")
    return light + [f"dark: {one}" for one in dark]


# All in one call: on a busy machine each takes as long as some of the rules do. Without axe there is nothing to return.
# What has just come fades in, and has a colour of neither look meanwhile.
RUN = """async ({ options, without, theme }) => {
  if (!("axe" in window)) return null;
  const root = document.documentElement;
  if (without) document.querySelectorAll(without).forEach(part => part.remove());
  if (theme) root.dataset.theme = theme;
  document.getAnimations().filter(one => one.effect?.getComputedTiming().endTime < Infinity).forEach(one => one.finish());
  const found = await axe.run(options);
  if (theme) delete root.dataset.theme;
  return found.violations;
}"""


def violations(page: Page, rules: tuple[str, ...] = (), *, without: str = "", theme: str = "") -> list[str]:
    """Of these rules, or of all: each with the first elements that break it. Parts of the page are taken out of it first, and a theme is
    named meanwhile, if they are given. The script is evaluated by the debugger, so that the policy of the page stays as it is."""
    options = {"resultTypes": ["violations"], "preload": False, "selectors": False, "iframes": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    given = {"options": options, "without": without, "theme": theme}
    found = page.evaluate(RUN, given)
    if found is None:
        page.evaluate(source())
        found = page.evaluate(RUN, given)
    return [
        f"{one['id']}: {one['help']}: "
        + "; ".join(f"{node['html'][:160]} ({(node.get('failureSummary') or '')[:200]})" for node in one["nodes"][:4])
        for one in found
    ]
