"""The Python SDK of Timer Platform: register "call this at that time", and receive the calls."""

from . import errors, models, webhook
from ._connection import current_trace
from ._json import UNSET, Json
from .aio import AsyncTimerClient
from .client import TimerClient
from .errors import (
    Conflict,
    Invalid,
    NotFound,
    TimerError,
    TooMany,
    Unauthorized,
    Unavailable,
    Unexpected,
    Unreachable,
)
from .models import Filter, HttpCallback, Key, NatsCallback, NewTimer, RescheduleTo, RetryPolicy, Timer, TimerDetail
from .webhook import Call, InvalidCall, verify

__all__ = [
    "UNSET",
    "AsyncTimerClient",
    "Call",
    "Conflict",
    "Filter",
    "HttpCallback",
    "Invalid",
    "InvalidCall",
    "Json",
    "Key",
    "NatsCallback",
    "NewTimer",
    "NotFound",
    "RescheduleTo",
    "RetryPolicy",
    "Timer",
    "TimerClient",
    "TimerDetail",
    "TimerError",
    "TooMany",
    "Unauthorized",
    "Unavailable",
    "Unexpected",
    "Unreachable",
    "current_trace",
    "errors",
    "models",
    "verify",
    "webhook",
]
