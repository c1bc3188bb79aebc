#!/usr/bin/env python3
"""Runs test programs of the workspace, several at a time, and tries tests that failed once more, one at a time.

    scripts/run_tests.py [CARGO-OPTION…] [-- OPTION-OF-THE-TEST-PROGRAMS…]

Cargo runs test programs one after another, and most of them wait: for a server, for a disk, for a time to come.

Many tests have limits of time, and a machine that is shared may stand still for seconds: such a test passes when it runs alone. It is
named as unsteady, so that it gets mended. A test that fails twice fails the run, and so does a run in which more than a few failed.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

FEW = 5
AT_ONCE = int(os.environ.get("TEST_PROGRAMS", "2"))
FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)
# These take longest, so they begin first.
LONG = ["store-mysql mysql", "store-postgres postgres", "engine simulation", "broker nats", "store-conformance planted_bugs"]


class Program:
    """A test program, and how its run ended."""

    def __init__(self, message):
        self.path = message["executable"]
        self.directory = os.path.dirname(message["manifest_path"])
        self.name = f"{os.path.basename(self.directory)} {message['target']['name']}"

    def run(self, options):
        begun = time.monotonic()
        environment = {**os.environ, "CARGO_MANIFEST_DIR": self.directory}
        done = subprocess.run(
            [self.path, *options], cwd=self.directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )
        return self, done.returncode, done.stdout, time.monotonic() - begun


def build(options):
    command = ["cargo", "test", "--no-run", "--message-format", "json-render-diagnostics", *options]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit(built.returncode)
    messages = map(json.loads, built.stdout.splitlines())
    return [Program(message) for message in messages if message.get("executable") and message["profile"]["test"]]


def main():
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, of_programs = sys.argv[1:cut], sys.argv[cut + 1 :]
    programs = build(options)
    programs.sort(key=lambda program: LONG.index(program.name) if program.name in LONG else len(LONG))
    failed, is_broken = [], False
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for run in concurrent.futures.as_completed([pool.submit(program.run, of_programs) for program in programs]):
            program, status, output, seconds = run.result()
            print(f"\n--- {program.name}: {seconds:.0f} s ---\n{output}", end="", flush=True)
            names = FAILED.findall(output)
            # Without names something else went wrong: the program ended.
            is_broken = is_broken or (status != 0 and not names)
            failed += [(program, name) for name in names]
    if is_broken or len(failed) > FEW:
        sys.exit(1)
    if not failed:
        return
    names = ", ".join(f"{program.name} {name}" for program, name in failed)
    print(f"\n=== once more, one at a time: {names} ===", flush=True)
    for program, name in failed:
        _, status, output, _ = program.run(["--exact", "--test-threads", "1", name])
        print(output, end="", flush=True)
        if status != 0:
            sys.exit(status)
    print(f"\nunsteady, passed when tried again: {names}", flush=True)


if __name__ == "__main__":
    main()
