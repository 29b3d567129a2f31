"""Asks only as long as the OLT is ours: a process that was paused must not go on where it stopped."""

from collections.abc import Callable, Sequence

from facho.engine.errors import LeaseLost
from facho.engine.oid import Oid
from facho.engine.ports import Snmp
from facho.engine.snmp import Agent, Answer


class LeasedSnmp:
    """An `Snmp` that looks at the lease before each request; `LeaseLost` when it is over, and nothing is sent."""

    def __init__(self, snmp: Snmp, is_ours: Callable[[], bool]) -> None:
        self._snmp = snmp
        self._is_ours = is_ours

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        self._check()
        return await self._snmp.get(agent, oids, timeout=timeout)

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        self._check()
        return await self._snmp.get_next(agent, oids, timeout=timeout)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        self._check()
        return await self._snmp.get_bulk(
            agent, oids, non_repeaters=non_repeaters, max_repetitions=max_repetitions, timeout=timeout
        )

    async def close(self) -> None:
        await self._snmp.close()

    def _check(self) -> None:
        if not self._is_ours():
            raise LeaseLost("the lease of the OLT was over before the next request")
