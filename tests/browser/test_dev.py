"""`timer dev`: a link that logs in, the first timer, and the inbox of its receiver."""

import re

import pytest
from playwright.sync_api import expect

from rig import axe
from rig.room import scrolled_sideways
from rig.service import ADMINISTRATOR, Service
from rig.tolerance import seconds


@pytest.fixture(scope="module")
def dev():
    """Its first test finds it empty."""
    service = Service("sqlite", command="dev")
    yield service
    service.stop()


def printed(service: Service, name: str) -> str:
    return re.search(rf"{name} +(http\S+)", service.log)[1]


def test_the_first_timer_of_a_developer_fires_in_five_seconds(dev, look):
    link = printed(dev, "Console")
    viewer = look(dev)
    viewer.page.goto(link)
    expect(viewer.page.get_by_role("heading", name="Overview")).to_be_visible()
    assert "once" not in viewer.page.url
    assert not axe.violations(viewer.page)
    viewer.page.get_by_role("button", name="Create one that fires in 5 s").click()
    expect(viewer.page.locator("#timer-head .status")).to_have_text("completed", timeout=seconds(8) * 1_000)
    viewer.check()
    # The token counts once.
    stranger = look(dev, refusals=(403,))
    stranger.page.goto(link)
    expect(stranger.page.get_by_role("alert")).to_be_visible()
    assert dev.open("", "").status == 303
    assert dev.submit("/login", {"key": ADMINISTRATOR}).status == 303


def test_the_inbox_shows_calls_answers_as_it_is_told_and_moves_the_clock(dev, look):
    receiver = printed(dev, "Receiver")
    cookie = dev.log_in(ADMINISTRATOR)
    assert dev.submit("/inbox/clear", {}, cookie).status == 303
    viewer = look(dev, cookie)
    page = viewer.page
    viewer.open("/inbox")
    expect(page.get_by_text("No calls yet")).to_be_visible()
    assert not axe.violations_in_both_themes(page)
    page.locator("[name=path]").fill("/told")
    page.locator("[name=status]").fill("503")
    page.locator("[name=times]").fill("1")
    page.get_by_role("button", name="Set the answer").click()
    expect(page.get_by_role("status")).to_be_visible()
    hostile = "</pre><script>window.pwned=1</script>"
    id = dev.create(f"{receiver}/told", delay="0s", payload={"text": hostile}, retries=1)
    calls = page.locator("#inbox-calls tbody")
    expect(calls).to_have_count(1)
    expect(calls.first).to_contain_text("503")
    # The receiver knows of a call before the service has settled it. The retry is an hour away.
    dev.wait_for_status(id, "pending")
    page.get_by_role("button", name="To the next fire").click()
    expect(page.get_by_role("status")).to_contain_text("1 call was made")
    expect(calls).to_have_count(2)
    dev.wait_for_status(id, "completed")
    calls.first.locator("summary").click()
    expect(calls.first.locator("pre")).to_contain_text(hostile)
    assert page.evaluate("'pwned' in window") is False
    assert not axe.violations_in_both_themes(page)
    assert not scrolled_sideways(page)
    page.get_by_role("button", name="Empty").click()
    expect(page.get_by_text("No calls yet")).to_be_visible()
    viewer.check()


def test_answers_stand_beside_each_other_and_a_call_is_sent_again(dev, look):
    receiver = printed(dev, "Receiver")
    cookie = dev.log_in(ADMINISTRATOR)
    assert dev.submit("/inbox/clear", {}, cookie).status == 303
    viewer = look(dev, cookie)
    page = viewer.page
    viewer.open("/inbox")
    for path, status in (("/one", "503"), ("/two", "404")):
        page.get_by_label("Path").fill(path)
        page.get_by_label("Status").fill(status)
        page.get_by_role("button", name="Set the answer").click()
        expect(page.get_by_role("status")).to_be_visible()
    programmed = page.get_by_role("region", name="Programmed answers").locator("tbody tr")
    expect(programmed).to_have_count(2)
    page.get_by_role("button", name="Remove the answer for /one").click()
    expect(programmed).to_have_count(1)
    dev.create(f"{receiver}/first", delay="0s", payload={"n": 1})
    calls = page.locator("#inbox-calls tbody")
    expect(calls).to_have_count(1)
    calls.first.locator("summary").click()
    page.get_by_label("Send call").fill(f"{receiver}/again")
    page.get_by_role("button", name="Send again").click()
    expect(page.locator("#timer-head .status")).to_have_text("completed")
    viewer.open("/inbox")
    expect(calls.first).to_contain_text("POST /again")
    assert not axe.violations(page)
    viewer.check()


def test_a_call_that_comes_while_an_address_is_written_is_shown_afterwards(dev, look):
    receiver = printed(dev, "Receiver")
    cookie = dev.log_in(ADMINISTRATOR)
    assert dev.submit("/inbox/clear", {}, cookie).status == 303
    dev.create(f"{receiver}/before", delay="0s")
    writing, beside = (look(dev, cookie) for _ in range(2))
    for viewer in (writing, beside):
        viewer.open("/inbox")
        expect(viewer.page.locator("#inbox-calls tbody")).to_have_count(1)
    page = writing.page
    page.locator("#inbox-calls summary").first.click()
    page.get_by_label("Send call").fill("http://127.0.0.1:9/half-writ")
    dev.create(f"{receiver}/meanwhile", delay="0s")
    # Both are sent the same at the same time.
    expect(beside.page.locator("#inbox-calls tbody")).to_have_count(2)
    expect(page.get_by_label("Send call")).to_have_value("http://127.0.0.1:9/half-writ")
    expect(page.locator("#inbox-calls tbody")).to_have_count(1)
    page.get_by_label("Send call").fill("")
    page.locator("#search").focus()
    expect(page.locator("#inbox-calls tbody")).to_have_count(2)
    for viewer in (writing, beside):
        viewer.check()


def test_an_opened_call_stays_open_and_no_other_is_opened_when_one_comes(dev, look):
    receiver = printed(dev, "Receiver")
    cookie = dev.log_in(ADMINISTRATOR)
    assert dev.submit("/inbox/clear", {}, cookie).status == 303
    dev.create(f"{receiver}/read", delay="0s", payload={"n": 1})
    viewer = look(dev, cookie)
    calls = viewer.page.locator("#inbox-calls tbody")
    viewer.open("/inbox")
    expect(calls).to_have_count(1)
    calls.first.locator("summary").click()
    dev.create(f"{receiver}/meanwhile", delay="0s", payload={"n": 2})
    expect(calls).to_have_count(2)
    # The latest stands above those before it.
    for call, path, is_open in ((calls.first, "/meanwhile", False), (calls.last, "/read", True)):
        expect(call).to_contain_text(f"POST {path}")
        assert call.locator("details").evaluate("part => part.open") is is_open, path
    # The next key is pressed in the same call.
    expect(calls.last.locator("summary")).to_be_focused()
    viewer.check()


def test_a_session_outlives_a_clock_that_is_moved_by_a_month(dev):
    cookie = dev.log_in(ADMINISTRATOR)
    assert dev.api("POST", "/dev/clock/advance", {"by": "30d"}).status == 200
    assert dev.open("/timers", cookie).status == 200


def test_the_inbox_is_for_the_administrator(dev):
    cookie = dev.log_in(dev.issue_key("a tenant", "write", ["shop"])["key"])
    assert dev.open("/inbox", cookie).status == 403
    for path in ("answers", "again", "clock", "clear"):
        assert dev.submit(f"/inbox/{path}", {"to": "1d"}, cookie).status == 403
    assert ">Inbox<" not in dev.open("", cookie).text
