"""Asks OLTs whose breaker is open, once a minute, whether they are back: one request, outside the pollers."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from facho.engine import oid
from facho.engine.breaker import PROBE_EVERY, first_probe
from facho.engine.errors import LeaseLost, NoAnswer, OltBusy, OltGone, SnmpError
from facho.engine.leased import LeasedSnmp
from facho.engine.model import Lease, Olt
from facho.engine.ports import Clock, Ledger, NodeSource, OltLeases, Snmp
from facho.engine.schedule import next_check

logger = logging.getLogger(__name__)

# Every agent has it: how long it has been up.
SYS_UP_TIME = oid.parse("1.3.6.1.2.1.1.3.0")

# An OLT that has come back answers a single scalar in far less.
TIMEOUT = 5.0


class Gate(Protocol):
    """Who else asks OLTs: is told which one is being probed, and says which one is being asked."""

    def is_busy(self, olt_id: int) -> bool: ...

    def hold(self, olt_id: int) -> None: ...

    def release(self, olt_id: int) -> None: ...


class Prober:
    """Holds the lease of an OLT for one request. Any answer counts, an error as well."""

    def __init__(
        self, *, name: str, nodes: NodeSource, ledger: Ledger, leases: OltLeases, snmp: Snmp, clock: Clock
    ) -> None:
        self._name = name
        self._nodes = nodes
        self._ledger = ledger
        self._leases = leases
        self._snmp = snmp
        self._clock = clock
        self._next: dict[int, datetime] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def follow(self, broken: Mapping[int, datetime]) -> None:
        """Take over which breakers are open, and since when."""
        self._next = {olt_id: self._next.get(olt_id) or first_probe(olt_id, since) for olt_id, since in broken.items()}

    def tick(self, now: datetime, gate: Gate) -> None:
        """Begin the probes that are due; one that is still under way is not doubled."""
        for olt_id, due in self._next.items():
            if due <= now and not gate.is_busy(olt_id):
                self._next[olt_id] = next_check(due, PROBE_EVERY, now)
                # After a restart, or a stall, all of them would be due at once: each waits for its own second.
                if now - due < PROBE_EVERY:
                    self._begin(olt_id, gate)

    def _begin(self, olt_id: int, gate: Gate) -> None:
        gate.hold(olt_id)
        task = self._tasks[olt_id] = asyncio.create_task(self._run(olt_id), name=f"probe-{olt_id}")
        # Not in the task itself: one that is stopped before its first step never gets to its end.
        task.add_done_callback(lambda _: self._ended(olt_id, gate))

    def _ended(self, olt_id: int, gate: Gate) -> None:
        del self._tasks[olt_id]
        gate.release(olt_id)

    async def _run(self, olt_id: int) -> None:
        try:
            await self.probe(olt_id)
        except (OltBusy, OltGone, LeaseLost):
            # Somebody else is asking it, or a person does not want it asked any more.
            logger.debug("OLT %d was not probed: it is held, or gone", olt_id)
        except Exception:
            # The next minute tries again, whatever this one ran into.
            logger.exception("OLT %d could not be probed", olt_id)

    async def probe(self, olt_id: int) -> None:
        """Ask an OLT one thing, and note whether it answered."""
        olt = await self._nodes.olt(olt_id)
        async with self._leases.hold(olt_id, f"{self._name}/probe") as lease:
            answered = await self._answers(olt, lease)
        if answered:
            await self._ledger.answered(olt_id, now=self._clock.now())
        else:
            await self._ledger.probed(olt_id, now=self._clock.now())

    async def _answers(self, olt: Olt, lease: Lease) -> bool:
        snmp = LeasedSnmp(self._snmp, lambda: self._leases.is_valid(lease))
        try:
            await snmp.get(olt.agent, [SYS_UP_TIME], timeout=TIMEOUT)
        except NoAnswer:
            return False
        except SnmpError as error:
            logger.info("%s answered a probe with an error: %s", olt.name, error)
        return True

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
