#!/usr/bin/env python3
"""Measures what open consoles do to the load of the benchmark.

Runs workloads of `timer bench`, w2 (calls per second) and w3 (lateness) unless told otherwise, against a service without consoles and
against one beside which many consoles are open and read, in turns. Each run has a service and a database of its own. The consoles follow
the overview and the list of timers, which change all the time then, over live streams that a process of low priority (nice) reads:
browsers have processors of their own.

Prints each pair, and the median of the ratios: with consoles divided by without. Ends with 1 when the calls per second of the median pair
are lower, or the median lateness higher, by more than --tolerated says (3 %). Lateness is judged only where the difference is more than
--tolerated-ms, too: a percentage of a fraction of a millisecond is noise.

The results belong to an idle machine and an optimised build.
"""

import argparse
import contextlib
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
from rig.service import ADMINISTRATOR, STORES, Service  # noqa: E402
from rig.stream import Stream  # noqa: E402

VIEWS = ("", "/timers")
# All of the load comes from one address, and no settings are those of the tests.
SETTINGS = {
    "CONNECTIONS_PER_ADDRESS_MAX": "2048",
    "MIN_DELAY": "0s",
    "EGRESS": "private",
    "ATTEMPTS": "",
    "CONSOLE_PAYLOADS": "hidden",
    "RUST_LOG": "info",
}


class Consoles:
    """Open consoles, read by a process of their own until they are closed."""

    def __init__(self, service, count: int):
        fork = multiprocessing.get_context("fork")
        self.pipe, theirs = fork.Pipe()
        self.process = fork.Process(target=self.read, args=(service, service.log_in(ADMINISTRATOR), count, theirs), daemon=True)
        self.process.start()
        assert self.pipe.recv() == "open"

    @staticmethod
    def read(service, cookie: str, count: int, pipe):
        os.nice(19)
        streams = [Stream(service, cookie, VIEWS[n % len(VIEWS)]) for n in range(count)]
        heard = [0] * count

        def follow(n: int):
            with contextlib.suppress(Exception):
                for name, _ in streams[n].events():
                    heard[n] += name == "region"

        for n in range(count):
            threading.Thread(target=follow, args=(n,), daemon=True).start()
        while not all(heard):
            time.sleep(0.05)
        pipe.send("open")
        pipe.recv()
        pipe.send((min(heard), sum(heard)))

    def close(self) -> tuple[int, int]:
        """How many regions the console that got the fewest was sent, and how many all of them were sent."""
        self.pipe.send("close")
        heard = self.pipe.recv()
        self.process.kill()
        self.process.join()
        return heard


def run(arguments, workload: str, consoles: int) -> dict:
    service = Service(arguments.store, **SETTINGS)
    try:
        if consoles:
            # What is looked at is there from the beginning.
            service.create("http://127.0.0.1:9/x", delay="10h", key="first")
        opened = Consoles(service, consoles) if consoles else None
        command = [str(arguments.binary), "bench", workload, "--url", service.origin, "--json", "-"]
        command += ["--quick"] if arguments.quick else []
        measured = subprocess.run(command, env={**os.environ, "API_KEY": ADMINISTRATOR}, stdout=subprocess.PIPE, check=True)
        heard = opened.close() if opened else (0, 0)
        measured = json.loads(measured.stdout)["runs"][0]
        if measured["lost"] or measured["refused"] or measured["duplicates"]:
            sys.exit(f"{workload}: lost {measured['lost']}, refused {measured['refused']}, called twice {measured['duplicates']}")
        return {**measured, "heard": heard}
    finally:
        service.stop()


def shown(run: dict) -> str:
    late = run["lateness"]
    return f"{run['rate']:,.0f} /s, late {late['p50']:.2f} / {late['p99']:.2f} ms"


def compare(arguments, workload: str) -> list[str]:
    """Complaints about this workload."""
    rates, lateness, differences = [], [], []
    for number in range(arguments.pairs):
        order = (0, arguments.consoles) if number % 2 else (arguments.consoles, 0)
        runs = {consoles: run(arguments, workload, consoles) for consoles in order}
        without, beside = runs[0], runs[arguments.consoles]
        rates.append(beside["rate"] / without["rate"])
        lateness.append(beside["lateness"]["p50"] / max(without["lateness"]["p50"], 0.001))
        differences.append(beside["lateness"]["p50"] - without["lateness"]["p50"])
        fewest, all_of_them = beside["heard"]
        print(
            f"| {workload} | {shown(without)} | {shown(beside)} | {rates[-1]:.3f} | {lateness[-1]:.3f} | {fewest}, {all_of_them} |",
            flush=True,
        )
    rate, late, difference = (statistics.median(values) for values in (rates, lateness, differences))
    print(f"| {workload}, median | | | {rate:.3f} | {late:.3f} ({difference:+.2f} ms) | |", flush=True)
    complaints, part = [], arguments.tolerated / 100
    # w3 has the rate at which its timers are due; w2 fires as fast as it can, and its lateness is how long that takes.
    if workload != "w3" and rate < 1 - part:
        complaints.append(f"{workload}: calls per second fall to {rate:.1%} beside {arguments.consoles} consoles")
    if workload == "w3" and late > 1 + part and difference > arguments.tolerated_ms:
        complaints.append(f"{workload}: median lateness rises by {difference:.2f} ms, to {late:.1%}, beside {arguments.consoles} consoles")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path, help="an optimised build of timer")
    parser.add_argument("--store", choices=STORES, default=STORES[0])
    parser.add_argument("--workloads", default="w2,w3", help="separated by commas")
    parser.add_argument("--consoles", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--tolerated", type=float, default=3, help="percent")
    parser.add_argument("--tolerated-ms", type=float, default=0.5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the load: to see that it works, not how well")
    arguments = parser.parse_args()
    arguments.binary = arguments.binary.resolve()
    os.environ["TIMER_BINARY"] = str(arguments.binary)
    postgres = Postgres(is_durable=True) if arguments.store == "postgres" else None
    if postgres:
        os.environ["BROWSER_POSTGRES"] = postgres.url("postgres")
    try:
        print(f"{arguments.store}, {arguments.consoles} consoles; lateness: half of the calls / 99 of 100\n")
        print("| workload | without | beside consoles | ratio of rates | ratio of median lateness | regions: fewest, in all |")
        print("|---|---|---|---|---|---|", flush=True)
        complaints = [complaint for workload in arguments.workloads.split(",") for complaint in compare(arguments, workload)]
    finally:
        if postgres:
            postgres.stop()
    print("\n".join(complaints), file=sys.stderr)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
