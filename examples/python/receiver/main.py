"""A receiver: it verifies signatures, drops repetitions, and asks for a later attempt while it is closed.

    SIGNING_SECRET=whsec_… python receiver/main.py 9000

It is a plain WSGI application; Flask and Django are wrapped in the same way.
"""

import os
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any
from wsgiref.simple_server import make_server

from timer_platform import Call
from timer_platform.middleware import VerifiedWsgiCalls
from timer_platform.webhook import Answer, again, done, failed, retry_after

# One process remembers in memory. Several share a table, and record the call in the transaction that does the work.
seen: set[str] = set()


def is_new(call: Call) -> bool:
    first = call.id not in seen
    seen.add(call.id)
    return first


def remind(call: Call) -> Answer:
    """For timers of the webhook protocol: any 2xx completes them."""
    if call.json().get("closed"):
        seen.discard(call.id)
        return retry_after(timedelta(minutes=1))
    print(f"{call.timer_id} attempt {call.attempt}, {call.lateness} late: {call.body.decode()}", flush=True)
    return Answer(204, {}, "")


def poll(call: Call) -> Answer:
    """For timers of the timer protocol: the body has the payload, and the answer says when to call again."""
    job = call.json()["payload"]
    if "name" not in job:
        return failed()
    if not job.get("done"):
        return again(datetime.now(timezone.utc) + timedelta(hours=1))
    print(f"{job['name']} is done", flush=True)
    return done()


HANDLERS = {"/remind": remind, "/poll": poll}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    handler = HANDLERS.get(environ["PATH_INFO"])
    answer = handler(environ["timer.call"]) if handler else Answer(404, {}, "")
    start_response(f"{answer.status} -", list(answer.headers.items()))
    return [answer.body.encode()]


if __name__ == "__main__":
    receiver = VerifiedWsgiCalls(application, os.environ["SIGNING_SECRET"].split(","), is_new=is_new)
    with make_server("127.0.0.1", int(sys.argv[1]), receiver) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
