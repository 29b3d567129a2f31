"""`/healthz`, `/readyz` and `/metrics` of every role, as an ASGI app beside or in front of others.

It needs neither Django nor a known `Host`: a load balancer connects by address, and must get a correct answer even if
everything else fails.
"""

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

PATHS = frozenset({"/healthz", "/readyz", "/metrics"})

# Headers of a proxy. Behind a proxy, every client seems to be local.
PROXY_HEADERS = frozenset({"forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "via"})


class NotWell(Exception):
    """A problem as a message for anyone: no secret, no address, no traceback."""


@dataclass(frozen=True, slots=True)
class Check:
    """One condition. `ask` returns its state, usually "ok", or raises `NotWell`."""

    name: str
    ask: Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Checks:
    """Liveness and readiness of a process. A process that waits for its database is alive."""

    alive: Sequence[Check] = ()
    ready: Sequence[Check] = ()


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()


def probes(checks: Checks, registry: CollectorRegistry, *, token: str = "") -> App:
    """Return the app. With a `token` metrics require it; without one only this machine can read them."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            # This tells a server that there is no lifespan to run.
            raise RuntimeError(f"{scope['type']} is not served here")
        reply = await _reply(scope, checks, registry, token)
        await _answer(send, reply, with_body=scope["method"] != "HEAD")

    return app


def mount(app: App, beside: App) -> App:
    """Return `app` with the three paths served by `beside`, before any middleware."""

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        is_ours = scope["type"] == "http" and scope["path"] in PATHS
        await (beside if is_ours else app)(scope, receive, send)

    return both


def unavailable(sentence: str) -> App:
    """Return an app that is not available yet, with the reason."""
    reply = HttpReply(503, f"{sentence}\n".encode(), "text/plain; charset=utf-8", [("Retry-After", "5")])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        await _answer(send, reply, with_body=scope["method"] != "HEAD")

    return app


async def _reply(scope: Scope, checks: Checks, registry: CollectorRegistry, token: str) -> HttpReply:
    path = scope["path"]
    if path not in PATHS:
        return _json(404, {"detail": f"Available paths: {', '.join(sorted(PATHS))}."})
    if scope["method"] not in ("GET", "HEAD"):
        return _json(405, {"detail": "Only GET and HEAD are allowed."}, ("Allow", "GET, HEAD"))
    if path == "/metrics":
        return _metrics(scope, registry, token)
    asked = checks.alive if path == "/healthz" else checks.ready
    said = await asyncio.gather(*(_ask(check) for check in asked))
    is_well = all(well for well, _ in said)
    sentences = {check.name: sentence for check, (_, sentence) in zip(asked, said, strict=True)}
    return _json(200 if is_well else 503, {"ok": is_well, "checks": sentences})


async def _ask(check: Check) -> tuple[bool, str]:
    try:
        return True, await check.ask()
    except NotWell as trouble:
        return False, str(trouble)
    except Exception:
        # Any error means not ready, and its text may be confidential.
        logger.exception("%s could not be checked", check.name)
        return False, "could not be checked; see the log"


def _metrics(scope: Scope, registry: CollectorRegistry, token: str) -> HttpReply:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    scheme, _, shown = headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(shown.strip().encode(), token.encode())
    if token and not (is_right and scheme.lower() == "bearer"):
        detail = "Send FACHO_METRICS_TOKEN as a bearer token."
        return _json(401, {"detail": detail}, ("WWW-Authenticate", "Bearer"))
    if not token and not _is_local(scope, headers):
        return _json(403, {"detail": "Only this machine can read the metrics unless FACHO_METRICS_TOKEN is set."})
    encode, content_type = choose_encoder(headers.get("accept", ""))
    return HttpReply(200, encode(registry), content_type)


def _is_local(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Return whether a request comes from this machine and not through a proxy on it."""
    client = scope.get("client")
    if client is None or PROXY_HEADERS & headers.keys():
        return False
    try:
        address = ip_address(client[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def _json(status: int, content: Mapping[str, object], *headers: tuple[str, str]) -> HttpReply:
    return HttpReply(status, json.dumps(content).encode() + b"\n", headers=headers)


async def _answer(send: Send, reply: HttpReply, *, with_body: bool) -> None:
    headers = [
        ("Content-Type", reply.content_type),
        ("Content-Length", str(len(reply.body))),
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
        ("X-Content-Type-Options", "nosniff"),
        *reply.headers,
    ]
    lines = [(name.lower().encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": lines})
    await send({"type": "http.response.body", "body": reply.body if with_body else b""})
