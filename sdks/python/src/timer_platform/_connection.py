"""What both clients share: the connection, the trace context, and what becomes of an answer."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ParamSpec, TypeVar

import httpx

from . import _calls as calls
from . import errors
from ._calls import Request
from ._retry import Retries
from .models import NewTimer, Timer

P = ParamSpec("P")
T = TypeVar("T")
Trace = Callable[[], Mapping[str, str]]
"""The headers of the current trace context."""

try:
    _VERSION = version("timer-platform")
except PackageNotFoundError:
    _VERSION = "0"


def current_trace() -> Mapping[str, str]:
    """The trace context of OpenTelemetry, where a program has loaded it; it is no dependency of this package."""
    headers: dict[str, str] = {}
    if "opentelemetry.trace" in sys.modules:
        import_module("opentelemetry.propagate").inject(headers)
    return headers


def creates(new: Callable[P, NewTimer]) -> Callable[P, Request[Timer]]:
    def create(*args: P.args, **kwargs: P.kwargs) -> Request[Timer]:
        """Creates a timer, with the arguments of `NewTimer`: `create(url, in_=timedelta(hours=1), payload={…})`."""
        return calls.create_new(new(*args, **kwargs))

    create.__signature__ = inspect.signature(new)  # type: ignore[attr-defined]  # what `help` shows
    return create


class Connection:
    """Where the service is, which key is sent, and how long a call may take."""

    def __init__(self, url: str | None, api_key: str | None, timeout: timedelta, retries: int, trace: Trace) -> None:
        self.url = (url or os.environ.get("TIMER_URL") or "http://127.0.0.1:8080").rstrip("/")
        key = api_key or os.environ.get("TIMER_API_KEY") or os.environ.get("API_KEY") or ""
        self.headers = {"x-api-key": key, "accept": "application/json", "user-agent": f"timer-platform-python/{_VERSION}"}
        self.timeout_seconds = timeout.total_seconds()
        self.retries = retries
        self.trace = trace

    def tries(self, request: Request[Any]) -> Retries:
        return Retries(request.idempotent, self.retries, time.monotonic() + self.timeout_seconds)

    def arguments(self, request: Request[Any], timeout_seconds: float | None) -> dict[str, Any]:
        """What httpx is told. It limits each wait of a try by the timeout."""
        headers = {**self.headers, **(self.trace() if request.traced else {}), **request.headers}
        if request.body is not None:
            headers["content-type"] = "application/json"
        return {
            "method": request.method,
            "url": self.url + request.path,
            "params": request.parameters(),
            "content": None if request.body is None else request.body.encode(),
            "headers": headers,
            "timeout": timeout_seconds,
        }


def read(request: Request[T], response: httpx.Response) -> T:
    if not response.is_success:
        raise refused(response)
    try:
        return request.result(response.text)
    except ValueError as error:
        raise refused(response) from error


def refused(response: httpx.Response) -> errors.TimerError:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return errors.from_answer(response.status_code, headers, response.text, time.time())


def unreachable(error: httpx.RequestError) -> errors.Unreachable:
    return errors.Unreachable(f"no answer from the service: {error or type(error).__name__}")
