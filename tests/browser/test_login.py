"""Who gets in, and how."""

import http.client
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from rig.service import ADMINISTRATOR

pytestmark = pytest.mark.one_store


def test_a_key_is_exchanged_for_a_cookie_that_no_script_reads(service, look):
    viewer = look(service, refusals=(403,))
    page = viewer.page
    viewer.open("/timers?q=ns:shop")
    assert page.url.startswith(f"{service.console}/login")
    page.get_by_label("API key").fill("not-a-key")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("This is not a valid API key.")
    assert "not-a-key" not in page.url
    page.get_by_label("API key").fill(ADMINISTRATOR)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{service.console}/timers?q=ns:shop")
    assert ADMINISTRATOR not in page.content()
    cookie = next(one for one in viewer.context.cookies() if one["name"] == "timer")
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax" and ADMINISTRATOR not in cookie["value"]
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{service.console}/login")
    assert viewer.open().url.startswith(f"{service.console}/login")
    assert viewer.errors == ["error: Failed to load resource: the server responded with a status of 403 (Forbidden)"]


def test_after_five_wrong_keys_an_address_waits_also_with_the_right_one(start):
    service = start()
    for _ in range(5):
        assert service.submit("/login", {"key": "wrong"}).status == 403
    for key in ("wrong", ADMINISTRATOR):
        answer = service.submit("/login", {"key": key})
        assert answer.status == 429
        assert int(answer.headers["retry-after"]) <= 60
        assert "set-cookie" not in answer.headers
    # Another address does not.
    connection = http.client.HTTPConnection("127.0.0.1", service.port, source_address=("127.0.0.7", 0))
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": service.origin}
    connection.request("POST", "/console/login", urlencode({"key": ADMINISTRATOR}), headers)
    assert connection.getresponse().status == 303


@pytest.mark.parametrize(
    "next", ("//evil.example", "https://evil.example", "/console/../docs", "/\\evil.example", "/console\\@evil", "javascript:alert(1)")
)
def test_a_login_leads_nowhere_else(next, seeds):
    answer = seeds.service.submit("/login", {"key": ADMINISTRATOR, "next": next})
    assert answer.status == 303
    assert answer.headers["location"].startswith("/console") and "evil" not in answer.headers["location"]


@pytest.mark.parametrize(
    "forge", (lambda cookie: cookie[:-1], lambda cookie: cookie + "A", lambda cookie: "timer=administrator.1.x", lambda cookie: "timer=")
)
def test_a_forged_cookie_opens_nothing(forge, seeds):
    answer = seeds.service.open("/timers", forge(seeds.cookies["read-only"]))
    assert answer.status == 303 and "/console/login" in answer.headers["location"]


def test_a_cookie_of_another_installation_opens_nothing(start, seeds):
    other = start(API_KEY="another-administrators-key-of-the-tests")
    assert other.open("", seeds.cookies["administrator"]).status == 303


def test_plain_http_beyond_this_machine_is_refused(seeds):
    service = seeds.service
    headers = {"Host": "timers.example", "Origin": "http://timers.example", "Sec-Fetch-Site": ""}
    answer = service.submit("/login", {"key": ADMINISTRATOR}, **headers)
    assert answer.status == 403 and "HTTPS" in answer.text and "set-cookie" not in answer.headers


def test_behind_https_the_cookie_is_secure(start):
    service = start(CONSOLE_URL="https://timers.example")
    headers = {"Host": "timers.example", "Origin": "https://timers.example"}
    set_cookie = service.submit("/login", {"key": ADMINISTRATOR}, **headers).headers["set-cookie"]
    assert set_cookie.startswith("__Host-timer=")
    for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert part in set_cookie


def test_a_browser_is_led_to_the_console_and_a_client_is_not(seeds):
    service = seeds.service
    led = service.request("GET", "/", headers={"Accept": "text/html,application/xhtml+xml"})
    assert led.status in (302, 303, 307, 308) and led.headers["location"].endswith("/console")
    assert service.request("GET", "/", headers={"Accept": "application/json"}).status >= 400


def test_a_console_that_is_off_is_not_there(start):
    service = start(CONSOLE="off")
    assert service.request("GET", "/console").status in (401, 404)
    assert service.api("GET", "/console/login").status == 404


def test_requests_of_the_console_count_for_the_rate_of_the_key(start):
    service = start(RATE_LIMIT="1", RATE_LIMIT_BURST="8")
    cookie = service.log_in(ADMINISTRATOR)
    answers = [service.open("/about", cookie) for _ in range(12)]
    refused = next(answer for answer in answers if answer.status != 200)
    assert refused.status == 429 and int(refused.headers["retry-after"]) >= 1
    assert service.api("GET", "/timers").status == 429, "the API has the same count"
