"""What can go wrong, one class for each thing that a program would do about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta

from ._time import parse_retry_after


class TimerError(Exception):
    """A call that did not succeed, with everything that is known about why."""

    kind = "unexpected"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: int | None = None,
        field: str | None = None,
        retry_after: timedelta | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        """The HTTP status, if there was an answer."""
        self.code = code
        """The code of the service's envelope, if it was the service that answered."""
        self.field = field
        """The field of the request that breaks a rule, if it is one field."""
        self.retry_after = retry_after
        """How long the service asks to wait."""
        self.request_id = request_id
        """Finds the request in the logs of the service."""

    def __str__(self) -> str:
        return f"{self.message} (request {self.request_id})" if self.request_id else self.message


class Invalid(TimerError):
    """The request breaks a rule; `field` says where."""

    kind = "invalid"


class NotFound(TimerError):
    """There is no such timer, key or operation."""

    kind = "not_found"


class Unauthorized(TimerError):
    """The API key is unknown (401), or does not open this (403)."""

    kind = "unauthorized"


class TooMany(TimerError):
    """More requests than the key may make; `retry_after` says when the next may come."""

    kind = "too_many"


class Conflict(TimerError):
    """The timer is not as the request expects it: another revision, other content under the same key, or too many matches."""

    kind = "conflict"


class Unavailable(TimerError):
    """The service or its store is away for now."""

    kind = "unavailable"


class Unreachable(TimerError):
    """No answer: the connection failed, or the deadline passed. Whether the service acted is unknown."""

    kind = "unreachable"


class Unexpected(TimerError):
    """An internal error of the service, or an answer that is none of its own."""


_BY_CODE = {2: Invalid, 3: NotFound, 4: Unauthorized, 5: TooMany, 6: Conflict}
_BY_STATUS = {400: Invalid, 404: NotFound, 401: Unauthorized, 403: Unauthorized, 429: TooMany, 409: Conflict, 412: Conflict}
_AWAY = {408, 502, 503, 504}
_FIELD = re.compile(r"(?:'([^']*)'|([^' ]+)) (?:must|is|cannot|may) ")


def from_answer(status: int, headers: Mapping[str, str], body: str, now: float) -> TimerError:
    """The error that an answer means; names of `headers` are in lower case, `now` is in Unix seconds."""
    code, message = _envelope(body)
    kind = _BY_CODE.get(code or 0) or (Unavailable if status in _AWAY else _BY_STATUS.get(status, Unexpected))
    named = _FIELD.match(message or "") if kind is Invalid else None
    wait = parse_retry_after(headers.get("retry-after"), now)
    return kind(
        message or f"the answer with status {status} is not one of the service",
        status=status,
        code=code,
        field=(named[1] or named[2]) if named else None,
        retry_after=None if wait is None else timedelta(seconds=wait),
        request_id=headers.get("x-request-id"),
    )


def _envelope(body: str) -> tuple[int | None, str | None]:
    try:
        envelope = json.loads(body)
        code, message = envelope["code"], envelope["message"]
    except (ValueError, TypeError, KeyError):
        return None, None
    return (code, message) if isinstance(code, int) and isinstance(message, str) else (None, None)
