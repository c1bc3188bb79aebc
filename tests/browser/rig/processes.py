"""Processes that end with the tests."""

import os
import pwd
import subprocess
import tempfile
import time
from collections.abc import Callable

# A busy machine takes long to start anything; a hang should still fail the test.
START_SECONDS_MAX = 60
POLL_SECONDS = 0.02


def wait_for(what: str, observe: Callable[[], object], seconds: float = START_SECONDS_MAX):
    """What `observe` returns as soon as it is true."""
    deadline = time.monotonic() + seconds
    while True:
        if seen := observe():
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not seen within {seconds} s")
        time.sleep(POLL_SECONDS)


def home(kind: str) -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix=f"timer-browser-{kind}-{os.getpid()}-", ignore_cleanup_errors=True)


def spawn(command: list[str], directory: str, log: str, *, signal: str = "KILL", user: str | None = None, env: dict | None = None):
    """Starts a process that gets `signal` when this one ends, however it ends."""
    privileges = ["setpriv", "--pdeathsig", signal]
    if user:
        account = pwd.getpwnam(user)
        privileges += [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    with open(log, "wb") as out:
        return subprocess.Popen(
            [*privileges, "--", *command],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=env,
        )
