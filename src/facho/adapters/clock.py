"""Clocks: the system clock, and a virtual one in which a day passes in seconds."""

import asyncio
import selectors
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

# NTP slews by some milliseconds a second, and steps by more than a tenth of a second. Smaller differences are followed
# silently: they lose or repeat no slot.
STEP = timedelta(seconds=0.5)


# Includes the time that the machine was suspended, where the system has such a clock.
_since_boot = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SystemClock:
    """The system's wall clock, read through a monotonic clock.

    `now` steps only inside `follow`, so the process decides when a step takes effect and can shift its own times at
    the same moment.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _since_boot) -> None:
        self._wall = wall
        self._steady = steady
        self._offset = wall() - steady()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._offset + self._steady(), UTC)

    def monotonic(self) -> float:
        return self._steady()

    def follow(self) -> timedelta:
        """Adopt the wall clock. Returns its step since the last call; zero if it only drifted."""
        before, self._offset = self._offset, self._wall() - self._steady()
        by = timedelta(seconds=self._offset - before)
        return by if abs(by) >= STEP else timedelta(0)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time: when it is idle, its clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self.virtual_time = 0.0

    def time(self) -> float:
        return self.virtual_time


class _JumpingSelector(selectors.SelectSelector):
    """Never blocks: makes the loop's clock jump instead."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            # Only another thread can wake the loop now.
            return super().select(None)
        self._loop.virtual_time += max(timeout, 0.0)
        return super().select(0)


class VirtualClock:
    """Time of the running `VirtualTimeLoop`, counted from a chosen epoch."""

    def __init__(self, epoch: datetime) -> None:
        self._epoch = epoch

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
