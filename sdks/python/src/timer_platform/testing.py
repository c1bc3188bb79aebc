"""Tests without waiting: a service of their own whose clock they move.

    def test_a_reminder(timer_dev):                       # the fixture comes with the package
        timer_dev.client.timers.create(timer_dev.receiver + "/reminder", in_=timedelta(days=30))
        timer_dev.advance("30d")
        (call,) = timer_dev.inbox.wait_for(path="/reminder")

The binary is `TIMER_BIN`, else `timer` on the path; it is never downloaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

from . import webhook
from ._calls import Request
from ._json import decode, encode
from .client import TimerClient
from .models import Duration, Instant

WAIT_SECONDS_MAX = 10.0
_KEPT = ("PATH", "HOME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "RUST_LOG", "RUST_BACKTRACE")


@dataclass(frozen=True, slots=True)
class Advanced:
    """What happened while the clock was moved."""

    now: datetime
    fired: int
    completed: int
    failed: int
    pending: int
    next: datetime | None


@dataclass(frozen=True, slots=True)
class InboxCall:
    """A call that the receiver of `timer dev` got."""

    seq: int
    at: datetime
    lateness_ms: int | None
    timer_id: str | None
    attempt: int | None
    method: str
    path: str
    headers: dict[str, str]
    body: str
    signature_valid: bool | None
    duplicate_of: int | None

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class InboxAnswer:
    """What the receiver answers: to one `path` or to all, the next `times` calls or every one."""

    path: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    delay: Duration | None = None
    times: int | None = None
    hang: bool | None = None


class Inbox:
    """The receiver of `timer dev`."""

    def __init__(self, client: TimerClient) -> None:
        self._client = client

    def calls(
        self, *, path: str | None = None, timer: str | None = None, after: int = 0, wait: Duration | None = None
    ) -> list[InboxCall]:
        """The calls so far, the oldest first. With `wait`, an empty inbox is waited on."""
        query = {"path": path, "timer": timer, "after": after, "wait": wait, "limit": 1000}
        calls: list[InboxCall] = self._client.send(
            Request("GET", "/dev/inbox", lambda text: decode(_Calls, text).calls, query=query)
        )
        return calls

    def wait_for(self, count: int = 1, *, path: str | None = None, timer: str | None = None, after: int = 0) -> list[InboxCall]:
        """Waits until there are so many calls, and returns all."""
        ends = time.monotonic() + WAIT_SECONDS_MAX
        calls: list[InboxCall] = []
        while len(calls) < count:
            if time.monotonic() > ends:
                raise TimeoutError(f"{len(calls)} of {count} calls after {WAIT_SECONDS_MAX} seconds")
            last = calls[-1].seq if calls else after
            calls += self.calls(path=path, timer=timer, after=last, wait="1s")
        return calls

    def answer(self, *answers: InboxAnswer) -> None:
        """Replaces all answers; without any, every call is answered with 200."""
        body = encode({"answers": list(answers)})
        self._client.send(Request("PUT", "/dev/inbox/answers", lambda _: None, body=body))

    def clear(self) -> None:
        self._client.send(Request("DELETE", "/dev/inbox", lambda _: None))


@dataclass(frozen=True, slots=True)
class _Calls:
    calls: list[InboxCall]


class TimerDev:
    """A running `timer dev` with an empty store, for one test or many. Ends with `stop`, or with its `with`."""

    def __init__(self, process: subprocess.Popen[str], directory: str, ready: Mapping[str, str]) -> None:
        self._process, self._directory = process, directory
        self.url = ready["url"]
        self.api_key = ready["api_key"]
        self.receiver = ready["receiver"]
        self.signing_secret = ready["signing_secret"]
        self.client = TimerClient(self.url, self.api_key, timeout=timedelta(minutes=1))
        self.inbox = Inbox(self.client)

    @classmethod
    def start(cls, *arguments: str, binary: str | None = None) -> TimerDev:
        """Starts one; `arguments` are further flags of `timer dev`. Settings of the environment do not reach it."""
        program = binary or os.environ.get("TIMER_BIN") or shutil.which("timer")
        if not program:
            raise FileNotFoundError("the binary `timer` is needed: name it in TIMER_BIN, or put it on the path")
        directory = tempfile.mkdtemp(prefix="timer-dev-")
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        with open(os.path.join(directory, "log"), "w") as log:
            process = subprocess.Popen(
                [os.path.abspath(program), "dev", "--port", "0", "--ready-json", *arguments],
                cwd=directory,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait()
            with open(os.path.join(directory, "log")) as log:
                raise RuntimeError(f"`timer dev` did not start: {log.read()[-2000:]}")
        return cls(process, directory, json.loads(line))

    def advance(
        self, by: Duration | None = None, *, to: Instant | None = None, until: str | None = None, timeout: Duration = "30s"
    ) -> Advanced:
        """Moves the clock, and fires in order what becomes due; returns when all of it has settled."""
        given = {"by": by, "to": to, "until": until, "timeout": timeout}
        body = encode({name: value for name, value in given.items() if value is not None})
        advanced: Advanced = self.client.send(
            Request("POST", "/dev/clock/advance", lambda text: decode(Advanced, text), body=body, idempotent=False)
        )
        return advanced

    def verify(self, call: InboxCall) -> webhook.Call:
        """The call as a receiver would take it, verified at the time at which it was sent."""
        now = float(call.headers.get("webhook-timestamp", "0"))
        return webhook.verify(call.headers, call.body.encode(), self.signing_secret, now=now)

    def stop(self) -> None:
        self.client.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> TimerDev:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
