"""The fake OLT in virtual time: requests really are under way together, and their number is counted."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from collect_fakes import T0, FakeAgent, Faults

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.engine.errors import NoAnswer
from facho.engine.oid import Oid
from facho.engine.snmp import Answer, Value

T = TypeVar("T")


def virtually(story: Coroutine[Any, Any, T]) -> T:
    """Live a story in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story)


class VirtualAgent(FakeAgent):
    """Works on `workers` requests at a time, `service` seconds each and `per_variable` more, and answers then."""

    def __init__(
        self,
        mib: Mapping[Oid, Value],
        faults: Faults | None = None,
        *,
        service: float = 0.1,
        per_variable: float = 0.0,
        workers: int = 100,
        path: Sequence[Oid] = (),
    ) -> None:
        super().__init__(VirtualClock(T0), mib, faults, path=path, latency=0.0)
        self.service = service
        self.per_variable = per_variable
        self.in_flight = self.peak = 0
        self._free_at = [0.0] * workers

    async def get(self, *args: Any, timeout: float, **options: Any) -> Answer:
        return await self._serve(super().get(*args, timeout=timeout, **options), timeout)

    async def get_next(self, *args: Any, timeout: float, **options: Any) -> Answer:
        return await self._serve(super().get_next(*args, timeout=timeout, **options), timeout)

    async def get_bulk(self, *args: Any, timeout: float, **options: Any) -> Answer:
        return await self._serve(super().get_bulk(*args, timeout=timeout, **options), timeout)

    def _take(self, seconds: float) -> None:
        """Time passes by itself here."""

    async def _serve(self, answering: Awaitable[Answer], timeout: float) -> Answer:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            try:
                answer = await answering
            except NoAnswer:
                await asyncio.sleep(timeout)
                raise
            takes = self._work(len(answer))
            await asyncio.sleep(min(takes, timeout))
            if takes > timeout:
                raise NoAnswer("too late")
        finally:
            self.in_flight -= 1
        return answer

    def _work(self, variables: int) -> float:
        """Return how long an answer takes that is asked for now."""
        now = self.clock.monotonic()
        worker = self._free_at.index(min(self._free_at))
        self._free_at[worker] = max(now, self._free_at[worker]) + self.service + variables * self.per_variable
        return self._free_at[worker] - now


def busiest_second(times: Sequence[float], start: Callable[[float], float] = lambda time: time) -> int:
    """Return the most requests that began within any one second."""
    return max(sum(start(time) <= other < start(time) + 1 for other in times) for time in times)
