"""What the form of a timer tells of itself: when it fires, and when it is tried again."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.one_store


def test_a_date_in_a_zone_is_told_while_it_is_written(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open("/timers/new?namespace=shop&url=http://127.0.0.1:9/dated&delay=5m")
    told = page.locator("#form-fires")
    expect(told).to_contain_text("in 4 min")
    page.get_by_label("at a time").check()
    page.get_by_label("Date and time").fill("2040-07-31T11:30")
    page.locator("#form-zone").fill("Europe/Berlin")
    expect(told).to_contain_text("Fires Tue 31 Jul 2040 09:30:00 UTC = Tue 11:30 Europe/Berlin")
    page.get_by_label("Retries").fill("3")
    marks = page.locator("#form-retries .mark")
    expect(marks).to_have_count(4)
    expect(page.locator("#form-retries")).to_contain_text("then 30 s, 1 min 30 s, 3 min 30 s after it")
    page.get_by_role("button", name="Validate").click()
    expect(page.get_by_role("status")).to_contain_text("Everything is valid. Fires Tue 31 Jul 2040")
    page.get_by_role("button", name="Create timer").click()
    expect(page.get_by_text("The timer was created.")).to_be_visible()
    id = page.url.split("/")[-1].split("?")[0]
    assert seeds.service.timer(id)["execute_at"] == "2040-07-31T09:30:00Z"
    viewer.check()


def test_a_change_is_validated_and_leaves_the_exact_time_alone(seeds, look):
    service = seeds.service
    id = service.create(f"{seeds.receiver.url}/200/a", namespace="shop", delay="90m")
    due = service.timer(id)["execute_at"]
    # Without script, too: the server makes the sentence.
    viewer = look(service, seeds.cookies["scoped"], script=False)
    page = viewer.page
    viewer.open(f"/timers/{id}/edit")
    page.locator("[name=group]").fill("campaign")
    page.get_by_role("button", name="Validate").click()
    expect(page.get_by_role("status")).to_contain_text("Everything is valid.")
    assert service.timer(id)["revision"] == 1
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The timer was changed.")).to_be_visible()
    timer = service.timer(id)
    assert (timer["group"], timer["execute_at"]) == ("campaign", due), "a date has no microseconds, and none were lost"
