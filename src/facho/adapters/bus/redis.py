"""Bus between processes: a local bus in each, joined by one Redis channel."""

import asyncio
import json
import logging
import random
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisLost
from redis.exceptions import RedisError, ResponseError

from facho.adapters.bus.local import LocalBus, News
from facho.engine.ports import Clock

logger = logging.getLogger(__name__)

PREFIX = "facho:"
# Maximum messages to keep while Redis is unavailable; then the oldest is dropped.
OUTBOX = 1024
# Seconds after which an unsent message is dropped. An old interruption must not hit a newer run.
PERISHED_AFTER = 10.0
# Seconds for which the last snapshot is stored for new subscribers. It carries its own time.
SNAPSHOT_TTL = 60
# Seconds to connect, and for an answer.
PATIENCE = 3.0
# Seconds without data before Redis is pinged; after the same time again it counts as lost.
SILENCE = 2.0
# Seconds before the next connection attempt: doubled each time, up to the maximum.
FIRST_DELAY, LONGEST_DELAY = 0.1, 2.0
# Seconds that a stop waits for unsent messages.
FLUSH_TIMEOUT = 1.0
# Number of senders and topics whose last message number is kept.
REMEMBERED = 4096


class RedisBus:
    """Notifies local subscribers at once, and those of other processes on the same Redis as soon as possible.

    Without Redis nothing waits or fails: the others get no notifications until it is back. Payloads must be JSON:
    elsewhere a tuple arrives as a list, and a numeric key as text. Call it from the thread of its loop; `latest` can
    be called from any.
    """

    def __init__(self, url: str, *, clock: Clock, prefix: str = PREFIX) -> None:
        self._url, self._clock = url, clock
        self._place, database = _place(url)
        # Unlike keys, channels are shared by all databases of a server.
        self._channel = f"{prefix}news:{database}"
        self._snapshot_key = f"{prefix}latest:snapshot"
        self._local = LocalBus()
        self._sender = uuid4().hex
        self._number = 0
        self._outbox = _Outbox(clock)
        # Number of the last message of each sender and topic.
        self._heard: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._connected = asyncio.Event()
        # Last logged state; None: nothing yet.
        self._told_away: bool | None = None
        self._told_refusal = False
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<RedisBus {self._place}, {'connected' if self.is_connected else 'not connected'}>"

    @property
    def is_connected(self) -> bool:
        """Return whether messages of others are received now."""
        return self._connected.is_set()

    async def until_connected(self) -> None:
        await self._connected.wait()

    async def start(self) -> None:
        """Start connecting, forever. Never fails and does not wait."""
        self._task = asyncio.create_task(self._run(), name="redis-bus")

    async def stop(self) -> None:
        """End all subscriptions, send the rest for at most a second, and disconnect."""
        self.close()
        if self._task is None:
            return
        if self.is_connected:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._outbox.emptied.wait(), FLUSH_TIMEOUT)
        await _end([self._task], every=FLUSH_TIMEOUT)
        self._task = None
        self._connected.clear()

    def publish(self, topic: str, payload: Mapping[str, Any]) -> None:
        self._local.publish(topic, payload)
        self._number += 1
        letter = _Letter(self._sender, self._number, topic, payload)
        try:
            self._outbox.put(letter, letter.write())
        except (TypeError, ValueError, RecursionError):
            # The publisher must not fail because of it.
            logger.exception("the message for topic %s is not JSON; it was not published to other processes", topic)

    def subscribe(self, topics: Iterable[str]) -> AsyncIterator[News]:
        return self._local.subscribe(topics)

    def latest(self, topic: str) -> Mapping[str, Any] | None:
        return self._local.latest(topic)

    def close(self) -> None:
        """End all subscriptions. Other processes still receive messages until `stop`."""
        self._local.close()

    async def _run(self) -> None:
        tries = 0
        while True:
            try:
                await self._visit()
            except Exception as error:
                # Any error: the next try may succeed.
                tries = 0 if self.is_connected else tries + 1
                self._connected.clear()
                if not self._told_away:
                    # A traceback only for unexpected errors.
                    unexpected = None if isinstance(error, RedisError | OSError) else error
                    reason = str(error) or type(error).__name__
                    message = "Redis at %s is unavailable, messages stay in this process: %s"
                    logger.warning(message, self._place, reason, exc_info=unexpected)
                self._told_away = True
            longest = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(tries, 10))
            await self._clock.sleep(random.uniform(longest / 2, longest))

    async def _visit(self) -> None:
        """Connect, receive and send; raises on the first failure."""
        # The library's own retries would hide a loss and block other messages.
        retry = Retry(NoBackoff(), 0)
        redis = Redis.from_url(
            self._url, retry=retry, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE, protocol=2
        )
        async with redis as client, client.pubsub() as channel:
            await channel.subscribe(self._channel)
            if await channel.get_message(timeout=PATIENCE) is None:
                raise RedisLost(f"no answer in {PATIENCE:.0f} s")
            # Only after subscribing: a snapshot is then either stored already, or will be received.
            try:
                snapshot = await client.get(self._snapshot_key)
            except ResponseError as error:
                logger.debug("reading %s failed: %s", self._snapshot_key, error)
            else:
                if snapshot is not None:
                    self._hear(snapshot)
            self._told_away = self._told_refusal = False
            self._connected.set()
            logger.info("connected to Redis at %s", self._place)
            both = [asyncio.create_task(self._listen(channel)), asyncio.create_task(self._send(client))]
            try:
                ended, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                await ended.pop()
            finally:
                await _end(both, every=FLUSH_TIMEOUT / 10)

    async def _listen(self, channel: PubSub) -> None:
        asked = False
        while True:
            message = await channel.get_message(timeout=SILENCE)
            if message is None and asked:
                raise RedisLost(f"nothing heard for {2 * SILENCE:.0f} s")
            if message is None:
                await channel.ping()
            elif message["type"] == "message":
                self._hear(message["data"])
                # The buffer may hold many: let the subscribers keep up.
                await self._clock.sleep(0)
            asked = message is None

    def _hear(self, data: object) -> None:
        letter = _Letter.read(data)
        if letter is None:
            logger.debug("unknown message on channel %s: %.80r", self._channel, data)
            return
        key = letter.sender, letter.topic
        # Our own messages were delivered locally. Messages sent when the connection broke are sent again, and a
        # snapshot is also stored under its key.
        if letter.sender == self._sender or letter.number <= self._heard.get(key, -1):
            return
        self._heard[key] = letter.number
        self._heard.move_to_end(key)
        if len(self._heard) > REMEMBERED:
            self._heard.popitem(last=False)
        self._local.publish(letter.topic, letter.payload)

    async def _send(self, client: Redis) -> None:
        while True:
            await self._outbox.filled.wait()
            batch = self._outbox.waiting()
            if not batch:
                continue
            async with client.pipeline(transaction=False) as pipeline:
                snapshots = [data for letter, data in batch if letter.topic == "snapshot"]
                if snapshots:
                    # Stored before it is sent, so that a new subscriber in between finds it.
                    pipeline.set(self._snapshot_key, snapshots[-1], ex=SNAPSHOT_TTL)
                for _, data in batch:
                    pipeline.publish(self._channel, data)
                answers = await pipeline.execute(raise_on_error=False)
            self._outbox.sent(batch[-1][0].number)
            # Because it is full, or by permission. Logged once per connection.
            refusal = next((answer for answer in answers if isinstance(answer, Exception)), None)
            if refusal is not None and not self._told_refusal:
                logger.warning("Redis at %s refused messages: %s", self._place, refusal)
                self._told_refusal = True


@dataclass(frozen=True, slots=True)
class _Letter:
    """One message. Its number grows with each message of its sender."""

    sender: str
    number: int
    topic: str
    payload: Mapping[str, Any]

    def write(self) -> bytes:
        return json.dumps([self.sender, self.number, self.topic, self.payload], separators=(",", ":")).encode()

    @classmethod
    def read(cls, data: object) -> Self | None:
        """Return a received message; None if it is not one of ours."""
        if not isinstance(data, bytes):
            return None
        try:
            parts = json.loads(data)
        except (ValueError, RecursionError):
            return None
        match parts:
            case [str(sender), int(number), str(topic), dict(payload)]:
                return cls(sender, number, topic, payload)
        return None


class _Outbox:
    """Unsent messages, in order; bounded in number and age."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._letters: deque[tuple[float, _Letter, bytes]] = deque(maxlen=OUTBOX)
        self.filled, self.emptied = asyncio.Event(), asyncio.Event()
        self.emptied.set()

    def put(self, letter: _Letter, data: bytes) -> None:
        self._letters.append((self._clock.monotonic(), letter, data))
        self._forget()

    def waiting(self) -> list[tuple[_Letter, bytes]]:
        self._forget()
        return [(letter, data) for _, letter, data in self._letters]

    def sent(self, number: int) -> None:
        """Remove sent messages up to this number. More may have come, or the oldest may have been dropped."""
        while self._letters and self._letters[0][1].number <= number:
            self._letters.popleft()
        self._forget()

    def _forget(self) -> None:
        oldest = self._clock.monotonic() - PERISHED_AFTER
        while self._letters and self._letters[0][0] < oldest:
            self._letters.popleft()
        on, off = (self.filled, self.emptied) if self._letters else (self.emptied, self.filled)
        on.set()
        off.clear()


async def _end(tasks: list[asyncio.Task[None]], *, every: float) -> None:
    """Cancel tasks until they are done.

    Once is not always enough: in Python 3.11 `asyncio.wait_for`, which the library uses, loses a cancellation that
    comes just when it has a result.
    """
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=every)
    for task in tasks:
        # Read, so that asyncio does not warn.
        _ = task.cancelled() or task.exception()


def _place(url: str) -> tuple[str, int]:
    """Return the address of a server without the password, and its database number."""
    try:
        parts: Mapping[str, Any] = parse_url(url)
    except ValueError:
        # The message of the library may contain parts of the password.
        raise ValueError("invalid Redis address: use a form like redis://host:6379/0") from None
    place = parts.get("path") or f"{parts.get('host', 'localhost')}:{parts.get('port', 6379)}"
    return str(place), int(parts.get("db", 0))
