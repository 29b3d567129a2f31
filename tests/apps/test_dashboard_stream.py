"""The event stream: what it passes on, and that it always ends."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test import AsyncClient

from facho.apps.dashboard.stream import news
from facho.apps.polling import live

News = tuple[str, Mapping[str, Any]]

SNAPSHOT: News = ("snapshot", {"at": "2025-06-01T10:00:00+00:00"})
EXECUTION: News = ("execution", {"id": 7, "olt_id": 1, "node_id": 2, "status": "SUCCESS"})


class FakeBus:
    """Brings what it was given, then either ends or says no more until somebody cancels."""

    def __init__(self, *items: News, then_silent: bool = False) -> None:
        self.items = items
        self.then_silent = then_silent
        self.topics: list[str] = []
        self.is_left = False

    async def subscribe(self, topics: Iterable[str]) -> AsyncIterator[News]:
        self.topics = list(topics)
        try:
            for item in self.items:
                yield item
            if self.then_silent:
                await asyncio.Event().wait()
        finally:
            self.is_left = True

    def publish(self, topic: str, payload: Mapping[str, Any]) -> None: ...

    def latest(self, topic: str) -> Mapping[str, Any] | None:
        return None

    def close(self) -> None: ...


@pytest.fixture
async def attached():
    """Attach a bus for the time of a test."""
    yield live.attach
    live.attach(None)
    # The thread in which Django's async side reads rows keeps its connection; the database is to be dropped.
    await sync_to_async(connections.close_all)()


async def test_news_is_passed_on_in_order_until_the_bus_is_closed():
    bus = FakeBus(SNAPSHOT, EXECUTION)

    parts = [part async for part in news(bus)]

    assert parts == [
        "retry: 3000\n\n",
        'event: snapshot\ndata: {"at":"2025-06-01T10:00:00+00:00"}\n\n',
        'event: execution\ndata: {"id":7,"olt_id":1,"node_id":2,"status":"SUCCESS"}\n\n',
    ]
    assert set(bus.topics) == {"snapshot", "execution", "readings", "problems"}


async def test_a_line_break_in_a_name_does_not_break_an_event():
    parts = [part async for part in news(FakeBus(("readings", {"olt": "a\n\nevent: b"})))]

    assert parts[1].count("\n\n") == 1
    assert json.loads(parts[1].split("data: ")[1]) == {"olt": "a\n\nevent: b"}


async def test_silence_is_broken_by_a_heartbeat_that_loses_no_news():
    stream = news(FakeBus(SNAPSHOT, then_silent=True), heartbeat=0)

    parts = [await anext(stream) for _ in range(6)]
    await stream.aclose()

    assert sum(part.startswith("event: snapshot") for part in parts) == 1
    assert parts[-1] == ": still here\n\n"


async def test_a_browser_that_leaves_takes_its_subscription_with_it():
    bus = FakeBus(SNAPSHOT, then_silent=True)
    stream = news(bus)
    await anext(stream)
    await anext(stream)

    await stream.aclose()

    assert bus.is_left


async def test_a_browser_that_leaves_in_the_middle_of_silence_takes_its_subscription_with_it():
    bus = FakeBus(then_silent=True)
    stream = news(bus)
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.wait({waiting})

    assert waiting.cancelled()
    assert bus.is_left


async def test_a_stream_ends_in_time_to_ask_who_listens():
    bus = FakeBus(SNAPSHOT, then_silent=True)

    parts = [part async for part in news(bus, lifetime=0)]

    assert parts == ["retry: 3000\n\n"]


async def test_without_a_bus_the_browser_is_told_that_nothing_is_known():
    parts = [part async for part in news(None)]

    said = json.loads(parts[1].split("data: ")[1])
    assert (said["at"], said["stale"], said["pollers"]) == (None, True, [])
    assert len(parts) == 2


@pytest.mark.django_db(transaction=True)
async def test_a_stranger_gets_no_news(attached):
    attached(bus := FakeBus(SNAPSHOT))

    response = await AsyncClient().get("/events/")

    assert response.status_code == 401
    assert bus.topics == []


@pytest.mark.django_db(transaction=True)
async def test_who_is_logged_in_gets_a_stream_that_no_proxy_holds_back(attached):
    attached(FakeBus(SNAPSHOT))
    client = AsyncClient()
    await client.aforce_login(await User.objects.acreate(username="reader"))

    response = await client.get("/events/")

    parts = [part async for part in response.streaming_content]
    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-cache, no-transform"
    assert response["X-Accel-Buffering"] == "no"
    assert parts[1].startswith(b"event: snapshot\n")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "status"), [("head", 204), ("post", 405)])
async def test_a_page_can_ask_whether_it_is_still_logged_in_without_a_stream(attached, method, status):
    attached(bus := FakeBus(SNAPSHOT))
    client = AsyncClient()
    await client.aforce_login(await User.objects.acreate(username="reader"))

    response = await getattr(client, method)("/events/")

    assert response.status_code == status
    assert bus.topics == []
