"""Headers of every answer of the console, whatever it is."""

import re

import pytest

from rig.pages import PAGES
from rig.viewer import POLICY, policy_of

pytestmark = pytest.mark.one_store


def guarded(answer, what: str):
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert policy_of(headers) == POLICY, f"{answer.status} {what}: {headers.get('content-security-policy')}"
    assert headers.get("x-content-type-options") == "nosniff", what
    assert "cache-control" in headers, what


def test_every_page_and_every_refusal_has_the_policy(seeds):
    service, cookie = seeds.service, seeds.cookies["administrator"]
    for page in PAGES:
        guarded(service.open(page.path(seeds), cookie), page.name)
        guarded(service.open(page.path(seeds), ""), f"{page.name}, logged out")
        guarded(service.open(page.path(seeds), seeds.cookies["read-only"]), f"{page.name}, read-only")
    for path in (
        "/nowhere",
        "/timers/x",
        "/timers?q=status:wrong",
        "/assets/nothing.js",
        "/login",
        "/timers.csv",
        "/timers.ndjson",
        "/operations/x",
        "/%00",
        "/..%2f",
    ):
        guarded(service.open(path, cookie), path)
    guarded(service.submit("/timers/x/cancel", {}, cookie), "a form for what is not there")
    guarded(service.submit("/timers/x/cancel", {}, cookie, **{"Sec-Fetch-Site": "cross-site"}), "a forged form")
    guarded(service.submit("/login", {"key": "wrong"}), "a wrong key")
    guarded(service.submit("/timers/new", {"delay": "1h"}, ""), "a form without a cookie")
    guarded(service.submit("/timers/new", {"payload": "x" * 2_000_000}, cookie), "a form that is too large")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
        guarded(service.request(method, "/console/timers", headers={"Cookie": cookie, "Origin": service.origin}), method)


def test_pages_are_not_stored_and_files_are_kept(seeds):
    service = seeds.service
    page = service.open("/timers", seeds.cookies["administrator"])
    assert "no-store" in page.headers["cache-control"]
    assets = re.findall(r'(?:href|src)="(/console/assets/[^"]+)"', page.text)
    assert len(assets) >= 3
    for asset in assets:
        answer = service.request("GET", asset)
        assert answer.status == 200 and "immutable" in answer.headers["cache-control"], asset
        guarded(answer, asset)
