"""What happens is seen without a reload."""

import time

import pytest
from playwright.sync_api import expect

from rig.processes import wait_for
from rig.seeds import later
from rig.tolerance import seconds

SEEN_SECONDS = 2


def mark(page):
    """A reload would lose it."""
    page.evaluate("window.wasNotReloaded = true")


def is_marked(page) -> bool:
    return page.evaluate("window.wasNotReloaded === true")


def test_a_timer_is_created_counts_down_and_fires_before_the_eyes_of_its_viewer(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open("/timers/new")
    page.locator("[name=delay]").fill("4s")
    page.get_by_label("URL").fill(f"{seeds.receiver.url}/200/live")
    page.get_by_label("Namespace").fill("shop")
    page.get_by_label("Payload").fill('{"n": 12345678901234567890}')
    page.get_by_role("button", name="Create timer").click()
    expect(page.get_by_text("The timer was created.")).to_be_visible()
    mark(page)
    head = page.locator("#timer-head")
    expect(head.locator(".status")).to_have_text("pending")
    left = head.locator("time[data-distance]").first
    first = left.text_content()
    page.wait_for_function(
        "([selector, first]) => document.querySelector(selector)?.textContent !== first", arg=["#timer-head time[data-distance]", first]
    )
    wait_for("the call", lambda: any(path == "/200/live" for path, _ in seeds.receiver.calls), seconds(10))
    called_at = time.monotonic()
    expect(page.locator("#timer-head .status")).to_have_text("completed", timeout=seconds(SEEN_SECONDS) * 1_000)
    assert time.monotonic() - called_at < seconds(SEEN_SECONDS)
    assert is_marked(page)
    assert (b'{"n": 12345678901234567890}') in [body for path, body in seeds.receiver.calls if path == "/200/live"]
    viewer.check()


@pytest.mark.one_store
def test_a_new_timer_appears_in_an_open_list_unless_it_is_paused(seeds, look):
    service = seeds.service
    live, paused = (look(service, seeds.cookies["administrator"]) for _ in range(2))
    for viewer in (live, paused):
        viewer.open("/timers?q=ns:appears")
        expect(viewer.page.get_by_role("button", name="Live")).to_be_visible()
        mark(viewer.page)
    paused.page.get_by_role("button", name="Live").click()
    expect(paused.page.locator("#live")).to_have_text("‖ Paused")
    service.create(f"{seeds.receiver.url}/200/x", key="appears-now", namespace="appears")
    expect(live.page.get_by_role("link", name="appears-now", exact=True)).to_be_visible()
    expect(paused.page.get_by_role("link", name="appears-now", exact=True)).to_have_count(0)
    paused.page.locator("#live").click()
    expect(paused.page.get_by_role("link", name="appears-now", exact=True)).to_be_visible()
    for viewer in (live, paused):
        assert is_marked(viewer.page)
        viewer.check()


@pytest.mark.one_store
def test_live_rows_shift_nothing_and_keep_what_is_selected(seeds, look):
    service = seeds.service
    for n in range(3):
        service.create(f"{seeds.receiver.url}/200/x", key=f"steady-{n}", namespace="steady")
    viewer = look(service, seeds.cookies["administrator"])
    page = viewer.page
    viewer.open("/timers?q=ns:steady&sort=due&order=asc")
    expect(page.locator("#live")).to_have_text("● Live")
    page.get_by_label("Select steady-1").check()
    page.evaluate(
        """() => { window.shifts = 0;
        new PerformanceObserver(list => list.getEntries().forEach(entry => { window.shifts += entry.value }))
          .observe({ type: "layout-shift", buffered: false }); }"""
    )
    service.api("DELETE", f"/timers/{service.create(f'{seeds.receiver.url}/200/x', key='steady-3', namespace='steady', delay='9h')}")
    expect(page.locator("tr", has_text="steady-3").locator(".status")).to_have_text("canceled")
    expect(page.get_by_label("Select steady-1")).to_be_checked()
    assert page.evaluate("window.shifts") == 0
    viewer.check()


@pytest.mark.one_store
def test_what_is_the_same_is_not_marked_as_new(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"])
    viewer.open("/timers?q=ns:shop+key:shop-order-*")
    expect(viewer.page.locator("#live")).to_have_text("● Live")
    # The first region has come when a timer has that was registered after the page.
    seeds.service.api("POST", "/timers", later("shop", "shop-order-new", seeds.receiver.url))
    expect(viewer.page.get_by_role("link", name="shop-order-new", exact=True)).to_be_visible()
    assert viewer.page.locator("tr.fresh").count() == 1
    seeds.service.api(
        "POST", "/timers/bulk", {"action": "cancel", "filter": {"key": "shop-order-new", "namespace": "shop"}, "expected_max": 1}
    )


@pytest.mark.one_store
@pytest.mark.parametrize("way", ("Escape", "Back"))
def test_what_happens_behind_an_open_dialog_is_shown_when_it_closes(way, seeds, look):
    service = seeds.service
    id = service.create(f"{seeds.receiver.url}/200/x", key=f"behind-{way}", namespace="behind")
    asked, beside = (look(service, seeds.cookies["administrator"]) for _ in range(2))
    for viewer in (asked, beside):
        viewer.open(f"/timers/{id}")
        expect(viewer.page.locator("#live")).to_have_text("● Live")
        mark(viewer.page)
    page = asked.page
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    assert service.api("POST", f"/timers/{id}/fire").status < 300
    service.wait_for_status(id, "completed")
    # Both are sent the same at the same time.
    expect(beside.page.locator("#timer-head .status")).to_have_text("completed")
    expect(page.locator("#timer-head .status")).to_have_text("pending")
    if way == "Escape":
        page.keyboard.press("Escape")
    else:
        dialog.get_by_role("link", name="Back").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#timer-head .status")).to_have_text("completed")
    for viewer in (asked, beside):
        assert is_marked(viewer.page)
        viewer.check()
