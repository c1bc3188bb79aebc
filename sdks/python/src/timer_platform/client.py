"""The client that waits for its calls.

with TimerClient() as client:
    client.timers.create("https://shop.example/hooks/cart", in_=timedelta(minutes=15), payload={"cart": 4711})
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Generic, Literal, ParamSpec, TypeVar

import httpx

from . import _calls as calls
from . import errors
from ._calls import Request
from ._connection import Answer, Connection, Trace, creates, current_trace, in_time, unreachable
from .models import Event, EventKind, Filter, NewTimer, Page, Timer

P = ParamSpec("P")
T = TypeVar("T")


class _Sync(Generic[P, T]):
    """A method of the sync client: the request that `build` makes, sent."""

    def __init__(self, build: Callable[P, Request[T]]) -> None:
        self._build = build

    def __get__(self, part: _Part | TimerClient | None, _: type[object]) -> Callable[P, T]:
        @functools.wraps(self._build)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if part is None:
                raise TypeError("call this on a client")
            return part.send(self._build(*args, **kwargs))

        return call


class _Part:
    def __init__(self, client: TimerClient) -> None:
        self._client = client

    def send(self, request: Request[T]) -> T:
        return self._client.send(request)


class Timers(_Part):
    create = _Sync(creates(NewTimer))
    create_many = _Sync(calls.create_many)
    get = _Sync(calls.get)
    get_by_key = _Sync(calls.get_by_key)
    page = _Sync(calls.page)
    count = _Sync(calls.count)
    update = _Sync(calls.update)
    cancel = _Sync(calls.cancel)
    fire = _Sync(calls.fire)
    retry = _Sync(calls.retry)
    ping = _Sync(calls.ping)
    pause = _Sync(calls.pause)
    resume = _Sync(calls.resume)
    attempts = _Sync(calls.attempts)
    cancel_matching = _Sync(calls.cancel_matching)
    bulk = _Sync(calls.bulk)
    preview = _Sync(calls.preview)

    def list(
        self,
        filter: Filter | None = None,
        *,
        limit: int | None = None,
        sort: Literal["created_at", "execute_at"] | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> Iterator[Timer]:
        """All timers that match, fetched in pages of `limit` as they are needed."""
        cursor: str | None = None
        while True:
            page: Page = self.page(filter, limit=limit, sort=sort, order=order, cursor=cursor)
            yield from page.timers
            cursor = page.next_cursor
            if cursor is None:
                return

    @contextmanager
    def export(
        self, filter: Filter | None = None, *, format: Literal["ndjson", "json", "csv"] = "ndjson"
    ) -> Iterator[Iterator[str]]:
        """The lines of an export of everything that matches, while they arrive."""
        with self._client.stream(calls.export(filter, format=format)) as lines:
            yield lines

    @contextmanager
    def watch(
        self, filter: Filter | None = None, *, types: Sequence[EventKind] | None = None, after: str | None = None
    ) -> Iterator[Iterator[Event]]:
        """What happens to timers that match, from now on or `after` an event: `event_id` of the last resumes a stream."""
        with self._client.stream(calls.watch(filter, types=types, after=after)) as lines:
            yield (event for event in map(calls.event, lines) if event is not None)


class Operations(_Part):
    list = _Sync(calls.operations)
    get = _Sync(calls.operation)
    stop = _Sync(calls.stop_operation)


class Groups(_Part):
    get = _Sync(calls.group)
    cancel = _Sync(calls.cancel_group)


class Keys(_Part):
    create = _Sync(calls.create_key)
    list = _Sync(calls.keys)
    revoke = _Sync(calls.revoke_key)


class Stats(_Part):
    due = _Sync(calls.due_stats)
    fired = _Sync(calls.fired_stats)


class TimerClient:
    """A client of the service at `url` (else `TIMER_URL`) with `api_key` (else `TIMER_API_KEY`, then `API_KEY`).

    `timeout` is the deadline of a call over all of its tries. Threads may share a client; close it, or use it in a `with`.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: timedelta = timedelta(seconds=10),
        retries: int = 3,
        trace: Trace = current_trace,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, api_key, timeout, retries, trace)
        self._http = httpx.Client(transport=transport)
        self.timers = Timers(self)
        self.operations = Operations(self)
        self.groups = Groups(self)
        self.keys = Keys(self)
        self.stats = Stats(self)

    destinations = _Sync(calls.destinations)
    namespaces = _Sync(calls.namespaces)
    cluster = _Sync(calls.cluster)
    whoami = _Sync(calls.whoami)
    health = _Sync(calls.health)
    ping = _Sync(calls.service_ping)

    def send(self, request: Request[T]) -> T:
        tries = self._connection.tries(request)
        while True:
            left = max(tries.deadline - time.monotonic(), 0.001)
            try:
                with self._http.stream(**self._connection.arguments(request, left)) as response:
                    return Answer.of(response, in_time(response, tries.deadline)).read(request)
            except httpx.RequestError as error:
                failure: errors.TimerError = unreachable(error)
            except errors.TimerError as error:
                failure = error
            pause = tries.pause_after(failure, time.monotonic())
            if pause is None:
                raise failure
            time.sleep(pause)

    @contextmanager
    def stream(self, request: Request[None]) -> Iterator[Iterator[str]]:
        """The lines of an answer without an end. A read may wait as long as it must."""
        arguments = self._connection.arguments(request, None)
        try:
            with self._http.stream(**arguments) as response:
                if not response.is_success:
                    raise Answer.of(response, response.read()).refused()
                yield response.iter_lines()
        except httpx.RequestError as error:
            raise unreachable(error) from error

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> TimerClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
