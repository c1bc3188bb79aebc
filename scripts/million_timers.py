#!/usr/bin/env python3
"""Measures searches and bulk operations among a million timers.

Fills a throw-away service, on SQLite or PostgreSQL, and prints

1. for each kind of filter the time of its first page (50 timers, by creation and by due time), of its count and of a dry run, and how
   many timers the page looked at: the best and the worst of some answers;
2. what rescheduling 100,000 timers in bulk, again and again, does to the lateness of 500 calls a second (w3 of `timer bench`), in turns
   with the same load alone. The load begins with the first change: before that, an operation only counts.

Ends with 1 when an answer takes longer than the budget of searches allows (250 ms), and when the median ratio of the p99 lateness,
beside the bulk operations and without them, is above --tolerated.

The results belong to an idle machine and an optimised build.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/browser"))

from rig.postgres import Postgres  # noqa: E402
from rig.service import ADMINISTRATOR, STORES, Service  # noqa: E402

SETTINGS = {"CONNECTIONS_PER_ADDRESS_MAX": "2048", "EGRESS": "private", "ATTEMPTS": "", "RUST_LOG": "info"}
BUDGET_MS = 250
BATCH = 1_000
DAY = datetime.timedelta(days=1)
BEGIN = datetime.datetime.now(datetime.UTC).replace(microsecond=0) + 10 * DAY
GROUPS = 10
OPERATION_SECONDS_MAX = 1_200
LOOK_SECONDS = 0.25


def timer(n: int) -> dict:
    """89 % of all timers are in one namespace, 1 % in the default one and 0.1 % in each of a hundred others."""
    hundredth = n % 100
    # One of a hundred timers is in one of a hundred groups, the others are in ten.
    group = f"few-{n // 100 % 100}" if hundredth == 50 else f"group-{n % GROUPS}"
    name = "large" if hundredth < 89 else None if hundredth == 89 else f"small-{n // 100 % 10 + 10 * (hundredth - 90)}"
    at = BEGIN + (n * 7919 % 864_000) * datetime.timedelta(seconds=1)
    return {
        **({"namespace": name} if name else {}),
        "key": f"order-{n}",
        "group": group,
        "execute_at": at.isoformat(),
        "correlation_id": f"correlation-{n}",
        "metadata": {"customer": {"id": str(n % 1_000)}},
        "callback": {"type": "http", "url": f"http://127.0.0.1:{9_000 + n % 50}/hook"},
    }


def fill(service, count: int):
    def create(first: int):
        service.api("POST", "/timers/batch", {"timers": [timer(n) for n in range(first, first + BATCH)]}).data

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in pool.map(create, range(0, count, BATCH)):
            pass


def filters(first_created_at: str) -> dict[str, dict]:
    """By what is asked for. Those that no index serves match nothing, so that they use all of their budget."""
    at = (BEGIN + 5 * DAY).isoformat()
    until = (BEGIN + 5 * DAY + datetime.timedelta(minutes=10)).isoformat()
    an_hour_later = (BEGIN + 5 * DAY + datetime.timedelta(hours=1)).isoformat()
    soon_created = (datetime.datetime.fromisoformat(first_created_at) + datetime.timedelta(seconds=10)).isoformat()
    return {
        "none": {},
        "`status=pending`": {"status": "pending"},
        "`status=executing`": {"status": "executing"},
        "`status=failed`": {"status": "failed"},
        "`namespace` with 89 %, `status=pending`": {"namespace": "large", "status": "pending"},
        "`namespace=default` with 1 %": {"namespace": "default"},
        "`namespace` with 0.1 %": {"namespace": "small-7"},
        "`key` and `namespace`": {"namespace": "large", "key": "order-101"},
        "`namespace` and `group`": {"namespace": "large", "group": "group-3"},
        "`namespace` and a small `group`": {"namespace": "large", "group": "few-7"},
        "ten minutes of `execute_at`": {"due_from": at, "due_to": until},
        "an hour of `execute_at`": {"due_from": at, "due_to": an_hour_later},
        "ten seconds of `created_at`": {"created_from": first_created_at, "created_to": soon_created},
        "`destination`, one of fifty": {"destination": "127.0.0.1:9007"},
        "`key` alone": {"key": "nothing"},
        "`key_prefix`": {"key_prefix": "nothing"},
        "`correlation_id`": {"correlation_id": "nothing"},
        "`metadata.PATH`": {"metadata.customer.id": "nothing"},
        "`error`": {"error": "nothing"},
    }


def as_json(query: dict) -> dict:
    metadata = {name.removeprefix("metadata."): value for name, value in query.items() if name.startswith("metadata.")}
    rest = {name: value for name, value in query.items() if not name.startswith("metadata.")}
    return {**rest, **({"metadata": metadata} if metadata else {})}


def timed(ask, times: int) -> tuple[str, float, dict]:
    """Best and worst in milliseconds, and the last answer."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        data = ask().data
        taken.append((time.perf_counter() - begun) * 1_000)
    return f"{min(taken):.1f}–{max(taken):.1f}", max(taken), data


def search(service, times: int) -> list[str]:
    """Prints a row for each filter; complaints about those over the budget."""
    print("| filter | by creation, ms | by due time, ms | looked at | count, ms | dry run, ms |\n|---|---|---|---|---|---|", flush=True)
    complaints = []
    first_created_at = service.api("GET", "/timers?order=asc&limit=1").data["timers"][0]["created_at"]
    for name, query in filters(first_created_at).items():
        pages = [urllib.parse.urlencode({**query, "sort": sort, "limit": 50}) for sort in ("created_at", "execute_at")]
        created, created_max, first = timed(lambda page=pages[0]: service.api("GET", f"/timers?{page}"), times)
        due, due_max, second = timed(lambda page=pages[1]: service.api("GET", f"/timers?{page}"), times)
        counted, counted_max, _ = timed(lambda: service.api("GET", f"/timers/count?{urllib.parse.urlencode(query)}"), times)
        asked = {"action": "cancel", "filter": as_json(query), "dry_run": True}
        tried, tried_max, _ = timed(lambda: service.api("POST", "/timers/bulk", asked), times)
        print(f"| {name} | {created} | {due} | {first['scanned']:,}, {second['scanned']:,} | {counted} | {tried} |", flush=True)
        if max(created_max, due_max, counted_max, tried_max) > BUDGET_MS:
            complaints.append(f"{name} takes longer than {BUDGET_MS} ms")
    return complaints


class Bulk:
    """Reschedules one group after the other, each by an hour, until it is stopped. Waits for the first change."""

    def __init__(self, service):
        self.service, self.has_begun, self.is_stopped, self.changed = service, threading.Event(), threading.Event(), 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        assert self.has_begun.wait(OPERATION_SECONDS_MAX), "no timer was changed"
        self.begun = time.monotonic()

    def work(self):
        number = 0
        while not self.is_stopped.is_set():
            asked = {"action": "reschedule", "filter": {"group": f"group-{number % GROUPS}"}, "set": {"shift": "+1h"}}
            operation = self.service.api("POST", "/timers/bulk", {**asked, "expected_max": 10_000_000}).data["operation"]["id"]
            self.follow(operation)
            number += 1

    def follow(self, id: str):
        deadline = time.monotonic() + OPERATION_SECONDS_MAX
        while True:
            operation = self.service.api("GET", f"/operations/{id}").data
            if operation["changed"]:
                self.has_begun.set()
            if operation["state"] != "running" or self.is_stopped.is_set():
                break
            assert time.monotonic() < deadline, f"the operation does not end: {operation}"
            self.is_stopped.wait(LOOK_SECONDS)
        self.changed += operation["changed"]
        if operation["state"] == "running":
            self.service.api("DELETE", f"/operations/{id}")

    def stop(self) -> float:
        """For how long timers were changed."""
        seconds = time.monotonic() - self.begun
        self.is_stopped.set()
        self.thread.join()
        return seconds


def load(arguments, service) -> dict:
    command = [str(arguments.binary), "bench", "w3", "--url", service.origin, "--json", "-"]
    measured = subprocess.run(command, env={**os.environ, "API_KEY": ADMINISTRATOR}, stdout=subprocess.PIPE, check=True)
    measured = json.loads(measured.stdout)["runs"][0]
    if measured["lost"] or measured["refused"] or measured["duplicates"]:
        sys.exit(f"lost {measured['lost']}, refused {measured['refused']}, called twice {measured['duplicates']}")
    return measured["lateness"]


def beside_bulk(arguments, service) -> list[str]:
    print("\n| lateness alone: p50 / p99 / max | beside bulk operations | ratio of p99 | rescheduled, per second |\n|---|---|---|---|", flush=True)
    ratios = []
    for _ in range(arguments.pairs):
        alone = load(arguments, service)
        bulk = Bulk(service)
        beside = load(arguments, service)
        seconds = bulk.stop()
        ratios.append(beside["p99"] / alone["p99"])
        shown = [f"{late['p50']:.2f} / {late['p99']:.2f} / {late['max']:.2f} ms" for late in (alone, beside)]
        print(f"| {shown[0]} | {shown[1]} | {ratios[-1]:.2f} | {bulk.changed:,} in {seconds:.0f} s |", flush=True)
    if not ratios:
        return []
    ratio = statistics.median(ratios)
    print(f"| median | | {ratio:.2f} | |", flush=True)
    return [f"p99 of lateness rises to {ratio:.2f} of what it is without bulk operations"] if ratio > arguments.tolerated else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path, help="an optimised build of timer")
    parser.add_argument("--store", choices=STORES, default=STORES[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5, help="answers for each filter; 0 leaves searches out")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--tolerated", type=float, default=2)
    arguments = parser.parse_args()
    arguments.binary = arguments.binary.resolve()
    os.environ["TIMER_BINARY"] = str(arguments.binary)
    postgres = Postgres(is_durable=True) if arguments.store == "postgres" else None
    if postgres:
        os.environ["BROWSER_POSTGRES"] = postgres.url("postgres")
    service = Service(arguments.store, **SETTINGS)
    try:
        begun = time.monotonic()
        fill(service, arguments.count)
        print(f"{arguments.store}, {arguments.count:,} timers, created in {time.monotonic() - begun:.0f} s\n")
        complaints = search(service, arguments.times) if arguments.times else []
        complaints += beside_bulk(arguments, service)
    finally:
        service.stop()
        if postgres:
            postgres.stop()
    print("\n".join(complaints), file=sys.stderr)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
