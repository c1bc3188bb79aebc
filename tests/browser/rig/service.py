"""A throw-away service on a free port of 127.0.0.1, and its API."""

import http.client
import json
import os
import re
import secrets
import urllib.parse
from dataclasses import dataclass

from . import postgres
from .processes import home, spawn, wait_for

STORES = ("sqlite", "postgres")
ADMINISTRATOR = "administrators-key-of-the-browser-tests"
READY = re.compile(r"timer is ready .*address=127\.0\.0\.1:(\d+)|API +http://127\.0\.0\.1:(\d+)")


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def data(self):
        """What the envelope of the API holds."""
        assert self.status < 300, f"{self.status} {self.text[:500]}"
        return json.loads(self.body)["data"]


class Service:
    """`timer serve`, or `timer dev`, as the binary in `TIMER_BINARY` does it."""

    def __init__(self, store: str, *, command: str = "serve", base_path: str = "", **settings: str):
        self.store, self.base_path = store, base_path
        self.home = home(store)
        if store == "postgres":
            database = postgres.create_database(os.environ["BROWSER_POSTGRES"], f"test_{secrets.token_hex(8)}")
        else:
            database = f"sqlite://{self.home.name}/timer.db"
        # No setting of the developer's own may lead a test elsewhere.
        env = {
            "PATH": os.environ["PATH"],
            "API_KEY": ADMINISTRATOR,
            "DATABASE_URL": database,
            "BASE_PATH": base_path,
            "BIND": "127.0.0.1",
            "PORT": "0",
            "ATTEMPTS": "all",
            "CONSOLE_PAYLOADS": "shown",
            **settings,
        }
        self.log_path = f"{self.home.name}/log"
        self.process = spawn([os.environ["TIMER_BINARY"], command], self.home.name, self.log_path, env=env)
        port = wait_for("the service", self.port_in_log)
        self.port, self.origin = port, f"http://127.0.0.1:{port}"
        self.console = f"{self.origin}{base_path}/console"

    @property
    def log(self) -> str:
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def port_in_log(self) -> int | None:
        assert self.process.poll() is None, f"the service has ended:\n{self.log}"
        ready = READY.search(re.sub(r"\x1b\[[0-9;]*m", "", self.log))
        return ready and int(ready[1] or ready[2])

    def processor_seconds(self) -> float:
        """What the service has used of the processors so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.home.cleanup()

    def request(self, method: str, path: str, body: str | bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        """One request over a connection of its own. Redirects are not followed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, self.base_path + path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def api(self, method: str, path: str, body=None, key: str = ADMINISTRATOR, headers: dict[str, str] | None = None) -> Answer:
        headers = {"X-API-Key": key, "Content-Type": "application/json", **(headers or {})}
        return self.request(method, path, None if body is None else json.dumps(body), headers)

    def create(self, url: str, *, delay: str = "1h", payload=None, retries: int = 0, **fields) -> str:
        """The id of a new timer."""
        callback = {"type": "http", "url": url}
        if payload is not None:
            callback["payload"] = payload
        if retries:
            fields["retry_policy"] = {"max_retries": retries, "initial_interval": "1h"}
        return self.api("POST", "/timers", {"delay": delay, "callback": callback, **fields}).data["id"]

    def timer(self, id: str) -> dict:
        return self.api("GET", f"/timers/{id}").data

    def wait_for_status(self, id: str, *statuses: str) -> dict:
        def observe():
            timer = self.timer(id)
            return timer if timer["status"] in statuses else None

        return wait_for(f"timer {id} in {statuses}", observe, 30)

    def issue_key(self, name: str, rights: str, namespaces: list[str] | None) -> dict:
        return self.api("POST", "/keys", {"name": name, "rights": rights, "namespaces": namespaces}).data

    # The console, without a browser.

    def log_in(self, key: str) -> str:
        """The cookie of a session of this key."""
        answer = self.submit("/login", {"key": key})
        assert answer.status == 303, f"{answer.status} {answer.text[:500]}"
        return next(
            header.split(";")[0] for header in answer.headers.get_all("set-cookie") if header.split("=")[0] in ("timer", "__Host-timer")
        )

    def open(self, path: str, cookie: str, **headers: str) -> Answer:
        return self.request("GET", f"/console{path}", headers={"Cookie": cookie, "Accept": "text/html", **headers})

    def submit(self, path: str, fields: dict, cookie: str = "", **headers: str) -> Answer:
        """A form as a page of the console sends it."""
        sent = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": self.origin,
            "Sec-Fetch-Site": "same-origin",
            "Cookie": cookie,
            **headers,
        }
        return self.request("POST", f"/console{path}", urllib.parse.urlencode(fields, doseq=True), {k: v for k, v in sent.items() if v})
