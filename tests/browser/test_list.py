"""The list of timers: what a row leads to, and what a selection can be."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.one_store


def test_every_value_of_a_row_filters_and_a_pointer_tells_the_rest(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"], width=1_600)
    page = viewer.page
    viewer.open("/timers?q=status:failed")
    row = page.locator("tbody tr").first
    due = row.locator("td:nth-child(5) time")
    due.hover()
    assert due.get_attribute("title").split(" · ")[0].endswith(" ago")
    row.hover()
    row.get_by_role("link", name="Only the key").click()
    expect(page.locator("#filter")).to_have_value("status:failed key:shop-failed")
    for cell, word in ((5, "due:"), (9, "error:"), (10, "created:")):
        page.locator(f"tbody tr td:nth-child({cell}) a").first.click()
        expect(page.locator(".chips")).to_contain_text(word)
        expect(page.locator("tbody tr")).to_have_count(1)
    viewer.check()


def test_a_list_is_sorted_where_its_columns_have_no_room(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"], width=900)
    page = viewer.page
    viewer.open("/timers?q=ns:shop+key:shop-order-*")
    sorts = page.get_by_role("group", name="Sort by")
    expect(sorts.get_by_role("link")).to_have_text(["Due", "Created ↓"])
    sorts.get_by_role("link", name="Due").click()
    expect(sorts.get_by_role("link")).to_have_text(["Due ↓", "Created"])
    sorts.get_by_role("link", name="Due").click()
    expect(sorts.get_by_role("link")).to_have_text(["Due ↑", "Created"])
    due = page.locator("tbody tr td:nth-child(5) time").evaluate_all("times => times.map(time => time.dateTime)")
    assert len(due) == 50 and due == sorted(due)
    # Their heads have the same links where there is room for them.
    page.set_viewport_size({"width": 1_600, "height": 900})
    expect(sorts).to_be_hidden()
    expect(page.get_by_role("columnheader", name="Due")).to_have_attribute("aria-sort", "ascending")
    viewer.check()


def test_the_narrowest_window_shows_what_matters_of_a_timer_without_scrolling(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"], width=320)
    page = viewer.page
    for path, name in (("/timers?q=key:shop-pending", "Timers"), ("/operations/new?do=cancel&q=key:shop-pending", "Examples")):
        viewer.open(path)
        table = page.get_by_role("region", name=name)
        assert table.evaluate("table => table.scrollWidth <= table.clientWidth"), path
        for part in ("a.mono", ".status", ".due time", ".left time"):
            box = table.locator(f"tbody tr {part}").first.bounding_box()
            assert box and 0 <= box["x"] and box["x"] + box["width"] <= 320, f"{path}: {part} {box}"
    viewer.check()


def test_a_selection_is_rescheduled(seeds, look):
    service = seeds.service
    ids = [service.create(f"{seeds.receiver.url}/200/x", key=f"moved-{n}", namespace="shop", delay="1h") for n in range(2)]
    before = [service.timer(id)["execute_at"] for id in ids]
    viewer = look(service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open("/timers?q=ns:shop+key:moved-*")
    page.get_by_label("Select moved-1").check()
    page.get_by_label("Action").select_option("reschedule")
    page.get_by_role("button", name="Selected…").click()
    page.get_by_label("all at", exact=True).first.check()
    page.get_by_label("All at", exact=True).last.fill("2040-01-31T12:00:00Z")
    page.get_by_role("button", name="Reschedule 1").click()
    expect(page.get_by_role("status")).to_contain_text("1 timer changed")
    assert [service.timer(id)["execute_at"] for id in ids] == [before[0], "2040-01-31T12:00:00Z"]
    viewer.check()


def test_a_zone_is_named_in_the_bar_and_kept(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open("/timers?q=status:failed")
    page.get_by_label("Time zone and density").click()
    page.locator("[data-zones]").fill("Asia/Tokyo")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator("#zone")).to_have_text("Asia/Tokyo")
    for zone in ("UTC", "local", "Asia/Tokyo"):
        page.keyboard.press("z")
        expect(page.locator("#zone")).to_have_text(zone)
    page.get_by_label("Time zone and density").click()
    page.get_by_role("button", name="compact").click()
    expect(page.locator("html")).to_have_attribute("data-density", "compact")
    viewer.check()
