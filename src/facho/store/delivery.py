"""Store and forward: while the database is unavailable, results wait in a spool, and each is stored once.

A result goes to the database first, unless others wait already: then it goes
behind them, so that the results of an execution keep their order. Nothing new
starts while results wait.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime

from facho.adapters.wire import UnreadableMessage
from facho.engine.errors import LeaseLost
from facho.engine.events import Event, tell
from facho.engine.model import RunResult
from facho.store.away import is_away, is_short_of_something, ping
from facho.store.spool import MEGABYTE, NotKept, Spool
from facho.store.threads import DbThread

logger = logging.getLogger(__name__)

# A result that fails so often, while the database answers other requests, is itself the cause.
MOST_FAILURES = 10

NOT_STORED = "the readings could not be stored when the database was available again; the spool keeps them"


class ResultDelivery:
    """Brings results to the database, now or later. One per process, so that results keep their order."""

    def __init__(
        self,
        store: Callable[[RunResult], Awaitable[None]],
        *,
        spool: Spool,
        thread: DbThread,
        ping: Callable[[], None] = ping,
    ) -> None:
        self._store = store
        self._spool = spool
        # The event loop must not wait for a disk.
        self._thread = thread
        self._ping = ping
        self._flushing: asyncio.Task[None] | None = None
        self._failures: Counter[int] = Counter()
        # Since the database was last available: results that were stored late, and those that came too late.
        self._stored = self._dropped = 0
        self._is_away = self._is_full = False

    @property
    def waiting(self) -> int:
        """Return the number of results that wait for the database."""
        return len(self._spool)

    @property
    def waiting_bytes(self) -> int:
        return self._spool.size

    async def finish(self, result: RunResult) -> None:
        """Store a result now, or keep it for later; `NotKept` if there is no room for what was read."""
        if not self.waiting:
            try:
                await self._store(result)
            except Exception as error:
                if not is_away(error):
                    raise
                self._tell_away(error)
            else:
                self._is_away = self._is_full = False
                return
        await self._thread.run(lambda: self._keep(result))

    def _keep(self, result: RunResult) -> None:
        try:
            self._spool.append(result)
        except (NotKept, TypeError) as error:
            if not self._is_full:
                self._is_full = True
                tell(logger, Event.SPOOL_FULL, size=self._spool.size / MEGABYTE, error=str(error))
            if result.has_data:
                reason = f"the database is unavailable, and the readings could not be kept: {error}"
                raise NotKept(reason) from error
            # The execution stays open until the reaper ends it.
            logger.error("the result of executions %s was lost: %s", result.execution_ids, error)

    def _tell_away(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            tell(logger, Event.SPOOLING, error=_sentence(error))

    async def flush(self) -> None:
        """Store all results that wait, in order; the error of the database if it is still unavailable."""
        if not self.waiting:
            return
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush(), name="spool")
            self._flushing.add_done_callback(self._flushed)
        # Several callers may await it, and one that is cancelled must not stop it for the others.
        await asyncio.shield(self._flushing)

    def _flushed(self, task: "asyncio.Task[None]") -> None:
        self._flushing = None
        if not task.cancelled():
            # Its callers get the error; without one, asyncio must not warn about it.
            task.exception()

    async def step(self, now: datetime) -> None:
        """Flush, as a chore. That the database is still unavailable has been logged."""
        try:
            await self.flush()
        except Exception as error:
            if not is_away(error):
                raise
            logger.debug("%d results still wait: %s", self.waiting, error)

    async def close(self) -> None:
        """Wait for a flush that is under way, and leave the rest to the next process."""
        if self._flushing is not None:
            await asyncio.gather(self._flushing, return_exceptions=True)
        await self._thread.run(self._spool.close)

    async def _flush(self) -> None:
        # Results that come in meanwhile are behind the others, and are stored as well.
        while (number := await self._thread.run(self._spool.first)) is not None:
            await self._deliver(number)
        if self._stored:
            tell(logger, Event.SPOOL_LANDED, entries=self._stored)
        if self._dropped:
            tell(logger, Event.SPOOL_DROPPED, entries=self._dropped)
        self._stored = self._dropped = 0
        self._is_away = self._is_full = False

    async def _deliver(self, number: int) -> None:
        """Store the result with this number, and remove it; the error of the database if it is unavailable."""
        try:
            result = await self._thread.run(lambda: self._spool.read(number))
        except UnreadableMessage as error:
            await self._refuse(number, error)
            return
        try:
            await self._store(result)
        except LeaseLost as error:
            logger.warning("the result of execution %s came too late: %s", result.execution_ids, error)
            self._dropped += 1
        except Exception as error:
            if is_away(error) and not await self._is_to_blame(number, error):
                raise
            # A defect of ours, or of one row: the results behind it must not wait for it.
            logger.exception("the result of execution %s could not be stored", result.execution_ids)
            await self._store_without_data(result)
            await self._refuse(number, error)
            return
        else:
            self._stored += 1
        await self._thread.run(lambda: self._spool.remove(number))

    async def _store_without_data(self, result: RunResult) -> None:
        """End the executions of a result that cannot be stored whole: they must not report readings that are lost."""
        if result.has_data:
            try:
                await self._store(result.without_data(NOT_STORED, NotKept.__name__))
            except Exception as error:
                if is_away(error):
                    raise
                # The reaper ends them.
                logger.exception("executions %s could not be ended", result.execution_ids)

    async def _is_to_blame(self, number: int, error: Exception) -> bool:
        """Return whether a database that answers other requests has failed for this result again and again."""
        if is_short_of_something(error):
            return False
        try:
            await self._thread.run(self._ping)
        except Exception as away:
            logger.debug("the database is unavailable: %s", away)
            self._failures.clear()
            return False
        self._failures[number] += 1
        return self._failures[number] >= MOST_FAILURES

    async def _refuse(self, number: int, error: Exception) -> None:
        self._failures.pop(number, None)
        await self._thread.run(lambda: self._spool.refuse(number, _sentence(error)))
        tell(logger, Event.SPOOL_REFUSED, entry=f"result {number}", error=_sentence(error))


def _sentence(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
