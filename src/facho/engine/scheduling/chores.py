"""Periodic tasks beside polling: closing hours, planning, deleting old rows."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from facho.engine.events import Event, log_event
from facho.engine.ports import Clock

logger = logging.getLogger(__name__)

# Epoch of all intervals, so that "every hour" is on the hour.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Seconds after which a running chore is logged as slow, once.
LONG = 600.0


@dataclass(frozen=True, slots=True)
class Chore:
    """A periodic task. `offset` is the delay after the full hour or minute."""

    name: str
    every: timedelta
    work: Callable[[datetime], Awaitable[None]]
    offset: timedelta = timedelta(0)

    def next_beat(self, now: datetime) -> datetime:
        """Return the first beat after `now`."""
        beats = (now - EPOCH - self.offset) // self.every + 1
        return EPOCH + self.offset + beats * self.every


class Chores:
    """Runs each chore once at the start, then on its beats.

    Chores are independent: none waits for another, and a failure stops only that run. A chore that is still running
    skips its next beat, so it never runs twice at once.
    """

    def __init__(self, clock: Clock, chores: Iterable[Chore]) -> None:
        self._clock = clock
        self._chores = tuple(chores)
        names = [chore.name for chore in self._chores]
        if len(set(names)) < len(names):
            raise ValueError(f"two chores have the same name: {', '.join(sorted(names))}")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # Start time of each running chore (monotonic), removed after it was logged as slow.
        self._begun: dict[str, float] = {}
        self._due: dict[str, datetime] = {}
        self._stopping = False

    async def run(self) -> None:
        """Run the chores forever."""
        while not self._stopping:
            due = self.step(self._clock.now())
            await self._clock.sleep(max((due - self._clock.now()).total_seconds(), 0.0))

    def step(self, now: datetime) -> datetime:
        """Start the due chores and return the time of the next beat."""
        for chore in self._chores:
            due = self._due.get(chore.name, now)
            # More than one beat ahead: the clock was set back.
            if now < due <= now + chore.every:
                continue
            self._due[chore.name] = chore.next_beat(now)
            if self._stopping:
                continue
            if chore.name not in self._tasks:
                task = asyncio.create_task(self._do(chore, now), name=f"chore-{chore.name}")
                self._tasks[chore.name], self._begun[chore.name] = task, self._clock.monotonic()
                # A callback, because a task that is cancelled before its first step runs no `finally`.
                task.add_done_callback(partial(self._ended, chore.name))
            elif chore.name in self._begun and self._clock.monotonic() - self._begun[chore.name] >= LONG:
                seconds = self._clock.monotonic() - self._begun.pop(chore.name)
                logger.warning("maintenance task %s has been running for %.0f s", chore.name, seconds)
        return min(self._due.values(), default=now + timedelta(hours=1))

    async def _do(self, chore: Chore, now: datetime) -> None:
        try:
            await chore.work(now)
        except Exception as error:
            # The database may be unavailable. The next beat tries again; other chores continue.
            failure = str(error) or type(error).__name__
            log_event(logger, Event.CHORE_FAILED, exc_info=error, chore=chore.name, error=failure)

    def _ended(self, name: str, _: "asyncio.Task[None]") -> None:
        del self._tasks[name]
        self._begun.pop(name, None)

    async def stop(self) -> None:
        """Start no more chores, cancel the running ones and wait for them."""
        self._stopping = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
