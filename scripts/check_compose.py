#!/usr/bin/env python3
"""Tries docker-compose.yml without docker: check_compose.py BINARY NATS_SERVER PROMETHEUS.

Starts what it describes as processes of this machine, with its own environment, commands and configurations: PostgreSQL, NATS, both nodes
and Prometheus. Only addresses and directories are others. The nodes must share the shards and fire a timer through NATS, and Prometheus
must reach both and know the alerts. What docker alone does (images, volumes, restarts) is left to the schema and to a reader.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/browser"))

from rig.postgres import Postgres, create_database  # noqa: E402

KEY = "check-compose-0123456789-0123456789"
NODES = ("timer", "timer-2")
SHARDS = 64
TIMEOUT_SECONDS = 60


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def interpolated(text: str, values: dict[str, str]) -> str:
    """`${NAME}`, `${NAME:-default}` and `${NAME:?why}`, as compose reads them."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found[1], found[2], found[3]
        if name in values:
            return values[name]
        assert kind != ":?", f"{name}: {rest}"
        return rest or ""

    return re.sub(r"\$\{(\w+)(?:(:-|:\?)([^}]*))?\}", value, text)


def ask(url: str, body: dict | None = None) -> dict | None:
    """What is answered; `None` where that is an error or nothing."""
    headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
    request = urllib.request.Request(url, data=json.dumps(body).encode() if body else None, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)
    except OSError:
        return None


def wait_until(what: str, look, home: str):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    logs = "\n".join(f"--- {path.name}\n{path.read_text()[-2000:]}" for path in sorted(pathlib.Path(home).glob("*.log")))
    sys.exit(f"not in time: {what}\n{logs}")


class Composed:
    """The processes of one trial."""

    def __init__(self, compose: dict, home: str):
        self.compose, self.home = compose, home
        self.started: list[subprocess.Popen] = []
        self.ports = {name: free_port() for name in (*NODES, "nats", "nats-http", "prometheus")}

    def start(self, name: str, command: list[str], environment: dict[str, str] | None = None):
        with open(f"{self.home}/{name}.log", "w", encoding="utf-8") as log:
            environment = {"PATH": os.environ["PATH"], **(environment or {})}
            self.started.append(subprocess.Popen(command, cwd=self.home, env=environment, stdout=log, stderr=log))

    def stop(self):
        for process in reversed(self.started):
            process.terminate()
            process.wait()

    def write_config(self, name: str, replacements: dict[str, str]) -> str:
        content = self.compose["configs"][name]["content"]
        for old, new in replacements.items():
            assert old in content, f"the configuration of {name} has no {old}"
            content = content.replace(old, new)
        path = pathlib.Path(self.home, pathlib.Path(self.target(name)).name)
        path.write_text(content, encoding="utf-8")
        return str(path)

    def target(self, name: str) -> str:
        """Where its container finds its configuration."""
        return self.compose["services"][name]["configs"][0]["target"]

    def start_nats(self, program: str):
        replacements = {"http: 8222": f"http: 127.0.0.1:{self.ports['nats-http']}", "store_dir: /data": f"store_dir: {self.home}/nats"}
        config = self.write_config("nats", replacements)
        arguments = [part.replace(self.target("nats"), config) for part in self.compose["services"]["nats"]["command"]]
        self.start("nats", [program, *arguments, "--addr", "127.0.0.1", "--port", str(self.ports["nats"])])

    def start_node(self, name: str, binary: str, postgres: Postgres, database: str):
        environment = {setting: str(value) for setting, value in self.compose["services"][name]["environment"].items()}
        assert (environment["PG_HOST"], environment["NATS_URL"]) == ("postgres", "nats://nats:4222")
        environment |= {"PG_HOST": "127.0.0.1", "PG_PORT": str(postgres.port), "PG_DB_NAME": database, "BIND": "127.0.0.1"}
        environment |= {"NATS_URL": f"nats://127.0.0.1:{self.ports['nats']}", "PORT": str(self.ports[name])}
        self.start(name, [binary, "serve"], environment)

    def start_prometheus(self, program: str):
        service = self.compose["services"]["prometheus"]
        targets = {f"{name}:8080": f"127.0.0.1:{self.ports[name]}" for name in NODES}
        config = self.write_config("prometheus", targets)
        for volume in service["volumes"]:
            outside, inside, *_ = volume.split(":")
            if outside.startswith("./"):
                pathlib.Path(self.home, pathlib.Path(inside).name).write_bytes((ROOT / outside).read_bytes())
        places = {self.target("prometheus"): config, "=/prometheus": f"={self.home}/prometheus"}
        arguments = service["command"]
        for old, new in places.items():
            arguments = [argument.replace(old, new) for argument in arguments]
        self.start("prometheus", [program, *arguments, f"--web.listen-address=127.0.0.1:{self.ports['prometheus']}"])

    def url(self, name: str, path: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}{path}"

    def wait_until(self, what: str, look):
        return wait_until(what, look, self.home)

    def check_nodes(self):
        for name in NODES:
            self.wait_until(f"{name} is healthy", lambda name=name: ask(self.url(name, "/healthz")))

        def both_own_shards() -> bool:
            cluster = (ask(self.url("timer", "/cluster")) or {}).get("data", {"nodes": []})
            owned = {node["name"]: node["shards"] for node in cluster["nodes"] if node["alive"]}
            return sorted(owned) == ["timer-1", "timer-2"] and sum(owned.values()) == SHARDS and all(owned.values())

        self.wait_until("both nodes own shards", both_own_shards)
        timer = {"delay": "1s", "callback": {"type": "nats", "topic": "orders.due", "payload": {"order": 7}}}
        created = ask(self.url("timer", "/timers"), timer)
        assert created, "no timer could be created"
        path = f"/timers/{created['data']['id']}"
        status = lambda: (ask(self.url("timer-2", path)) or {}).get("data", {}).get("status")
        self.wait_until("a timer fires through NATS", lambda: status() == "completed")

    def check_prometheus(self):
        def reached() -> bool:
            found = ask(self.url("prometheus", "/api/v1/query?" + urllib.parse.urlencode({"query": 'up{job="timer"} == 1'})))
            return bool(found) and len(found["data"]["result"]) == len(NODES)

        self.wait_until("Prometheus reaches both nodes", reached)
        rules = [rule for group in ask(self.url("prometheus", "/api/v1/rules"))["data"]["groups"] for rule in group["rules"]]
        written = (ROOT / "deploy/prometheus/timer.rules.yml").read_text(encoding="utf-8").count("- alert: ")
        assert sum(rule["type"] == "alerting" for rule in rules) == written, rules


def main(binary: str, nats_server: str, prometheus: str) -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    compose = yaml.safe_load(interpolated(text, {"API_KEY": KEY}))
    for name, service in compose["services"].items():
        assert "build" in service or re.fullmatch(r"[\w/.-]+:[\w.-]*\d[\w.-]*", service["image"]), f"{name} has no version"
    postgres = Postgres()
    try:
        database = create_database(postgres.url("postgres"), compose["services"]["postgres"]["environment"]["POSTGRES_DB"])
        with tempfile.TemporaryDirectory() as home:
            composed = Composed(compose, home)
            try:
                composed.start_nats(nats_server)
                composed.wait_until("NATS is healthy", lambda: ask(composed.url("nats-http", "/healthz")))
                for name in NODES:
                    composed.start_node(name, str(pathlib.Path(binary).resolve()), postgres, database.rsplit("/", 1)[1])
                composed.start_prometheus(prometheus)
                composed.check_nodes()
                composed.check_prometheus()
            finally:
                composed.stop()
    finally:
        postgres.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
