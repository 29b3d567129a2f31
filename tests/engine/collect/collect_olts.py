"""Simulated OLTs of real makers, asked in virtual time without a socket between; their own log counts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any

from collect_fakes import T0, make_node, make_olt
from collect_virtual import virtually

from facho.adapters.clock import VirtualClock
from facho.adapters.snmp.codec import PduType, decode_answer, prepare
from facho.brands import BRANDS
from facho.engine.brand import Brand
from facho.engine.collect import collect
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.model import Collected, JobKind, KnownOnu
from facho.engine.oid import Oid
from facho.engine.snmp import Agent, Answer, SendByTask
from facho.simulator.agent import SimulatedAgent
from facho.simulator.faults import WELL, Faults
from facho.simulator.fleet import OltSpec, build
from facho.simulator.pdulog import PduLog
from facho.simulator.request_handler import Departure, RequestHandler

FIRST_REQUEST_ID = 0x01000000


class DeskSnmp(SendByTask):
    """Asks a simulated agent at its handler."""

    def __init__(self, handler: RequestHandler, clock: VirtualClock) -> None:
        self._handler = handler
        self._clock = clock
        self._ids = count(FIRST_REQUEST_ID)

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._ask(agent, PduType.GET, oids, timeout)

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._ask(agent, PduType.GET_NEXT, oids, timeout)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        return await self._ask(agent, PduType.GET_BULK, oids, timeout, non_repeaters, max_repetitions)

    async def close(self) -> None: ...

    async def _ask(
        self, agent: Agent, kind: PduType, oids: Sequence[Oid], timeout: float, a: int = 0, b: int = 0
    ) -> Answer:
        request_id = next(self._ids)
        datagram = prepare(agent.version, b"public", kind, oids, a, b).datagram(request_id)
        now = self._clock.now().timestamp()
        departure = self._handler.take(datagram, 40000, now)
        answer = self._read(departure, request_id)
        if departure is None or answer is None or departure.at - now > timeout:
            await asyncio.sleep(timeout)
            raise NoAnswer("no answer")
        # A moment more than the agent's own log says: two times of day that are equal may not come out so.
        await asyncio.sleep(departure.at - now + 1e-6)
        return answer

    def _read(self, departure: Departure | None, request_id: int) -> Answer | None:
        """Return the answer; what is none, or answers something else, is not noticed."""
        try:
            its_id, _, _, answer = decode_answer(departure.payload if departure else b"")
        except BadAnswer:
            return None
        return answer if its_id == request_id else None


@dataclass
class OltStage:
    """One simulated OLT and what a run needs to ask it."""

    brand: Brand
    handler: RequestHandler
    log: PduLog

    @property
    def onus(self) -> int:
        return len(self.handler.agent.device.plant.onus)

    @property
    def faults(self) -> Faults:
        return self.handler.agent.faults

    def run(
        self,
        kind: JobKind,
        *columns: str,
        known: Sequence[KnownOnu] = (),
        seconds: float = 36000,
        brand: Brand | None = None,
        **olt: Any,
    ) -> Collected:
        """Collect from it in virtual time."""
        return virtually(self._collect(make_node(kind, *columns), known, seconds, brand or self.brand, olt))

    async def _collect(self, node: Any, known: Sequence[KnownOnu], seconds: float, brand: Brand, olt: Any) -> Collected:
        clock = VirtualClock(T0)
        return await collect(
            node,
            make_olt(**olt),
            brand,
            snmp=DeskSnmp(self.handler, clock),
            clock=clock,
            deadline=clock.now() + timedelta(seconds=seconds),
            known=known,
            raw_decoders={},
        )

    @property
    def busy(self) -> float:
        """Seconds from the first request to the last answer."""
        ends = [pdu.answered for pdu in self.log.pdus() if pdu.answered is not None]
        return max(ends) - min(pdu.arrived for pdu in self.log.pdus())


def make_stage(brand: str = "huawei", onus: int = 120, *, seed: int = 7, **faults: Any) -> OltStage:
    device = build(OltSpec("OLT-CENTRAL-01", brand, onus=onus, seed=seed))
    log = PduLog()
    return OltStage(
        BRANDS[brand], RequestHandler(SimulatedAgent(device, faults=replace(WELL, **faults), seed=seed), log, seed), log
    )


def known_of(collected: Collected) -> list[KnownOnu]:
    """Return the inventory that a harvest leaves."""
    return [
        KnownOnu(one.index, one.values.get("state") or "unknown", one.slot, one.port, one.onu)
        for one in collected.readings
    ]
