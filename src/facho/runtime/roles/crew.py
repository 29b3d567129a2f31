"""Pollers of one worker: assignment and reports."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from facho.engine.model import Claim, Outcome
from facho.engine.ports import Clock, NodeRunner
from facho.engine.scheduling.grid import is_delayed
from facho.engine.scheduling.pollers import Poller
from facho.engine.scheduling.snapshot import describe


class WorkerPollers:
    """Assigns composites to pollers. The scheduler sends no more than there are pollers; an early one waits."""

    def __init__(self, *, name: str, host: str, numbers: Sequence[int], runner: NodeRunner, clock: Clock) -> None:
        self.name = name
        self.host = host
        self.is_draining = False
        self.pollers = [Poller(number) for number in numbers]
        self._runner = runner
        self._clock = clock
        self._started_at = clock.now()
        self._free = asyncio.Queue[Poller]()
        for poller in self.pollers:
            self._free.put_nowait(poller)
        # By OLT.
        self._running: dict[int, asyncio.Task[Sequence[Outcome]]] = {}

    async def run(self, claim: Claim) -> None:
        """Run a composite to its end, or until it is interrupted."""
        poller = await self._free.get()
        began = self._clock.now()
        poller.sit(claim.composite, began)
        poller.take(claim)
        task = asyncio.ensure_future(self._runner.run(replace(claim, poller_id=poller.id), poller))
        self._running[claim.composite.olt_id] = task
        try:
            # It may be interrupted; that must not cancel the caller.
            await asyncio.wait({task})
        finally:
            if self._running.get(claim.composite.olt_id) is task:
                del self._running[claim.composite.olt_id]
            if not _was_given_back(task):
                poller.tasks_completed += 1
                poller.tasks_delayed += is_delayed(claim.composite.retry_at or claim.composite.slot, began)
            poller.rise(self._clock.now())
            self._free.put_nowait(poller)
        if not task.cancelled():
            task.result()

    def clock_set(self, by: timedelta) -> None:
        """Shift the times after the clock was set."""
        self._started_at += by
        for poller in self.pollers:
            poller.clock_set(by)

    def interrupt(self, olt_id: int) -> None:
        """Cancel the run on an OLT. Its executions have ended already."""
        if olt_id in self._running:
            self._running[olt_id].cancel()

    @property
    def numbers(self) -> list[int]:
        return [poller.id for poller in self.pollers]

    def renumber(self, numbers: Sequence[int]) -> None:
        """Give the pollers new numbers. Their runs continue."""
        for poller, number in zip(self.pollers, numbers, strict=True):
            poller.id = number

    @property
    def running(self) -> int:
        return len(self._running)

    def report(self) -> Mapping[str, Any]:
        """Return the report that is sent once a second."""
        return {
            "worker": self.name,
            "host": self.host,
            "at": self._clock.now().isoformat(),
            "draining": self.is_draining,
            "pollers": self.describe(),
        }

    def describe(self) -> list[dict[str, Any]]:
        return describe(self.pollers, self._clock.now(), self._started_at, self.name, self.host)


def _was_given_back(task: "asyncio.Task[Sequence[Outcome]]") -> bool:
    """Return whether nothing was started, and so nothing ended."""
    return task.done() and not task.cancelled() and task.exception() is None and not task.result()
