"""What the service is told and what it answers. Names are those of the API; unknown members of answers are ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Union

from ._json import Json

Status = Literal["pending", "executing", "completed", "failed", "canceled", "paused", "expired"]
OnConflict = Literal["reject", "replace", "keep", "postpone", "earliest", "latest"]
Delivery = Literal["at_least_once", "at_most_once"]
Protocol = Literal["webhook", "timer"]
Rights = Literal["read", "write"]
Action = Literal["cancel", "fire", "retry", "reschedule", "pause", "resume", "expire", "delete"]
EventKind = Literal["created", "changed", "attempt", "finished"]
Duration = Union[timedelta, str]
"""A `timedelta`, or a text such as `90s`, `1h30m` or `PT15M`."""
Instant = Union[datetime, str]
"""A `datetime` with a time zone, or an RFC 3339 text."""


@dataclass(frozen=True, slots=True)
class HttpCallback:
    """A POST to `url`. A payload is anything that JSON can say, or exact text as `Json`."""

    url: str
    payload: Json | Any = None
    headers: Mapping[str, str] | None = None
    timeout: Duration | None = None
    protocol: Protocol | None = None
    type: Literal["http"] = "http"


@dataclass(frozen=True, slots=True)
class NatsCallback:
    """A message on the NATS subject `topic`."""

    topic: str
    payload: Json | Any = None
    headers: Mapping[str, str] | None = None
    key: str | None = None
    jetstream: bool | None = None
    type: Literal["nats"] = "nats"


@dataclass(frozen=True, slots=True)
class EventCallback:
    """The event of a timer that came as a NATS command; it cannot be asked for."""

    type: Literal["event"] = "event"


Callback = Union[HttpCallback, NatsCallback]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How failed calls are repeated; what is left out has the default of the service."""

    max_retries: int | None = None
    initial_interval: Duration | None = None
    backoff_multiplier: float | None = None
    max_interval: Duration | None = None
    max_duration: Duration | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """Names a timer by the key that its creator chose; wherever an id is taken, this is too."""

    key: str
    namespace: str = "default"


@dataclass(frozen=True, slots=True)
class NewTimer:
    """A timer to be created: due `in_` some time or `at` an instant, calling `url` or a `callback`."""

    url: str | None = None
    in_: Duration | None = None
    at: Instant | None = None
    payload: Json | Any = None
    headers: Mapping[str, str] | None = None
    timeout: Duration | None = None
    protocol: Protocol | None = None
    callback: Callback | None = None
    namespace: str | None = None
    key: str | None = None
    id: str | None = None
    on_conflict: OnConflict | None = None
    group: str | None = None
    metadata: Json | Any = None
    retry_policy: RetryPolicy | None = None
    delivery: Delivery | None = None
    correlation_id: str | None = None
    expires_at: Instant | None = None
    expires_after: Duration | None = None
    postpone_max: Duration | None = None
    on_success: Callback | None = None
    on_failure: Callback | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which timers are meant: those for which everything holds that is said here."""

    status: Status | Sequence[Status] | None = None
    namespace: str | Sequence[str] | None = None
    key: str | None = None
    key_prefix: str | None = None
    group: str | None = None
    due_from: Instant | None = None
    due_to: Instant | None = None
    created_from: Instant | None = None
    created_to: Instant | None = None
    correlation_id: str | None = None
    destination: str | None = None
    metadata: Mapping[str, str] | None = None
    """Dotted paths and the texts of scalars: `{"customer.id": "42"}`."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RescheduleTo:
    """Where a bulk reschedule puts timers: exactly one of these."""

    execute_at: Instant | None = None
    shift: str | None = None
    spread: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer as lists show it."""

    id: str
    namespace: str
    key: str | None
    group: str | None
    status: Status
    callback_type: Literal["http", "nats", "event"]
    execute_at: datetime
    time_left: int
    executed_at: datetime | None
    created_at: datetime
    updated_at: datetime
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerDetail(Timer):
    """A timer with everything that it was created with and that happened to it."""

    callback_config: HttpCallback | NatsCallback | EventCallback
    metadata: Json | None
    correlation_id: str | None
    retry_policy: RetryPolicy | None
    delivery: Delivery
    expires_at: datetime | None
    expires_after: str | None
    postpone_max: str | None
    on_success: HttpCallback | NatsCallback | EventCallback | None
    on_failure: HttpCallback | NatsCallback | EventCallback | None
    attempt: int
    last_error: str | None
    paused_at: datetime | None
    pause_note: str | None


@dataclass(frozen=True, slots=True)
class Page:
    timers: list[Timer]
    total: int
    total_is_estimate: bool
    limit: int
    offset: int
    next_cursor: str | None
    scanned: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Count:
    total: int
    total_is_estimate: bool


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    headers: dict[str, str]
    body: str | None
    body_base64: str | None


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    started_at: datetime
    took_ms: int
    outcome: str
    status: int | None
    detail: str | None
    # The name of the node that made it.
    node: str | None = None
    answer: ReceivedAnswer | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of one timer of a batch: the status and message that it would have had alone."""

    status: int
    message: str
    field: str | None = None
    timer: Timer | None = None

    @property
    def ok(self) -> bool:
        return self.timer is not None


@dataclass(frozen=True, slots=True)
class CountByStatus:
    pending: int = 0
    executing: int = 0
    completed: int = 0
    failed: int = 0
    canceled: int = 0
    paused: int = 0
    expired: int = 0


@dataclass(frozen=True, slots=True)
class BulkChanged:
    changed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """What a dry run met."""

    matched: int
    matched_is_estimate: bool
    by_status: CountByStatus
    examples: list[Timer]


@dataclass(frozen=True, slots=True)
class Operation:
    """A bulk change of many timers, which goes on in the background."""

    id: str
    action: Action
    filter: Json
    state: Literal["running", "done", "stopped", "failed"]
    matched: int
    changed: int
    skipped: int
    errors: int
    error: str | None
    started_at: datetime
    finished_at: datetime | None
    by: str


@dataclass(frozen=True, slots=True)
class BulkStarted:
    operation: Operation


@dataclass(frozen=True, slots=True)
class Canceled:
    matched: int
    canceled: int


@dataclass(frozen=True, slots=True)
class Group:
    namespace: str
    group: str
    total: int
    total_is_estimate: bool
    by_status: CountByStatus


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a timer. A resumed stream may repeat some: `type`, `at` and the timer's id identify it."""

    type: EventKind
    event_id: str
    at: datetime
    timer: Timer
    attempt: Attempt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    id: str
    name: str
    namespaces: list[str] | None
    rights: Rights
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None = None
    """To the minute; None if no use of it is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKey(ApiKey):
    """A new API key with its secret, which is shown this once."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DueBucket:
    at: datetime
    pending: int


@dataclass(frozen=True, slots=True)
class DueStats:
    from_: datetime
    to: datetime
    step_seconds: int
    buckets: list[DueBucket]
    pending_is_estimate: bool
    complete: bool


@dataclass(frozen=True, slots=True)
class FiredBucket:
    at: datetime
    created: int
    fired: int
    completed: int
    failed: int
    retried: int
    lateness_p50_ms: float | None
    lateness_p99_ms: float | None
    lateness_max_ms: float | None


@dataclass(frozen=True, slots=True)
class FiredStats:
    from_: datetime
    to: datetime
    step_seconds: int
    buckets: list[FiredBucket]


@dataclass(frozen=True, slots=True)
class Destination:
    destination: str
    health: Literal["good", "slow", "failing", "silent"]
    in_flight: int
    ok_1m: int
    failed_1m: int
    ok_10m: int
    failed_10m: int
    p50_ms: float | None
    p99_ms: float | None
    failures_in_a_row: int
    last_error: str | None
    pending_retries: int


@dataclass(frozen=True, slots=True)
class Destinations:
    destinations: list[Destination]
    complete: bool


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str
    pending: int
    failed: int
    oldest_overdue: datetime | None
    has_retry_policy: bool
    has_signing_secret: bool
    has_subjects: bool
    retry_policy: RetryPolicy | None = None


@dataclass(frozen=True, slots=True)
class Namespaces:
    namespaces: list[Namespace]
    pending_is_estimate: bool
    failed_is_estimate: bool
    complete: bool


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    name: str
    version: str
    started_at: datetime
    alive: bool
    takes_shards: bool
    lease_seconds_left: float
    clock_skew_seconds: float
    shards: int
    in_flight: int = 0
    fires_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class Shard:
    shard: int
    epoch: int
    owner: str | None


@dataclass(frozen=True, slots=True)
class ShardMove:
    """A shard that a node has acquired; `from_` is `None` where no former owner is known."""

    at: datetime
    shard: int
    epoch: int
    from_: str | None
    to: str


@dataclass(frozen=True, slots=True)
class Cluster:
    now: datetime
    nodes: list[Node]
    shards: list[Shard]
    oldest_overdue_seconds: float
    moves: list[ShardMove]


@dataclass(frozen=True, slots=True)
class Caller:
    """What the API key of the client opens."""

    administrator: bool
    id: str | None
    name: str
    rights: Rights
    namespaces: list[str] | None


@dataclass(frozen=True, slots=True)
class Health:
    status: Literal["up", "degraded"]
    database: Literal["connected", "disconnected"]
    timestamp: datetime
