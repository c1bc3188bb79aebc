"""Editing a timer, also while another client does."""

from playwright.sync_api import expect


def test_a_change_is_saved(seeds, look):
    id = seeds.service.create(f"{seeds.receiver.url}/200/a", key="edited", namespace="shop", payload={"n": 1})
    viewer = look(seeds.service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open(f"/timers/{id}")
    page.get_by_role("link", name="Edit").click()
    assert page.get_by_label("Payload").input_value() == '{"n": 1}'
    page.get_by_label("Payload").fill('{"n": 1e400}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The timer was changed.")).to_be_visible()
    assert seeds.service.timer(id)["revision"] == 2
    assert '{"n": 1e400}' in page.locator("#timer-content").inner_text()
    viewer.check()


def test_a_conflict_shows_both_versions_and_overwrites_nothing(seeds, look):
    service = seeds.service
    id = service.create(f"{seeds.receiver.url}/200/first", key="contested", namespace="shop")
    viewer = look(service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open(f"/timers/{id}/edit")
    callback = {"type": "http", "url": f"{seeds.receiver.url}/200/theirs"}
    assert service.api("PUT", f"/timers/{id}", {"callback": callback}).status == 200
    page.get_by_label("URL").fill(f"{seeds.receiver.url}/200/mine")
    with page.expect_navigation() as met:
        page.get_by_role("button", name="Save").click()
    assert met.value.status == 412
    both = page.get_by_role("region", name="Both versions")
    expect(both).to_contain_text("/200/theirs")
    expect(both).to_contain_text("/200/mine")
    assert service.timer(id)["callback_config"]["url"].endswith("/200/theirs")
    # What was written is not lost, and can be saved now that both were seen.
    assert page.get_by_label("URL").input_value().endswith("/200/mine")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The timer was changed.")).to_be_visible()
    assert service.timer(id)["callback_config"]["url"].endswith("/200/mine")


def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_lost(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open("/timers/new?delay=soon&namespace=shop")
    page.get_by_label("URL").fill("http://127.0.0.1:9/kept")
    page.get_by_role("button", name="Create timer").click()
    expect(page.locator("#error-delay")).to_be_visible()
    assert page.get_by_label("URL").input_value() == "http://127.0.0.1:9/kept"
    page.locator("[name=delay]").fill("1h")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status")).to_contain_text("It would fire")


def test_a_copy_has_the_content_and_another_key(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    viewer.open(f"/timers/{seeds.timers['pending']}")
    viewer.page.get_by_role("link", name="Duplicate").click()
    assert '"order": 42' in viewer.page.get_by_label("Payload").input_value()
    assert viewer.page.locator("[name=key]").input_value() == ""
    viewer.check()
