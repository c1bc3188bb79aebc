"""What a service holds while its pages are looked at: timers in every status, of two tenants, and the keys of three viewers."""

from dataclasses import dataclass, field

from .processes import wait_for
from .receiver import Receiver
from .service import ADMINISTRATOR, Service

# The tenant of the scoped key, and another one, of which it must see nothing: everything of the latter has this word in it.
OWN, OTHER = "shop", "zebra"
# The receiver of the other tenant has an address of its own, so that its destination tells it apart.
OTHER_ADDRESS = "127.0.0.2"


@dataclass
class Seeds:
    """Ids of timers by their status, and the cookie of each viewer."""

    service: Service
    receiver: Receiver
    other_receiver: Receiver
    timers: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    key_ids: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    operation: str = ""
    other_operation: str = ""


def plant(service: Service, *, is_full: bool = True) -> Seeds:
    """What is not full has a timer in each status, and no more of them than that; no operations, either."""
    seeds = Seeds(service, Receiver(), Receiver(OTHER_ADDRESS))
    # What takes long begins first.
    started = fill(service, seeds) if is_full else ()
    seeds.timers = in_every_status(service, OWN, seeds.receiver.url)
    seeds.others = in_every_status(service, OTHER, seeds.other_receiver.url)
    for name, rights, namespaces in (("read-only", "read", None), ("scoped", "write", [OWN])):
        issued = service.issue_key(f"{name} viewer", rights, namespaces)
        seeds.keys[name], seeds.key_ids[name] = issued["key"], issued["id"]
    seeds.keys["administrator"] = ADMINISTRATOR
    seeds.cookies = {name: service.log_in(key) for name, key in seeds.keys.items()}
    if started:
        seeds.operation, seeds.other_operation = (wait_for_operation(service, id) for id in started)
    return seeds


def in_every_status(service: Service, namespace: str, url: str) -> dict[str, str]:
    def create(name: str, **given):
        about = {"payload": {"of": namespace, "order": 42}, "metadata": {"customer": {"name": f"{namespace}-customer"}}}
        return service.create(given.pop("url", f"{url}/200/{namespace}"), key=f"{namespace}-{name}", namespace=namespace, **about, **given)

    timers = {
        "pending": create("pending", delay="90m", correlation_id=f"{namespace}-request", group=f"{namespace}-campaign"),
        "completed": create("completed", delay="0s"),
        "failed": create("failed", delay="0s", url=f"{url}/500/{namespace}"),
        "retried": create("retried", delay="0s", url=f"{url}/503/{namespace}", retries=3),
        "paused": create("paused", delay="2h"),
        "canceled": create("canceled", delay="2h"),
    }
    service.api("POST", f"/timers/{timers['paused']}/pause", {"note": f"{namespace} is audited"})
    service.api("DELETE", f"/timers/{timers['canceled']}")
    for status in ("completed", "failed"):
        service.wait_for_status(timers[status], status)
    return timers


def fill(service: Service, seeds: Seeds) -> list[str]:
    """More than a page of them, spread over the hours to come, and enough for a bulk change that does not end at once: the ids of two."""
    for namespace, url in ((OWN, seeds.receiver.url), (OTHER, seeds.other_receiver.url)):
        create_many(service, [later(namespace, f"{namespace}-later-{n:04}", url) for n in range(1_002)])
    started = [start_operation(service, namespace) for namespace in (OWN, OTHER)]
    # An operation takes its time, beside others most of all. `test_bulk` follows one to its end.
    for id in started:
        service.api("DELETE", f"/operations/{id}")
    create_many(
        service,
        [
            {
                "delay": f"{(7 + n * n * 37) % 90_000 + 600}s",
                "key": f"{OWN}-order-{n:04}",
                "namespace": OWN,
                "metadata": {"customer": {"id": n % 5}},
                "callback": {"type": "http", "url": f"{seeds.receiver.url}/200/orders", "payload": {"order": n}},
            }
            for n in range(60)
        ],
    )
    return started


def later(namespace: str, key: str, url: str) -> dict:
    return {"delay": "30d", "key": key, "namespace": namespace, "callback": {"type": "http", "url": f"{url}/200/later"}}


def create_many(service: Service, timers: list[dict]):
    for first in range(0, len(timers), 1_000):
        answer = service.api("POST", "/timers/batch", {"timers": timers[first : first + 1_000]})
        assert answer.status == 200, answer.text[:500]


def start_operation(service: Service, namespace: str) -> str:
    wanted = {"namespace": namespace, "key_prefix": f"{namespace}-later-"}
    body = {"action": "reschedule", "filter": wanted, "set": {"shift": "+1h"}, "expected_max": 2_000}
    return service.api("POST", "/timers/bulk", body).data["operation"]["id"]


def wait_for_operation(service: Service, id: str) -> str:
    wait_for("the operation", lambda: service.api("GET", f"/operations/{id}").data["state"] != "running")
    return id
