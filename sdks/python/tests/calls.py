"""The calls of sdks/conformance/operations.json as calls of this SDK, and its results in the shape of the API."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from timer_platform import Filter, HttpCallback, Json, Key, NatsCallback, NewTimer, RescheduleTo, RetryPolicy, models
from timer_platform._time import format_instant, parse_instant
from timer_platform.webhook import Call

Args = dict[str, Any]
_UNITS = {"h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds"}


def duration(text: str) -> timedelta:
    return timedelta(**{_UNITS[unit]: int(number) for number, unit in re.findall(r"(\d+)(ms|h|m|s)", text)})


def callback(given: Args | None) -> Any:
    if given is None:
        return None
    given = dict(given)
    return NatsCallback(**given) if given.get("type") == "nats" else HttpCallback(**given)


def fields(given: Args) -> Args:
    """Arguments of a create or an update as native types."""
    made: dict[str, Callable[[Any], Any]] = {
        "in": duration,
        "at": parse_instant,
        "callback": callback,
        "on_success": callback,
        "on_failure": callback,
        "retry_policy": lambda policy: RetryPolicy(**policy),
    }
    values = {name: made[name](value) if name in made and value is not None else value for name, value in given.items()}
    return {"in_" if name == "in" else name: value for name, value in values.items()}


def target(args: Args) -> str | Key:
    """Takes the timer out of the arguments."""
    if "key" in args:
        return Key(args.pop("key"), args.pop("namespace"))
    timer: str = args.pop("id")
    return timer


def filter_of(args: Args) -> Filter:
    names = [field.name for field in dataclasses.fields(Filter)]
    return Filter(**{name: args.pop(name) for name in names if name in args})


def update(client: Any, args: Args) -> Any:
    timer, changes = target(args), fields(args.pop("set"))
    return client.timers.update(timer, **changes, **args)


def bulk(client: Any, args: Args) -> Any:
    set_to = args.get("set")
    if set_to and "at" in set_to:
        set_to = {"execute_at": parse_instant(set_to["at"])}
    made = {"filter": filter_of(dict(args["filter"])), "set": RescheduleTo(**set_to) if set_to else None}
    if args.get("dry_run"):
        return client.timers.preview(args["action"], **made)
    return client.timers.bulk(args["action"], expected_max=args["expected_max"], **made)


def export(client: Any, args: Args) -> str:
    kind = args.pop("format")
    with client.timers.export(filter_of(args), format=kind) as lines:
        return "\n".join(lines)


def stats(name: str) -> Callable[[Any, Args], Any]:
    def call(client: Any, args: Args) -> Any:
        window = [parse_instant(args.pop(end)) if end in args else None for end in ("from", "to")]
        return getattr(client.stats, name)(*window, **args)

    return call


def of_timer(name: str) -> Callable[[Any, Args], Any]:
    return lambda client, args: getattr(client.timers, name)(target(args), **args)


def within(name: str, call: Callable[[Any, Args], Any]) -> Callable[[Any, Args], Any]:
    """Lists of the SDK that are members of an object in the API."""
    return lambda client, args: {name: call(client, args)}


CALLS: dict[str, Callable[[Any, Args], Any]] = {
    "timers.create": lambda client, args: client.timers.create(**fields(args)),
    "timers.create_many": within(
        "results", lambda client, args: client.timers.create_many([NewTimer(**fields(one)) for one in args["timers"]])
    ),
    "timers.get": of_timer("get"),
    "timers.list": lambda client, args: list(client.timers.list(filter_of(args), **args)),
    "timers.page": lambda client, args: client.timers.page(filter_of(args), **args),
    "timers.count": lambda client, args: client.timers.count(filter_of(args)),
    "timers.export": export,
    "timers.update": update,
    "timers.cancel": of_timer("cancel"),
    "timers.fire": of_timer("fire"),
    "timers.retry": of_timer("retry"),
    "timers.ping": of_timer("ping"),
    "timers.pause": of_timer("pause"),
    "timers.resume": of_timer("resume"),
    "timers.attempts": within("attempts", of_timer("attempts")),
    "timers.cancel_matching": lambda client, args: client.timers.cancel_matching(**args),
    "timers.bulk": bulk,
    "timers.watch": lambda client, args: client.timers.watch(filter_of(args), **args),
    "operations.list": within("operations", lambda client, args: client.operations.list()),
    "operations.get": lambda client, args: client.operations.get(args["id"]),
    "operations.stop": lambda client, args: client.operations.stop(args["id"]),
    "groups.get": lambda client, args: client.groups.get(args["group"], args["namespace"]),
    "groups.cancel": lambda client, args: client.groups.cancel(args["group"], args["namespace"]),
    "keys.create": lambda client, args: client.keys.create(args.pop("name"), **args),
    "keys.list": within("keys", lambda client, args: client.keys.list()),
    "keys.revoke": lambda client, args: client.keys.revoke(args["id"]),
    "stats.due": stats("due"),
    "stats.fired": stats("fired"),
    "destinations": lambda client, args: client.destinations(**args),
    "namespaces": lambda client, args: client.namespaces(),
    "cluster": lambda client, args: client.cluster(),
    "whoami": lambda client, args: client.whoami(),
    "health": lambda client, args: client.health(),
    "ping": lambda client, args: client.ping(),
}


def wire(value: Any) -> Any:
    """A result in the shape and with the names of the API."""
    if isinstance(value, Json):
        return value.loads()
    if isinstance(value, datetime):
        return format_instant(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {field.name.rstrip("_"): wire(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {**members, "lateness_ms": value.lateness / timedelta(milliseconds=1)} if isinstance(value, Call) else members
    if isinstance(value, dict):
        return {name: wire(part) for name, part in value.items()}
    return [wire(part) for part in value] if isinstance(value, list) else value


__all__ = ["CALLS", "models", "wire"]
