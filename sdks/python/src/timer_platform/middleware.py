"""Verification in front of a whole application, or of some of its paths.

    app.add_middleware(VerifiedCalls, secrets=SECRET, path="/hooks")        # Starlette, FastAPI
    app.wsgi_app = VerifiedWsgiCalls(app.wsgi_app, secrets=SECRET)          # Flask
    application = VerifiedWsgiCalls(get_wsgi_application(), secrets=SECRET) # Django

A request that is not verified is answered with 401. One whose `webhook-id` `is_new` does not accept is a repetition, and answered
with 200. The application finds the `Call` with `current_call(request)`, and reads the body as always.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from datetime import timedelta
from typing import Any

from .webhook import Call, InvalidCall, verify

BODY_BYTES_MAX = 1024 * 1024
_NAME = "timer.call"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


def current_call(request: Any) -> Call:
    """The verified call of a request of Starlette, FastAPI, Flask or Django."""
    for source in ("scope", "environ", "META"):
        values = getattr(request, source, None)
        if isinstance(values, Mapping) and _NAME in values:
            call: Call = values[_NAME]
            return call
    raise LookupError("the request was not verified: is the middleware in front of this path?")


class VerifiedCalls:
    """ASGI middleware. `is_new` takes the call and says whether it is the first of its id; it may be a coroutine function."""

    def __init__(
        self,
        app: AsgiApp,
        secrets: str | Sequence[str],
        *,
        path: str = "/",
        tolerance: timedelta = timedelta(minutes=5),
        is_new: Callable[[Call], bool | Awaitable[bool]] | None = None,
    ) -> None:
        self._app, self._secrets, self._path, self._tolerance, self._is_new = app, secrets, path, tolerance, is_new

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(self._path):
            return await self._app(scope, receive, send)
        body = await _whole_body(receive)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            call = verify(headers, body or b"", self._secrets, tolerance=self._tolerance)
        except InvalidCall:
            return await _answer(send, 401)
        if body is None:
            return await _answer(send, 413)
        is_new = self._is_new(call) if self._is_new else True
        if not (await is_new if inspect.isawaitable(is_new) else is_new):
            return await _answer(send, 200)
        await self._app({**scope, _NAME: call}, _replayed(body, receive), send)


async def _whole_body(receive: Receive) -> bytes | None:
    """The raw bytes; `None` if there are more than a call may have."""
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > BODY_BYTES_MAX:
            return None
        if not message.get("more_body", False):
            return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _answer(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class VerifiedWsgiCalls:
    """WSGI middleware, for Flask, Django and every other."""

    def __init__(
        self,
        app: WsgiApp,
        secrets: str | Sequence[str],
        *,
        path: str = "/",
        tolerance: timedelta = timedelta(minutes=5),
        is_new: Callable[[Call], bool] | None = None,
    ) -> None:
        self._app, self._secrets, self._path, self._tolerance, self._is_new = app, secrets, path, tolerance, is_new

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not environ.get("PATH_INFO", "").startswith(self._path):
            return self._app(environ, start_response)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length > BODY_BYTES_MAX:
            return _wsgi_answer(start_response, "413 Content Too Large")
        body: bytes = environ["wsgi.input"].read(length)
        headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
        try:
            call = verify(headers, body, self._secrets, tolerance=self._tolerance)
        except InvalidCall:
            return _wsgi_answer(start_response, "401 Unauthorized")
        if self._is_new and not self._is_new(call):
            return _wsgi_answer(start_response, "200 OK")
        return self._app({**environ, "wsgi.input": io.BytesIO(body), _NAME: call}, start_response)


def _wsgi_answer(start_response: Any, status: str) -> Iterable[bytes]:
    start_response(status, [("content-length", "0")])
    return [b""]
