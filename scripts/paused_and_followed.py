#!/usr/bin/env python3
"""Measures what paused timers cost at rest, and what streams of events cost firing.

1. Two services, each with a store of its own: one is empty, the other has 100,000 paused timers. Both are left alone for the same minute, a
   few times, and what service and database used of the processors is printed.
2. w2 (calls per second) and w3 (lateness) of `timer bench`, without streams of events and beside some that are read to their end, in
   turns. The process that reads them has a low priority (nice): clients have processors of their own.

Ends with 1 when 100,000 paused timers take more of one processor than --tolerated-rest says, or when the calls per second of the median
pair are lower, or its median lateness higher, by more than --tolerated says. Lateness is judged only where the difference is more than
--tolerated-ms, too.

The results belong to an idle machine and an optimised build.
"""

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/browser"))

from rig.postgres import Postgres  # noqa: E402
from rig.processes import wait_for  # noqa: E402
from rig.service import ADMINISTRATOR, STORES, Service  # noqa: E402

SETTINGS = {"CONNECTIONS_PER_ADDRESS_MAX": "2048", "MIN_DELAY": "0s", "EGRESS": "private", "ATTEMPTS": "", "RUST_LOG": "info"}
BATCH = 1_000
SETTLE_SECONDS = 20
TICKS = os.sysconf("SC_CLK_TCK")


class Site:
    """A service with a store, and a database server, of its own."""

    def __init__(self, store: str):
        self.postgres = Postgres(is_durable=True) if store == "postgres" else None
        if self.postgres:
            os.environ["BROWSER_POSTGRES"] = self.postgres.url("postgres")
        self.service = Service(store, **SETTINGS)

    def processor_seconds(self) -> float:
        roots = [self.service.process.pid] + ([self.postgres.process.pid] if self.postgres else [])
        return sum(used_by(pid) for pid in roots)

    def stop(self):
        self.service.stop()
        if self.postgres:
            self.postgres.stop()


def used_by(pid: int) -> float:
    """By a process, its children, and those of them that have ended."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
        living = [int(child) for child in children.read().split()]
    used = sum(int(field) for field in fields[11:15]) / TICKS
    for child in living:
        with contextlib.suppress(OSError):
            used += used_by(child)
    return used


def pause_many(service, count: int):
    callback = {"type": "http", "url": "http://127.0.0.1:9/never"}
    for first in range(0, count, BATCH):
        timers = [{"key": f"order-{n}", "delay": f"{864_000 + n}s", "callback": callback} for n in range(first, first + BATCH)]
        service.api("POST", "/timers/batch", {"timers": timers}).data
    asked = {"action": "pause", "filter": {"status": "pending"}, "expected_max": count}
    operation = service.api("POST", "/timers/bulk", asked).data["operation"]["id"]
    ended = wait_for("the end of the operation", lambda: ended_operation(service, operation), 600)
    assert ended["changed"] == count, ended


def ended_operation(service, id: str) -> dict | None:
    operation = service.api("GET", f"/operations/{id}").data
    return None if operation["state"] == "running" else operation


def rest(arguments) -> list[str]:
    empty, paused = Site(arguments.store), Site(arguments.store)
    try:
        pause_many(paused.service, arguments.paused)
        time.sleep(SETTLE_SECONDS)
        print(f"| CPU in {arguments.seconds} s at rest | empty | {arguments.paused:,} paused timers | difference, of one processor |")
        print("|---|---|---|---|")
        differences = []
        for number in range(arguments.pairs):
            before = [site.processor_seconds() for site in (empty, paused)]
            time.sleep(arguments.seconds)
            alone, with_paused = (site.processor_seconds() - used for site, used in zip((empty, paused), before, strict=True))
            differences.append((with_paused - alone) / arguments.seconds * 100)
            print(f"| {number + 1} | {alone:.2f} s | {with_paused:.2f} s | {differences[-1]:+.2f} % |", flush=True)
    finally:
        empty.stop()
        paused.stop()
    difference = statistics.median(differences)
    print(f"| median | | | {difference:+.2f} % |\n", flush=True)
    return [f"paused timers take {difference:.2f} % of a processor at rest"] if difference > arguments.tolerated_rest else []


class Followers:
    """Streams of events, read by a process of their own until they are closed."""

    def __init__(self, service, count: int):
        fork = multiprocessing.get_context("fork")
        self.pipe, theirs = fork.Pipe()
        self.process = fork.Process(target=self.read, args=(service.port, count, theirs), daemon=True)
        self.process.start()
        assert self.pipe.recv() == "open"

    @staticmethod
    def read(port: int, count: int, pipe):
        os.nice(19)
        heard = [0] * count

        def open_stream():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            connection.request("GET", "/events", headers={"X-API-Key": ADMINISTRATOR, "Accept": "text/event-stream"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.status
            return answer

        def follow(n: int, answer):
            with contextlib.suppress(Exception):
                while read := answer.read1(1 << 16):
                    heard[n] += read.count(b"\ndata:")

        for n in range(count):
            threading.Thread(target=follow, args=(n, open_stream()), daemon=True).start()
        pipe.send("open")
        pipe.recv()
        pipe.send(min(heard))

    def close(self) -> int:
        """How many events the stream that got the fewest was sent."""
        self.pipe.send("close")
        heard = self.pipe.recv()
        self.process.kill()
        self.process.join()
        return heard


def run(arguments, workload: str, streams: int) -> dict:
    site = Site(arguments.store)
    try:
        followers = Followers(site.service, streams) if streams else None
        command = [str(arguments.binary), "bench", workload, "--url", site.service.origin, "--json", "-"]
        measured = subprocess.run(command, env={**os.environ, "API_KEY": ADMINISTRATOR}, stdout=subprocess.PIPE, check=True)
        heard = followers.close() if followers else 0
        measured = json.loads(measured.stdout)["runs"][0]
        if measured["lost"] or measured["refused"] or measured["duplicates"]:
            sys.exit(f"{workload}: lost {measured['lost']}, refused {measured['refused']}, called twice {measured['duplicates']}")
        return {**measured, "heard": heard}
    finally:
        site.stop()


def followed(arguments, workload: str) -> list[str]:
    rates, lateness, differences = [], [], []
    for number in range(arguments.pairs):
        order = (0, arguments.streams) if number % 2 else (arguments.streams, 0)
        runs = {streams: run(arguments, workload, streams) for streams in order}
        without, beside = runs[0], runs[arguments.streams]
        rates.append(beside["rate"] / without["rate"])
        lateness.append(beside["lateness"]["p50"] / max(without["lateness"]["p50"], 0.001))
        differences.append(beside["lateness"]["p50"] - without["lateness"]["p50"])
        shown = [f"{run['rate']:,.0f} /s, late {run['lateness']['p50']:.2f} / {run['lateness']['p99']:.2f} ms" for run in (without, beside)]
        print(f"| {workload} | {shown[0]} | {shown[1]} | {rates[-1]:.3f} | {lateness[-1]:.3f} | {beside['heard']:,} |", flush=True)
    rate, late, difference = (statistics.median(values) for values in (rates, lateness, differences))
    print(f"| {workload}, median | | | {rate:.3f} | {late:.3f} ({difference:+.2f} ms) | |", flush=True)
    part, beside = arguments.tolerated / 100, f"beside {arguments.streams} streams of events"
    if workload != "w3" and rate < 1 - part:
        return [f"{workload}: calls per second fall to {rate:.1%} {beside}"]
    if workload == "w3" and late > 1 + part and difference > arguments.tolerated_ms:
        return [f"{workload}: median lateness rises by {difference:.2f} ms, to {late:.1%}, {beside}"]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path, help="an optimised build of timer")
    parser.add_argument("--store", choices=STORES, default=STORES[0])
    parser.add_argument("--paused", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=60, help="how long services are left alone")
    parser.add_argument("--workloads", default="w2,w3", help="separated by commas")
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--tolerated", type=float, default=3, help="percent")
    parser.add_argument("--tolerated-ms", type=float, default=0.5)
    parser.add_argument("--tolerated-rest", type=float, default=0.5, help="percent of one processor")
    arguments = parser.parse_args()
    arguments.binary = arguments.binary.resolve()
    os.environ["TIMER_BINARY"] = str(arguments.binary)
    print(f"{arguments.store}\n")
    complaints = rest(arguments) if arguments.paused else []
    print("| workload | without | beside streams | ratio of rates | ratio of median lateness | events, fewest |\n|---|---|---|---|---|---|", flush=True)
    for workload in filter(None, arguments.workloads.split(",")):
        complaints += followed(arguments, workload)
    print("\n".join(complaints), file=sys.stderr)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
