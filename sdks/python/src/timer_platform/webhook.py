"""For receivers: verifying calls (Standard Webhooks), what a call says, and answers of the `timer` protocol."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ._time import format_instant, parse_instant

SECRET_BYTES_MIN = 24


class InvalidCall(Exception):
    """A request that is no call of the service, is too old, or was changed on its way. Answer it with 401."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a timer, once it is verified."""

    id: str
    """The idempotency key: the same for every attempt of one due time, so that repetitions can be dropped."""
    timer_id: str
    namespace: str
    attempt: int
    scheduled_at: datetime
    sent_at: datetime
    """To the second."""
    correlation_id: str | None
    traceparent: str | None
    """The W3C trace context of the call."""
    body: bytes

    @property
    def lateness(self) -> timedelta:
        """How long after its due time the call was sent, never below zero."""
        return max(self.sent_at - self.scheduled_at, timedelta(0))

    def json(self, **options: Any) -> Any:
        """The payload."""
        return json.loads(self.body, **options)


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Sequence[str],
    *,
    tolerance: timedelta = timedelta(minutes=5),
    now: float | None = None,
) -> Call:
    """The call that these headers and raw bytes are, or `InvalidCall`.

    `secrets` are one or several `whsec_…`: two while one replaces the other. `now` is in Unix seconds.
    """
    given = _lower(headers)
    check(given, body, secrets, tolerance=tolerance, now=now)
    return read_call(given, body)


def check(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Sequence[str],
    *,
    tolerance: timedelta = timedelta(minutes=5),
    now: float | None = None,
) -> None:
    """Refuses what is not signed with one of the secrets, in constant time, or not about `now`."""
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    given = _lower(headers)
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if name not in given:
            raise InvalidCall(f"the header {name} is missing")
    timestamp = given["webhook-timestamp"]
    if not re.fullmatch(r"\d{1,12}", timestamp, re.ASCII):
        raise InvalidCall("webhook-timestamp is not a number of seconds")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance.total_seconds():
        raise InvalidCall("webhook-timestamp is too far from now")
    expected = [_signature(key, given["webhook-id"], timestamp, body) for key in keys]
    offered = given["webhook-signature"].split()
    matches = [hmac.compare_digest(ours.encode(), theirs.encode()) for ours in expected for theirs in offered]
    if not any(matches):
        raise InvalidCall("no signature is right")


def sign(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`, for tests of receivers."""
    return _signature(_key(secret), id, str(timestamp), body)


def _signature(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def _key(secret: str) -> bytes:
    text = secret.removeprefix("whsec_")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith("whsec_") or len(key) < SECRET_BYTES_MIN:
        raise ValueError(f"a signing secret is whsec_ and at least {SECRET_BYTES_MIN} bytes as base64")
    return key


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def read_call(headers: Mapping[str, str], body: bytes) -> Call:
    """What the headers of a verified call say."""
    given = _lower(headers)
    try:
        return Call(
            id=given["webhook-id"],
            timer_id=given["x-timer-id"],
            namespace=given["x-timer-namespace"],
            attempt=int(given["x-timer-attempt"]),
            scheduled_at=parse_instant(given["x-timer-scheduled-at"]),
            sent_at=datetime.fromtimestamp(int(given["webhook-timestamp"]), timezone.utc),
            correlation_id=given.get("x-correlation-id"),
            traceparent=given.get("traceparent"),
            body=body,
        )
    except (KeyError, ValueError) as error:
        raise InvalidCall(f"a header of a timer's call is missing or malformed: {error}") from error


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a receiver, to be turned into one of its framework."""

    status: int
    headers: Mapping[str, str]
    body: str


def _json_answer(**members: Any) -> Answer:
    return Answer(200, {"content-type": "application/json"}, json.dumps(members))


def done(next: datetime | str | None = None) -> Answer:
    """`timer` protocol: the work is done; the timer completes, or is due again at `next`."""
    return _json_answer(ok=True) if next is None else _json_answer(ok=True, nextExecuteAt=format_instant(next))


def again(at: datetime | str) -> Answer:
    """`timer` protocol: not yet; call again at that time, with attempts counted anew."""
    return _json_answer(ok=False, nextExecuteAt=format_instant(at))


def failed() -> Answer:
    """`timer` protocol: it failed; the retry policy of the timer says what follows."""
    return _json_answer(ok=False)


def retry_after(pause: timedelta) -> Answer:
    """Either protocol: it failed for now; the next attempt should not come before the pause is over."""
    return Answer(503, {"retry-after": str(-(-pause // timedelta(seconds=1)))}, "")
