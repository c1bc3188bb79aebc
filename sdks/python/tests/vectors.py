"""One function for each file of sdks/conformance/vectors."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
from calls import CALLS, wire
from conformance import Mismatch, Rig, Scenario, match, shown

from timer_platform import InvalidCall, Json, TimerClient, TimerError, webhook
from timer_platform._time import format_duration, format_instant, parse_instant, parse_retry_after

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)


def same(actual: Any, expected: Any, of: Any) -> None:
    if actual != expected:
        raise Mismatch(f"{of!r}: {actual!r}, not {expected!r}")


def signatures(_: Rig, data: dict[str, Any]) -> None:
    for case in data["sign"]:
        body = case["body"].encode()
        same(webhook.sign(case["secret"], case["id"], case["timestamp"], body), case["signature"], case)
    for case in data["verify"]:
        tolerance = timedelta(seconds=case["tolerance_seconds"])
        try:
            webhook.check(case["headers"], case["body"].encode(), case["secrets"], tolerance=tolerance, now=case["now"])
            valid = True
        except InvalidCall:
            valid = False
        same(valid, case["valid"], case["name"])
    for secret in data["bad_secrets"]:
        try:
            webhook.sign(secret, "id", 0, b"")
        except ValueError:
            continue
        raise Mismatch(f"the secret {secret!r} was taken")


def durations(_: Rig, data: dict[str, Any]) -> None:
    for case in data["format"]:
        same(format_duration(case["us"] * MICROSECOND), case["text"], case)
    for us in data["refused"]:
        try:
            format_duration(us * MICROSECOND)
        except ValueError:
            continue
        raise Mismatch(f"{us} was taken")


def instants(_: Rig, data: dict[str, Any]) -> None:
    for case in data["parse"]:
        same((parse_instant(case["text"]) - EPOCH) // MICROSECOND, case["us"], case)
    for case in data["format"]:
        same(format_instant(EPOCH + case["us"] * MICROSECOND), case["text"], case)


def retry_after(_: Rig, data: dict[str, Any]) -> None:
    for case in data["cases"]:
        seconds = parse_retry_after(case["value"], case["now"])
        same(None if seconds is None else seconds * 1000, case["ms"], case)


def errors(_: Rig, data: dict[str, Any]) -> None:
    for case in data["cases"]:
        answer = httpx.Response(case["status"], headers=case["headers"], text=case["body"])
        client = TimerClient(transport=httpx.MockTransport(lambda _, answer=answer: answer), retries=0)
        try:
            client.whoami()
        except TimerError as error:
            actual = shown(error)
        else:
            raise Mismatch(f"{case} was taken")
        expected = {name: value for name, value in case["error"].items() if name != "message" or value is not None}
        match(expected, actual, str(case["status"]))


def exact_json(rig: Rig, data: dict[str, Any]) -> None:
    client = rig.client()
    url = f"{rig.dev.receiver}/exact"
    for text in data["texts"]:
        timer = client.timers.create(url, in_=timedelta(hours=1), payload=Json(text), metadata=Json(text))
        kept = client.timers.get(timer.id)
        for part in (kept.callback_config.payload, kept.metadata):
            same("null" if part is None else part.text, text, text)
        client.timers.fire(timer.id)
        (call,) = rig.dev.inbox.wait_for(path="/exact", timer=timer.id)
        same(call.body, text, "the call")


def calls(_: Rig, data: dict[str, Any]) -> None:
    for case in data["cases"]:
        call = wire(webhook.read_call(case["headers"], case["body"].encode()))
        match(case["call"], call, case["name"])


def protocol(_: Rig, data: dict[str, Any]) -> None:
    for case in data["cases"]:
        answer = {
            "done": lambda case=case: webhook.done(case.get("next")),
            "again": lambda case=case: webhook.again(case["at"]),
            "failed": lambda case=case: webhook.failed(),
            "retry_after": lambda case=case: webhook.retry_after(timedelta(seconds=case["seconds"])),
        }[case["answer"]]()
        same((answer.status, dict(answer.headers)), (case["status"], case["headers"]), case)
        match(case["body"], Json(answer.body).loads() if answer.body else None)


def retries(rig: Rig, data: dict[str, Any]) -> None:
    for case in data["cases"]:
        scenario = Scenario(rig)
        rig.forget()
        outcome = {"unreachable": {"do": "drop"}, "cut": {"do": "cut"}}.get(case["outcome"])
        rig.faults([outcome or {"do": "answer", "status": case["outcome"]}])
        with contextlib.suppress(TimerError):
            CALLS[case["call"]](rig.client(), scenario.filled(case["args"]))
        same(len(rig.requests()), 2 if case["retried"] else 1, case)
