"""Bus within one process."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

# A subscriber that is this far behind loses the oldest notifications; the next snapshot corrects it.
BACKLOG = 256

News = tuple[str, Mapping[str, Any]]


class LocalBus:
    """Keeps the last notification of each topic and passes new ones to all subscribers, without waiting."""

    def __init__(self) -> None:
        self._latest: dict[str, Mapping[str, Any]] = {}
        self._subscribers: set[_Subscriber] = set()
        self._closed = False

    def publish(self, topic: str, payload: Mapping[str, Any]) -> None:
        self._latest[topic] = payload
        if self._closed:
            # A late notification would push the end out of a full backlog.
            return
        for subscriber in self._subscribers:
            subscriber.put((topic, payload))

    def latest(self, topic: str) -> Mapping[str, Any] | None:
        return self._latest.get(topic)

    async def subscribe(self, topics: Iterable[str]) -> AsyncIterator[News]:
        """Yield notifications, the last snapshot first. Ends when the bus is closed."""
        wanted = frozenset(topics)
        subscriber = _Subscriber(wanted)
        if "snapshot" in wanted and "snapshot" in self._latest:
            subscriber.put(("snapshot", self._latest["snapshot"]))
        if self._closed:
            return
        self._subscribers.add(subscriber)
        try:
            while (news := await subscriber.get()) is not None:
                yield news
        finally:
            self._subscribers.discard(subscriber)

    def close(self) -> None:
        """End all subscriptions: an open stream would delay the stop of the server."""
        self._closed = True
        for subscriber in self._subscribers:
            subscriber.end()


class _Subscriber:
    """Bounded backlog of one subscriber."""

    def __init__(self, topics: frozenset[str]) -> None:
        self._topics = topics
        self._queue: asyncio.Queue[News | None] = asyncio.Queue(BACKLOG)

    def put(self, news: News) -> None:
        if news[0] in self._topics:
            self._force(news)

    def end(self) -> None:
        self._force(None)

    async def get(self) -> News | None:
        return await self._queue.get()

    def _force(self, item: News | None) -> None:
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(item)
