"""Time: the machine's, and a virtual one in which a day passes in seconds."""

import asyncio
import selectors
import time
from datetime import UTC, datetime, timedelta
from typing import Any


class SystemClock:
    """The wall clock as it was at the start, carried on by a clock that nobody sets.

    A step of the machine's clock then neither skips slots nor repeats them.
    """

    def __init__(self) -> None:
        self._offset = time.time() - self.monotonic()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._offset + self.monotonic(), UTC)

    def monotonic(self) -> float:
        # Goes on while a machine sleeps, where the system has such a clock.
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time: when nothing is left to do, its clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self.virtual_time = 0.0

    def time(self) -> float:
        return self.virtual_time


class _JumpingSelector(selectors.SelectSelector):
    """Never blocks: lets the loop's clock jump instead."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            # Only another thread, or nothing at all, can wake the loop now.
            return super().select(None)
        self._loop.virtual_time += max(timeout, 0.0)
        return super().select(0)


class VirtualClock:
    """The time of the running `VirtualTimeLoop`, counted from an epoch of one's choice."""

    def __init__(self, epoch: datetime) -> None:
        self._epoch = epoch

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
