"""Buses under test, and how to wait for them without looking at a clock."""

import asyncio
import logging
from contextlib import asynccontextmanager
from urllib.parse import urlsplit
from uuid import uuid4

from facho.adapters.bus.local import LocalBus
from facho.adapters.bus.redis import RedisBus
from facho.adapters.clock import SystemClock

# Nothing here takes as long; it only ends a test that would never end.
TOO_LONG = 20


class Watcher:
    """Reads everything until the bus is closed."""

    def __init__(self, bus, *topics):
        self.heard = []
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._listen(bus, topics))

    async def _listen(self, bus, topics):
        async for topic, payload in bus.subscribe(topics):
            self.heard.append((topic, payload["n"]))
            self._changed.set()

    async def until(self, *news):
        """Wait until this was heard."""
        async with asyncio.timeout(TOO_LONG):
            while news not in self.heard:
                self._changed.clear()
                await self._changed.wait()

    async def leave(self):
        self._task.cancel()
        await asyncio.wait([self._task])

    async def ended(self):
        await asyncio.wait_for(self._task, TOO_LONG)
        return self.heard


class Wire:
    """Where news is told and where it is heard: the same bus, or two that something joins."""

    def __init__(self, teller, hearer):
        self.teller, self.hearer = teller, hearer
        self._marks = 0

    def publish(self, topic, payload):
        self.teller.publish(topic, payload)

    async def delivered(self):
        """Wait until all that was told has arrived: news keeps its order, so it has when the last of it has."""
        self._marks += 1
        watcher = Watcher(self.hearer, "mark")
        await settle()
        self.publish("mark", {"n": self._marks})
        await watcher.until("mark", self._marks)
        await watcher.leave()


async def settle():
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def redis_bus(url, prefix=None, clock=None):
    """A bus that has begun to look for Redis. Each test has a channel of its own: others may use the same server."""
    bus = RedisBus(url, clock=clock or SystemClock(), prefix=prefix or some_prefix())
    await bus.start()
    try:
        yield bus
    finally:
        await bus.stop()


@asynccontextmanager
async def connected(url, prefix=None, clock=None):
    async with redis_bus(url, prefix, clock) as bus:
        await asyncio.wait_for(bus.until_connected(), TOO_LONG)
        yield bus


@asynccontextmanager
async def local_wire(_url):
    bus = LocalBus()
    yield Wire(bus, bus)


@asynccontextmanager
async def redis_wire_to_itself(url):
    async with connected(url) as bus:
        yield Wire(bus, bus)


@asynccontextmanager
async def redis_wire(url):
    prefix = some_prefix()
    async with connected(url, prefix) as teller, connected(url, prefix) as hearer:
        yield Wire(teller, hearer)


def some_prefix():
    return f"facho-test-{uuid4().hex}:"


def channel(url, prefix):
    return f"{prefix}news:{urlsplit(url).path.strip('/') or 0}"


def with_parts(url, *, account=None, database=None):
    """The same server, for another account or another of its databases."""
    parts = urlsplit(url)
    account = parts.netloc.rpartition("@")[0] if account is None else account
    path = parts.path if database is None else f"/{database}"
    return parts._replace(netloc=f"{account}@{parts.hostname}:{parts.port}", path=path).geturl()


class SetClock(SystemClock):
    """A clock that a test can set forward, and that holds up who waits for longer than nothing while it is shut."""

    def __init__(self):
        super().__init__()
        self.ahead = 0.0
        self.open = asyncio.Event()
        self.open.set()

    def monotonic(self):
        return super().monotonic() + getattr(self, "ahead", 0.0)

    async def sleep(self, seconds):
        if seconds:
            await self.open.wait()
        await super().sleep(0)


class Said(logging.Handler):
    """What the bus said in the log, to be waited for."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []
        self._changed = asyncio.Event()

    def emit(self, record):
        self.lines.append(self.format(record))
        self._changed.set()

    def count(self, words):
        return sum(words in line for line in self.lines)

    async def until(self, words, times=1):
        async with asyncio.timeout(TOO_LONG):
            while self.count(words) < times:
                self._changed.clear()
                await self._changed.wait()
