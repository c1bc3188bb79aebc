#!/usr/bin/env python3
"""A proxy that breaks the network on demand: see README.md, "The faulty server".

    python3 faulty.py http://127.0.0.1:8080

Needs nothing but Python 3.9. Prints {"url": …} and ends when its standard input is closed.
"""
from __future__ import annotations

import json
import socket
import sys
import threading
import time
from urllib.parse import urlsplit

READ_BYTES = 64 * 1024
UPSTREAM_TIMEOUT_SECONDS = 60


class Network:
    """The faults that are waiting and the requests that have come, shared by all connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[dict] = []
        self._requests: list[dict] = []

    def replace_faults(self, faults: list[dict]) -> None:
        with self._lock:
            self._faults = [{"times": 1, **fault} for fault in faults]

    def record(self, request: Request) -> dict:
        """Notes the request with the fault that it meets, and uses that fault up."""
        with self._lock:
            fault = next((fault for fault in self._faults if matches(fault, request)), None)
            if fault is not None:
                fault["times"] -= 1
                self._faults = [fault for fault in self._faults if fault["times"] > 0]
            entry = {**request.shown(), "fault": fault, "answered": False}
            self._requests.append(entry)
            return entry

    def requests(self) -> list[dict]:
        with self._lock:
            return [dict(entry) for entry in self._requests]

    def forget_requests(self) -> None:
        with self._lock:
            self._requests = []


def matches(fault: dict, request: Request) -> bool:
    return fault.get("method", request.method) == request.method and request.path.startswith(fault.get("path", ""))


class Request:
    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = first.split(" ", 2)
        self.path, _, self.query = self.target.partition("?")
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        self.body = body

    def shown(self) -> dict:
        body = self.body.decode("utf-8", "replace")
        return {"method": self.method, "path": self.path, "query": self.query, "headers": self.headers, "body": body}

    def for_upstream(self, host: str) -> bytes:
        """The same request with a connection of its own, so that the answer ends with it."""
        headers = {**self.headers, "host": host, "connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{self.method} {self.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + self.body


def read_request(client: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(READ_BYTES)
        if not part:
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    request = Request(head, body)
    if request.headers.get("transfer-encoding", "").lower() == "chunked":
        raise ValueError("chunked requests are not understood: send content-length")
    length = int(request.headers.get("content-length", 0))
    while len(request.body) < length:
        part = client.recv(READ_BYTES)
        if not part:
            return None
        request.body += part
    return request


class Proxy:
    def __init__(self, upstream: str) -> None:
        address = urlsplit(upstream)
        self._upstream = (address.hostname or "127.0.0.1", address.port or 80)
        self._network = Network()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """One request a connection: the end of the connection is what most faults are about."""
        try:
            with client:
                request = read_request(client)
                if request is None:
                    return
                if request.path.startswith("/-/"):
                    client.sendall(self._control(request))
                    return
                self._answer(client, request, self._network.record(request))
        except (OSError, ValueError) as error:
            print(f"faulty: {error}", file=sys.stderr)

    def _control(self, request: Request) -> bytes:
        answer: object = None
        if (request.method, request.path) == ("PUT", "/-/faults"):
            self._network.replace_faults(json.loads(request.body))
        elif (request.method, request.path) == ("GET", "/-/requests"):
            answer = {"requests": self._network.requests()}
        elif (request.method, request.path) == ("DELETE", "/-/requests"):
            self._network.forget_requests()
        else:
            return response(404, {}, "")
        return response(200, {"content-type": "application/json"}, json.dumps(answer))

    def _answer(self, client: socket.socket, request: Request, entry: dict) -> None:
        fault = entry["fault"] or {"do": "nothing"}
        kind = fault["do"]
        if kind == "drop":
            return
        if kind == "answer":
            client.sendall(response(fault["status"], fault.get("headers", {}), fault.get("body", "")))
        elif kind in ("lose", "duplicate"):
            self._whole_answer(request)
            if kind == "lose":
                return
            self._relay(client, request, entry)
        elif kind == "cut":
            head, _, body = self._whole_answer(request).partition(b"\r\n\r\n")
            client.sendall(head + b"\r\n\r\n" + body[: len(body) // 2])
        else:
            if kind == "delay":
                time.sleep(fault["ms"] / 1000)
            self._relay(client, request, entry)
        entry["answered"] = True

    def _connect(self, request: Request) -> socket.socket:
        upstream = socket.create_connection(self._upstream, timeout=UPSTREAM_TIMEOUT_SECONDS)
        upstream.sendall(request.for_upstream(f"{self._upstream[0]}:{self._upstream[1]}"))
        return upstream

    def _whole_answer(self, request: Request) -> bytes:
        with self._connect(request) as upstream:
            return b"".join(iter(lambda: upstream.recv(READ_BYTES), b""))

    def _relay(self, client: socket.socket, request: Request, entry: dict) -> None:
        with self._connect(request) as upstream:
            while part := upstream.recv(READ_BYTES):
                client.sendall(part)
                entry["answered"] = True


def response(status: int, headers: dict, body: str) -> bytes:
    data = body.encode()
    all_headers = {**headers, "content-length": str(len(data)), "connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
    return f"HTTP/1.1 {status} Faulty\r\n{lines}\r\n".encode("latin-1") + data


def main() -> None:
    proxy = Proxy(sys.argv[1])
    threading.Thread(target=proxy.run, daemon=True).start()
    print(json.dumps({"url": proxy.url}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
