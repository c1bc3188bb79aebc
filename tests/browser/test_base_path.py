"""A console below a path of its own, as a proxy that does not remove it wants it."""

from playwright.sync_api import expect

from rig import seeds as seeds_of_tests
from rig.crawl import Found, crawl
from rig.pages import PAGES
from rig.service import ADMINISTRATOR

BASE = "/x/y"


def test_everything_stays_below_the_base_path(start, look):
    service = start(base_path=BASE)
    seeds = seeds_of_tests.plant(service, is_full=False)
    # There are no operations.
    begin = [f"/console{page.path(seeds)}" for page in PAGES if page.name != "operation"]
    found = crawl(service, seeds.cookies["administrator"], begin, pages_max=80)
    out = []
    for path, answer in found.items():
        assert answer.status < 400, f"{answer.status} {path}"
        page = Found(answer.text) if "text/html" in answer.headers.get("content-type", "") else Found("")
        addresses = page.links + page.loaded + [form["action"] for form in page.forms if form["action"]]
        out += [f"{path}: {address}" for address in addresses if address.startswith("/") and not address.startswith(f"{BASE}/")]
    assert not out, out[:10]

    viewer = look(service)
    page = viewer.page
    page.goto(f"{service.origin}{BASE}/console/timers")
    page.get_by_label("API key").fill(ADMINISTRATOR)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{service.origin}{BASE}/console/timers")
    assert all(one["path"].startswith(BASE) for one in viewer.context.cookies())
    expect(page.locator("#live")).to_have_text("● Live")
    service.create("http://127.0.0.1:9/x", key="below", namespace="based")
    expect(page.get_by_role("link", name="below", exact=True)).to_be_visible()
    page.get_by_role("link", name="below", exact=True).click()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("The timer is canceled.")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.wait_for_url(f"{service.origin}{BASE}/console/failed")
    page.get_by_role("button", name="dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.url == f"{service.origin}{BASE}/console/failed"
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{service.origin}{BASE}/console/login")
    viewer.check()
