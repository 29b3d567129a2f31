"""What only a bus between processes can get wrong: echoes, strangers on the channel, late comers, secrets."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest
from bus_world import TOO_LONG, SetClock, Watcher, Wire, channel, connected, redis_bus, settle, some_prefix, with_parts
from redis.asyncio import Redis

from facho.adapters.bus.local import BACKLOG
from facho.adapters.bus.redis import OUTBOX, PERISHED_AFTER, SNAPSHOT_TTL, RedisBus
from facho.adapters.clock import SystemClock

GARBAGE = {
    "no text": b"\xff\xfe\x00",
    "no JSON": b"{",
    "nothing": b"",
    "JSON of somebody else": b'{"topic": "execution", "payload": {"n": 0}}',
    "too short": b'["somebody", 1, "execution"]',
    "a payload that is no object": b'["somebody", 1, "execution", [0]]',
    "a number that is none": b'["somebody", "1", "execution", {"n": 0}]',
    "deeper than anything can be read": b"[" * 100_000,
    "more digits than a number has": b"1" * 10_000,
}


@pytest.fixture
async def client(redis_url):
    """A client without manners."""
    async with Redis.from_url(redis_url) as client:
        yield client


def letter(number, topic="execution", n=0, sender="stranger"):
    return json.dumps([sender, number, topic, {"n": n}])


async def test_news_of_its_own_does_not_come_back(redis_url):
    prefix = some_prefix()
    async with connected(redis_url, prefix) as one, connected(redis_url, prefix) as other:
        watcher = Watcher(one, "execution", "mark")
        await settle()

        one.publish("execution", {"n": 1})
        await Wire(one, other).delivered()
        # Told after it was heard there: its echo is in front of this on the way back.
        other.publish("execution", {"n": 2})
        await watcher.until("execution", 2)

        assert [news for news in watcher.heard if news[0] == "execution"] == [("execution", 1), ("execution", 2)]


async def test_each_piece_of_news_is_sent_once(redis_url, client):
    prefix = some_prefix()
    async with connected(redis_url, prefix) as teller, connected(redis_url, prefix) as hearer, client.pubsub() as ear:
        await ear.subscribe(channel(redis_url, prefix))
        wire, sent = Wire(teller, hearer), []

        for n in (1, 2, 3):
            wire.publish("execution", {"n": n})
            await wire.delivered()
        async for message in ear.listen():
            if message["type"] == "message":
                _, _, topic, payload = json.loads(message["data"])
                sent.append((topic, payload["n"]))
            if ("mark", 3) in sent:
                break

        assert [n for topic, n in sent if topic == "execution"] == [1, 2, 3]


async def test_a_burst_is_not_lost_by_a_watcher_that_keeps_up(redis_url):
    prefix, burst = some_prefix(), 3 * BACKLOG
    async with connected(redis_url, prefix) as teller, connected(redis_url, prefix) as hearer:
        watcher = Watcher(hearer, "execution")
        await settle()

        for n in range(burst):
            teller.publish("execution", {"n": n})
        await watcher.until("execution", burst - 1)

        assert watcher.heard == [("execution", n) for n in range(burst)]


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
async def test_what_a_stranger_says_on_the_channel_does_no_harm(data, redis_url, client, said):
    prefix = some_prefix()
    async with connected(redis_url, prefix) as teller, connected(redis_url, prefix) as hearer:
        watcher = Watcher(hearer, "execution")
        await settle()

        await client.publish(channel(redis_url, prefix), data)
        teller.publish("execution", {"n": 1})
        await watcher.until("execution", 1)
        await said.until("unknown message on channel", times=2)

        assert watcher.heard == [("execution", 1)]
        assert said.count("unknown message on channel") == 2
        assert said.count("is unavailable") == 0


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
async def test_what_a_stranger_left_as_the_last_snapshot_does_no_harm(data, redis_url, client):
    prefix = some_prefix()
    await client.set(f"{prefix}latest:snapshot", data, ex=60)

    async with connected(redis_url, prefix) as bus:
        assert bus.latest("snapshot") is None


async def test_something_else_under_the_key_of_the_snapshot_does_no_harm(redis_url, client, said):
    prefix = some_prefix()
    await client.rpush(f"{prefix}latest:snapshot", "a list")

    async with connected(redis_url, prefix) as bus:
        bus.publish("snapshot", {"n": 1})
        await Wire(bus, bus).delivered()

        assert bus.latest("snapshot") == {"n": 1}
        assert said.count("is unavailable") == 0
    await client.delete(f"{prefix}latest:snapshot")


async def test_who_comes_later_has_the_last_snapshot(redis_url, client):
    prefix = some_prefix()
    async with connected(redis_url, prefix) as teller, connected(redis_url, prefix) as witness:
        teller.publish("snapshot", {"n": 1})
        teller.publish("snapshot", {"n": 2})
        teller.publish("execution", {"n": 3})
        await Wire(teller, witness).delivered()

    async with connected(redis_url, prefix) as late:
        watcher = Watcher(late, "snapshot", "execution")
        await watcher.until("snapshot", 2)

        assert late.latest("snapshot") == {"n": 2}
        assert watcher.heard == [("snapshot", 2)]
        assert 0 < await client.ttl(f"{prefix}latest:snapshot") <= SNAPSHOT_TTL


async def test_what_comes_twice_or_too_late_is_heard_once(redis_url, client):
    prefix = some_prefix()
    await client.set(f"{prefix}latest:snapshot", letter(5, "snapshot", n=5), ex=60)
    async with connected(redis_url, prefix) as bus:
        watcher = Watcher(bus, "snapshot", "execution")
        await settle()

        for data in (
            letter(4, "snapshot", n=4),
            letter(4, "execution", n=41),
            letter(5, "snapshot", n=5),
            letter(6, "execution", n=6),
            letter(6, "execution", n=6),
            letter(7, "snapshot", n=7),
            letter(1, "execution", n=1, sender="another"),
        ):
            await client.publish(channel(redis_url, prefix), data)
        await watcher.until("execution", 1)

        assert watcher.heard == [
            ("snapshot", 5),
            ("execution", 41),
            ("execution", 6),
            ("snapshot", 7),
            ("execution", 1),
        ]


async def test_two_installations_on_one_server_do_not_hear_each_other(redis_url):
    prefix, other_database = some_prefix(), with_parts(redis_url, database=1)
    async with connected(redis_url, prefix) as teller, connected(redis_url, prefix) as hearer:
        async with connected(other_database, prefix) as other:
            other.publish("execution", {"n": 1})
            other.publish("snapshot", {"n": 1})
            await Wire(other, other).delivered()
            await other.stop()
        await Wire(teller, hearer).delivered()

        assert hearer.latest("execution") is None
        assert hearer.latest("snapshot") is None


async def test_the_oldest_unsent_message_is_dropped(redis_url):
    prefix = some_prefix()
    teller = RedisBus(redis_url, clock=SystemClock(), prefix=prefix)
    async with connected(redis_url, prefix) as hearer:
        watcher = Watcher(hearer, "execution")
        await settle()

        for n in range(OUTBOX + 10):
            teller.publish("execution", {"n": n})
        await teller.start()
        await watcher.until("execution", OUTBOX + 9)

        assert watcher.heard == [("execution", n) for n in range(10, OUTBOX + 10)]
        await teller.stop()


async def test_what_waited_too_long_is_no_news_any_more(redis_url):
    prefix, clock = some_prefix(), SetClock()
    teller = RedisBus(redis_url, clock=clock, prefix=prefix)
    async with connected(redis_url, prefix) as hearer:
        watcher = Watcher(hearer, "interrupt")
        await settle()

        teller.publish("interrupt", {"n": 1})
        clock.ahead += PERISHED_AFTER + 1
        teller.publish("interrupt", {"n": 2})
        await teller.start()
        await watcher.until("interrupt", 2)

        assert watcher.heard == [("interrupt", 2)]
        await teller.stop()


async def test_a_payload_that_is_no_json_stays_here_and_harms_nobody(redis_url, said):
    prefix = some_prefix()
    async with connected(redis_url, prefix) as teller, connected(redis_url, prefix) as hearer:
        teller.publish("execution", {"n": 1, "olts": {7, 8}})
        await Wire(teller, hearer).delivered()

        assert teller.latest("execution") == {"n": 1, "olts": {7, 8}}
        assert hearer.latest("execution") is None
        assert said.count("the message for topic execution is not JSON") == 1


async def test_a_stop_sends_what_was_told_before_it(redis_url):
    prefix = some_prefix()
    async with connected(redis_url, prefix) as hearer:
        watcher = Watcher(hearer, "worker")
        async with connected(redis_url, prefix) as teller:
            own = Watcher(teller, "worker")
            await settle()
            teller.publish("worker", {"n": 1})

        await watcher.until("worker", 1)
        assert await own.ended() == [("worker", 1)]
        assert not teller.is_connected


async def test_others_still_hear_who_has_closed_its_subscriptions(redis_url):
    prefix = some_prefix()
    async with connected(redis_url, prefix) as teller, connected(redis_url, prefix) as hearer:
        watcher = Watcher(hearer, "worker")
        await settle()

        teller.close()
        teller.publish("worker", {"n": 1})

        await watcher.until("worker", 1)


async def test_a_password_is_neither_in_the_log_nor_in_what_is_printed(redis_url, said):
    async with redis_bus(with_parts(redis_url, account="facho:s3cr3t-w0rd")) as bus:
        await said.until("is unavailable")
        printed = repr(bus)

    assert str(urlsplit(redis_url).port) in printed
    assert "s3cr3t" not in " ".join([printed, *said.lines])


@pytest.mark.parametrize("url", ["redis://:s3cr3t/w0rd@127.0.0.1:6379/0", "http://:s3cr3t@127.0.0.1", "s3cr3t"])
async def test_an_address_that_is_none_is_refused_without_repeating_it(url):
    with pytest.raises(ValueError, match="use a form like redis://") as raised:
        RedisBus(url, clock=SystemClock())

    assert "s3cr3t" not in str(raised.value)
    assert raised.value.__suppress_context__


async def test_a_bus_that_was_never_started_is_a_local_one(redis_url):
    bus = RedisBus(redis_url, clock=SystemClock(), prefix=some_prefix())
    watcher = Watcher(bus, "execution")
    await settle()

    bus.publish("execution", {"n": 1})
    await asyncio.wait_for(bus.stop(), TOO_LONG)

    assert await watcher.ended() == [("execution", 1)]
