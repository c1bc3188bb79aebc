"""Editing a timer, also while another client does."""

import base64
import hmac

import pytest
from playwright.sync_api import expect

from rig import axe


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
    viewer = look(service, seeds.cookies["scoped"], refusals=(412,))
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
    assert not axe.violations_in_both_themes(page)
    assert service.timer(id)["callback_config"]["url"].endswith("/200/theirs")
    # What was written is not lost, and can be saved now that both were seen.
    assert page.get_by_label("URL").input_value().endswith("/200/mine")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The timer was changed.")).to_be_visible()
    assert service.timer(id)["callback_config"]["url"].endswith("/200/mine")


@pytest.mark.one_store
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_lost(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"], refusals=(400,))
    page = viewer.page
    viewer.open("/timers/new?delay=soon&namespace=shop")
    page.get_by_label("URL").fill("http://127.0.0.1:9/kept")
    page.get_by_role("button", name="Create timer").click()
    expect(page.locator("#error-delay")).to_be_visible()
    assert page.get_by_label("URL").input_value() == "http://127.0.0.1:9/kept"
    assert not axe.violations_in_both_themes(page)
    page.locator("[name=delay]").fill("1h")
    page.get_by_role("button", name="Validate").click()
    expect(page.get_by_role("status")).to_contain_text("Everything is valid. Fires")


@pytest.mark.one_store
def test_a_copy_has_the_content_and_another_key(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    viewer.open(f"/timers/{seeds.timers['pending']}")
    viewer.page.get_by_role("link", name="Duplicate").click()
    assert '"order": 42' in viewer.page.get_by_label("Payload").input_value()
    assert viewer.page.locator("[name=key]").input_value() == ""
    viewer.check()


@pytest.mark.one_store
@pytest.mark.parametrize("script", (True, False))
def test_a_timer_is_written_as_a_form_or_as_json(script, seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"], script=script, refusals=(400,))
    page = viewer.page
    viewer.open("/timers/new?delay=2h&namespace=shop&url=http://127.0.0.1:9/x")
    page.get_by_label("Payload").fill('{"n": 12345678901234567890}')
    page.get_by_role("button", name="JSON").click()
    text = page.locator("[name=json]").input_value()
    assert '"payload": {"n": 12345678901234567890}' in text and '"delay": "2h"' in text
    key = f"written-{script}"
    page.locator("[name=json]").fill(text.replace('"delay"', f'"key": "{key}", "on_success": {{"type": "http", "url": "x"}}, "delay"'))
    page.get_by_role("button", name="Create timer").click()
    expect(page.get_by_role("alert")).to_contain_text("on_success.url")
    page.locator("[name=json]").fill(text.replace('"delay"', f'"key": "{key}", "delay"'))
    page.get_by_role("button", name="Form").click()
    expect(page.locator("[name=key]")).to_have_value(key)
    page.get_by_role("button", name="Create timer").click()
    expect(page.get_by_text("The timer was created.")).to_be_visible()
    id = page.url.split("/")[-1].split("?")[0]
    viewer.open(f"/timers/{id}/edit?as=json")
    page.locator("[name=json]").fill('{"metadata": {"as": "json"}}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The timer was changed.")).to_be_visible()
    timer = seeds.service.timer(id)
    assert (timer["metadata"], timer["callback_config"]["payload"]["n"]) == ({"as": "json"}, 12345678901234567890)


@pytest.mark.one_store
def test_a_signature_is_verified_with_a_pasted_secret(seeds, look):
    secret, stamp, body = "whsec_" + base64.b64encode(b"s" * 32).decode(), "1893456000", '{"n": 1}'
    id = seeds.service.create("http://127.0.0.1:9/x", namespace="shop", payload={"n": 1})
    viewer = look(seeds.service, seeds.cookies["scoped"])
    page = viewer.page
    viewer.open(f"/timers/{id}")
    page.get_by_text("Verify a signature").click()
    webhook_id = page.locator("details form dd").first.inner_text()
    signature = base64.b64encode(hmac.digest(b"s" * 32, f"{webhook_id}.{stamp}.{body}".encode(), "sha256")).decode()
    for pasted, told in ((signature, "The signature is right"), ("AAAA", "is not that of this call")):
        page.get_by_label("webhook-timestamp").fill(stamp)
        page.get_by_label("webhook-signature").fill(f"v1,{pasted}")
        page.get_by_label("Secret").fill(secret)
        page.get_by_role("button", name="Verify").click()
        expect(page.locator(".notice:not([hidden])")).to_contain_text(told)
        assert secret not in page.content()
    viewer.check()
