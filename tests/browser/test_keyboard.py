"""Everything can be done from the keyboard."""

import pytest
from playwright.sync_api import expect


@pytest.mark.one_store
def test_the_shortcuts_that_are_listed_do_what_they_say(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"])
    page = viewer.page
    viewer.open()
    page.keyboard.press("/")
    expect(page.get_by_label("Search timers")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    help = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help).to_be_visible()
    page.keyboard.press("Escape")
    expect(help).to_be_hidden()
    for key, path in (("t", "/timers"), ("f", "/failed"), ("d", "/destinations"), ("c", "/cluster"), ("o", "")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(seeds.service.console + path)
    was = page.locator("#zone").inner_text()
    page.keyboard.press("z")
    expect(page.locator("#zone")).not_to_have_text(was)
    expect(page.locator("#live")).to_have_text("● Live")
    page.keyboard.press("l")
    expect(page.locator("#live")).to_have_text("‖ Paused")
    viewer.check()


def test_a_row_is_chosen_opened_and_its_timer_canceled(seeds, look):
    service = seeds.service
    ids = [service.create(f"{seeds.receiver.url}/200/x", key=f"typed-{n}", namespace="typed", delay=f"{n + 1}h") for n in range(3)]
    viewer = look(service, seeds.cookies["administrator"])
    page = viewer.page
    viewer.open("/timers?q=ns:typed&sort=due&order=asc")
    for key in "jjjk":
        page.keyboard.press(key)
    expect(page.locator("tr[aria-selected]")).to_contain_text("typed-1")
    page.keyboard.press("x")
    expect(page.get_by_label("Select typed-1")).to_be_checked()
    dialog = page.get_by_role("dialog")
    # What is done to the timer of a page is done to the chosen row with the same keys, where its status permits it.
    for key, told in (("c", "This cannot be undone"), ("f", "It becomes due now")):
        page.keyboard.press(key)
        expect(dialog).to_contain_text("typed-1")
        expect(dialog).to_contain_text(told)
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
    page.keyboard.press("r")
    expect(dialog).to_be_hidden()
    page.keyboard.press("e")
    page.wait_for_url(f"{service.console}/timers/{ids[1]}/edit")
    page.go_back()
    for key in "jj":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{service.console}/timers/{ids[1]}")
    page.keyboard.press("c")
    expect(dialog).to_contain_text("This cannot be undone")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert service.timer(ids[1])["status"] == "pending"
    page.keyboard.press("c")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The timer is canceled.")).to_be_visible()
    assert service.timer(ids[1])["status"] == "canceled"
    viewer.check()


def test_a_timer_is_created_without_a_mouse(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open("/timers")

    def tab_to(selector: str):
        for _ in range(80):
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{selector} is not reached")

    tab_to("a[href$='/timers/new']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/timers/new")
    for selector, text in (
        ("[name=delay]", "1h"),
        ("[name=url]", "http://127.0.0.1:9/x"),
        ("[name=namespace]", "shop"),
        ("[name=key]", "by-keyboard"),
    ):
        tab_to(selector)
        page.keyboard.type(text)
    tab_to("button.main")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The timer was created.")).to_be_visible()
    viewer.check()


@pytest.mark.one_store
def test_what_has_the_focus_can_be_seen(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"])
    viewer.open("/timers?q=key:shop-order-000*")
    unseen = []
    for _ in range(25):
        viewer.page.keyboard.press("Tab")
        seen = viewer.page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            return [e.outerHTML.slice(0, 120), s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none"]; }"""
        )
        if not seen[1]:
            unseen.append(seen[0])
    assert not unseen, unseen


@pytest.mark.one_store
def test_shortcuts_can_be_switched_off(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"])
    viewer.open("/preferences")
    viewer.page.get_by_role("group", name="Keyboard shortcuts").get_by_label("off").check()
    viewer.page.get_by_role("button", name="Save").click()
    viewer.page.keyboard.press("?")
    viewer.page.keyboard.press("g")
    viewer.page.keyboard.press("t")
    expect(viewer.page.get_by_role("dialog")).to_have_count(0)
    assert viewer.page.url.endswith("/preferences")
    viewer.check()
