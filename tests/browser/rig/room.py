"""Whether a page has the room that it needs, in windows of three widths."""

from playwright.sync_api import Page

WIDTHS = (320, 900, 1_600)
# In the narrowest window a table may be scrolled within itself.
TABLES_FIT_FROM = 900
# The width that the page needs, and what of it is scrolled within itself.
NEEDED = """areTablesLookedAt => [document.documentElement.scrollWidth,
  !areTablesLookedAt ? [] : [...document.querySelectorAll("main *, dialog[open], dialog[open] *")]
    .filter(part => part.scrollWidth > part.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(part).overflowX))
    .map(part => `${part.getAttribute("aria-label") || part.outerHTML.slice(0, 80)}: ${part.scrollWidth} px in ${part.clientWidth} px`)]"""


def scrolled_sideways(page: Page) -> list[str]:
    """What must be scrolled sideways, though it must not: the page itself, and what it holds where there is room for it."""
    wide = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        needed, parts = page.evaluate(NEEDED, width >= TABLES_FIT_FROM)
        wide += [f"the page at {width} px: {needed} px"] if needed > width else []
        wide += [f"at {width} px: {part}" for part in parts]
    return wide
