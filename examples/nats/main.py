"""A payment that must come in time, over NATS alone: a timeout is scheduled by a message, moved by the same message, and comes as one.

    python main.py nats://127.0.0.1:4222

Needs `pip install nats-py`, a `nats-server -js`, and a service with NATS_URL and TIMER_BROKER=nats.
"""

import asyncio
import datetime
import json
import sys

import nats

TENANT = "shop"
CALL = "order-4711"


async def schedule(js: nats.js.JetStreamContext, seconds: float) -> None:
    """The same command again, before its time has come, moves the timer."""
    due = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    command = {"tenantId": TENANT, "serviceCallId": CALL, "dueAt": due.isoformat()}
    # The acknowledgement of the stream says that the command is stored; a publish without one says nothing.
    stored = await js.publish("timer.commands.schedule", json.dumps(command).encode())
    print(f"due in {seconds:g} s: command {stored.seq} of {stored.stream}")


async def main(url: str) -> None:
    client = await nats.connect(url)
    js = client.jetstream()
    # A durable consumer: what is published while this program is not running waits for it.
    events = await js.pull_subscribe(f"timer.events.due.{TENANT}", durable="example", stream="TIMER_EVENTS")
    await schedule(js, 60)
    await schedule(js, 2)

    seen: set[str] = set()  # a real program keeps these in its database, in the transaction that does the work
    while CALL not in seen:
        for message in await events.fetch(1, timeout=30):
            event = json.loads(message.data)
            if event["id"] not in seen:
                seen |= {event["id"], event["payload"]["serviceCallId"]}
                print(f"{event['payload']['serviceCallId']} was not paid by {event['payload']['reachedAt']}")
            # Only now: an event that was not acknowledged is delivered again.
            await message.ack()
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
