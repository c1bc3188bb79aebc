"""Every page, for every viewer; on the stores that axe looks at, in both themes."""

from urllib.parse import urlsplit

import pytest

from rig import axe
from rig.pages import DIALOGS, EMPTY, PAGES, RIGHTS
from rig.room import scrolled_sideways
from rig.service import ADMINISTRATOR, STORES

KNOWN = {page.name: page for page in PAGES}
# How many headings of the first level a page has, and what of it is inline.
MARKUP = """() => [document.querySelectorAll("h1").length,
  [...document.querySelectorAll("script:not([src]), style, [style], [onclick], [onload], [onerror], [onsubmit]")]
    .map(element => element.outerHTML.slice(0, 200))]"""


def check_markup(page):
    headings, inline = page.evaluate(MARKUP)
    assert headings == 1, f"{headings} headings of the first level"
    assert not inline, f"inline: {inline}"


@pytest.mark.parametrize("rights", RIGHTS)
@pytest.mark.parametrize("name", KNOWN)
def test_a_page_is_accessible_silent_its_own_and_fits_its_window(name, rights, seeds, store, standing):
    page = KNOWN[name]
    if rights not in page.rights:
        answer = seeds.service.open(page.path(seeds), seeds.cookies[rights])
        assert answer.status == 403, f"{answer.status} for a viewer that may not open it"
        return
    viewer = standing(rights)
    answer = viewer.open(page.path(seeds))
    assert answer.status == 200, answer.text()[:2_000]
    check_markup(viewer.page)
    if axe.is_for(store):
        # Every row and every bar is looked at once, and each of the two ways to the dark theme on every page.
        is_first = rights == "administrator" and store == STORES[0]
        broken = axe.violations_in_both_themes(viewer.page, is_named=rights == "scoped", is_whole=is_first)
        assert not broken, "\n".join(broken)
    if rights == "administrator":
        assert not scrolled_sideways(viewer.page)
    viewer.check()


@pytest.mark.parametrize("dialog", DIALOGS, ids=lambda dialog: dialog.name)
def test_an_open_dialog_is_accessible(dialog, seeds, store, standing):
    viewer = standing("administrator")
    viewer.open(dialog.path(seeds))
    dialog.open(viewer.page)
    broken = axe.violations_in_both_themes(viewer.page) if axe.is_for(store) else []
    assert not broken, "\n".join(broken)
    assert not scrolled_sideways(viewer.page)
    viewer.check()


@pytest.mark.one_store
def test_a_pale_text_is_found_in_each_theme(standing):
    viewer = standing("administrator")
    viewer.open("/preferences")
    viewer.page.evaluate("document.styleSheets[0].insertRule(':root { --muted: light-dark(#ccc, #444) !important }', 0)")
    light, dark = axe.violations_in_both_themes(viewer.page)
    assert light.startswith("color-contrast: ") and dark.startswith("dark: color-contrast: "), (light, dark)


@pytest.mark.one_store
def test_a_theme_that_is_named_has_the_colours_of_the_same_theme_of_the_system(standing):
    page = standing("administrator").page
    page.goto(standing("administrator").service.console + "/preferences")

    def colours(system: str, named: str = "") -> dict[str, str]:
        page.emulate_media(color_scheme=system)
        return page.evaluate(
            """named => { const root = document.documentElement, probe = document.body;
            if (named) root.dataset.theme = named; else delete root.dataset.theme;
            const names = new Set([...document.styleSheets].flatMap(sheet => [...sheet.cssRules]).filter(rule => rule.selectorText === ":root")
              .flatMap(rule => [...rule.style]).filter(name => name.startsWith("--")));
            const seen = name => { probe.style.color = probe.style.boxShadow = `var(${name})`;
              return getComputedStyle(probe).color + getComputedStyle(probe).boxShadow; };
            return Object.fromEntries([...names].map(name => [name, seen(name)])); }""",
            named,
        )

    light, dark = colours("light"), colours("dark")
    assert len(light) > 15 and light != dark
    assert colours("light", "dark") == dark == colours("dark", "dark")
    assert colours("dark", "light") == light == colours("light", "light")


@pytest.mark.one_store
@pytest.mark.parametrize("rights", RIGHTS)
def test_the_rail_leads_to_pages_that_this_suite_knows(rights, seeds, standing):
    viewer = standing(rights)
    # It is the same on every page: one of the smallest will do.
    viewer.open("/about")
    links = viewer.page.locator("nav a").evaluate_all("links => links.map(link => link.href)")
    known = {seeds.service.console + page.path(seeds) for page in PAGES if rights in page.rights}
    known |= {f"{seeds.service.origin}/docs"}
    assert {link.rstrip("/") for link in links} <= known
    for link in links:
        assert seeds.service.request("GET", urlsplit(link).path, headers={"Cookie": seeds.cookies[rights]}).status == 200, link


@pytest.mark.one_store
def test_the_login_and_a_refusal_are_accessible(seeds, look):
    viewer = look(seeds.service)
    viewer.open("/login")
    check_markup(viewer.page)
    assert not axe.violations_in_both_themes(viewer.page)
    assert not scrolled_sideways(viewer.page)
    viewer.check()
    viewer = look(seeds.service, seeds.cookies["administrator"], refusals=(400, 404))
    for path, status in (("/nowhere", 404), ("/timers?q=status:wrong", 400)):
        assert viewer.open(path).status == status
        assert not axe.violations_in_both_themes(viewer.page), path
        assert not scrolled_sideways(viewer.page), path


@pytest.mark.one_store
def test_a_key_that_was_issued_is_shown_accessibly(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"])
    viewer.open("/keys")
    viewer.page.locator("[name=name]").fill("looked at")
    viewer.page.get_by_role("button", name="Issue key").click()
    viewer.page.get_by_role("status").wait_for()
    assert not axe.violations_in_both_themes(viewer.page)
    assert not scrolled_sideways(viewer.page)
    viewer.check()


@pytest.mark.one_store
def test_the_documentation_of_the_api_is_accessible(seeds, look):
    viewer = look(seeds.service)
    assert viewer.page.goto(f"{seeds.service.origin}/docs").status == 200
    assert not axe.violations_in_both_themes(viewer.page)
    viewer.check()


def test_an_empty_service_is_accessible(store, start, look):
    service = start()
    for rights, access in (("administrator", None), ("read-only", ("read", None)), ("scoped", ("write", ["shop"]))):
        # Keys are issued only after the administrator has seen that there are none.
        key = service.issue_key(rights, *access)["key"] if access else ADMINISTRATOR
        viewer = look(service, service.log_in(key), live=not access)
        for path in EMPTY if rights == "administrator" else EMPTY[:-2]:
            assert viewer.open(path).status == 200, path
            broken = axe.violations_in_both_themes(viewer.page) if axe.is_for(store) else []
            assert not broken, f"{rights} {path}: {broken}"
            if rights == "administrator":
                assert not scrolled_sideways(viewer.page), path
