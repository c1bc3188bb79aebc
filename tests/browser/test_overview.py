"""The overview: every number leads to the timers that it counts."""

import re

import pytest
from playwright.sync_api import expect

from rig.processes import wait_for
from rig.receiver import Receiver
from rig.service import ADMINISTRATOR, Service

OWN, OTHER = "shop", "billing"
NAMES = ("Pending", "Due within an hour", "Executing", "Completed, 24 h", "Failed, 24 h", "Oldest overdue")
# What each viewer counts, and which timers its list of the second tile has; those that were due in this minute are in it, too.
COUNTS = {"administrator": ("7", re.compile("[3-5]"), "0", "2", "3"), "scoped": ("4", re.compile("[23]"), "0", "1", "2")}
SOON = {"administrator": ["shop-first", "billing-first", "shop-second"], "scoped": ["shop-first", "shop-second"]}


def plant(service: Service, url: str):
    """Timers of two tenants. One of each was due, and waits for a retry within the hour."""
    for namespace, keys in ((OWN, ("first", "second")), (OTHER, ("first",))):
        for n, key in enumerate(keys):
            service.create(f"{url}/200/x", key=f"{namespace}-{key}", namespace=namespace, delay=f"{20 + 20 * n}m")
        service.create(f"{url}/200/x", namespace=namespace, delay="3h")
        service.create(f"{url}/200/x", namespace=namespace, delay="1h", key="paused")
        service.api("POST", f"/namespaces/{namespace}/timers/paused/pause", {}).data
        retried = service.create(f"{url}/503/x", namespace=namespace, delay="0s", retries=3)
        ended = [service.create(f"{url}/200/x", namespace=namespace, delay="0s")]
        ended += [service.create(f"{url}/500/x", namespace=namespace, delay="0s") for _ in keys]
        for id in ended:
            service.wait_for_status(id, "completed", "failed")
        wait_for_a_failed_attempt(service, retried)


@pytest.fixture(scope="module")
def planted(store):
    """A service with these timers. Nothing that looks at them changes them."""
    service, receiver = Service(store), Receiver()
    plant(service, receiver.url)
    yield service
    service.stop()


def wait_for_a_failed_attempt(service: Service, id: str):
    wait_for("an attempt that failed", lambda: service.timer(id)["last_error"])


@pytest.mark.parametrize("rights", ("administrator", "scoped"))
def test_every_tile_leads_to_the_list_of_what_it_counts(rights, planted, look):
    key = ADMINISTRATOR if rights == "administrator" else planted.issue_key("of a tenant", "read", [OWN])["key"]
    viewer = look(planted, planted.log_in(key), live=False)
    page = viewer.page
    tiles = page.locator("a.tile")
    for n in range(len(COUNTS[rights])):
        viewer.open("")
        if n == 0:
            expect(tiles.locator(".name")).to_have_text(list(NAMES))
            expect(tiles.locator(".value")).to_have_text([*COUNTS[rights], "none"])
        counted = tiles.nth(n).locator(".value").text_content()
        tiles.nth(n).click()
        expect(page).to_have_title("Timers · Timer")
        expect(page.locator(".summary strong")).to_have_text(counted)
        if NAMES[n] == "Due within an hour":
            expect(page.locator("tbody tr a.mono", has_text=re.compile("first|second"))).to_have_text(SOON[rights])
    viewer.check()


@pytest.mark.one_store
def test_what_is_told_of_a_receiver_leads_to_its_timers(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"], live=False)
    page = viewer.page
    for path, link, words in (
        ("/destinations", "Timers", "dest:127.0.0.1:"),
        ("/namespaces", "Timers", "ns:shop"),
        ("/operations", "ns:shop key:shop-later-*", "ns:shop key:shop-later-*"),
    ):
        viewer.open(path)
        page.locator("main").get_by_role("link", name=link, exact=True).first.click()
        expect(page).to_have_title("Timers · Timer")
        assert page.locator("#filter").input_value().startswith(words), f"{path}: {page.url}"
        expect(page.locator("tbody tr")).not_to_have_count(0)
    viewer.check()


def test_an_open_page_of_an_empty_service_shows_the_first_timer(start, look):
    service = start()
    viewer = look(service, service.log_in(ADMINISTRATOR))
    page = viewer.page
    viewer.open("")
    expect(page.get_by_role("heading", name="No timers yet")).to_be_visible()
    expect(page.locator("#live")).to_have_text("● Live")
    service.create("http://127.0.0.1:9/x", delay="1h")
    expect(page.locator("a.tile .value").first).to_have_text("1")
    expect(page.get_by_role("heading", name="No timers yet")).to_have_count(0)
    viewer.check()
