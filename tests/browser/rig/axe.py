"""The rules of axe-core, which scripts/setup.sh fetches."""

import os
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

HOME = Path(os.environ.get("AXE_HOME", Path(__file__).resolve().parents[3] / "target/tools/axe"))
# Rules whose result depends on colours. The others are the same in every theme.
OF_COLOURS = ["color-contrast", "link-in-text-block"]
# Rows and bars beyond the first few have the markup of those before them.
REPEATED = [["tbody tr:nth-child(n + 7)"], ["svg a:nth-of-type(n + 4)"]]


@cache
def source() -> str:
    path = HOME / "axe.min.js"
    assert path.exists(), f"{path} is missing: scripts/setup.sh fetches it"
    return path.read_text(encoding="utf-8")


def violations_in_both_themes(page: Page) -> list[str]:
    """Of a page that follows the theme of the system. Only what depends on colours is looked at again in the dark one."""
    light = violations(page)
    page.emulate_media(color_scheme="dark")
    return light + [f"dark: {one}" for one in violations(page, OF_COLOURS)]


def violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """Each with the first elements that break it. The script is evaluated by the debugger, so that the policy of the page stays as it is."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(source())
    options = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    found = page.evaluate("([context, options]) => axe.run(context, options)", [{"exclude": REPEATED}, options])["violations"]
    return [
        f"{one['id']}: {one['help']}: "
        + "; ".join(f"{node['html'][:160]} ({(node.get('failureSummary') or '')[:200]})" for node in one["nodes"][:4])
        for one in found
    ]
