"""Requests that a page of another origin makes, with the cookie of a viewer."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = pytest.mark.one_store

FORM = """<!doctype html><title>a page of another origin</title>
<form method="post" action="{action}"><input type="hidden" name="revision" value="1"></form>
<script>document.forms[0].submit()</script>"""


@pytest.fixture
def other_page():
    """A server whose page posts a form elsewhere."""
    html = {"body": b""}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(html["body"])))
            self.end_headers()
            self.wfile.write(html["body"])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def serve(action: str, host: str) -> str:
        html["body"] = FORM.format(action=action).encode()
        return f"http://{host}:{server.server_port}/"

    yield serve
    server.shutdown()


# Another port is another origin of the same site: the browser sends the cookie along. Another name is another site.
@pytest.mark.parametrize("host", ("127.0.0.1", "localhost"))
def test_a_form_posted_from_another_origin_is_refused(host, seeds, look, other_page):
    service = seeds.service
    id = service.create(f"{seeds.receiver.url}/200/x", namespace="forged")
    viewer = look(service, seeds.cookies["administrator"], refusals=(403,), leaves=True)
    with viewer.page.expect_response(lambda response: "/cancel" in response.url) as met:
        viewer.page.goto(other_page(f"{service.console}/timers/{id}/cancel", host))
    assert met.value.status == 403
    assert service.timer(id)["status"] == "pending"


@pytest.mark.parametrize(
    "headers",
    (
        {"Origin": "", "Sec-Fetch-Site": ""},
        {"Origin": "null", "Sec-Fetch-Site": ""},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": ""},
        {"Origin": "", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "", "Sec-Fetch-Site": "same-site"},
        {"Origin": "", "Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    ),
)
def test_a_request_that_does_not_say_where_it_comes_from_is_refused(headers, seeds):
    service = seeds.service
    id = service.create(f"{seeds.receiver.url}/200/x", namespace="forged")
    answer = service.submit(f"/timers/{id}/cancel", {"revision": "1"}, seeds.cookies["administrator"], **headers)
    assert answer.status == 403
    assert service.timer(id)["status"] == "pending"
    # A login from elsewhere would make a viewer act under another key.
    assert service.submit("/login", {"key": seeds.keys["scoped"]}, **headers).status == 403


def test_no_page_stands_in_a_frame(seeds):
    answer = seeds.service.open("", seeds.cookies["administrator"])
    assert answer.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_a_link_from_another_site_opens_the_page_for_those_who_are_logged_in(seeds, look):
    viewer = look(seeds.service, seeds.cookies["administrator"], leaves=True)
    viewer.page.goto(f"http://localhost:{seeds.service.port}/docs")
    viewer.page.evaluate("url => { location.href = url }", f"{seeds.service.console}/timers")
    viewer.page.wait_for_url(f"{seeds.service.console}/timers")
    viewer.page.get_by_role("heading", name="Timers").wait_for()
