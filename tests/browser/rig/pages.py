"""The pages of the console, and which viewers may open them."""

from collections.abc import Callable
from dataclasses import dataclass

from .seeds import Seeds

RIGHTS = ("administrator", "read-only", "scoped")
WRITERS = ("administrator", "scoped")


@dataclass(frozen=True)
class Page:
    name: str
    path: Callable[[Seeds], str]
    rights: tuple[str, ...] = RIGHTS


def at(path: str) -> Callable[[Seeds], str]:
    return lambda seeds: path


def of(status: str, behind: str = "") -> Callable[[Seeds], str]:
    return lambda seeds: f"/timers/{seeds.timers[status]}{behind}"


PAGES = (
    Page("overview", at("")),
    Page("overview-24h", at("?range=24h")),
    Page("timers", at("/timers")),
    Page("timers-filtered", at("/timers?q=ns:shop+status:pending&sort=due&order=asc")),
    Page("timers-none", at("/timers?q=key:there-is-none")),
    Page("timer-pending", of("pending")),
    Page("timer-completed", of("completed")),
    Page("timer-failed", of("failed")),
    Page("timer-retried", of("retried")),
    Page("timer-paused", of("paused")),
    Page("timer-canceled", of("canceled")),
    Page("timer-cancel", of("pending", "/cancel"), WRITERS),
    Page("timer-resume", of("paused", "/resume"), WRITERS),
    Page("create", at("/timers/new"), WRITERS),
    Page("create-json", at("/timers/new?as=json&delay=1h&url=http://127.0.0.1:9/x"), WRITERS),
    Page("edit", of("pending", "/edit"), WRITERS),
    Page("timer-verify", of("pending", "/verify")),
    Page("failed", at("/failed")),
    Page("operations", at("/operations")),
    Page("operation", lambda seeds: f"/operations/{seeds.operation}"),
    Page("bulk-preview", at("/operations/new?do=cancel&q=ns:shop+key:shop-order-*"), WRITERS),
    Page("destinations", at("/destinations")),
    Page("destination", lambda seeds: f"/destinations/{seeds.receiver.url.removeprefix('http://')}"),
    Page("namespaces", at("/namespaces")),
    Page("keys", at("/keys"), ("administrator",)),
    Page("cluster", at("/cluster"), ("administrator",)),
    Page("about", at("/about")),
    Page("preferences", at("/preferences")),
)
