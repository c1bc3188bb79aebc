"""A browser that looks at the console, and watches what happens while it does."""

import os
import shutil
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Playwright, Response

from .service import Service

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data:",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
# How long the slowest thing may take that a page does, on a machine that compiles beside it.
TIMEOUT_MS = 20_000


def start_browser(playwright: Playwright) -> Browser:
    """Chromium of this machine: playwright's own is never fetched. Without the windows of a desktop, if it can be had so, it takes a third
    less of the processor."""
    named = os.environ.get("CHROMIUM_BIN")
    program = named or next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
    assert program, "no chromium on PATH: scripts/setup.sh installs it"
    # No page lives long enough for its script to be worth optimising.
    flags = ["--js-flags=--no-opt --no-maglev"]
    # Its sandbox does not run as root.
    return playwright.chromium.launch(executable_path=program, chromium_sandbox=os.getuid() != 0, args=flags)


def policy_of(headers: dict[str, str]) -> dict[str, str]:
    parts = [part.strip() for part in headers.get("content-security-policy", "").split(";")]
    return {name: value for name, _, value in (part.partition(" ") for part in parts) if name}


class Window:
    """A context of the browser with one page. To open one costs more than most tests do, so that viewers use it one after the other."""

    def __init__(self, browser: Browser, *, script: bool = True, live: bool = True):
        self.context = browser.new_context(
            java_script_enabled=script, timezone_id="Europe/Berlin", locale="en-GB", accept_downloads=True, color_scheme="light"
        )
        self.context.set_default_timeout(TIMEOUT_MS)
        if not live:
            self.context.add_init_script("try { localStorage.setItem('timer-live', 'off') } catch {}")
        self.page: Page = self.context.new_page()

    def clear(self):
        """Forgets what its viewer has left: cookies, what the page keeps, and streams that are open."""
        self.page.evaluate("() => { try { localStorage.clear(); sessionStorage.clear() } catch {} }")
        self.page.goto("about:blank")
        self.context.clear_cookies()

    def close(self):
        self.context.close()


class Viewer:
    """One who looks through a window. What it must never see is collected; `check` looks at it.

    Tests that provoke something name it: `refusals` are statuses of answers, which the browser reports as errors, and a viewer that
    `leaves` opens pages of other origins.
    """

    def __init__(
        self,
        window: Window,
        service: Service,
        cookie: str = "",
        *,
        theme: str = "light",
        width: int = 1_280,
        height: int = 900,
        refusals: tuple[int, ...] = (),
        leaves: bool = False,
    ):
        self.window, self.service = window, service
        self.context, self.page = window.context, window.page
        self.refusals, self.leaves = refusals, leaves
        self.page.emulate_media(color_scheme=theme)
        self.page.set_viewport_size({"width": width, "height": height})
        if cookie:
            name, value = cookie.split("=", 1)
            where = {"domain": "127.0.0.1", "path": f"{service.base_path}/console", "httpOnly": True, "sameSite": "Lax"}
            self.context.add_cookies([{"name": name, "value": value, **where}])
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.unguarded: list[str] = []
        self.listeners = {
            "console": lambda said: self.errors.append(f"{said.type}: {said.text}") if said.type == "error" else None,
            "weberror": lambda error: self.errors.append(f"uncaught: {error.error}"),
            "request": lambda request: self.saw_request(request.url),
            "response": self.saw_response,
        }
        for event, listener in self.listeners.items():
            self.context.on(event, listener)

    def saw_request(self, url: str):
        if not url.startswith((f"{self.service.origin}/", "data:", "blob:", "about:")):
            self.foreign.append(url)

    def saw_response(self, response: Response):
        if urlsplit(response.url).path.startswith(f"{self.service.base_path}/console") and policy_of(response.headers) != POLICY:
            self.unguarded.append(f"{response.status} {response.url}")

    def open(self, path: str = "") -> Response:
        return self.page.goto(self.service.console + path)

    def forget(self):
        """For another test."""
        for seen in (self.errors, self.foreign, self.unguarded):
            seen.clear()
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size({"width": 1_280, "height": 900})

    def check(self):
        provoked = tuple(f"error: Failed to load resource: the server responded with a status of {status}" for status in self.refusals)
        errors = [error for error in self.errors if not error.startswith(provoked)] if provoked else self.errors
        assert not errors, errors
        assert self.leaves or not self.foreign, f"asked of another origin: {self.foreign}"
        assert not self.unguarded, f"without the content security policy: {self.unguarded}"

    def leave(self) -> Window:
        """The window, for another viewer."""
        for event, listener in self.listeners.items():
            self.context.remove_listener(event, listener)
        self.window.clear()
        return self.window
