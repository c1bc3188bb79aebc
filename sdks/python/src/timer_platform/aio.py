"""The client whose calls are awaited. It is `TimerClient` word for word: the calls themselves are the same."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Generic, Literal, ParamSpec, TypeVar

import httpx

from . import _calls as calls
from . import errors
from ._calls import Request
from ._connection import Answer, Connection, Trace, creates, current_trace, unreachable
from .models import Event, EventKind, Filter, NewTimer, Page, Timer

P = ParamSpec("P")
T = TypeVar("T")


class _Async(Generic[P, T]):
    """A method of the async client: the request that `build` makes, sent."""

    def __init__(self, build: Callable[P, Request[T]]) -> None:
        self._build = build

    def __get__(self, part: _AsyncPart | AsyncTimerClient | None, _: type[object]) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(self._build)
        def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            if part is None:
                raise TypeError("call this on a client")
            return part.send(self._build(*args, **kwargs))

        return call


class _AsyncPart:
    def __init__(self, client: AsyncTimerClient) -> None:
        self._client = client

    async def send(self, request: Request[T]) -> T:
        return await self._client.send(request)


class AsyncTimers(_AsyncPart):
    create = _Async(creates(NewTimer))
    create_many = _Async(calls.create_many)
    get = _Async(calls.get)
    get_by_key = _Async(calls.get_by_key)
    page = _Async(calls.page)
    count = _Async(calls.count)
    update = _Async(calls.update)
    cancel = _Async(calls.cancel)
    fire = _Async(calls.fire)
    retry = _Async(calls.retry)
    ping = _Async(calls.ping)
    pause = _Async(calls.pause)
    resume = _Async(calls.resume)
    attempts = _Async(calls.attempts)
    cancel_matching = _Async(calls.cancel_matching)
    bulk = _Async(calls.bulk)
    preview = _Async(calls.preview)

    async def list(
        self,
        filter: Filter | None = None,
        *,
        limit: int | None = None,
        sort: Literal["created_at", "execute_at"] | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncIterator[Timer]:
        """As `Timers.list`, for `async for`."""
        cursor: str | None = None
        while True:
            page: Page = await self.page(filter, limit=limit, sort=sort, order=order, cursor=cursor)
            for timer in page.timers:
                yield timer
            cursor = page.next_cursor
            if cursor is None:
                return

    @asynccontextmanager
    async def export(
        self, filter: Filter | None = None, *, format: Literal["ndjson", "json", "csv"] = "ndjson"
    ) -> AsyncIterator[AsyncIterator[str]]:
        """As `Timers.export`, for `async with`."""
        async with self._client.stream(calls.export(filter, format=format)) as lines:
            yield lines

    @asynccontextmanager
    async def watch(
        self, filter: Filter | None = None, *, types: Sequence[EventKind] | None = None, after: str | None = None
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """As `Timers.watch`, for `async with`."""
        async with self._client.stream(calls.watch(filter, types=types, after=after)) as lines:
            yield (event async for line in lines if (event := calls.event(line)) is not None)


class AsyncOperations(_AsyncPart):
    list = _Async(calls.operations)
    get = _Async(calls.operation)
    stop = _Async(calls.stop_operation)


class AsyncGroups(_AsyncPart):
    get = _Async(calls.group)
    cancel = _Async(calls.cancel_group)


class AsyncKeys(_AsyncPart):
    create = _Async(calls.create_key)
    list = _Async(calls.keys)
    revoke = _Async(calls.revoke_key)


class AsyncStats(_AsyncPart):
    due = _Async(calls.due_stats)
    fired = _Async(calls.fired_stats)


class AsyncTimerClient:
    """As `TimerClient`, with calls to be awaited in an asyncio program."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: timedelta = timedelta(seconds=10),
        retries: int = 3,
        trace: Trace = current_trace,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, api_key, timeout, retries, trace)
        self._http = httpx.AsyncClient(transport=transport)
        self.timers = AsyncTimers(self)
        self.operations = AsyncOperations(self)
        self.groups = AsyncGroups(self)
        self.keys = AsyncKeys(self)
        self.stats = AsyncStats(self)

    destinations = _Async(calls.destinations)
    namespaces = _Async(calls.namespaces)
    cluster = _Async(calls.cluster)
    whoami = _Async(calls.whoami)
    health = _Async(calls.health)
    ping = _Async(calls.service_ping)

    async def send(self, request: Request[T]) -> T:
        tries = self._connection.tries(request)
        while True:
            left = max(tries.deadline - time.monotonic(), 0.001)
            try:
                call = self._http.request(**self._connection.arguments(request, left))
                response = await asyncio.wait_for(call, left)
                return Answer.of(response, response.content).read(request)
            except (httpx.RequestError, asyncio.TimeoutError) as error:
                failure: errors.TimerError = unreachable(error)
            except errors.TimerError as error:
                failure = error
            pause = tries.pause_after(failure, time.monotonic())
            if pause is None:
                raise failure
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def stream(self, request: Request[None]) -> AsyncIterator[AsyncIterator[str]]:
        arguments = self._connection.arguments(request, None)
        try:
            async with self._http.stream(**arguments) as response:
                if not response.is_success:
                    raise Answer.of(response, await response.aread()).refused()
                yield response.aiter_lines()
        except httpx.RequestError as error:
            raise unreachable(error) from error

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncTimerClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()
