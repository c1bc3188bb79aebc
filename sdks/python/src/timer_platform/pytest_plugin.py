"""The fixture `timer_dev`: one service for the whole run, with an empty inbox and plain answers for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .testing import TimerDev


@pytest.fixture(scope="session")
def timer_dev_process() -> Iterator[TimerDev]:
    with TimerDev.start() as dev:
        yield dev


@pytest.fixture
def timer_dev(timer_dev_process: TimerDev) -> TimerDev:
    timer_dev_process.inbox.clear()
    timer_dev_process.inbox.answer()
    return timer_dev_process
