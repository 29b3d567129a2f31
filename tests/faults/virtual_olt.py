"""A simulated OLT without sockets, in virtual time: what it saw is in its own log, and a slow one takes no time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.adapters.snmp import codec
from facho.adapters.snmp.codec import PduType
from facho.brands import brand
from facho.brands.decode import RAW_DECODERS
from facho.engine.collect import collect
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.model import Collected, JobKind, KnownOnu, Node, Olt
from facho.engine.snmp import Agent as Target
from facho.engine.snmp import Answer, Community, SendByTask, Version
from facho.simulator.agent import SimulatedAgent
from facho.simulator.device import Device
from facho.simulator.faults import WELL, Faults
from facho.simulator.fleet import OltSpec, build
from facho.simulator.pdulog import PduLog
from facho.simulator.request_handler import Departure, RequestHandler

T0 = datetime(2030, 1, 1, 10, 0, tzinfo=UTC)
COMMUNITY = b"public"


@cache
def device(name: str, maker: str, onus: int) -> Device:
    return build(OltSpec(name, maker, onus=onus, seed=11))


class VirtualOlt(SendByTask):
    """An OLT and the port to ask it through. Each request goes through its handler as a datagram would."""

    def __init__(self, onus: int = 512, faults: Faults = WELL, maker: str = "huawei", seed: int = 1) -> None:
        self.name = "OLT-CENTRAL-01" if maker == "huawei" else "OLT-NORTE-02"
        self.maker = maker
        self.log = PduLog()
        self.device = device(self.name, maker, onus)
        self.agent = SimulatedAgent(self.device, faults=faults, seed=seed)
        self._handler = RequestHandler(self.agent, self.log, seed=seed)
        self._ids = 0x01000000
        # Called before each request arrives, with how many there were.
        self.on_request: Callable[[int], None] | None = None

    async def get(self, agent: Target, oids: Sequence[Any], *, timeout: float) -> Answer:
        return await self._ask(PduType.GET, oids, 0, 0, timeout)

    async def get_next(self, agent: Target, oids: Sequence[Any], *, timeout: float) -> Answer:
        return await self._ask(PduType.GET_NEXT, oids, 0, 0, timeout)

    async def get_bulk(
        self, agent: Target, oids: Sequence[Any], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        return await self._ask(PduType.GET_BULK, oids, non_repeaters, max_repetitions, timeout)

    async def close(self) -> None: ...

    async def _ask(self, kind: PduType, oids: Sequence[Any], first: int, second: int, timeout: float) -> Answer:
        self._ids += 1
        request_id = self._ids
        now = T0.timestamp() + asyncio.get_running_loop().time()
        request = codec.prepare(Version.V2C, COMMUNITY, kind, oids, first, second)
        if self.on_request is not None:
            self.on_request(self.log.count())
        departure = self._handler.take(request.datagram(request_id), 40000, now)
        delay = timeout if departure is None else departure.at - now
        await asyncio.sleep(min(delay, timeout))
        if departure is None or delay > timeout:
            raise NoAnswer("no answer")
        answer = _answer_to(request_id, departure.payload)
        if answer is None:
            # Noise, or somebody else's answer: a socket drops it, and ours does not come any more.
            await asyncio.sleep(timeout - delay)
            raise NoAnswer("no answer")
        return answer

    def spoil(self, seed: int, share: float) -> None:
        """Change a few bytes in some of the answers, any bytes to anything."""
        random, take = Random(seed), self._handler.take

        def spoiled(datagram: bytes, source: int, now: float) -> Departure | None:
            departure = take(datagram, source, now)
            if departure is None or random.random() >= share:
                return departure
            payload = bytearray(departure.payload)
            for _ in range(random.randint(1, 4)):
                payload[random.randrange(len(payload))] = random.randrange(256)
            return Departure(departure.at, bytes(payload))

        self._handler.take = spoiled

    async def collect(
        self, kind: JobKind = JobKind.DISCOVERY, *columns: str, known: Sequence[KnownOnu] = (), **settings: Any
    ) -> Collected:
        """Collect once. `settings` are those of the OLT, `seconds` until the deadline, and the `memory` of the job."""
        clock = VirtualClock(T0)
        deadline = clock.now() + timedelta(seconds=settings.pop("seconds", 3600))
        memory = settings.pop("memory", None)
        node = Node(7, 1, "Optical power", kind, timedelta(minutes=5), columns=columns)
        target = Target("127.0.0.1", 161, Version.V2C, Community("public"))
        return await collect(
            node,
            Olt(1, self.name, self.maker, target, **settings),
            brand(self.maker),
            snmp=self,
            clock=clock,
            deadline=deadline,
            known=known,
            raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
            memory=memory,
        )

    def known(self) -> list[KnownOnu]:
        """Return every ONU as an inventory has it after a discovery."""
        space = brand(self.maker).space
        return [
            KnownOnu(
                ".".join(map(str, space.encode(onu.position))),
                "online",
                onu.position.slot,
                onu.position.port,
                onu.position.onu,
            )
            for onu in self.device.plant.onus
        ]


def _answer_to(request_id: int, payload: bytes) -> Answer | None:
    try:
        envelope = codec.open_answer(payload)
    except BadAnswer:
        return None
    return codec.read_answer(envelope) if envelope.request_id == request_id else None


def in_virtual_time(story: Callable[[], Awaitable[Any]]) -> Any:
    """Run a story to its end; however long it waits, that takes no time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(_told(story))


async def _told(story: Callable[[], Awaitable[Any]]) -> Any:
    return await story()
