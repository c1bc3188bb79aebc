"""Every page, for every viewer, in both themes."""

from urllib.parse import urlsplit

import pytest

from rig import axe
from rig.pages import PAGES, RIGHTS
from rig.service import ADMINISTRATOR

KNOWN = {page.name: page for page in PAGES}


@pytest.mark.parametrize("rights", RIGHTS)
@pytest.mark.parametrize("name", KNOWN)
def test_a_page_is_accessible_silent_and_its_own(name, rights, seeds, look):
    page = KNOWN[name]
    viewer = look(seeds.service, seeds.cookies[rights])
    if rights not in page.rights:
        answer = seeds.service.open(page.path(seeds), seeds.cookies[rights])
        assert answer.status == 403, f"{answer.status} for a viewer that may not open it"
        return
    answer = viewer.open(page.path(seeds))
    assert answer.status == 200, answer.text()[:2_000]
    assert viewer.page.locator("h1").count() == 1
    broken = axe.violations(viewer.page)
    viewer.page.emulate_media(color_scheme="dark")
    broken += [f"dark: {one}" for one in axe.violations(viewer.page, axe.OF_COLOURS)]
    assert not broken, "\n".join(broken)
    viewer.check()


@pytest.mark.parametrize("rights", RIGHTS)
def test_the_rail_leads_to_pages_that_this_suite_knows(rights, seeds, look):
    viewer = look(seeds.service, seeds.cookies[rights])
    viewer.open()
    links = viewer.page.locator("nav a").evaluate_all("links => links.map(link => link.href)")
    known = {seeds.service.console + page.path(seeds) for page in PAGES if rights in page.rights}
    known |= {f"{seeds.service.origin}/docs"}
    assert {link.rstrip("/") for link in links} <= known
    for link in links:
        assert seeds.service.request("GET", urlsplit(link).path, headers={"Cookie": seeds.cookies[rights]}).status == 200, link


@pytest.mark.parametrize("theme", ("light", "dark"))
def test_the_login_and_a_refusal_are_accessible(theme, seeds, look):
    viewer = look(seeds.service, theme=theme)
    viewer.open("/login")
    assert not axe.violations(viewer.page)
    viewer.check()
    viewer = look(seeds.service, seeds.cookies["administrator"], theme=theme)
    assert viewer.open("/nowhere").status == 404
    assert not axe.violations(viewer.page)


@pytest.mark.parametrize("theme", ("light", "dark"))
def test_an_empty_service_is_accessible(theme, start, look):
    service = start()
    viewer = look(service, service.log_in(ADMINISTRATOR), theme=theme)
    for path in ("", "/timers", "/failed", "/operations", "/destinations", "/namespaces", "/keys", "/cluster"):
        assert viewer.open(path).status == 200, path
        assert not axe.violations(viewer.page), path
    viewer.check()


def test_no_page_is_wider_than_its_window(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"])
    wide = []
    for page in PAGES:
        viewer.open(page.path(seeds))
        for window in (320, 900):
            viewer.page.set_viewport_size({"width": window, "height": 900})
            width = viewer.page.evaluate("document.documentElement.scrollWidth")
            if width > window:
                wide.append(f"{page.name}: {width} px in {window} px")
    assert not wide, wide
