"""A bus between processes while Redis is unavailable, and when it is back."""

import asyncio
import datetime
import ssl
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from bus_world import TOO_LONG, SetClock, Watcher, Wire, connected, redis_bus, settle, some_prefix
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from facho.adapters.bus import redis as redis_module
from facho.adapters.bus.redis import OUTBOX

LOST, BACK = "is unavailable", "connected to Redis"


@pytest.fixture
def impatient(monkeypatch):
    """A bus that soon notices that Redis hangs."""
    monkeypatch.setattr(redis_module, "SILENCE", 0.5)
    monkeypatch.setattr(redis_module, "PATIENCE", 0.5)


async def test_both_sides_come_back_after_a_restart_of_the_server(own_redis, said):
    prefix = some_prefix()
    async with connected(own_redis.url, prefix) as teller, connected(own_redis.url, prefix) as hearer:
        watcher = Watcher(hearer, "execution")
        await settle()

        own_redis.kill()
        await said.until(LOST, times=2)
        assert not teller.is_connected
        assert not hearer.is_connected
        own_redis.start()
        await said.until(BACK, times=4)
        teller.publish("execution", {"n": 7})

        await watcher.until("execution", 7)
        assert watcher.heard == [("execution", 7)]


async def test_a_loss_and_a_return_are_said_once_however_many_tries_lie_between(own_redis, said):
    clock = Tries()
    async with connected(own_redis.url, clock=clock) as bus:
        own_redis.kill()
        await clock.until(5)
        own_redis.start()
        await asyncio.wait_for(bus.until_connected(), TOO_LONG)

        assert [said.count(LOST), said.count(BACK)] == [1, 2]


async def test_a_start_without_a_server_neither_fails_nor_waits(own_redis, said):
    own_redis.stop()
    prefix, clock = some_prefix(), Tries()
    async with redis_bus(own_redis.url, prefix, clock) as bus, redis_bus(own_redis.url, prefix) as hearer:
        bus.publish("snapshot", {"n": 1})
        await clock.until(3)
        assert not bus.is_connected
        assert bus.latest("snapshot") == {"n": 1}
        assert said.count(LOST) == 2

        own_redis.start()
        for each in (bus, hearer):
            await asyncio.wait_for(each.until_connected(), TOO_LONG)
        bus.publish("snapshot", {"n": 2})

        await Watcher(hearer, "snapshot").until("snapshot", 2)


async def test_a_server_that_hangs_holds_up_nobody_who_tells_news(own_redis, impatient, said):
    prefix = some_prefix()
    async with connected(own_redis.url, prefix) as teller, connected(own_redis.url, prefix) as hearer:
        own, other = Watcher(teller, "execution"), Watcher(hearer, "execution")
        await settle()

        own_redis.pause()
        for n in range(2 * OUTBOX):
            teller.publish("execution", {"n": n})
            await asyncio.sleep(0)
        await own.until("execution", 2 * OUTBOX - 1)
        await said.until(LOST, times=2)
        assert not teller.is_connected
        own_redis.resume()
        for each in (teller, hearer):
            await asyncio.wait_for(each.until_connected(), TOO_LONG)
        await Wire(teller, hearer).delivered()

        assert own.heard == [("execution", n) for n in range(2 * OUTBOX)]
        assert other.heard == sorted(set(other.heard))


async def test_a_quiet_server_is_not_taken_for_a_dead_one(own_redis, impatient, said):
    async with connected(own_redis.url) as bus, Redis.from_url(own_redis.url) as client:
        while (await client.info("commandstats")).get("cmdstat_ping", {"calls": 0})["calls"] < 2:
            pass

        assert bus.is_connected
        assert said.count(LOST) == 0


async def test_a_snapshot_that_was_told_meanwhile_is_there_after_the_return(own_redis, said):
    prefix, clock = some_prefix(), SetClock()
    async with (
        connected(own_redis.url, prefix, clock) as cut_off,
        connected(own_redis.url, prefix) as teller,
        Redis.from_url(own_redis.url) as client,
    ):
        teller.publish("snapshot", {"n": 1})
        await Wire(teller, cut_off).delivered()
        watcher = Watcher(cut_off, "snapshot")
        await settle()
        clock.open.clear()
        await client.client_kill_filter(_type="pubsub")
        # The teller comes back; the other one waits for its clock.
        await said.until(LOST, times=2)
        await asyncio.wait_for(teller.until_connected(), TOO_LONG)
        teller.publish("snapshot", {"n": 2})
        async with connected(own_redis.url, prefix) as witness:
            await Wire(teller, witness).delivered()

        assert cut_off.latest("snapshot") == {"n": 1}
        clock.open.set()
        await watcher.until("snapshot", 2)

        assert watcher.heard == [("snapshot", 1), ("snapshot", 2)]


async def test_a_return_does_not_tell_the_same_snapshot_again(own_redis, said):
    prefix = some_prefix()
    async with connected(own_redis.url, prefix) as teller, connected(own_redis.url, prefix) as hearer:
        teller.publish("snapshot", {"n": 1})
        await Wire(teller, hearer).delivered()
        watchers = [Watcher(bus, "snapshot", "execution") for bus in (teller, hearer)]

        async with Redis.from_url(own_redis.url) as client:
            await client.client_kill_filter(_type="pubsub")
        await said.until(BACK, times=4)
        teller.publish("execution", {"n": 2})

        for watcher in watchers:
            await watcher.until("execution", 2)
            assert watcher.heard == [("snapshot", 1), ("execution", 2)]


async def test_a_server_that_is_full_still_carries_news_and_it_is_said_once(own_redis, said):
    prefix = some_prefix()
    async with connected(own_redis.url, prefix) as teller, connected(own_redis.url, prefix) as hearer:
        async with Redis.from_url(own_redis.url) as client:
            await client.config_set("maxmemory", 1)
        for n in (1, 2):
            teller.publish("snapshot", {"n": n})
            await Wire(teller, hearer).delivered()

        assert hearer.latest("snapshot") == {"n": 2}
        assert said.count(LOST) == 0
        assert said.count("refused messages") == 1


async def test_a_sender_that_does_not_hear_its_end_leaves_no_bus_deaf(own_redis, said, monkeypatch):
    entered, cancelled = asyncio.Event(), []

    async def hang_once(pipeline, raise_on_error=True):
        monkeypatch.undo()
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
        return []

    async with connected(own_redis.url) as bus, Redis.from_url(own_redis.url) as client:
        monkeypatch.setattr(Pipeline, "execute", hang_once)
        bus.publish("execution", {"n": 1})
        await asyncio.wait_for(entered.wait(), TOO_LONG)
        await client.client_kill_filter(_type="pubsub")

        await said.until(BACK, times=2)
        assert cancelled == [True]


@pytest.mark.parametrize("steps", range(0, 60, 3))
async def test_a_stop_at_any_moment_ends(steps, redis_url):
    async with redis_bus(redis_url) as bus:
        for _ in range(steps):
            await asyncio.sleep(0)
        bus.publish("execution", {"n": 1})

        await asyncio.wait_for(bus.stop(), TOO_LONG)

        assert not bus.is_connected
        assert [task for task in asyncio.all_tasks() if "RedisBus" in repr(task.get_coro())] == []


async def test_a_stop_while_the_server_is_unavailable_ends(own_redis, said):
    async with connected(own_redis.url) as bus:
        watcher = Watcher(bus, "execution")
        await settle()
        own_redis.kill()
        await said.until(LOST)

        await asyncio.wait_for(bus.stop(), TOO_LONG)

        assert await watcher.ended() == []


async def test_news_goes_through_tls_with_a_password(own_redis, tmp_path):
    certificate = tmp_path / "certificate.pem"
    prefix = some_prefix()
    async with tls_in_front_of(own_redis.port, certificate) as port:
        password = urlsplit(own_redis.url).password
        url = f"rediss://:{password}@127.0.0.1:{port}/0?ssl_ca_certs={certificate}"
        async with connected(url, prefix) as teller, connected(own_redis.url, prefix) as hearer:
            teller.publish("execution", {"n": 7})

            await Wire(teller, hearer).delivered()
            assert hearer.latest("execution") == {"n": 7}
            assert password not in repr(teller)


class Tries(SetClock):
    """Counts how often somebody waited before trying again."""

    def __init__(self):
        super().__init__()
        self._tries = 0
        self._tried = asyncio.Event()

    async def sleep(self, seconds):
        if seconds:
            self._tries += 1
            self._tried.set()
        await super().sleep(seconds)

    async def until(self, tries):
        async with asyncio.timeout(TOO_LONG):
            while self._tries < tries:
                self._tried.clear()
                await self._tried.wait()


@asynccontextmanager
async def tls_in_front_of(port, certificate):
    """A server that takes TLS off, as the Redis of the wheel has none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(certificate))
    open_ends = []

    async def serve(reader, writer):
        behind = await asyncio.open_connection("127.0.0.1", port)
        open_ends.extend([writer, behind[1]])
        await asyncio.gather(pipe(reader, behind[1]), pipe(behind[0], writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for writer in open_ends:
            writer.transport.abort()


async def pipe(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
    writer.transport.abort()


def self_signed(path):
    """Write a key and a certificate for loopback, good for an hour."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "facho")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path
