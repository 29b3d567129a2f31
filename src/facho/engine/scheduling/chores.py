"""What is done beside polling, each on its own beat: settling hours, making plans, sweeping out what is old."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from facho.engine.events import Event, tell
from facho.engine.ports import Clock

logger = logging.getLogger(__name__)

# Beats are counted from here, so that "every hour" is on the hour whenever the engine was started.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A chore that has been at work for so many seconds may never come to an end; that is said once.
LONG = 600.0


@dataclass(frozen=True, slots=True)
class Chore:
    """Work to be done every so often. `offset` puts it that much behind the turn of the hour, or of the minute."""

    name: str
    every: timedelta
    work: Callable[[datetime], Awaitable[None]]
    offset: timedelta = timedelta(0)

    def next_beat(self, now: datetime) -> datetime:
        """Return its first beat after `now`."""
        beats = (now - EPOCH - self.offset) // self.every + 1
        return EPOCH + self.offset + beats * self.every


class Chores:
    """Begins each chore once at the start, and then on its beats.

    No chore waits for another, nor stops for one that failed. One that is
    still at work when its next beat comes leaves that beat out: it never runs
    twice at once, and what it missed it finds at the beat after.
    """

    def __init__(self, clock: Clock, chores: Iterable[Chore]) -> None:
        self._clock = clock
        self._chores = tuple(chores)
        names = [chore.name for chore in self._chores]
        if len(set(names)) < len(names):
            raise ValueError(f"two chores have the same name: {', '.join(sorted(names))}")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # When each that is at work began, by the monotonic clock, until it was logged that it takes long.
        self._begun: dict[str, float] = {}
        self._due: dict[str, datetime] = {}
        self._stopping = False

    async def run(self) -> None:
        """Do them for ever."""
        while not self._stopping:
            due = self.step(self._clock.now())
            await self._clock.sleep(max((due - self._clock.now()).total_seconds(), 0.0))

    def step(self, now: datetime) -> datetime:
        """Begin what is due, and return when something is due again."""
        for chore in self._chores:
            due = self._due.get(chore.name, now)
            # Further away than a beat: the clock was set back.
            if due <= now or due > now + chore.every:
                self._due[chore.name] = chore.next_beat(now)
                self._begin(chore, now)
        return min(self._due.values(), default=now + timedelta(hours=1))

    def _begin(self, chore: Chore, now: datetime) -> None:
        if self._stopping:
            return
        if chore.name not in self._tasks:
            task = asyncio.create_task(self._do(chore, now), name=f"chore-{chore.name}")
            self._tasks[chore.name], self._begun[chore.name] = task, self._clock.monotonic()
            # Not in the task itself: one that is stopped before its first step never gets to its end.
            task.add_done_callback(lambda _: self._ended(chore.name))
        elif chore.name in self._begun and self._clock.monotonic() - self._begun[chore.name] >= LONG:
            seconds = self._clock.monotonic() - self._begun.pop(chore.name)
            logger.warning("the chore %s has been at work for %.0f s", chore.name, seconds)

    async def _do(self, chore: Chore, now: datetime) -> None:
        try:
            await chore.work(now)
        except Exception as error:
            # The database may be away. The next beat tries again, and the other chores have nothing to do with it.
            failure = str(error) or type(error).__name__
            tell(logger, Event.CHORE_FAILED, exc_info=error, chore=chore.name, error=failure)

    def _ended(self, name: str) -> None:
        del self._tasks[name]
        self._begun.pop(name, None)

    async def stop(self) -> None:
        """Begin nothing any more, stop what is at work, and wait until it has stopped."""
        self._stopping = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
