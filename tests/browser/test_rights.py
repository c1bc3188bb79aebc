"""What a key may see and do is decided by the commands; the console adds nothing to it."""

import json
import time

import pytest
from playwright.sync_api import expect

from rig import seeds as seeds_of_tests
from rig.crawl import Found, crawl
from rig.pages import PAGES
from rig.seeds import OTHER, OTHER_ADDRESS
from rig.stream import Stream, regions_of
from rig.tolerance import seconds

# Nothing stored changes by these.
HARMLESS = ("/console/logout", "/console/preferences")
VERIFIES = "/verify"
ACTIONS = ("fire", "retry", "pause", "resume", "cancel")


def forms_that_change(html: str, base: str = "") -> list[str]:
    actions = [form["action"].removeprefix(base) for form in Found(html).forms if form["method"] == "post"]
    return [action for action in actions if action not in HARMLESS and not action.endswith(VERIFIES)]


def state(service) -> list:
    """Every timer with its revision, and every key."""
    timers = [json.loads(line) for line in service.api("GET", "/timers.ndjson").text.splitlines()]
    keys = service.api("GET", "/keys").data["keys"]
    return sorted((one["id"], one["status"], one["revision"]) for one in timers) + sorted(
        (one["id"], str(one.get("revoked_at"))) for one in keys
    )


def crafted(seeds, timer: str) -> list[tuple[str, dict]]:
    """Every form that there is, for a timer of the caller's choice."""
    everything = json.dumps({"namespace": [OTHER]})
    return [
        *((f"/timers/{timer}/{action}", {"revision": "1"}) for action in ACTIONS),
        *((f"/timers/{timer}/{action}", {}) for action in ACTIONS),
        (f"/timers/{timer}/edit", {"when": "delay", "delay": "9h", "kind": "http", "url": "http://127.0.0.1:9/x", "revision": "1"}),
        ("/timers/new", {"when": "delay", "delay": "9h", "kind": "http", "url": "http://127.0.0.1:9/x", "namespace": OTHER}),
        *(("/operations/new", {"do": work, "id": timer}) for work in ("cancel", "fire", "pause")),
        *(
            ("/operations/new", {"do": work, "filter": everything, "expected_max": "100000", "how": "shift", "shift": "+1h"})
            for work in ("cancel", "fire", "retry", "reschedule", "pause", "resume", "expire", "delete")
        ),
        (f"/operations/{seeds.other_operation}/stop", {}),
        ("/keys", {"name": "more", "rights": "write"}),
        (f"/keys/{seeds.key_ids['read-only']}/revoke", {}),
        ("/first", {}),
    ]


@pytest.mark.one_store
def test_a_key_that_only_reads_finds_no_form_that_changes_anything(seeds):
    found = crawl(seeds.service, seeds.cookies["read-only"], [f"/console{page.path(seeds)}" for page in PAGES])
    assert len(found) > 30
    offered = {path: forms_that_change(answer.text) for path, answer in found.items() if b"<form" in answer.body}
    assert not {path: forms for path, forms in offered.items() if forms}


def test_a_key_that_only_reads_changes_nothing_by_crafted_requests(seeds):
    before = state(seeds.service)
    for timer in (seeds.others["pending"], seeds.others["failed"], seeds.others["paused"]):
        for path, fields in crafted(seeds, timer):
            answer = seeds.service.submit(path, fields, seeds.cookies["read-only"])
            assert answer.status in (403, 404), f"{answer.status} {path} {fields}"
    assert state(seeds.service) == before


def test_a_key_changes_nothing_of_other_namespaces_by_crafted_requests(seeds):
    before = state(seeds.service)
    for timer in (seeds.others["pending"], seeds.others["failed"], seeds.others["paused"]):
        for path, fields in crafted(seeds, timer):
            answer = seeds.service.submit(path, fields, seeds.cookies["scoped"])
            assert answer.status >= 400 or "0 timers" in answer.text, f"{answer.status} {path} {fields} {answer.text[:300]}"
            assert "127.0.0.2" not in answer.text
    assert state(seeds.service) == before


@pytest.mark.one_store
def test_a_console_that_only_reads_does_so_for_the_administrator_too(start):
    seeds = seeds_of_tests.plant(start(CONSOLE="read-only"), is_full=False)
    before = state(seeds.service)
    cookie = seeds.cookies["administrator"]
    for path, fields in crafted(seeds, seeds.timers["pending"]):
        assert seeds.service.submit(path, fields, cookie).status == 403, path
    assert state(seeds.service) == before
    timer, key = f"/timers/{seeds.timers['pending']}", f"/keys/{seeds.key_ids['scoped']}/revoke"
    for path in ("", "/timers", timer, "/keys", "/failed"):
        assert not forms_that_change(seeds.service.open(path, cookie).text), path
    for path in ("/timers/new", f"{timer}/edit", f"{timer}/cancel", "/operations/new?do=cancel", key):
        answer = seeds.service.open(path, cookie)
        assert answer.status == 403 and not forms_that_change(answer.text), path


def test_a_scoped_key_sees_nothing_of_other_namespaces(seeds):
    service, cookie = seeds.service, seeds.cookies["scoped"]
    found = crawl(service, cookie, [f"/console{page.path(seeds)}" for page in PAGES])
    assert len(found) > 30
    told = [path for path, answer in found.items() if OTHER in answer.text or OTHER_ADDRESS in answer.text]
    assert not told
    # Asked for by name, it does not exist.
    for path in (
        *(f"/timers/{id}" for id in seeds.others.values()),
        f"/timers/{seeds.others['pending']}/edit",
        f"/timers/{seeds.others['pending']}/cancel",
        f"/timers/new?from={seeds.others['pending']}",
        f"/operations/{seeds.other_operation}",
    ):
        answer = service.open(path, cookie)
        assert answer.status == 404, f"{answer.status} {path}"
        assert f"{OTHER}-" not in answer.text
    # The filter comes back as it was written; nothing else does.
    for path in (f"/timers?q=ns:{OTHER}", f"/?ns={OTHER}", f"/timers?q=key:{OTHER}-pending", f"/operations/new?do=cancel&q=ns:{OTHER}"):
        answer = service.open(path, cookie)
        assert f"{OTHER}-customer" not in answer.text and OTHER_ADDRESS not in answer.text, path
        assert all(id not in answer.text for id in seeds.others.values()), path
    for format in ("csv", "json", "ndjson"):
        assert OTHER not in service.open(f"/timers.{format}", cookie).text
        assert OTHER_ADDRESS not in service.open(f"/timers.{format}?q=ns:{OTHER}", cookie).text


def test_a_scoped_key_hears_nothing_of_other_namespaces(seeds):
    service, cookie = seeds.service, seeds.cookies["scoped"]
    own = seeds.receiver.url.removeprefix("http://")
    views = ("", "/timers", "/failed", "/destinations", "/namespaces", "/operations")
    for view in (*views, f"/timers/{seeds.timers['failed']}", f"/operations/{seeds.operation}", f"/destinations/{own}"):
        expected = {region["id"] for region in Found(service.open(view, cookie).text).live}
        assert expected, f"{view} has no live region"
        heard = regions_of(service, cookie, view, expected)
        # Every view has the dot of the health, and an overview with timers has no first steps any more.
        assert heard.keys() - {"health", "first-steps"} == expected
        assert not [id for id, html in heard.items() if OTHER in html or OTHER_ADDRESS in html], view
    # What another tenant has is gone for this key, and its stream says nothing else.
    theirs = seeds.other_receiver.url.removeprefix("http://")
    for view in (f"/timers/{seeds.others['pending']}", f"/operations/{seeds.other_operation}", f"/destinations/{theirs}"):
        told = Stream(service, cookie, view)
        assert [name for name, _ in told.events() if name] == ["gone"], view
        told.close()


@pytest.mark.one_store
def test_a_revoked_key_closes_the_page_that_is_open(service, look):
    issued = service.issue_key("soon revoked", "write", ["shop"])
    service.create("http://127.0.0.1:9/x", namespace="shop", key="seen")
    cookie = service.log_in(issued["key"])
    viewer = look(service, cookie)
    viewer.open("/timers")
    expect(viewer.page.locator("#live")).to_have_text("● Live")
    assert service.api("DELETE", f"/keys/{issued['id']}").status == 200
    # The page that is open leaves by itself, and nothing can be opened any more.
    viewer.page.wait_for_url("**/console/login**", timeout=seconds(3) * 1_000)
    assert service.open("/timers", cookie).status == 303
    assert service.submit("/timers/new", {"delay": "1h"}, cookie).status == 401


def test_a_cookie_of_a_revoked_key_is_refused_within_a_second(service):
    issued = service.issue_key("soon revoked", "read", None)
    cookie = service.log_in(issued["key"])
    assert service.open("", cookie).status == 200
    assert service.api("DELETE", f"/keys/{issued['id']}").status == 200
    revoked_at = time.monotonic()
    while service.open("", cookie).status == 200:
        assert time.monotonic() - revoked_at < 1.0, "a second is over"
    assert service.open("", cookie).status == 303


@pytest.mark.one_store
@pytest.mark.parametrize("rights", ("read-only", "scoped"))
def test_the_viewer_is_told_what_its_key_permits(rights, seeds, look):
    viewer = look(seeds.service, seeds.cookies[rights])
    viewer.open("/about")
    expect(viewer.page.locator("#whoami")).to_contain_text(f"{rights} viewer")
    expect(viewer.page.locator("#whoami")).to_contain_text("read only" if rights == "read-only" else "write")
    viewer.check()
