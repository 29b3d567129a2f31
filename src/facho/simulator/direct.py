"""SNMP without sockets: a simulated agent in the same process, asked at any time, also in the past."""

from collections.abc import Sequence

from facho.adapters.snmp import codec
from facho.adapters.snmp.codec import PduType
from facho.engine.errors import NoAnswer
from facho.engine.oid import Oid
from facho.engine.snmp import Agent, Answer, SendByTask, Version
from facho.simulator.agent import SimulatedAgent
from facho.simulator.device import Device

COMMUNITY = "public"


class DirectSnmp(SendByTask):
    """The `Snmp` of one healthy device, whatever the agent. `now` is the time that its values depend on."""

    def __init__(self, device: Device, now: float) -> None:
        self._agent = SimulatedAgent(device, COMMUNITY)
        self._now = now

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return self._ask(PduType.GET, oids)

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return self._ask(PduType.GET_NEXT, oids)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        return self._ask(PduType.GET_BULK, oids, non_repeaters, max_repetitions)

    async def close(self) -> None:
        """Do nothing: there is no socket."""

    def _ask(self, kind: PduType, oids: Sequence[Oid], a: int = 0, b: int = 0) -> Answer:
        request = codec.prepare(Version.V2C, COMMUNITY.encode(), kind, oids, a, b)
        datagram = request.datagram(codec.MIN_REQUEST_ID)
        reply = self._agent.serve(datagram, self._now)
        if reply.payload is None:
            raise NoAnswer(f"{self._agent.device.name} did not answer")
        return codec.read_answer(codec.open_answer(reply.payload), request.expected, len(datagram))
