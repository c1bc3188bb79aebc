"""The timeout of a saga: an order must be paid within 30 minutes, otherwise it is released.

TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… python saga-timeout/main.py "$RECEIVER/release"
"""

import asyncio
import sys
from dataclasses import dataclass
from datetime import timedelta

from timer_platform import AsyncTimerClient, Invalid, Key, RetryPolicy


@dataclass
class Saga:
    """One order. Its timeout is known by the number of the order, so that any process can end it."""

    client: AsyncTimerClient
    order: str
    release: str

    @property
    def timeout(self) -> Key:
        return Key(f"{self.order}/timeout", namespace="orders")

    async def begin(self) -> None:
        """May be repeated: the same key and content are the same timer."""
        await self.client.timers.create(
            self.release,
            in_=timedelta(minutes=30),
            namespace=self.timeout.namespace,
            key=self.timeout.key,
            group=self.order,
            payload={"order": self.order},
            retry_policy=RetryPolicy(max_retries=20, max_duration=timedelta(days=1)),
        )

    async def pay(self) -> None:
        """Ends the timeout first: a cancel that is acknowledged always wins over the firing."""
        try:
            await self.client.timers.cancel(self.timeout)
            print(self.order, "is paid")
        except Invalid:
            print(self.order, "comes too late: it is being released")


async def main(release: str) -> None:
    async with AsyncTimerClient() as client:
        paid, late = Saga(client, "order-42", release), Saga(client, "order-43", release)
        await asyncio.gather(paid.begin(), late.begin())
        await paid.pay()
        # The second order is never paid. Its time is over at once here, so that there is something to see.
        await client.timers.fire(late.timeout)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
