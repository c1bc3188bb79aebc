#!/usr/bin/env python3
"""Runs test programs of the workspace, several at a time, and tries tests that failed once more, one at a time.

    scripts/run_tests.py [--except "CRATE PROGRAM"]… [CARGO-OPTION…] [-- OPTION-OF-THE-TEST-PROGRAMS…]

Programs after --except are built and not run; they are named as the report names them.

Cargo runs test programs one after another, and most of them wait: for a server, for a disk, for a time to come.

Many tests have limits of time, and a machine that is shared may stand still for seconds: such a test passes when it runs alone. It is
named as unsteady, so that it gets mended. A test that fails twice fails the run, and so does a run in which more than a few failed.

A program that has not ended after half an hour is killed and fails the run: its output names the tests that were still running.

TEST_TIMES=20 prints the 20 slowest tests of each program.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import threading
import time

FEW = 10
AT_ONCE = int(os.environ.get("TEST_PROGRAMS", "2"))
SLOWEST = int(os.environ.get("TEST_TIMES", "0"))
FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (?:FAILED|failed)", re.MULTILINE)
TIMED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. ok <([\d.]+)s>$", re.MULTILINE)
PROMISES = "server e2e"
# How many tests of a program run at once where that is not the number of cores: they wait for servers, or for a time to come. What limits
# those of the promises that work is in crates/server/tests/e2e/rig/machine.rs.
THREADS = {
    PROMISES: os.environ.get("E2E_THREADS", "10"),
}
# These take longest, so they begin first.
LONG = [
    "store-mysql mysql", "store-postgres postgres", "engine simulation", "nats nats", "store-partitioned simulation", "broker nats",
]
# Longer than the longest takes on a slow machine, much shorter than what CI has for all of them.
SECONDS_MAX = 1800


class Program:
    """A test program, and how its run ended."""

    def __init__(self, message):
        self.path = message["executable"]
        self.directory = os.path.dirname(message["manifest_path"])
        self.name = f"{os.path.basename(self.directory)} {message['target']['name']}"
        self.status, self.output, self.seconds, self.cpu_seconds = 0, "", 0.0, 0.0

    def run(self, options):
        begun = time.monotonic()
        environment = {**os.environ, "CARGO_MANIFEST_DIR": self.directory}
        if SLOWEST > 0:
            # Times are an unstable option of libtest, which asks for this.
            environment["RUSTC_BOOTSTRAP"] = "1"
            options = [*options, "-Zunstable-options", "--report-time"]
        process = subprocess.Popen(
            [self.path, *options], cwd=self.directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        deadline = threading.Timer(SECONDS_MAX, process.kill)
        deadline.start()
        self.output = process.stdout.read()
        deadline.cancel()
        # The CPU time of the program and of those that it waited for; servers that outlive it by a moment are not among them.
        _, status, used = os.wait4(process.pid, 0)
        self.status = process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, self.cpu_seconds = time.monotonic() - begun, used.ru_utime + used.ru_stime
        if self.seconds > SECONDS_MAX:
            self.output += f"killed after {SECONDS_MAX} s\n"
        return self

    def report(self):
        print(f"\n--- {self.name}: {self.seconds:.0f} s, {self.cpu_seconds:.0f} s of CPU time ---\n{self.output}", end="", flush=True)
        for seconds, name in sorted(((float(seconds), name) for name, seconds in TIMED.findall(self.output)), reverse=True)[:SLOWEST]:
            print(f"{seconds:8.1f} s  {name}")

    def failed(self):
        return FAILED.findall(self.output)


def build(options):
    command = ["cargo", "test", "--no-run", "--message-format", "json-render-diagnostics", *options]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit(built.returncode)
    messages = map(json.loads, built.stdout.splitlines())
    return [Program(message) for message in messages if message.get("executable") and message["profile"]["test"]]


def without_exceptions(arguments):
    """What is for cargo, and the names of the programs that are not to be run."""
    for_cargo, names = [], []
    arguments = iter(arguments)
    for argument in arguments:
        if argument == "--except":
            names.append(next(arguments, ""))
        else:
            for_cargo.append(argument)
    return for_cargo, names


def select(programs, excepted):
    """The programs without those. A name that none has would let one run that should not."""
    unknown = set(excepted) - {program.name for program in programs}
    if unknown:
        sys.exit(f"--except: there is no test program {', '.join(sorted(unknown))}")
    return [program for program in programs if program.name not in excepted]


def run_all(programs, options):
    """Runs the programs, the longest first, and reports each when it ends."""
    programs.sort(key=lambda program: LONG.index(program.name) if program.name in LONG else len(LONG))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = []
        for program in programs:
            threads = ["--test-threads", THREADS[program.name]] if program.name in THREADS else []
            runs.append(pool.submit(program.run, [*threads, *options]))
        for run in concurrent.futures.as_completed(runs):
            run.result().report()


def main():
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    (options, excepted), of_programs = without_exceptions(sys.argv[1:cut]), sys.argv[cut + 1 :]
    programs = select(build(options), excepted)
    run_all(programs, of_programs)
    failed = [(program, name) for program in programs for name in program.failed()]
    # Without names something else went wrong: the program ended.
    is_broken = any(program.status != 0 and not program.failed() for program in programs)
    if is_broken or len(failed) > FEW:
        sys.exit(1)
    if not failed:
        return
    names = ", ".join(f"{program.name} {name}" for program, name in failed)
    print(f"\n=== once more, one at a time: {names} ===", flush=True)
    for program, name in failed:
        program.run(["--exact", "--test-threads", "1", name])
        print(program.output, end="", flush=True)
        if program.status != 0:
            sys.exit(program.status)
    print(f"\nunsteady, passed when tried again: {names}", flush=True)


if __name__ == "__main__":
    main()
