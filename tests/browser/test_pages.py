"""Every page, for every viewer, in both themes."""

from urllib.parse import urlsplit

import pytest

from rig import axe
from rig.pages import PAGES, RIGHTS
from rig.service import ADMINISTRATOR, STORES

KNOWN = {page.name: page for page in PAGES}


# The markup of a page is the same on every store, and a viewer with fewer rights sees a part of it: the rules of axe are applied for each
# viewer on the first store, and for the administrator on the others.
def is_looked_at_by_axe(rights: str, store: str) -> bool:
    return store == STORES[0] or rights == "administrator"


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
    assert viewer.page.locator("h1").count() == 1
    if is_looked_at_by_axe(rights, store):
        broken = axe.violations_in_both_themes(viewer.page)
        assert not broken, "\n".join(broken)
    if rights == "administrator" and store == STORES[0]:
        assert not too_wide(viewer.page)
    viewer.check()


def too_wide(page) -> list[str]:
    wide = []
    for window in (320, 900):
        page.set_viewport_size({"width": window, "height": 900})
        width = page.evaluate("document.documentElement.scrollWidth")
        wide += [f"{width} px in {window} px"] if width > window else []
    return wide


@pytest.mark.one_store
@pytest.mark.parametrize("rights", RIGHTS)
def test_the_rail_leads_to_pages_that_this_suite_knows(rights, seeds, standing):
    viewer = standing(rights)
    viewer.open()
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
    assert not axe.violations_in_both_themes(viewer.page)
    viewer.check()
    viewer = look(seeds.service, seeds.cookies["administrator"], refusals=(404,))
    assert viewer.open("/nowhere").status == 404
    assert not axe.violations_in_both_themes(viewer.page)


@pytest.mark.one_store
def test_the_documentation_of_the_api_is_accessible(seeds, look):
    viewer = look(seeds.service)
    assert viewer.page.goto(f"{seeds.service.origin}/docs").status == 200
    assert not axe.violations_in_both_themes(viewer.page)
    viewer.check()


@pytest.mark.one_store
def test_an_empty_service_is_accessible(start, look):
    service = start()
    viewer = look(service, service.log_in(ADMINISTRATOR))
    for path in ("", "/timers", "/failed", "/operations", "/destinations", "/namespaces", "/keys", "/cluster"):
        viewer.page.emulate_media(color_scheme="light")
        assert viewer.open(path).status == 200, path
        assert not axe.violations_in_both_themes(viewer.page), path
    viewer.check()
