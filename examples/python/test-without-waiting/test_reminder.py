"""A reminder of thirty days, its retries and its end, tested in a second.

TIMER_BIN=… pytest test-without-waiting
"""

from datetime import timedelta

from timer_platform import RetryPolicy
from timer_platform.testing import InboxAnswer, TimerDev


def test_nothing_comes_before_its_time(timer_dev: TimerDev) -> None:
    timer_dev.client.timers.create(timer_dev.receiver + "/remind", in_=timedelta(days=30), payload={"user": 42})
    timer_dev.advance(timedelta(days=29, hours=23))
    assert timer_dev.inbox.calls(path="/remind") == []

    timer_dev.advance(timedelta(hours=1))
    (call,) = timer_dev.inbox.wait_for(path="/remind")
    assert call.json() == {"user": 42}
    assert call.signature_valid


def test_a_receiver_that_is_down_for_an_hour_gets_its_reminder(timer_dev: TimerDev) -> None:
    timer_dev.inbox.answer(InboxAnswer(path="/late", status=503, times=3))
    timer = timer_dev.client.timers.create(
        timer_dev.receiver + "/late",
        in_=timedelta(days=30),
        retry_policy=RetryPolicy(max_retries=10, initial_interval=timedelta(minutes=20)),
    )
    timer_dev.advance(timedelta(days=31))
    assert [call.attempt for call in timer_dev.inbox.wait_for(4, path="/late")] == [1, 2, 3, 4]
    assert timer_dev.client.timers.get(timer.id).status == "completed"
