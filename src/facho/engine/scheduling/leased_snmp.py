"""SNMP under a lease: requests to a device only while its lease is held, even after the process was paused."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from facho.engine.errors import LeaseLost, OltBusy, OltUnreachable
from facho.engine.model import Lease, Olt
from facho.engine.observer import Observer
from facho.engine.oid import Oid
from facho.engine.ports import OltLeases, Snmp
from facho.engine.snmp import Agent, Answer, Asked, Cancellable, Done, Line, Operation

OVER = "the lease of the OLT expired before the next request"


@asynccontextmanager
async def hold(leases: OltLeases, olt: Olt, holder: str, observer: Observer) -> AsyncIterator[Lease]:
    """Hold the lease of an OLT's device inside a `with`. Raises `OltBusy` if another holder has it."""
    async with AsyncExitStack() as stack:
        try:
            lease = await stack.enter_async_context(leases.hold(olt.id, holder, device=olt.agent.device))
        except OltBusy:
            observer.lease_refused()
            raise
        observer.lease_taken()
        is_stopped = False
        try:
            yield lease
        except asyncio.CancelledError:
            # The OLT was disabled or Facho stops: the lease ends on purpose.
            is_stopped = True
            raise
        finally:
            observer.lease_released(is_lost=not is_stopped and not leases.is_valid(lease))


class LeasedSnmp:
    """An `Snmp` that sends only to the device of its lease.

    It checks the lease before each request and raises `LeaseLost` if it is over. It raises `OltUnreachable` for an
    agent that nothing may be sent to, and for an unresolved host name, because an unknown device cannot be leased.
    """

    def __init__(self, snmp: Snmp, lease: Lease, is_valid: Callable[[Lease], bool]) -> None:
        self._snmp = snmp
        self._lease = lease
        self._is_valid = is_valid
        # Agent of the leased device, the same for every request of a run.
        self._agent: Agent | None = None

    def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Coroutine[Any, Any, Answer]:
        self._check(agent)
        return self._snmp.get(agent, oids, timeout=timeout)

    def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Coroutine[Any, Any, Answer]:
        self._check(agent)
        return self._snmp.get_next(agent, oids, timeout=timeout)

    def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Coroutine[Any, Any, Answer]:
        self._check(agent)
        return self._snmp.get_bulk(
            agent, oids, non_repeaters=non_repeaters, max_repetitions=max_repetitions, timeout=timeout
        )

    def line(self, agent: Agent) -> Line:
        self._check(agent)
        return LeasedLine(self._snmp.line(agent), self._lease, self._is_valid)

    async def close(self) -> None:
        await self._snmp.close()

    def _check(self, agent: Agent) -> None:
        if agent is not self._agent:
            if agent.obstacle:
                raise OltUnreachable(agent.obstacle)
            if agent.device != self._lease.device:
                raise LeaseLost(f"the lease is for {self._lease.device} and not for {agent.device}")
            self._agent = agent
        if not self._is_valid(self._lease):
            raise LeaseLost(OVER)


class LeasedLine:
    """A line to the device of a lease that looks at it before each request."""

    def __init__(self, line: Line, lease: Lease, is_valid: Callable[[Lease], bool]) -> None:
        self._line = line
        self._lease = lease
        self._is_valid = is_valid

    def send(self, operation: Operation, asked: Asked, repetitions: int, timeout: float, done: Done) -> Cancellable:
        if not self._is_valid(self._lease):
            raise LeaseLost(OVER)
        return self._line.send(operation, asked, repetitions, timeout, done)
