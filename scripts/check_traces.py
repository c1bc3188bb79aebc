#!/usr/bin/env python3
"""Sends traces to a real OpenTelemetry collector, and reads in its log what it understood: check_traces.py BINARY COLLECTOR.

The end-to-end tests hold the same relations against a receiver of their own; this is the second opinion.
"""

import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

KEY = "check-traces-0123456789-0123456789"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
TIMEOUT_SECONDS = 30


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_until(what: str, look, log: pathlib.Path | None = None):
    """What `look` finds, once it finds something. If it does not, the log says more."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"not in time: {what}\n{log.read_text() if log else ''}")


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def spans(log: str) -> list[dict]:
    """The spans that the collector printed."""
    found = []
    for text in re.split(r"^Span #\d+$", log, flags=re.MULTILINE)[1:]:
        field = lambda name, text=text: (re.search(rf"^ *(?:-> )?{name} *: *(.*)$", text, re.MULTILINE) or ["", ""])[1].strip()
        links = text.split("SpanLink #")[1:]
        ids = [(re.search(r"Trace ID: (\w+)", link), re.search(r"ID: (\w+)\n", link.replace("Trace ID", ""))) for link in links]
        found.append(
            {
                "name": field("Name"),
                "trace": field("Trace ID"),
                "id": field("ID"),
                "parent": field("Parent ID"),
                "links": [(trace[1], span[1]) for trace, span in ids if trace and span],
            }
        )
    return found


class Receiver(http.server.BaseHTTPRequestHandler):
    calls: list[dict] = []

    def do_POST(self) -> None:
        Receiver.calls.append(dict(self.headers))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """It is no part of the output."""


def create(port: int, receiver: int) -> None:
    body = json.dumps({"delay": "1ms", "callback": {"type": "http", "url": f"http://127.0.0.1:{receiver}/"}}).encode()
    headers = {"X-API-Key": KEY, "Content-Type": "application/json", "traceparent": f"00-{TRACE}-{SPAN}-01"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/timers", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 201, answer.status


def check(log_file: pathlib.Path) -> None:
    def all_three() -> dict | None:
        by_name = {span["name"].split(" ")[0] + ("/" if "/timers" in span["name"] else ""): span for span in spans(log_file.read_text())}
        return by_name if {"POST/", "timer.fire", "POST"} <= by_name.keys() else None

    seen = wait_until("three spans at the collector", all_three, log_file)
    created, fired, called = seen["POST/"], seen["timer.fire"], seen["POST"]
    call = Receiver.calls[0]
    sent = (call.get("traceparent") or call.get("Traceparent") or "").split("-")
    assert (created["trace"], created["parent"]) == (TRACE, SPAN), created
    assert fired["links"] == [(TRACE, created["id"])], fired
    assert fired["trace"] != TRACE and not fired["parent"], fired
    assert (called["trace"], called["parent"]) == (fired["trace"], fired["id"]), called
    assert sent[1:3] == [called["trace"], called["id"]], (sent, called)


def main(binary: str, collector: str) -> None:
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    started = []
    with tempfile.TemporaryDirectory() as home:
        otlp, port, log_file = free_port(), free_port(), pathlib.Path(home, "collector.log")
        config = pathlib.Path(home, "collector.yaml")
        config.write_text(
            f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{otlp}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}}}
"""
        )
        try:
            with log_file.open("w") as log:
                started.append(subprocess.Popen([collector, f"--config=file:{config}"], stdout=log, stderr=log))
            wait_until("the collector listens", lambda: listens(otlp), log_file)
            environment = {**os.environ, "API_KEY": KEY, "PORT": str(port), "BIND": "127.0.0.1", "MIN_DELAY": "0s"}
            environment |= {"DATABASE_URL": f"sqlite://{home}/timer.db", "OTEL_BSP_SCHEDULE_DELAY": "50"}
            environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{otlp}"
            command = [str(pathlib.Path(binary).resolve()), "serve"]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(subprocess.Popen(command, env=environment, cwd=home, **quiet))
            wait_until("the service answers", lambda: answers(f"http://127.0.0.1:{port}/healthz"))
            create(port, receiver.server_port)
            wait_until("the call", lambda: Receiver.calls)
            check(log_file)
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
