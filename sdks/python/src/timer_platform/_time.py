"""Durations, instants and `Retry-After`, as the service writes and reads them."""

from __future__ import annotations

import os
import re
import time
import uuid
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

_UNITS = (
    ("d", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("m", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
    ("ms", timedelta(milliseconds=1)),
    ("us", timedelta(microseconds=1)),
)


def format_duration(duration: timedelta | str) -> str:
    """`1h30m`; a text is taken as it is."""
    if isinstance(duration, str):
        return duration
    if duration < timedelta(0):
        raise ValueError(f"a duration must not be negative: {duration}")
    text = ""
    for unit, length in _UNITS:
        count, duration = divmod(duration, length)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def format_instant(instant: datetime | str) -> str:
    """RFC 3339 in UTC; a text is taken as it is."""
    if isinstance(instant, str):
        return instant
    if instant.tzinfo is None:
        raise ValueError("an instant needs a time zone, such as datetime.now(timezone.utc)")
    text = instant.astimezone(timezone.utc).replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def parse_instant(text: str) -> datetime:
    """Python 3.10 reads neither `Z` nor a fraction that has not three or six digits."""
    fraction = re.search(r"\.(\d+)", text)
    if fraction:
        text = text.replace(fraction[0], f".{fraction[1]:0<6.6}")
    return datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text))


def parse_retry_after(value: str | None, now: float) -> float | None:
    """The seconds that the header asks to wait from `now` (Unix seconds) on, if it can be understood."""
    value = (value or "").strip()
    if re.fullmatch(r"\d{1,9}", value, re.ASCII):
        return float(value)
    if not re.match(r"[A-Z][a-z]", value):
        return None
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (TypeError, ValueError):
        return None


def new_id() -> str:
    """A UUIDv7: the time in milliseconds, then chance. It makes a create idempotent, so that it can be retried."""
    chance = int.from_bytes(os.urandom(10), "big") & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62
    return str(uuid.UUID(int=(time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | chance))
