"""Server-sent events: notifications of the engine for the browser."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext

from facho.apps.accounts.models import UserSession
from facho.apps.inventory.scopes import visible_ids
from facho.apps.polling import live
from facho.engine.ports import EventBus

TOPICS = ("snapshot", "execution", "readings", "problems")

# Permissions that topics need. Without the permission to see the pool, a snapshot is reduced to its time.
NEEDED = {"execution": "polling.view_execution", "readings": "telemetry.view_onu", "problems": "problems.view_problem"}

# Seconds. Proxies close a connection that is idle for a minute.
HEARTBEAT = 15.0

# Seconds between two checks of the session: a logged-out or disabled user stops receiving.
CHECK_EVERY = 30.0

# Seconds. Then the browser reconnects.
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
    feed = await sync_to_async(_feed_for)(user)
    is_open = sync_to_async(partial(_is_open, request.session.session_key))
    response = StreamingHttpResponse(while_open(feed, is_open), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


def _feed_for(user: Any) -> AsyncGenerator[str]:
    """Return the events that a user may see."""
    topics = [topic for topic in TOPICS if topic not in NEEDED or user.has_perm(NEEDED[topic])]
    shows_pool, ids = user.has_perm(live.POOL_PERMISSION), visible_ids(user)
    _close_connections()
    return news(live.bus(), topics, shows_pool=shows_pool, ids=ids, hidden=gettext("another OLT"))


async def while_open(
    parts: AsyncGenerator[str], is_open: Callable[[], Awaitable[bool]], every: float = CHECK_EVERY
) -> AsyncGenerator[str]:
    """Yield the parts of a stream until its session is closed. A heartbeat is a part too, so no check is late."""
    loop = asyncio.get_running_loop()
    due_at = loop.time() + every
    async with aclosing(parts):
        async for part in parts:
            if loop.time() >= due_at:
                if not await is_open():
                    return
                due_at = loop.time() + every
            yield part


async def news(
    bus: EventBus | None,
    topics: Sequence[str] = TOPICS,
    *,
    shows_pool: bool = True,
    ids: Collection[int] | None = None,
    hidden: str = "",
    heartbeat: float = HEARTBEAT,
    lifetime: float = LIFETIME,
) -> AsyncGenerator[str]:
    """Yield events until the bus is closed or the time is up. Without a bus there is one: nothing is known.

    `ids` are the OLTs that the user sees, None for all of them. Others are called `hidden`.
    """
    yield f"retry: {RETRY}\n\n"
    if bus is None:
        yield event("snapshot", live.snapshot())
        return
    async with aclosing(_paced(bus.subscribe(topics), heartbeat, lifetime)) as feed:
        async for item in feed:
            if item is None:
                yield ": still here\n\n"
                continue
            topic, payload = item
            if ids is not None and topic != "snapshot" and payload["olt_id"] not in ids:
                continue
            if topic == "snapshot":
                payload = payload if shows_pool else live.without_pool(payload)
                payload = payload if ids is None else live.hide_others(payload, ids, hidden)
            yield event(topic, payload)


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


def _is_open(session_key: str | None) -> bool:
    """Return whether a session still belongs to a user who may log in."""
    found = UserSession.objects.filter(pk=session_key, expire_date__gt=timezone.now(), user__is_active=True).exists()
    _close_connections()
    return found


def _close_connections() -> None:
    """Close the database connection of the login check: a stream lasts for minutes and does not need it."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
