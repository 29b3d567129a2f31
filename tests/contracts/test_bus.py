"""What every bus promises: news to all who watch, never a wait for one of them, and an end."""

import asyncio

import pytest

from facho.adapters.bus.local import BACKLOG, LocalBus


@pytest.fixture(params=[LocalBus], ids=["local"])
def bus(request):
    return request.param()


class Watcher:
    """Reads everything until the bus is closed."""

    def __init__(self, bus, *topics):
        self.heard = []
        self._task = asyncio.create_task(self._listen(bus, topics))

    async def _listen(self, bus, topics):
        async for topic, payload in bus.subscribe(topics):
            self.heard.append((topic, payload["n"]))

    async def ended(self):
        await asyncio.wait_for(self._task, 5)
        return self.heard


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_every_watcher_hears_its_topics_in_order(bus):
    both, one = Watcher(bus, "execution", "readings"), Watcher(bus, "readings")
    await settle()

    bus.publish("execution", {"n": 1})
    bus.publish("readings", {"n": 2})
    bus.publish("execution", {"n": 3})
    bus.close()

    assert await both.ended() == [("execution", 1), ("readings", 2), ("execution", 3)]
    assert await one.ended() == [("readings", 2)]


async def test_a_watcher_begins_with_the_last_snapshot(bus):
    bus.publish("snapshot", {"n": 1})
    bus.publish("snapshot", {"n": 2})
    bus.publish("execution", {"n": 3})

    watcher, other = Watcher(bus, "snapshot", "execution"), Watcher(bus, "execution")
    await settle()
    bus.close()

    assert await watcher.ended() == [("snapshot", 2)]
    assert await other.ended() == []


async def test_the_last_news_of_a_topic_can_be_asked_for(bus):
    assert bus.latest("snapshot") is None

    bus.publish("snapshot", {"n": 1})
    bus.publish("snapshot", {"n": 2})
    bus.publish("execution", {"n": 3})

    assert bus.latest("snapshot") == {"n": 2}


async def test_a_watcher_that_does_not_keep_up_loses_the_oldest_news(bus):
    news = bus.subscribe(["readings"])
    first = asyncio.create_task(anext(news))
    await settle()

    bus.publish("readings", {"n": -1})
    await first
    for n in range(BACKLOG + 10):
        bus.publish("readings", {"n": n})

    assert (await anext(news))[1] == {"n": 10}
    await news.aclose()


async def test_closing_ends_a_watcher_that_is_far_behind(bus):
    news = bus.subscribe(["readings"])
    first = asyncio.create_task(anext(news))
    await settle()
    bus.publish("readings", {"n": -1})
    await first
    for n in range(BACKLOG):
        bus.publish("readings", {"n": n})

    bus.close()
    rest = [payload["n"] async for _, payload in news]

    assert rest[-1] == BACKLOG - 1


async def test_what_comes_after_the_end_does_not_bring_a_watcher_back(bus):
    watcher = Watcher(bus, "readings")
    await settle()

    bus.close()
    for n in range(BACKLOG + 1):
        bus.publish("readings", {"n": n})

    assert await watcher.ended() == []


async def test_who_comes_after_the_end_hears_nothing_and_does_not_wait(bus):
    bus.publish("snapshot", {"n": 1})
    bus.close()

    assert await Watcher(bus, "snapshot").ended() == []


async def test_a_watcher_that_leaves_is_forgotten(bus):
    news = bus.subscribe(["readings"])
    first = asyncio.create_task(anext(news))
    await settle()
    bus.publish("readings", {"n": 1})
    await first

    await news.aclose()
    bus.publish("readings", {"n": 2})

    with pytest.raises(StopAsyncIteration):
        await anext(news)
