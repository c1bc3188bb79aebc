"""Every action is a form and every state a URL: nothing needs script."""

import re

import pytest
from playwright.sync_api import expect


def test_everything_works_without_script(seeds, look):
    service = seeds.service
    viewer = look(service, script=False)
    page = viewer.page
    viewer.open("/timers")
    page.get_by_label("API key").fill(seeds.keys["scoped"])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{service.console}/timers")

    page.get_by_role("link", name="New timer").click()
    page.locator("[name=delay]").fill("2h")
    page.locator("[name=url]").fill(f"{seeds.receiver.url}/200/plain")
    page.locator("[name=namespace]").fill("shop")
    page.locator("[name=key]").fill("plain-1")
    page.get_by_role("button", name="Create timer").click()
    expect(page.get_by_text("The timer was created.")).to_be_visible()
    id = page.url.split("/")[-1].split("?")[0]

    page.get_by_role("link", name="Edit").click()
    page.locator("[name=metadata]").fill('{"plain": true}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The timer was changed.")).to_be_visible()

    for action, does, status in (("Pause", "Pause", "paused"), ("Resume", "Resume", "pending")):
        page.get_by_role("link", name=action).click()
        page.get_by_role("button", name=does).click()
        assert service.timer(id)["status"] == status

    page.get_by_label("Search timers").fill("ns:shop key:plain-*")
    page.get_by_label("Search timers").press("Enter")
    expect(page.get_by_role("link", name="plain-1", exact=True)).to_be_visible()
    assert page.locator("#timer-list tbody tr").count() == 1

    page.get_by_label("Select plain-1").check()
    page.get_by_label("Action").select_option("cancel")
    page.get_by_role("button", name="Selected").click()
    page.get_by_role("button", name="Cancel 1").click()
    assert service.timer(id)["status"] == "canceled"

    viewer.open("/operations/new?do=pause&q=ns:shop+key:shop-order-000*")
    page.get_by_role("button", name=re.compile("^Pause")).click()
    expect(page.get_by_role("status")).to_contain_text("10 timers")
    viewer.open("/operations/new?do=resume&q=ns:shop+key:shop-order-000*")
    page.get_by_role("button", name=re.compile("^Resume")).click()
    expect(page.get_by_role("status")).to_contain_text("10 timers")

    viewer.open()
    page.get_by_role("button", name="dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{service.console}/login")
    assert viewer.open("/timers").url.startswith(f"{service.console}/login")
    viewer.check()


@pytest.mark.one_store
def test_keys_are_issued_and_revoked_without_script(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"], script=False)
    page = viewer.page
    viewer.open("/keys")
    page.locator("[name=name]").fill("made by a form")
    page.get_by_role("button", name=re.compile("Create|Issue")).click()
    text = page.locator("main").inner_text()
    key = re.search(r"tk_[0-9a-f]{32}_\S+", text)[0]
    assert seeds.service.api("GET", "/whoami", key=key).data["name"] == "made by a form"
    viewer.open("/keys")
    assert key not in page.content(), "it is shown once"
    page.locator("tr", has_text="made by a form").get_by_role("link", name="Revoke").click()
    page.get_by_role("button", name="Revoke").click()
    assert seeds.service.api("GET", "/whoami", key=key).status == 401
    viewer.check()


@pytest.mark.one_store
def test_what_only_script_can_do_is_not_shown(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"], script=False)
    viewer.open(f"/timers/{seeds.timers['pending']}")
    for name in ("Copy id", "Live"):
        expect(viewer.page.get_by_role("button", name=name)).to_have_count(0)
