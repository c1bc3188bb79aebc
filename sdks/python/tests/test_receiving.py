"""Receivers: the middleware under real frameworks, and signatures by a second implementation."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
from flask import Flask, request
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from timer_platform import Call, webhook
from timer_platform.middleware import VerifiedCalls, VerifiedWsgiCalls, current_call

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = '{"cart": 4711, "price": 1.10}'
VECTORS = Path(__file__).parents[2] / "conformance" / "vectors" / "signatures.json"


def headers(body: str = BODY, *, secret: str = SECRET) -> dict[str, str]:
    now = int(time.time())
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": webhook.sign(secret, "msg_1", now, body.encode()),
        "x-timer-id": "0190163d-8694-739b-aea5-966c26f8ad91",
        "x-timer-namespace": "shop",
        "x-timer-attempt": "1",
        "x-timer-scheduled-at": datetime.fromtimestamp(now, timezone.utc).isoformat(),
        "content-type": "application/json",
    }


class Seen:
    def __init__(self) -> None:
        self.ids: set[str] = set()

    def is_new(self, call: Call) -> bool:
        known = call.id in self.ids
        self.ids.add(call.id)
        return not known


def starlette_app() -> Any:
    async def cart(request: Request) -> JSONResponse:
        return JSONResponse({"timer": current_call(request).timer_id, "raw": (await request.body()).decode()})

    async def free(_: Request) -> JSONResponse:
        return JSONResponse({})

    app = Starlette(routes=[Route("/hooks/cart", cart, methods=["POST"]), Route("/free", free, methods=["POST"])])
    app.add_middleware(VerifiedCalls, secrets=[SECRET], path="/hooks", is_new=Seen().is_new)
    return app


def flask_app() -> Any:
    app = Flask(__name__)

    @app.post("/hooks/cart")
    def cart() -> dict[str, str]:
        return {"timer": current_call(request).timer_id, "raw": request.get_data().decode()}

    @app.post("/free")
    def free() -> dict[str, str]:
        return {}

    app.wsgi_app = VerifiedWsgiCalls(app.wsgi_app, SECRET, path="/hooks", is_new=Seen().is_new)  # type: ignore[method-assign]
    return app


async def responses(app: Any) -> list[httpx.Response]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        return [await client.post(path, content=BODY, headers=given) for path, given in requests()]


def requests() -> list[tuple[str, dict[str, str]]]:
    other = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    return [("/hooks/cart", headers()), ("/hooks/cart", headers()), ("/hooks/cart", headers(secret=other)), ("/free", {})]


def check(answers: list[httpx.Response]) -> None:
    first, repeated, forged, free = answers
    assert first.json() == {"timer": "0190163d-8694-739b-aea5-966c26f8ad91", "raw": BODY}
    assert (repeated.status_code, repeated.text) == (200, "")
    assert (forged.status_code, free.status_code) == (401, 200)


def test_starlette_gets_only_verified_calls_once() -> None:
    check(asyncio.run(responses(starlette_app())))


def test_flask_gets_only_verified_calls_once() -> None:
    with httpx.Client(transport=httpx.WSGITransport(flask_app()), base_url="http://test") as client:
        check([client.post(path, content=BODY, headers=given) for path, given in requests()])


def django_app() -> Any:
    import django
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler
    from django.http import HttpRequest, JsonResponse
    from django.urls import path

    def cart(request: HttpRequest) -> JsonResponse:
        return JsonResponse({"timer": current_call(request).timer_id, "raw": request.body.decode()})

    def free(_: HttpRequest) -> JsonResponse:
        return JsonResponse({})

    urls = type("Urls", (), {"urlpatterns": [path("hooks/cart", cart), path("free", free)]})
    settings.configure(ROOT_URLCONF=urls, ALLOWED_HOSTS=["test"], SECRET_KEY="only for tests")
    django.setup()
    return VerifiedWsgiCalls(WSGIHandler(), SECRET, path="/hooks", is_new=Seen().is_new)


def test_django_gets_only_verified_calls_once() -> None:
    with httpx.Client(transport=httpx.WSGITransport(django_app()), base_url="http://test") as client:
        check([client.post(path, content=BODY, headers=given) for path, given in requests()])


def test_a_request_past_the_middleware_has_no_call() -> None:
    with pytest.raises(LookupError):
        current_call(object())


def test_another_implementation_agrees_on_signatures() -> None:
    vectors = json.loads(VECTORS.read_text())
    for case in vectors["sign"]:
        at = datetime.fromtimestamp(case["timestamp"], timezone.utc)
        assert Webhook(case["secret"]).sign(case["id"], at, case["body"]) == case["signature"]
    assert Webhook(SECRET).verify(BODY, headers()) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY + " ", headers())
