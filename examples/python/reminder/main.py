"""A reminder in two days, which moves when the customer comes back and which is gone when the order is placed.

TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… python reminder/main.py "$RECEIVER/remind"
"""

import sys
from datetime import timedelta

from timer_platform import Filter, Key, RetryPolicy, Timer, TimerClient


def remind(client: TimerClient, cart: int, url: str) -> Timer:
    """Each call postpones the same timer: it fires two days after the last."""
    return client.timers.create(
        url,
        in_=timedelta(days=2),
        namespace="shop",
        key=f"cart-{cart}",
        on_conflict="postpone",
        payload={"cart": cart},
        retry_policy=RetryPolicy(max_retries=5, initial_interval=timedelta(minutes=1)),
    )


def main(url: str) -> None:
    with TimerClient() as client:
        for visit in (1, 2):
            timer = remind(client, 4711, url)
            print(f"visit {visit}: reminder {timer.id} at {timer.execute_at}")

        # A second cart is ordered: its reminder is not needed any more.
        remind(client, 4712, url)
        client.timers.cancel(Key("cart-4712", namespace="shop"))

        for timer in client.timers.list(Filter(namespace="shop"), sort="created_at", order="asc"):
            print(timer.key, timer.status)


if __name__ == "__main__":
    main(sys.argv[1])
