#!/usr/bin/env python3
"""Counts the instructions that one create and one fire cost the service, and refuses a rise.

Times depend on what else a machine does; instructions hardly do. The service runs under callgrind on an SQLite file, three times
for the same number of seconds, so that background work costs the same in each:

    few creates          background work
    many creates         minus the first: what a create costs
    many that also fire  minus the second: what a fire costs

Creates come one after the other over one connection, so that every one of them has a transaction of its own.
"""

import argparse
import http.client
import http.server
import json
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "bench" / "instructions.json"
RISE_MAX = 0.10
FEW, MANY = 500, 2500
# A timeout that no machine reaches, however slow callgrind makes it.
TIMEOUT_SECONDS = 240
KEY = "count-instructions-0123456789abcdef"
PAYLOAD = "x" * 500


class Sink(http.server.ThreadingHTTPServer):
    """Answers every call with 200, and counts."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Call)
        self.calls = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Call(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            self.server.calls += 1
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait(what, reached):
    end = time.monotonic() + TIMEOUT_SECONDS
    while not reached():
        if time.monotonic() > end:
            sys.exit(f"not within {TIMEOUT_SECONDS} s: {what}")
        time.sleep(0.05)


class Service:
    """The service under callgrind."""

    def __init__(self, binary, directory):
        self.counts = pathlib.Path(directory) / "callgrind.out"
        self.port = free_port()
        self.log = open(pathlib.Path(directory) / "service.log", "w+", encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "API_KEY": KEY,
            "BIND": "127.0.0.1",
            "PORT": str(self.port),
            "TIMER_DB_PATH": str(pathlib.Path(directory) / "timers.db"),
            "MIN_DELAY": "0s",
            "EGRESS": "private",
        }
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.counts}", str(binary), "serve"]
        # On one processor the service starts the same threads everywhere.
        one = {min(os.sched_getaffinity(0))}
        self.process = subprocess.Popen(
            command, env=environment, stdout=self.log, stderr=self.log, preexec_fn=lambda: os.sched_setaffinity(0, one)
        )
        wait("the service is ready", self.is_ready)
        # Counting begins here: the start calibrates a clock for as long as the machine makes it.
        subprocess.run(["callgrind_control", "--zero", str(self.process.pid)], check=True, stdout=subprocess.DEVNULL)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def is_ready(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            sys.exit(f"the service did not start:\n{self.log.read()}")
        try:
            probe = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            probe.request("GET", "/healthz")
            return probe.getresponse().status == 200
        except OSError:
            return False

    def create(self, number, due, sink):
        callback = {"type": "http", "url": f"http://127.0.0.1:{sink.server_port}/{number}", "payload": {"n": number, "pad": PAYLOAD}}
        body = json.dumps({**due, "callback": callback})
        self.connection.request("POST", "/timers", body, {"X-API-Key": KEY, "Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 201:
            sys.exit(f"a create was answered with {answer.status}: {text!r}")

    def stop(self):
        """Stops the service, and returns how many instructions it took."""
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(TIMEOUT_SECONDS) != 0:
            self.log.seek(0)
            sys.exit(f"the service did not stop in order:\n{self.log.read()}")
        self.log.close()
        found = re.search(r"^(?:summary|totals): (\d+)", self.counts.read_text(encoding="utf-8"), re.MULTILINE)
        if not found:
            sys.exit("callgrind has counted nothing")
        return int(found[1])


def run(binary, creates, fire_in=None, at_least=0):
    """Returns how many instructions it took, how many seconds the creates did, and how many all of it did."""
    sink = Sink()
    with tempfile.TemporaryDirectory(prefix="timer-instructions-") as directory:
        service = Service(binary, directory)
        started = time.time()
        due, due_at = {"delay": "10h"}, None
        if fire_in:
            # The start of a minute. Each second the sweep reads what stands in the minute of now, so that timers that are due later in
            # their minute would cost by the second at which this began.
            due_at = math.ceil((started + fire_in) / 60) * 60
            due = {"execute_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due_at))}
        for number in range(creates):
            service.create(number, due, sink)
        took = time.time() - started
        if due_at:
            if time.time() >= due_at - 1:
                sys.exit("timers were due before all of them were registered: try again when this machine has less to do")
            wait("every timer fires", lambda: sink.calls >= creates)
        time.sleep(max(0, at_least - (time.time() - started)))
        whole = time.time() - started
        count = service.stop()
    sink.shutdown()
    return count, took, whole


def measure(binary):
    _, took, _ = run(binary, FEW)
    fired, _, whole = run(binary, MANY, fire_in=1.5 * took * MANY / FEW + 5)
    many, _, _ = run(binary, MANY, at_least=whole)
    few, _, _ = run(binary, FEW, at_least=whole)
    return {"create": (many - few) // (MANY - FEW), "fire": (fired - many) // MANY}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path, help="an optimised build of timer")
    parser.add_argument("--update", action="store_true", help="make this count the new baseline")
    arguments = parser.parse_args()
    counted = measure(arguments.binary)
    if arguments.update:
        BASELINE.write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    risen = []
    for what, instructions in counted.items():
        change = instructions / baseline[what] - 1
        print(f"{what}: {instructions:,} instructions ({change:+.1%} of {baseline[what]:,})")
        if change > RISE_MAX:
            risen.append(what)
    if risen:
        sys.exit(f"{' and '.join(risen)}: more than {RISE_MAX:.0%} above bench/instructions.json; if that is worth it, or on "
                 "another kind of processor, run scripts/check_instructions.py with --update")


if __name__ == "__main__":
    main()
