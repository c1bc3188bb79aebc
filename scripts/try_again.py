#!/usr/bin/env python3
"""Runs `cargo test` with the arguments given, and tries tests that failed once more, one at a time.

Many tests have limits of time, and a machine that is shared may stand still for seconds: such a test passes when it runs alone. It is
named as unsteady, so that it gets mended. A test that fails twice fails the run, and so does a run in which more than a few failed.
"""

import re
import subprocess
import sys

FEW = 5
FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$")
# With and without --no-fail-fast.
TARGET = re.compile(r"^(?:error: test failed, to rerun pass |    )`(-p .+)`$")


def main():
    command = ["cargo", "test", *sys.argv[1:]]
    failed, targets = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as run:
        for line in run.stdout:
            print(line, end="", flush=True)
            if found := FAILED.match(line.rstrip()):
                failed.append(found[1])
            elif found := TARGET.match(line.rstrip()):
                targets.append(found[1].split())
    if run.returncode == 0:
        return
    # Without names something else went wrong: a program did not compile, or ended.
    if not failed or not targets or len(failed) > FEW:
        sys.exit(run.returncode)
    print(f"\n=== once more, one at a time: {', '.join(failed)} ===", flush=True)
    for target in targets:
        again = ["cargo", "test", "--locked", *target, "--", "--exact", "--test-threads", "1", *failed]
        if (status := subprocess.run(again, check=False).returncode) != 0:
            sys.exit(status)
    print(f"\nunsteady, passed when tried again: {', '.join(failed)}", flush=True)


if __name__ == "__main__":
    main()
