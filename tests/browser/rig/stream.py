"""The live stream of a page, read without a browser."""

import contextlib
import http.client
import json
import socket
import urllib.parse
from collections.abc import Iterator

from .service import Service

# A view is rendered once a second, or every few seconds where that takes long.
SILENT_SECONDS_MAX = 30


class Stream:
    def __init__(self, service: Service, cookie: str, view: str):
        self.connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=SILENT_SECONDS_MAX)
        path = f"{service.base_path}/console/live?view={urllib.parse.quote(view, safe='')}"
        self.connection.request("GET", path, headers={"Cookie": cookie})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, f"{self.answer.status} {view}"

    def events(self) -> Iterator[tuple[str, str]]:
        """The names of events and what they carry, until the stream ends. A comment is an event without a name."""
        name = ""
        while line := self.answer.readline().decode():
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                yield name, value
            elif not field and value:
                yield "", ""

    def close(self):
        """Also while another thread reads."""
        if self.connection.sock:
            with contextlib.suppress(OSError):
                self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def regions_of(service: Service, cookie: str, view: str, ids: set[str]) -> dict[str, str]:
    """The regions of a page by their id, once all of these have come."""
    stream, heard = Stream(service, cookie, view), {}
    try:
        for name, data in stream.events():
            assert name in ("", "region"), f"{name} while {ids - heard.keys()} of {view} is missing"
            if name == "region":
                region = json.loads(data)
                heard[region["id"]] = region["html"]
            if ids <= heard.keys():
                return heard
        raise AssertionError(f"the stream of {view} ended without {ids - heard.keys()}")
    finally:
        stream.close()
