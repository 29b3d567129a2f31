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
        # Bounded backlog of each subscriber, and its topics.
        self._subscribers: dict[asyncio.Queue[News | None], frozenset[str]] = {}
        self._closed = False

    def publish(self, topic: str, payload: Mapping[str, Any]) -> None:
        self._latest[topic] = payload
        if self._closed:
            # A late notification would push the end out of a full backlog.
            return
        for backlog, topics in self._subscribers.items():
            if topic in topics:
                _force(backlog, (topic, payload))

    def latest(self, topic: str) -> Mapping[str, Any] | None:
        return self._latest.get(topic)

    async def subscribe(self, topics: Iterable[str]) -> AsyncIterator[News]:
        """Yield notifications, the last snapshot first. Ends when the bus is closed."""
        if self._closed:
            return
        backlog: asyncio.Queue[News | None] = asyncio.Queue(BACKLOG)
        wanted = self._subscribers[backlog] = frozenset(topics)
        if "snapshot" in wanted and "snapshot" in self._latest:
            backlog.put_nowait(("snapshot", self._latest["snapshot"]))
        try:
            while (news := await backlog.get()) is not None:
                yield news
        finally:
            del self._subscribers[backlog]

    def close(self) -> None:
        """End all subscriptions: an open stream would delay the stop of the server."""
        self._closed = True
        for backlog in self._subscribers:
            _force(backlog, None)


def _force(backlog: "asyncio.Queue[News | None]", item: News | None) -> None:
    if backlog.full():
        backlog.get_nowait()
    backlog.put_nowait(item)
