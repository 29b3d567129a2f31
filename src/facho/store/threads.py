"""Threads that hold the database, so that the event loop never waits for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")


class DbThread:
    """One thread with one connection, for sync ORM code that must not block the loop."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._call, work)

    @staticmethod
    def _call(work: Callable[[], T]) -> T:
        # This thread lives for weeks; the server may have dropped its connection.
        close_old_connections()
        return work()

    def close(self) -> None:
        """Finish what was begun, and give the connection back."""
        self._pool.submit(connections.close_all)
        self._pool.shutdown(wait=True)
