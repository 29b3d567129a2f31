"""Server-sent events: notifications of the engine for the browser."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from facho.apps.polling import live
from facho.engine.ports import EventBus

TOPICS = ("snapshot", "execution", "readings")

# Seconds. Proxies close a connection that is idle for a minute.
HEARTBEAT = 15.0

# Seconds. Then the browser reconnects with its session, so that a logged-out user stops receiving.
LIFETIME = 600.0

# Delay before a browser reconnects, in milliseconds.
RETRY = 3000


async def events(request: HttpRequest) -> HttpResponseBase:
    """Stream notifications to logged-in users."""
    user = await request.auser()
    if not user.is_authenticated:
        return HttpResponse(status=401)
    if request.method != "GET":
        # A page uses HEAD to check whether it is still logged in.
        return HttpResponse(status=204 if request.method == "HEAD" else 405)
    await sync_to_async(_close_connections)()
    response = StreamingHttpResponse(news(live.bus()), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


async def news(
    bus: EventBus | None, *, heartbeat: float = HEARTBEAT, lifetime: float = LIFETIME
) -> AsyncGenerator[str]:
    """Yield events until the bus is closed or the time is up. Without a bus there is one: nothing is known."""
    yield f"retry: {RETRY}\n\n"
    if bus is None:
        yield event("snapshot", live.snapshot())
        return
    async with aclosing(_paced(bus.subscribe(TOPICS), heartbeat, lifetime)) as feed:
        async for item in feed:
            yield event(*item) if item else ": still here\n\n"


async def _paced(
    source: AsyncIterator[tuple[str, Mapping[str, Any]]], heartbeat: float, lifetime: float
) -> AsyncGenerator[tuple[str, Mapping[str, Any]] | None]:
    """Yield the items of a source, and None after each heartbeat without one."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + lifetime
    upcoming = asyncio.ensure_future(_next(source))
    try:
        while loop.time() < ends_at:
            # Not wait_for, which would cancel the source and lose the next item.
            done, _ = await asyncio.wait({upcoming}, timeout=heartbeat)
            if not done:
                yield None
                continue
            item = upcoming.result()
            if item is None:
                return
            upcoming = asyncio.ensure_future(_next(source))
            yield item
    finally:
        upcoming.cancel()
        await asyncio.wait({upcoming})
        if hasattr(source, "aclose"):
            await source.aclose()


async def _next(source: AsyncIterator[tuple[str, Mapping[str, Any]]]) -> tuple[str, Mapping[str, Any]] | None:
    return await anext(source, None)


def event(topic: str, payload: Mapping[str, Any]) -> str:
    """Return one event in wire format. JSON has no bare line breaks, so one data line is enough."""
    return f"event: {topic}\ndata: {json.dumps(payload, separators=(',', ':'))}\n\n"


def _close_connections() -> None:
    """Close the database connection of the login check: a stream lasts for minutes and does not need it."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
