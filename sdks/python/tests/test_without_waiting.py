"""The test helper, used as a program would use it."""

from __future__ import annotations

from datetime import timedelta

from timer_platform import Json, RetryPolicy
from timer_platform.testing import InboxAnswer, TimerDev


def test_a_reminder_of_thirty_days_is_retried_and_arrives(timer_dev: TimerDev) -> None:
    timer_dev.inbox.answer(InboxAnswer(path="/remind", status=503, times=2))
    timer = timer_dev.client.timers.create(
        timer_dev.receiver + "/remind",
        in_=timedelta(days=30),
        payload=Json('{"price": 1.10}'),
        retry_policy=RetryPolicy(max_retries=5, initial_interval=timedelta(minutes=10)),
    )
    timer_dev.advance(timedelta(days=31))
    calls = timer_dev.inbox.wait_for(3, path="/remind")
    assert [call.attempt for call in calls] == [1, 2, 3]
    assert timer_dev.verify(calls[2]).body == b'{"price": 1.10}'
    assert timer_dev.client.timers.get(timer.id).status == "completed"
