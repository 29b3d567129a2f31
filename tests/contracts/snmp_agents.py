"""Agents that say what a test tells them to: over v1/v2c with our own codec, over v3 with the library's USM."""

import asyncio
import selectors
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from snmp.pdu import GetBulkRequestPDU, GetNextRequestPDU, GetRequestPDU, ResponsePDU
from snmp.security import SecurityModel
from snmp.security.levels import noAuthNoPriv
from snmp.security.usm import UserBasedSecurityModule
from snmp.smi import VarBindList
from snmp.v3.message import (
    HeaderData,
    MessageFlags,
    ReportMessage,
    ScopedPDU,
    SecurityName,
    SNMPv3Message,
    SNMPv3WireMessage,
)

from facho.adapters.snmp import codec, usm_keys
from facho.engine import oid as oids
from facho.engine.oid import Oid
from facho.engine.snmp import Agent, Community, Missing, Tag, User, Value, Version

LOOPBACK = "127.0.0.1"
ENGINE_ID = bytes.fromhex("80001f8880facade01")

Varbind = tuple[Oid, int, Value]


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    pdu_type: codec.PduType
    oids: tuple[Oid, ...]
    non_repeaters: int = 0
    max_repetitions: int = 0


@dataclass(frozen=True)
class Said:
    """An answer; `cut` bytes are missing at its end, `elsewhere` sends it from another address."""

    varbinds: Sequence[Varbind] = ()
    error_status: int = 0
    error_index: int = 0
    cut: int = 0
    elsewhere: bool = False


# What an agent does when asked: says several things, of which bytes are sent as they are. Nothing is silence.
Script = Callable[[Asked], Sequence[Said | bytes]]


def mute(_: Asked) -> Sequence[Said]:
    return ()


def table(*rows: Varbind) -> Script:
    """A script that answers GET, GETNEXT and GETBULK from rows, as an agent in good health does."""
    ordered = sorted(rows, key=lambda row: oids.arcs(row[0]))
    exact = {row[0]: row for row in rows}

    def following(oid: Oid) -> Varbind:
        behind = (row for row in ordered if oids.arcs(row[0]) > oids.arcs(oid))
        return next(behind, (oid, Tag.END_OF_MIB_VIEW, Missing.END_OF_MIB_VIEW))

    def answer(asked: Asked) -> Sequence[Said]:
        if asked.pdu_type == codec.PduType.GET:
            missing = (Tag.NO_SUCH_INSTANCE, Missing.NO_SUCH_INSTANCE)
            return [Said([exact.get(oid, (oid, *missing)) for oid in asked.oids])]
        once = asked.non_repeaters if asked.pdu_type == codec.PduType.GET_BULK else len(asked.oids)
        varbinds = [following(oid) for oid in asked.oids[:once]]
        current = asked.oids[once:]
        for _ in range(asked.max_repetitions if current else 0):
            rows_now = [following(oid) for oid in current]
            varbinds += rows_now
            current = tuple(row[0] for row in rows_now)
        return [Said(varbinds)]

    return answer


class UntilNothingMoves:
    """The clock of a loop: it stops while datagrams come, and jumps to the next timer when none does.

    On loopback one is there when it was sent. So time is over for what never
    comes, and only for that, however slow the machine is.
    """

    # Seconds for what another thread may be at.
    MOMENT = 0.02

    def __init__(self, loop: asyncio.SelectorEventLoop) -> None:
        self._now = loop.time()
        self._select = loop._selector.select
        loop.time = self.time
        loop._selector.select = self.select

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return self._select(None)
        events = self._select(min(timeout, self.MOMENT))
        if not events:
            self._now += max(timeout, 0.0)
        return events


class ScriptedAgent(asyncio.DatagramProtocol):
    """An agent on loopback. What it was asked is in `asked`; with `hold` it answers in reverse once it has so many."""

    host = LOOPBACK

    def __init__(self, script: Script, hold: int = 1) -> None:
        self.script = script
        self.hold = hold
        self.asked: list[Asked] = []
        self.received: list[bytes] = []
        self._held: list[tuple[Said | bytes, Any, Any]] = []
        self._news = asyncio.Event()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.create_datagram_endpoint(lambda: self, (self.host, 0))
        self.elsewhere, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, (self.host, 0))

    def stop(self) -> None:
        self.transport.close()
        self.elsewhere.close()

    async def was_asked(self, times: int) -> None:
        """Wait until so many requests have arrived."""
        while len(self.asked) < times:
            self._news.clear()
            await self._news.wait()

    @property
    def port(self) -> int:
        return int(self.transport.get_extra_info("sockname")[1])

    def connection_made(self, transport: Any) -> None:
        """The transport is kept by `start`."""

    def datagram_received(self, data: bytes, sender: Any) -> None:
        self.received.append(data)
        request = self.decode(data, sender)
        if request is None:
            return
        asked, context = request
        self.asked.append(asked)
        self._news.set()
        self._held += [(said, context, sender) for said in self.script(asked)]
        if len(self.asked) >= self.hold:
            for said, context, sender in reversed(self._held) if self.hold > 1 else self._held:
                self.say(said, context, sender)
            self._held.clear()

    def say(self, said: Said | bytes, context: Any, sender: Any) -> None:
        if isinstance(said, bytes):
            self.transport.sendto(said, sender)
            return
        data = self.encode(said, context)
        (self.elsewhere if said.elsewhere else self.transport).sendto(data[: len(data) - said.cut], sender)

    def decode(self, data: bytes, sender: Any) -> tuple[Asked, Any] | None:
        raise NotImplementedError

    def encode(self, said: Said, context: Any) -> bytes:
        raise NotImplementedError


class CommunityAgent(ScriptedAgent):
    """Speaks v1 and v2c. Who comes with another community is not answered."""

    def __init__(self, script: Script, hold: int = 1, version: Version = Version.V2C, community: str = "c0mmun1ty"):
        super().__init__(script, hold)
        self.version = version
        self.community = community

    @property
    def agent(self) -> Agent:
        return Agent(self.host, self.port, self.version, Community(self.community))

    def decode(self, data: bytes, sender: Any) -> tuple[Asked, Any] | None:
        request = codec.decode_request(data)
        if request.community != self.community.encode():
            return None
        return Asked(request.pdu_type, request.oids, request.non_repeaters, request.max_repetitions), request

    def encode(self, said: Said, context: Any) -> bytes:
        return codec.encode_response(context, said.error_status, said.error_index, said.varbinds)


class UsmAgent(ScriptedAgent):
    """Speaks v3 to one user, with the library's own USM on the agent's side. `unsigned` answers without security."""

    def __init__(self, script: Script, user: User, hold: int = 1, engine_id: bytes = ENGINE_ID) -> None:
        super().__init__(script, hold)
        self.user = user
        self.unsigned = False
        # How large an answer the last one who asked would take.
        self.accepted = 0
        self.usm = UserBasedSecurityModule("agent", engine_id, engineBoots=7)
        self.usm.addUser(user.name.encode(), "agent", **usm_keys.work_out(user).settings)

    @property
    def agent(self) -> Agent:
        return Agent(self.host, self.port, Version.V3, self.user)

    def decode(self, data: bytes, sender: Any) -> tuple[Asked, Any] | None:
        try:
            message = self.usm.processIncoming(SNMPv3WireMessage.decodeExact(data))
        except ReportMessage as report:
            self.transport.sendto(self.usm.prepareOutgoing(report.message), sender)
            return None
        self.accepted = message.header.maxSize
        pdu = message.scopedPDU.pdu
        names = tuple(oids.from_arcs(tuple(variable.name)) for variable in pdu.variableBindings)
        if isinstance(pdu, GetBulkRequestPDU):
            return Asked(codec.PduType.GET_BULK, names, pdu.nonRepeaters, pdu.maxRepetitions), message
        kinds = {GetRequestPDU: codec.PduType.GET, GetNextRequestPDU: codec.PduType.GET_NEXT}
        return Asked(kinds[type(pdu)], names), message

    def encode(self, said: Said, context: Any) -> bytes:
        varbinds = b"".join(codec.encode_varbind(*varbind) for varbind in said.varbinds)
        pdu = ResponsePDU(
            requestID=context.scopedPDU.pdu.requestID,
            errorStatus=said.error_status,
            errorIndex=said.error_index,
            variableBindings=VarBindList.decodeExact(codec.tlv(codec.SEQUENCE, varbinds)),
        )
        level = noAuthNoPriv if self.unsigned else context.header.flags.securityLevel
        header = HeaderData(context.header.msgID, 65507, MessageFlags(level), SecurityModel.USM)
        name = SecurityName(self.user.name.encode(), "agent")
        engine_id = self.usm.engineID
        return bytes(self.usm.prepareOutgoing(SNMPv3Message(header, ScopedPDU(pdu, engine_id), engine_id, name)))
