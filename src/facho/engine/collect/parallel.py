"""Several parts of a run at once: as many as the window allows, started in order."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from facho.engine.collect.requester import Requester

Work = Coroutine[Any, Any, None]


class Parallel:
    """Runs the work from `next_work` until there is no more and all of it is done.

    The first failure ends the run: no more work is started, and work in progress finishes to keep its rows.
    """

    def __init__(self, requester: Requester, next_work: Callable[[], Work | None]) -> None:
        self._requester = requester
        self._next_work = next_work
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._is_over = False
        self._done: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run everything."""
        self._done = asyncio.get_running_loop().create_future()
        self._requester.on_wider = self._begin_more
        self._requester.is_busy = True
        try:
            self._begin_more()
            await self._done
        finally:
            self._requester.on_wider = None
            self._requester.is_busy = False
            # A run that is cancelled cancels its tasks and starts no new ones.
            self._is_over = True
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    def _begin_more(self) -> None:
        while not self._is_over and self._failure is None and len(self._tasks) < self._requester.window:
            work = self._next_work()
            if work is None:
                self._requester.is_busy = False
                break
            self._requester.is_busy = True
            task = asyncio.ensure_future(work)
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        if not self._tasks and self._done is not None and not self._done.done():
            self._done.set_result(None)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._begin_more()
