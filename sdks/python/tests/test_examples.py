"""The examples, started as a user starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from timer_platform.testing import TimerDev

EXAMPLES = Path(__file__).parents[3] / "examples" / "python"


def environment(dev: TimerDev) -> dict[str, str]:
    return {**os.environ, "TIMER_URL": dev.url, "TIMER_API_KEY": dev.api_key, "SIGNING_SECRET": dev.signing_secret}


def output(dev: TimerDev, name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name / "main.py"), *arguments]
    return subprocess.run(command, env=environment(dev), check=True, capture_output=True, text=True, timeout=60).stdout


def test_reminder(timer_dev: TimerDev) -> None:
    text = output(timer_dev, "reminder", timer_dev.receiver + "/cart")
    assert text.endswith("cart-4711 pending\ncart-4712 canceled\n")
    timer_dev.advance(timedelta(days=2))
    (call,) = timer_dev.inbox.wait_for(path="/cart")
    assert call.json() == {"cart": 4711}


def test_saga_timeout(timer_dev: TimerDev) -> None:
    assert output(timer_dev, "saga-timeout", timer_dev.receiver + "/release") == "order-42 is paid\n"
    (call,) = timer_dev.inbox.wait_for(path="/release")
    assert call.json() == {"order": "order-43"}


def test_receiver() -> None:
    # The receiver knows the real time, and a service whose clock was moved by days signs for later.
    with TimerDev.start() as dev:
        command = [sys.executable, str(EXAMPLES / "receiver" / "main.py"), "0"]
        with subprocess.Popen(
            command, env=environment(dev), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            create = dev.client.timers.create
            create(url + "/remind", in_=timedelta(seconds=1), payload={"cart": 4711})
            create(url + "/poll", in_=timedelta(seconds=2), protocol="timer", payload={"name": "job 7", "done": True})
            dev.advance("2s")
            lines = [process.stdout.readline(), process.stdout.readline()]
            process.terminate()
    assert "attempt 1" in lines[0]
    assert lines[1] == "job 7 is done\n"


def test_each_example_is_short() -> None:
    for path in EXAMPLES.glob("*/*.py"):
        assert len(path.read_text().splitlines()) < 80, path
