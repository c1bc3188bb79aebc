"""Runs sdks/conformance with the sync client (`python`) and the async one (`python-async`): see the README there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from calls import CALLS, wire

from timer_platform import AsyncTimerClient, TimerClient, TimerError, models
from timer_platform._time import parse_instant
from timer_platform.testing import InboxAnswer, TimerDev

HERE = Path(os.environ.get("CONFORMANCE_DIR") or Path(__file__).parents[2] / "conformance")
WAIT_SECONDS_MAX = 10


class Mismatch(AssertionError):
    pass


def is_instant(value: object) -> bool:
    return isinstance(value, str) and bool(re.match(r"\d{4}-\d\d-\d\dT", value))


def match(expected: Any, actual: Any, where: str = "result") -> None:
    """Raises `Mismatch` where `actual` is not as expected."""
    if expected == "$any":
        ok = actual is not None
    elif isinstance(expected, dict) and any(name.startswith("$") for name in expected):
        ((rule, value),) = expected.items()
        if rule == "$json":
            return match(value, json.loads(actual), where)
        count = len(actual)
        ok = {"$length": count == value, "$min_length": count >= value, "$max_length": count <= value}[rule]
    elif isinstance(expected, dict):
        if not isinstance(actual, dict):
            raise Mismatch(f"{where} is {actual!r}, not an object")
        for name, value in expected.items():
            match(value, actual.get(name), f"{where}.{name}")
        return
    elif isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            raise Mismatch(f"{where} is {actual!r}, not {len(expected)} elements")
        for index, value in enumerate(expected):
            match(value, actual[index], f"{where}.{index}")
        return
    elif is_instant(expected) and is_instant(actual):
        ok = parse_instant(expected) == parse_instant(actual)
    else:
        ok = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
    if not ok:
        raise Mismatch(f"{where} is {actual!r}, not {expected!r}")


class Blocking:
    """The async client, called as if it were the sync one."""

    def __init__(self, part: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._part, self._loop = part, loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._part, name)
        return self._call(value) if callable(value) else Blocking(value, self._loop)

    def _call(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            if hasattr(result, "__aiter__"):
                return iter(self._wait(_all(result)))
            return self._managed(result) if hasattr(result, "__aenter__") else self._wait(result)

        return call

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @contextmanager
    def _managed(self, manager: Any) -> Iterator[Iterator[Any]]:
        lines = self._wait(manager.__aenter__())
        try:
            yield self._drawn(lines)
        finally:
            self._wait(manager.__aexit__(None, None, None))

    def _drawn(self, lines: AsyncIterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self._wait(anext(lines))  # type: ignore[arg-type]
            except StopAsyncIteration:
                return


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


class Rig:
    """A service, the faulty server in front of it, and clients that call through that."""

    def __init__(self, dev: TimerDev, faulty: str, loop: asyncio.AbstractEventLoop | None) -> None:
        self.dev, self.faulty, self._loop = dev, faulty, loop
        self._control = httpx.Client(base_url=faulty)
        self.client = cache(self._client)  # connections cost more than calls

    def _client(self, api_key: str | None = None, timeout_ms: int = 30_000, traceparent: str | None = None) -> Any:
        options: dict[str, Any] = {"timeout": timedelta(milliseconds=timeout_ms)}
        if traceparent:
            options["trace"] = lambda: {"traceparent": traceparent}
        key = api_key or self.dev.api_key
        if self._loop is None:
            return TimerClient(self.faulty, key, **options)
        return Blocking(AsyncTimerClient(self.faulty, key, **options), self._loop)

    def faults(self, faults: list[dict[str, Any]]) -> None:
        self._control.put("/-/faults", json=faults).raise_for_status()

    def requests(self) -> list[dict[str, Any]]:
        requests: list[dict[str, Any]] = self._control.get("/-/requests").json()["requests"]
        return requests

    def forget(self) -> None:
        self.faults([])
        self._control.delete("/-/requests").raise_for_status()


class Scenario:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.values: dict[str, Any] = {"namespace": f"c-{uuid.uuid4().hex[:12]}", "receiver": rig.dev.receiver}
        self.streams: dict[str, tuple[ExitStack, Iterator[models.Event]]] = {}

    def run(self, steps: list[dict[str, Any]]) -> None:
        self.rig.forget()
        try:
            for number, step in enumerate(steps):
                try:
                    self.step(self.filled(step))
                except Exception as error:
                    raise Mismatch(f"step {number + 1}: {type(error).__name__}: {error}") from error
        finally:
            for stack, _ in self.streams.values():
                stack.close()

    def filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.filled(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.filled(part) for part in value]
        if not isinstance(value, str):
            return value
        whole = re.fullmatch(r"\$\{([^}]*)\}", value)
        return self.looked_up(whole[1]) if whole else re.sub(r"\$\{([^}]*)\}", lambda m: str(self.looked_up(m[1])), value)

    def looked_up(self, path: str) -> Any:
        name, *rest = path.split(".")
        found = self.values[name]
        for part in rest:
            found = found[int(part)] if isinstance(found, list) else found[part]
        return found

    def step(self, step: dict[str, Any]) -> None:
        kind = next(iter(step))
        result = getattr(self, f"do_{kind}")(step[kind], step)
        if "as" in step:
            self.values[step["as"]] = result
        if "expect" in step:
            match(step["expect"], result)

    def do_call(self, name: str, step: dict[str, Any]) -> Any:
        args = dict(step.get("args", {}))
        client = self.rig.client(step.get("api_key"), step.get("timeout_ms", 30_000), args.pop("traceparent", None))
        began = time.monotonic()
        try:
            result = wire(CALLS[name](client, args))
        except TimerError as error:
            if "error" not in step:
                raise
            match(step["error"], shown(error), "error")
            result = None
        else:
            if "error" in step:
                raise Mismatch(f"{name} succeeded")
        took_ms = (time.monotonic() - began) * 1000
        if not step.get("took_ms_min", 0) <= took_ms <= step.get("took_ms_max", 60_000):
            raise Mismatch(f"{name} took {took_ms:.0f} ms")
        return result

    def do_advance(self, by: dict[str, Any], _: dict[str, Any]) -> Any:
        return wire(self.rig.dev.advance(**by))

    def do_answers(self, answers: list[dict[str, Any]], _: dict[str, Any]) -> None:
        self.rig.dev.inbox.answer(*[InboxAnswer(**answer) for answer in answers])

    def do_inbox(self, wanted: dict[str, Any], _: dict[str, Any]) -> Any:
        inbox = self.rig.dev.inbox
        calls = inbox.wait_for(wanted["count"], path=wanted["path"]) if wanted["count"] else inbox.calls(path=wanted["path"])
        if len(calls) != wanted["count"]:
            raise Mismatch(f"{len(calls)} calls, not {wanted['count']}")
        self.values["_inbox"] = {call.seq: call for call in calls}
        return wire(calls)

    def do_verify(self, call: dict[str, Any], _: dict[str, Any]) -> Any:
        verified = wire(self.rig.dev.verify(self.values["_inbox"][call["seq"]]))
        verified.pop("body")
        return verified

    def do_watch(self, args: dict[str, Any], step: dict[str, Any]) -> None:
        stack = ExitStack()
        self.streams[step.pop("as")] = (stack, stack.enter_context(CALLS["timers.watch"](self.rig.client(), dict(args))))

    def do_events(self, name: str, step: dict[str, Any]) -> Any:
        _, events = self.streams[name]
        read: list[Any] = []
        while "until" in step or len(read) < len(step["expect"]):
            read.append(wire(in_time(lambda: next(events))))
            if "until" in step and matches(step["until"], read[-1]):
                break
        return read

    def do_stop(self, name: str, _: dict[str, Any]) -> None:
        self.streams.pop(name)[0].close()

    def do_faults(self, faults: list[dict[str, Any]], _: dict[str, Any]) -> None:
        self.rig.faults(faults)

    def do_requests(self, wanted: dict[str, Any], step: dict[str, Any]) -> None:
        seen = [r for r in self.rig.requests() if (r["method"], r["path"]) == (wanted["method"], wanted["path"])]
        if len(seen) != wanted["count"]:
            raise Mismatch(f"{len(seen)} requests, not {wanted['count']}")
        match(step.get("headers", {}), seen[-1]["headers"] if seen else {}, "headers")

    def do_same(self, pair: list[Any], _: dict[str, Any]) -> None:
        match(pair[1], pair[0])

    def do_contains(self, pair: list[str], _: dict[str, Any]) -> None:
        if pair[1] not in pair[0]:
            raise Mismatch(f"{pair[1]!r} is not in {pair[0]!r}")


def matches(expected: Any, actual: Any) -> bool:
    try:
        match(expected, actual)
    except Mismatch:
        return False
    return True


def in_time(work: Callable[[], Any]) -> Any:
    """A read that waits for ever would hide a failure."""
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    thread.join(WAIT_SECONDS_MAX)
    if not done:
        raise TimeoutError("no event")
    return done[0]


def shown(error: TimerError) -> dict[str, Any]:
    wait = error.retry_after
    return {
        **{name: getattr(error, name) for name in ("kind", "status", "code", "message", "field", "request_id")},
        "retry_after_ms": None if wait is None else wait / timedelta(milliseconds=1),
    }


@contextmanager
def rig(loop: asyncio.AbstractEventLoop | None) -> Iterator[Rig]:
    with TimerDev.start() as dev:
        command = [sys.executable, str(HERE / "faulty.py"), dev.url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy:
            assert proxy.stdout is not None
            yield Rig(dev, json.loads(proxy.stdout.readline())["url"], loop)
            assert proxy.stdin is not None
            proxy.stdin.close()


def run(language: str, loop: asyncio.AbstractEventLoop | None) -> bool:
    import vectors

    good = True
    only = os.environ.get("CONFORMANCE_ONLY")
    with rig(loop) as service:
        for path in sorted(HERE.glob("vectors/*.json")) + sorted(HERE.glob("scenarios/*.json")):
            name = f"vectors/{path.stem}" if path.parent.name == "vectors" else path.stem
            if only not in (None, name):
                continue
            data = json.loads(path.read_text())
            try:
                if path.parent.name == "vectors":
                    getattr(vectors, path.stem)(service, data)
                else:
                    Scenario(service).run(data["steps"])
                print(f"{language} {name} pass", flush=True)
            except Exception as error:
                good = False
                print(f"{language} {name} fail {str(error) or repr(error)}".replace("\n", " "), flush=True)
    return good


def main() -> None:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    kinds: dict[str, asyncio.AbstractEventLoop | None] = {"python": None, "python-async": loop}
    chosen = sys.argv[1:] or list(kinds)
    results = [run(language, kinds[language]) for language in chosen]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
