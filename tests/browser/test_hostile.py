"""Texts that want to be markup, script or something else than they are."""

import json

import pytest

from rig.receiver import Receiver
from rig.service import ADMINISTRATOR, Service

PAYLOAD_BYTES_MAX = 256 * 1024
HOSTILE = (
    "</script><script>window.pwned=1</script>",
    '"><img src=x onerror=window.pwned=1>',
    "'-window.pwned-'",
    "</pre></td></table></main><svg onload=window.pwned=1>",
    "{{constructor.constructor('window.pwned=1')()}}",
    "&lt;b&gt;&#x3c;script&#x3e;",
    "\u202eevil\u2066 right to left \u200f",
    "a control \u0001 and separators \u2028\u2029",
    '=HYPERLINK("http://127.0.0.1:9/x")',
)


@pytest.fixture(scope="module")
def hostile(store):
    """A service in which every text that a client chooses is hostile."""
    service = Service(store, ATTEMPTS_BODY="1k")
    receiver = Receiver()
    ids = []
    for n, text in enumerate(HOSTILE):
        printable = "".join(c for c in text if c.isprintable())
        fields = {
            "key": f"{printable}{n}"[:200],
            "namespace": "hostile",
            "group": printable[:100],
            "correlation_id": printable[:100],
            "metadata": {text: {"deep": text}},
        }
        for name in ("key", "group", "correlation_id"):
            # What the API refuses cannot be shown.
            probe = service.api(
                "POST",
                "/timers",
                {"delay": "1h", "callback": {"type": "http", "url": receiver.url}, name: fields[name], "namespace": "probe"},
            )
            if probe.status >= 300:
                del fields[name]
        callback = {"type": "http", "url": f"{receiver.url}/500/{'%3Cscript%3E' if n else 'x'}", "payload": {"text": text, text: [text]}}
        answer = service.api("POST", "/timers", {"delay": "0s" if n % 2 else "1h", "callback": callback, **fields})
        ids.append(answer.data["id"])
        if not n % 2:
            service.api("POST", f"/timers/{ids[-1]}/pause", {"note": printable[:200]})
        service.api("POST", "/keys", {"name": printable[:100], "namespaces": None, "rights": "read"})
    for id in ids[1::2]:
        service.wait_for_status(id, "failed")
    yield service, ids
    service.stop()


def test_hostile_texts_are_shown_exactly_as_they_are_and_do_nothing(hostile, look):
    service, ids = hostile
    viewer = look(service, service.log_in(ADMINISTRATOR))
    page = viewer.page
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    paths = ["", "/timers", "/failed", "/keys", "/namespaces", "/destinations"]
    texts = {f"/timers/{id}": text for id, text in zip(ids, HOSTILE)}
    paths += [*texts] + [f"/timers/{id}/edit" for id in ids[:3]]
    for path in paths:
        viewer.open(path)
        if text := texts.get(path):
            shown = page.locator("#timer-content details", has_text="Payload").first.locator("pre").text_content()
            assert json.loads(shown) == {"text": text, text: [text]}, "exactly as it is"
        state = page.evaluate(
            """() => ({ pwned: "pwned" in window, scripts: document.scripts.length, images: document.images.length,
              handlers: document.querySelectorAll("[onerror], [onload], [onclick]").length })"""
        )
        assert state == {"pwned": False, "scripts": 1, "images": 0, "handlers": 0}, f"{path}: {state}"
    assert not dialogs
    viewer.check()


@pytest.mark.one_store
def test_what_is_searched_for_is_text_too(hostile, look):
    service, _ = hostile
    viewer = look(service, service.log_in(ADMINISTRATOR), refusals=(400,))
    viewer.open("/timers")
    for text in HOSTILE:
        viewer.page.locator("#filter").fill(text)
        with viewer.page.expect_navigation():
            viewer.page.locator("#filter").press("Enter")
        assert "/timers?q=" in viewer.page.url
        assert viewer.page.evaluate("window.pwned") is None
        assert viewer.page.evaluate("document.scripts.length") == 1


def test_the_largest_payload_is_folded_and_complete(seeds, look):
    number = "1" + "0" * 400
    frame = '{"text": "</pre>%s<b>end", "number": ' + number + "}"
    left = PAYLOAD_BYTES_MAX - len(frame % "")
    raw = frame % ("ä" * (left // 2) + "x" * (left % 2))
    assert len(raw.encode()) == PAYLOAD_BYTES_MAX
    body = '{"delay": "1h", "namespace": "shop", "callback": {"type": "http", "url": "http://127.0.0.1:9/x", "payload": %s}}' % raw
    answer = seeds.service.request(
        "POST", "/timers", body.encode(), {"X-API-Key": seeds.keys["scoped"], "Content-Type": "application/json"}
    )
    assert answer.status == 201, answer.text[:300]
    viewer = look(seeds.service, seeds.cookies["scoped"], width=900)
    viewer.open(f"/timers/{answer.data['id']}")
    details = viewer.page.locator("#timer-content details", has_text="Payload").first
    assert details.get_attribute("open") is None
    assert details.locator("pre").text_content() == raw
    details.locator("summary").click()
    assert viewer.page.evaluate("document.documentElement.scrollWidth") <= 900
    viewer.open(f"/timers/{answer.data['id']}/edit")
    assert viewer.page.get_by_label("Payload").input_value() == raw
    viewer.page.get_by_role("button", name="Save").click()
    viewer.page.get_by_text("The timer was changed.").wait_for()
    assert raw.encode() in seeds.service.api("GET", f"/timers/{answer.data['id']}").body
    viewer.check()
