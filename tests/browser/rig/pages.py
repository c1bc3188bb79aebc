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
    Page("timer-fire", of("pending", "/fire"), WRITERS),
    Page("timer-pause", of("pending", "/pause"), WRITERS),
    Page("timer-resume", of("paused", "/resume"), WRITERS),
    Page("timer-retry", of("failed", "/retry"), WRITERS),
    Page("create", at("/timers/new"), WRITERS),
    Page("create-json", at("/timers/new?as=json&delay=1h&url=http://127.0.0.1:9/x"), WRITERS),
    Page("create-at", at("/timers/new?when=at&date=2040-07-31T11:30&zone=Europe/Berlin&max_retries=5&url=http://127.0.0.1:9/x"), WRITERS),
    Page("edit", of("pending", "/edit"), WRITERS),
    Page("timer-verify", of("pending", "/verify")),
    Page("failed", at("/failed")),
    Page("operations", at("/operations")),
    Page("operation", lambda seeds: f"/operations/{seeds.operation}"),
    Page("bulk-preview", at("/operations/new?do=cancel&q=ns:shop+key:shop-order-*"), WRITERS),
    Page("bulk-selected", lambda seeds: f"/operations/new?do=reschedule&scope=selected&id={seeds.timers['pending']}", WRITERS),
    Page("destinations", at("/destinations")),
    Page("destination", lambda seeds: f"/destinations/{seeds.receiver.url.removeprefix('http://')}"),
    Page("namespaces", at("/namespaces")),
    Page("keys", at("/keys"), ("administrator",)),
    Page("key-revoke", lambda seeds: f"/keys/{seeds.key_ids['scoped']}/revoke", ("administrator",)),
    Page("cluster", at("/cluster"), ("administrator",)),
    Page("about", at("/about")),
    Page("preferences", at("/preferences")),
)


@dataclass(frozen=True)
class Dialog:
    """A dialog, the page that it opens on, and what opens it: a key, or else the first link with this name."""

    name: str
    path: Callable[[Seeds], str]
    key: str = ""
    link: str = ""

    def open(self, page):
        page.keyboard.press(self.key) if self.key else page.get_by_role("link", name=self.link).first.click()
        page.get_by_role("dialog").wait_for()


DIALOGS = (
    Dialog("cancel", of("pending"), key="c"),
    Dialog("pause", of("pending"), link="Pause"),
    Dialog("resume", of("paused"), link="Resume"),
    Dialog("revoke", at("/keys"), link="Revoke"),
    Dialog("shortcuts", at(""), key="?"),
)
# What a service has to show before anything has happened; the last two are the administrator's.
EMPTY = ("", "/timers", "/failed", "/operations", "/destinations", "/namespaces", "/keys", "/cluster")
