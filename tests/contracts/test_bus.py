"""What every bus promises: news to all who watch, never a wait for one of them, and an end."""

import asyncio

import pytest
from bus_world import Watcher, local_wire, redis_wire, redis_wire_to_itself, settle

from facho.adapters.bus.local import BACKLOG

WIRES = {
    "local": local_wire,
    "redis, to itself": redis_wire_to_itself,
    "redis, to another process": redis_wire,
}


@pytest.fixture(params=WIRES)
async def wire(request):
    """Where news is told, and where it is heard."""
    url = None if request.param == "local" else request.getfixturevalue("redis_url")
    async with WIRES[request.param](url) as wire:
        yield wire


async def test_every_watcher_hears_its_topics_in_order(wire):
    both, one = Watcher(wire.hearer, "execution", "readings"), Watcher(wire.hearer, "readings")
    await settle()

    wire.publish("execution", {"n": 1})
    wire.publish("readings", {"n": 2})
    wire.publish("execution", {"n": 3})
    await wire.delivered()
    wire.hearer.close()

    assert await both.ended() == [("execution", 1), ("readings", 2), ("execution", 3)]
    assert await one.ended() == [("readings", 2)]


async def test_a_flood_arrives_whole_and_in_order_where_a_watcher_keeps_up(wire):
    watcher = Watcher(wire.hearer, "readings")
    await settle()

    for n in range(5 * BACKLOG):
        wire.publish("readings", {"n": n, "names": ["ONU 7"] * 20})
        if n % (BACKLOG // 4) == 0:
            await wire.delivered()
    await wire.delivered()
    wire.hearer.close()

    assert await watcher.ended() == [("readings", n) for n in range(5 * BACKLOG)]


async def test_news_arrives_as_it_was_told(wire):
    told = {"n": 1, "olt": "OLT-CENTRAL-01", "rx_dbm": -21.53, "down_cause": None, "pollers": [{"id": 1, "ok": True}]}

    wire.publish("snapshot", told)
    await wire.delivered()

    assert wire.hearer.latest("snapshot") == told


async def test_a_watcher_begins_with_the_last_snapshot(wire):
    wire.publish("snapshot", {"n": 1})
    wire.publish("snapshot", {"n": 2})
    wire.publish("execution", {"n": 3})
    await wire.delivered()

    watcher, other = Watcher(wire.hearer, "snapshot", "execution"), Watcher(wire.hearer, "execution")
    await settle()
    wire.hearer.close()

    assert await watcher.ended() == [("snapshot", 2)]
    assert await other.ended() == []


async def test_the_last_news_of_a_topic_can_be_asked_for(wire):
    assert wire.hearer.latest("snapshot") is None

    wire.publish("snapshot", {"n": 1})
    wire.publish("snapshot", {"n": 2})
    wire.publish("execution", {"n": 3})
    await wire.delivered()

    assert wire.hearer.latest("snapshot") == {"n": 2}


async def test_who_tells_news_has_it_at_once(wire):
    watcher = Watcher(wire.teller, "execution")
    await settle()

    wire.publish("execution", {"n": 1})

    assert wire.teller.latest("execution") == {"n": 1}
    await settle()
    assert watcher.heard == [("execution", 1)]


async def test_a_watcher_that_does_not_keep_up_loses_the_oldest_news(wire):
    news = wire.hearer.subscribe(["readings"])
    first = asyncio.create_task(anext(news))
    await settle()

    wire.publish("readings", {"n": -1})
    await first
    for n in range(BACKLOG + 10):
        wire.publish("readings", {"n": n})
    await wire.delivered()

    assert (await anext(news))[1] == {"n": 10}
    await news.aclose()


async def test_closing_ends_a_watcher_that_is_far_behind(wire):
    news = wire.hearer.subscribe(["readings"])
    first = asyncio.create_task(anext(news))
    await settle()
    wire.publish("readings", {"n": -1})
    await first
    for n in range(BACKLOG):
        wire.publish("readings", {"n": n})
    await wire.delivered()

    wire.hearer.close()
    rest = [payload["n"] async for _, payload in news]

    assert rest[-1] == BACKLOG - 1


async def test_what_comes_after_the_end_does_not_bring_a_watcher_back(wire):
    watcher = Watcher(wire.hearer, "readings")
    await settle()

    wire.hearer.close()
    for n in range(BACKLOG + 1):
        wire.publish("readings", {"n": n})

    assert await watcher.ended() == []


async def test_who_comes_after_the_end_hears_nothing_and_does_not_wait(wire):
    wire.publish("snapshot", {"n": 1})
    await wire.delivered()
    wire.hearer.close()

    assert await Watcher(wire.hearer, "snapshot").ended() == []


async def test_a_watcher_that_leaves_is_forgotten(wire):
    news = wire.hearer.subscribe(["readings"])
    first = asyncio.create_task(anext(news))
    await settle()
    wire.publish("readings", {"n": 1})
    await first

    await news.aclose()
    wire.publish("readings", {"n": 2})
    await wire.delivered()

    with pytest.raises(StopAsyncIteration):
        await anext(news)
