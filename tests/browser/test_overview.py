"""The overview: every number leads to the timers that it counts."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

TILES = {
    "Pending": "status:pending",
    "Due within an hour": "status:pending due:",
    "Executing": "status:executing",
    "Completed, 24 h": "status:completed due:",
    "Failed, 24 h": "status:failed due:",
    "Oldest overdue": "status:pending due:<0s",
}


def tile(page, name: str):
    return page.locator("a.tile").filter(has=page.locator(".name", has_text=name))


@pytest.mark.parametrize("rights", ("administrator", "scoped"))
def test_every_tile_leads_to_the_list_of_what_it_counts(rights, seeds, look):
    viewer = look(seeds.service, seeds.cookies[rights], live=False)
    page = viewer.page
    for name, words in TILES.items():
        viewer.open("")
        expect(page.locator("a.tile")).to_have_count(len(TILES))
        value = tile(page, name).locator(".value").text_content()
        tile(page, name).click()
        expect(page).to_have_title("Timers · Timer")
        assert parse_qs(urlsplit(page.url).query)["q"][0].startswith(words), f"{name}: {page.url}"
        counted = "0" if value == "none" else value
        expect(page.locator(".summary strong")).to_have_text(counted)
    viewer.check()


@pytest.mark.one_store
def test_what_is_due_within_an_hour_does_not_count_what_is_overdue(start, look):
    """The number is that of the chart, and the list has its bounds: the soonest first."""
    service = start()
    url = "http://127.0.0.1:9/x"
    for key, delay in (("later", "2h"), ("second", "50m"), ("first", "20m")):
        service.create(url, key=key, delay=delay)
    viewer = look(service, service.log_in("administrators-key-of-the-browser-tests"), live=False)
    page = viewer.page
    viewer.open("")
    tile(page, "Due within an hour").click()
    expect(page.locator("tbody tr a.mono")).to_have_text(["first", "second"])
    viewer.check()
