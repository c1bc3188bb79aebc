"""Every call of the API as a request that has not been made yet.

The sync and the async client send the same requests, so that a call is written once: what it sends, what it answers, and
whether it may be made again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, Union
from urllib.parse import quote

from . import models as m
from ._json import UNSET, Json, Unset, decode, encode, members
from ._time import format_duration, format_instant, new_id

T = TypeVar("T")
Target = Union[str, m.Key]
"""A timer: its id, or the `Key` that its creator chose."""
Query = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    method: str
    path: str
    parse: Callable[[str], T]
    """Makes the result of the text of `data`."""
    query: Query = field(default_factory=dict)
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    idempotent: bool = True
    traced: bool = False

    def parameters(self) -> list[tuple[str, str]]:
        return [(name, _parameter(value)) for name, value in self.query.items() if value is not None]

    def result(self, body: str) -> T:
        """The result that a body says; `ValueError` where it says none."""
        try:
            return self.parse(members(body)["data"])
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(str(error)) from error


def _parameter(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    return value if isinstance(value, str) else json.loads(encode(value)) if not isinstance(value, int) else str(value)


def _as(hint: Any) -> Callable[[str], Any]:
    return lambda text: decode(hint, text)


def _nothing(_: str) -> None:
    return None


def _segments(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _timer(target: Target, action: str = "") -> str:
    if isinstance(target, m.Key):
        return "/namespaces" + _segments(target.namespace) + "/timers" + _segments(target.key) + action
    return "/timers" + _segments(target) + action


def _change(method: str, target: Target, action: str, revision: int | None, body: str | None = None) -> Request[m.Timer]:
    """Changes one timer. With a revision it is not repeated: its own first try would be what is in the way."""
    headers = {} if revision is None else {"if-match": f'"{revision}"'}
    idempotent = method != "POST" and revision is None
    return Request(method, _timer(target, action), _as(m.Timer), body=body, headers=headers, idempotent=idempotent)


def _callback(timer: m.NewTimer) -> m.Callback:
    if timer.callback is not None:
        return timer.callback
    if timer.url is None:
        raise ValueError("a timer needs a url or a callback")
    return m.HttpCallback(timer.url, timer.payload, timer.headers, timer.timeout, timer.protocol)


_OF_CALLBACK = {"url", "payload", "headers", "timeout", "protocol", "callback"}


def _new(timer: m.NewTimer) -> dict[str, Any]:
    """The body of a create. One without a key gets an id here, and keeps it over all retries."""
    if (timer.in_ is None) == (timer.at is None):
        raise ValueError("a timer needs either in_ or at")
    body = {f.name: getattr(timer, f.name) for f in dataclasses.fields(timer) if f.name not in _OF_CALLBACK}
    body["delay"] = None if timer.in_ is None else format_duration(body.pop("in_"))
    body["execute_at"] = None if timer.at is None else format_instant(body.pop("at"))
    if timer.key is None and timer.id is None:
        body["id"] = new_id()
    given = {name: value for name, value in body.items() if value is not None and name not in ("in_", "at")}
    return {**given, "callback": _callback(timer)}


def create_new(timer: m.NewTimer) -> Request[m.Timer]:
    return Request("POST", "/timers", _as(m.Timer), body=encode(_new(timer)), traced=True)


def create_many(timers: Iterable[m.NewTimer]) -> Request[list[m.BatchResult]]:
    """Creates up to 1,000 timers at once. Each has a result of its own: one that is refused stops no other."""
    body = encode({"timers": [_new(timer) for timer in timers]})
    return Request("POST", "/timers/batch", _within("results", list[m.BatchResult]), body=body, traced=True)


def _within(name: str, hint: Any) -> Callable[[str], Any]:
    return lambda text: decode(hint, members(text)[name])


def get(timer: Target) -> Request[m.TimerDetail]:
    """Shows a timer with everything that is known about it."""
    return Request("GET", _timer(timer), _as(m.TimerDetail))


def get_by_key(key: str, namespace: str = "default") -> Request[m.TimerDetail]:
    """Shows the timer with this key."""
    return get(m.Key(key, namespace))


def _query(filter: m.Filter | None, **more: Any) -> Query:
    given = {} if filter is None else {f.name: getattr(filter, f.name) for f in dataclasses.fields(filter)}
    metadata = given.pop("metadata", None) or {}
    return {**given, **{f"metadata.{path}": value for path, value in metadata.items()}, **more}


def page(
    filter: m.Filter | None = None,
    *,
    limit: int | None = None,
    offset: int | None = None,
    sort: Literal["created_at", "execute_at"] | None = None,
    order: Literal["asc", "desc"] | None = None,
    cursor: str | None = None,
) -> Request[m.Page]:
    """One page of a list; `next_cursor` leads to the next, also after an empty page."""
    query = _query(filter, limit=limit, offset=offset, sort=sort, order=order, cursor=cursor)
    return Request("GET", "/timers", _as(m.Page), query=query)


def count(filter: m.Filter | None = None) -> Request[m.Count]:
    """Counts the timers that match."""
    return Request("GET", "/timers/count", _as(m.Count), query=_query(filter))


def export(filter: m.Filter | None = None, *, format: Literal["ndjson", "json", "csv"] = "ndjson") -> Request[None]:
    return Request("GET", f"/timers.{format}", _nothing, query=_query(filter))


def watch(
    filter: m.Filter | None = None, *, types: Sequence[m.EventKind] | None = None, after: str | None = None
) -> Request[None]:
    query = _query(filter, types=types, after=after)
    return Request("GET", "/events", _nothing, query=query, headers={"accept": "application/x-ndjson"})


def event(line: str) -> m.Event | None:
    """The event of a line of the stream; `None` for a position without one."""
    if not line.strip() or decode(str, members(line).get("type", '""')) == "position":
        return None
    result: m.Event = decode(m.Event, line)
    return result


def update(
    timer: Target,
    *,
    revision: int | None = None,
    in_: m.Duration | Unset = UNSET,
    at: m.Instant | Unset = UNSET,
    callback: m.Callback | Unset = UNSET,
    metadata: Json | Any | Unset | None = UNSET,
    retry_policy: m.RetryPolicy | Unset | None = UNSET,
    delivery: m.Delivery | Unset = UNSET,
    correlation_id: str | Unset | None = UNSET,
    group: str | Unset | None = UNSET,
    expires_at: m.Instant | Unset | None = UNSET,
    expires_after: m.Duration | Unset | None = UNSET,
    postpone_max: m.Duration | Unset | None = UNSET,
    on_success: m.Callback | Unset | None = UNSET,
    on_failure: m.Callback | Unset | None = UNSET,
) -> Request[m.Timer]:
    """Changes a pending or paused timer: what is left out stays, `None` clears. With `revision`, only that one is changed."""
    changes = {
        "delay": in_,
        "execute_at": at,
        "callback": callback,
        "metadata": metadata,
        "retry_policy": retry_policy,
        "delivery": delivery,
        "correlation_id": correlation_id,
        "group": group,
        "expires_at": expires_at,
        "expires_after": expires_after,
        "postpone_max": postpone_max,
        "on_success": on_success,
        "on_failure": on_failure,
    }
    return _change("PUT", timer, "", revision, encode(changes))


def cancel(timer: Target, *, revision: int | None = None) -> Request[m.Timer]:
    """Cancels a pending or paused timer; once this has returned, it never fires."""
    return _change("DELETE", timer, "", revision)


def fire(timer: Target, *, revision: int | None = None) -> Request[m.Timer]:
    """Makes a pending timer due now."""
    return _change("POST", timer, "/fire", revision)


def retry(timer: Target, *, revision: int | None = None) -> Request[m.Timer]:
    """Tries a failed or expired timer again."""
    return _change("POST", timer, "/retry", revision)


def ping(timer: Target, *, delay: m.Duration | None = None, revision: int | None = None) -> Request[m.Timer]:
    """Postpones a timer by its own delay, or the one given; one that has ended begins anew."""
    body = None if delay is None else encode({"delay": format_duration(delay)})
    return _change("POST", timer, "/ping", revision, body)


def pause(timer: Target, *, note: str | None = None, revision: int | None = None) -> Request[m.Timer]:
    """Takes a pending timer out of what is due."""
    return _change("POST", timer, "/pause", revision, None if note is None else encode({"note": note}))


def resume(timer: Target, *, missed: Literal["fire", "expire"] | None = None, revision: int | None = None) -> Request[m.Timer]:
    """Puts a paused timer back; `missed` says what becomes of one that was due meanwhile."""
    return _change("POST", timer, "/resume", revision, None if missed is None else encode({"missed": missed}))


def attempts(timer: Target) -> Request[list[m.Attempt]]:
    """The last attempts of a timer, the oldest first."""
    return Request("GET", _timer(timer, "/attempts"), _within("attempts", list[m.Attempt]))


def cancel_matching(
    *,
    expected_max: int,
    namespace: str | None = None,
    key_prefix: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Literal["pending"] | None = None,
) -> Request[m.Canceled]:
    """Cancels pending timers by namespace, prefix of the key and metadata; none of them if more than `expected_max` match."""
    given = {"namespace": namespace, "status": status, "key_prefix": key_prefix, "metadata": metadata}
    body = {name: value for name, value in given.items() if value is not None}
    return Request(
        "POST", "/timers/cancel", _as(m.Canceled), body=encode({**body, "expected_max": expected_max}), idempotent=False
    )


BulkOutcome = Union[m.BulkChanged, m.BulkStarted]


def bulk(action: m.Action, filter: m.Filter, *, expected_max: int, set: m.RescheduleTo | None = None) -> Request[BulkOutcome]:
    """Changes every timer that matches, or none if more than `expected_max` do. Beyond 1,000 it goes on as an operation."""
    body = {"action": action, "filter": filter, "expected_max": expected_max, "set": UNSET if set is None else set}
    return Request("POST", "/timers/bulk", _as(BulkOutcome), body=encode(body), idempotent=False)


def preview(action: m.Action, filter: m.Filter, *, set: m.RescheduleTo | None = None) -> Request[m.BulkPreview]:
    """Counts what a bulk change would meet, and changes nothing."""
    body = {"action": action, "filter": filter, "dry_run": True, "set": UNSET if set is None else set}
    return Request("POST", "/timers/bulk", _as(m.BulkPreview), body=encode(body), idempotent=False)


def operations() -> Request[list[m.Operation]]:
    """The latest bulk changes that went on in the background."""
    return Request("GET", "/operations", _within("operations", list[m.Operation]))


def operation(id: str) -> Request[m.Operation]:
    return Request("GET", "/operations" + _segments(id), _as(m.Operation))


def stop_operation(id: str) -> Request[m.Operation]:
    """Stops a bulk change; what it has changed stays so."""
    return Request("DELETE", "/operations" + _segments(id), _as(m.Operation))


def group(group: str, namespace: str = "default") -> Request[m.Group]:
    """Counts the timers of a group by status."""
    return Request("GET", "/groups" + _segments(namespace, group), _as(m.Group))


def cancel_group(group: str, namespace: str = "default") -> Request[m.Canceled]:
    """Cancels the timers of a group that wait."""
    return Request("DELETE", "/groups" + _segments(namespace, group), _as(m.Canceled))


def create_key(name: str, *, namespaces: Sequence[str] | None, rights: m.Rights) -> Request[m.IssuedKey]:
    """Issues an API key; `None` opens all namespaces. Its secret is in this answer alone."""
    body = encode({"name": name, "namespaces": None if namespaces is None else list(namespaces), "rights": rights})
    return Request("POST", "/keys", _as(m.IssuedKey), body=body, idempotent=False)


def keys() -> Request[list[m.ApiKey]]:
    return Request("GET", "/keys", _within("keys", list[m.ApiKey]))


def revoke_key(id: str) -> Request[None]:
    return Request("DELETE", "/keys" + _segments(id), _nothing)


def _window(
    start: m.Instant | None, end: m.Instant | None, step: m.Duration | None, namespace: str | Sequence[str] | None
) -> Query:
    return {"from": start, "to": end, "step": step, "namespace": namespace}


def due_stats(
    from_: m.Instant | None = None,
    to: m.Instant | None = None,
    *,
    step: m.Duration | None = None,
    namespace: str | Sequence[str] | None = None,
) -> Request[m.DueStats]:
    """How many timers are due when."""
    return Request("GET", "/stats/due", _as(m.DueStats), query=_window(from_, to, step, namespace))


def fired_stats(
    from_: m.Instant | None = None,
    to: m.Instant | None = None,
    *,
    step: m.Duration | None = None,
    namespace: str | Sequence[str] | None = None,
) -> Request[m.FiredStats]:
    """What was called when, and how late."""
    return Request("GET", "/stats/fired", _as(m.FiredStats), query=_window(from_, to, step, namespace))


def destinations(namespace: str | Sequence[str] | None = None) -> Request[m.Destinations]:
    """How the receivers are."""
    return Request("GET", "/destinations", _as(m.Destinations), query={"namespace": namespace})


def namespaces() -> Request[m.Namespaces]:
    return Request("GET", "/namespaces", _as(m.Namespaces))


def cluster() -> Request[m.Cluster]:
    """The nodes that share the work."""
    return Request("GET", "/cluster", _as(m.Cluster))


def whoami() -> Request[m.Caller]:
    """What the API key of this client opens."""
    return Request("GET", "/whoami", _as(m.Caller))


def health() -> Request[m.Health]:
    return Request("GET", "/healthz", _as(m.Health))


def service_ping() -> Request[None]:
    """Whether the service answers at all."""
    return Request("GET", "/ping", _nothing)
