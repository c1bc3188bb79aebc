"""Changes of many timers: counted before, watched while they run."""

import re

import pytest
from playwright.sync_api import expect

from rig import axe
from rig.seeds import create_many, later
from rig.tolerance import seconds


def pending(service, namespace: str) -> int:
    return service.api("GET", f"/timers/count?namespace={namespace}&status=pending").data["total"]


def test_many_are_canceled_after_a_preview_and_followed_on_the_page_of_the_operation(seeds, look):
    service = seeds.service
    create_many(service, [later("many", f"many-{n:04}", seeds.receiver.url) for n in range(5_000)])
    service.create(f"{seeds.receiver.url}/200/x", key="stays", namespace="many", delay="2h", metadata={"keep": "yes"})
    viewer = look(service, seeds.cookies["administrator"])
    page = viewer.page
    viewer.open("/timers?q=ns:many+key:many-*")
    page.get_by_label("Action").select_option("cancel")
    page.get_by_role("button", name="All that match").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Cancel")
    assert page.get_by_role("region", name="Examples").locator("tbody tr").count() == 20
    button = page.get_by_role("button", name=re.compile(r"Cancel (about )?[\d,]+$"))
    # A busy machine does not come to the end of the count in time, and says so.
    told = re.search(r"Cancel (about )?([\d,]+)$", button.inner_text())
    assert told[1] or told[2] == "5,000"
    page.get_by_label("Refuse if more match than").fill("5000")
    typed = page.get_by_label(re.compile(r"Type \d+ to confirm"))
    typed.fill("499")
    button.click()
    assert page.url.split("?")[0].endswith("/operations/new"), "the browser holds the form back"
    typed.fill(typed.get_attribute("pattern"))
    button.click()
    page.wait_for_url(re.compile(r"/operations/[0-9a-f-]{36}$"))
    expect(page.locator("#operation-head .status")).to_have_text(re.compile("completed|done|finished"), timeout=seconds(20) * 1_000)
    expect(page.locator("#operation")).to_contain_text(re.compile(r"Changed\s*5,000"))
    assert pending(service, "many") == 1
    broken = axe.violations_in_both_themes(page)
    assert not broken, "\n".join(broken)
    viewer.check()


def test_a_change_is_refused_when_more_match_than_were_looked_at(seeds, look):
    service = seeds.service
    create_many(service, [later("grows", f"grows-{n}", seeds.receiver.url) for n in range(3)])
    viewer = look(service, seeds.cookies["administrator"], refusals=(409,))
    viewer.open("/operations/new?do=cancel&q=ns:grows")
    create_many(service, [later("grows", f"grows-more-{n}", seeds.receiver.url) for n in range(5)])
    with viewer.page.expect_navigation() as met:
        viewer.page.get_by_role("button", name="Cancel 3").click()
    assert met.value.status == 409
    assert not axe.violations_in_both_themes(viewer.page)
    assert pending(service, "grows") == 8


@pytest.mark.one_store
def test_selected_timers_are_changed_and_no_others(seeds, look):
    service = seeds.service
    ids = [service.create(f"{seeds.receiver.url}/200/x", key=f"chosen-{n}", namespace="chosen") for n in range(4)]
    viewer = look(service, seeds.cookies["administrator"])
    page = viewer.page
    viewer.open("/timers?q=ns:chosen")
    for n in (1, 2):
        page.get_by_label(f"Select chosen-{n}").check()
    expect(page.locator("#selected-count")).to_have_text("2 selected")
    page.get_by_label("Action").select_option("pause")
    page.get_by_role("button", name="Selected").click()
    page.get_by_role("button", name="Pause 2").click()
    expect(page.get_by_role("status")).to_contain_text("2 timers")
    assert not axe.violations_in_both_themes(page)
    assert [service.timer(id)["status"] for id in ids] == ["pending", "paused", "paused", "pending"]
    viewer.check()


@pytest.mark.one_store
def test_failed_timers_are_grouped_and_retried(seeds, look):
    service = seeds.service
    ids = [service.create(f"{seeds.receiver.url}/418/teapot-{n}", key=f"tea-{n}", namespace="tea", delay="0s") for n in range(3)]
    for id in ids:
        service.wait_for_status(id, "failed")
    viewer = look(service, seeds.cookies["administrator"])
    page = viewer.page
    viewer.open("/failed")
    group = page.locator("#failed tbody tr", has_text="tea")
    assert group.count() == 1, "errors that differ in ids and digits are one group"
    expect(group.locator("td").first).to_have_text("3")
    expect(group.get_by_role("link", name="Retry over 10 min")).to_have_attribute("href", re.compile("over=10m"))
    # A failed timer cannot be canceled.
    expect(group.get_by_role("link", name="Delete")).to_have_attribute("href", re.compile("do=delete"))
    expect(group.get_by_role("link", name="Cancel")).to_have_count(0)
    group.get_by_role("link", name="Retry all").click()
    page.get_by_role("button", name="Retry 3").click()
    expect(page.get_by_role("status")).to_contain_text("3 timers")
    for id in ids:
        service.wait_for_status(id, "failed")
    assert len([path for path, _ in seeds.receiver.calls if "/418/teapot" in path]) == 6
    viewer.check()
