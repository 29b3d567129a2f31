"""The SNMP port for v1 and v2c: one UDP socket for all OLTs, with any number of requests in flight."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from facho.adapters.snmp import codec
from facho.adapters.snmp.codec import PduType, Prepared
from facho.adapters.snmp.udp import Address, Names, Peer, Sockets
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.oid import Oid
from facho.engine.snmp import Agent, Answer, Asked, Community, Version

# How many encoded requests are kept. One with 60 OIDs takes about 16 kB.
PREPARED_LIMIT = 2048
# How many request ids are drawn at a time: each call to the system costs as much as the rest of a request.
IDS_AT_A_TIME = 512


class Waiting(NamedTuple):
    """A request that has no answer yet."""

    future: "asyncio.Future[codec.Envelope]"
    address: Address
    prepared: Prepared


class CommunitySnmp:
    """Asks v1 and v2c agents.

    An answer is ours if it comes from the address that was asked, with the id,
    the version and the community of a request that still waits. All others are
    dropped and counted in `dropped`. One that is ours but cannot be read is
    `BadAnswer`; names and values in it are handed on as the agent sent them,
    even if they are not those that were asked for.

    SNMPv1 has no GETBULK. There `get_bulk` asks with GETNEXT: it brings one
    row, and the caller sees that it got fewer variables than it allowed for.
    """

    def __init__(self, *, names: Names | None = None, prepared_limit: int = PREPARED_LIMIT) -> None:
        self._names = names or Names()
        self._sockets = Sockets(self._receive)
        self._waiting: dict[int, Waiting] = {}
        self._ids = _random_ids()
        self._closed = False
        # GETs of known ONUs come again with every run; a GETBULK begins somewhere else each time.
        self._prepare_get = lru_cache(maxsize=prepared_limit)(codec.prepare)
        # Datagrams that were no answers to anything, by reason.
        self.dropped: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Coroutine[Any, Any, Answer]:
        version, community = _v1_or_v2c(agent)
        if oids.__class__ is Asked:
            prepared = codec.prepare(version, community, PduType.GET, oids)
        else:
            prepared = self._prepare_get(version, community, PduType.GET, tuple(oids))
        return self._ask(agent, oids, prepared, timeout)

    def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Coroutine[Any, Any, Answer]:
        version, community = _v1_or_v2c(agent)
        return self._ask(agent, oids, codec.prepare(version, community, PduType.GET_NEXT, oids), timeout)

    def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Coroutine[Any, Any, Answer]:
        if agent.version == Version.V1:
            return self.get_next(agent, oids, timeout=timeout)
        version, community = _v1_or_v2c(agent)
        prepared = codec.prepare(version, community, PduType.GET_BULK, oids, non_repeaters, max_repetitions)
        return self._ask(agent, oids, prepared, timeout)

    async def close(self) -> None:
        """Fail what is in flight with `NoAnswer`, and everything that is asked later."""
        self._closed = True
        for waiting in self._waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(NoAnswer(f"Facho stopped before {waiting.address[0]} answered"))
        self._sockets.close()

    async def _ask(self, agent: Agent, oids: Sequence[Oid], prepared: Prepared, timeout: float) -> Answer:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        host, port = agent.target or agent.host, agent.port
        peer = self._names.known(host, port) or await self._names.find(host, port, timeout=timeout)
        if self._closed:
            raise NoAnswer(f"Facho stopped before it asked {agent.host}")
        waiting = Waiting(loop.create_future(), peer.address, prepared)
        request_id = self._enlist(waiting)
        timer = loop.call_at(deadline, _give_up, waiting.future, agent.host, timeout)
        try:
            datagram = prepared.datagram(request_id)
            self._send(datagram, peer, agent.host)
            envelope = await waiting.future
            if oids.__class__ is Asked:
                return codec.unread_answer(envelope, oids, len(datagram))
            return codec.read_answer(envelope, prepared.expected, len(datagram))
        except BadAnswer as error:
            raise BadAnswer(f"{agent.host} sent an answer that cannot be read: {error}") from None
        finally:
            timer.cancel()
            del self._waiting[request_id]

    def _enlist(self, waiting: Waiting) -> int:
        """Give a request an id that no other has, and that nobody can foresee."""
        request_id = next(each for each in self._ids if each not in self._waiting)
        self._waiting[request_id] = waiting
        return request_id

    def _send(self, datagram: bytes, peer: Peer, host: str) -> None:
        try:
            self._sockets.send(datagram, peer)
        except OSError as error:
            raise NoAnswer(f"{host} cannot be asked: {error.strerror or error}") from error

    def _receive(self, data: bytes, sender: Address) -> bool:
        """Hand an answer to whoever waits for it; return whether somebody else waits too."""
        try:
            envelope = codec.open_answer(data)
        except BadAnswer:
            self.dropped["unreadable"] += 1
            return True
        waiting = self._waiting.get(envelope.request_id)
        if waiting is None or waiting.future.done():
            self.dropped["late or unknown id"] += 1
        elif waiting.address != sender:
            self.dropped["from another address"] += 1
        elif (envelope.community, envelope.version) != (waiting.prepared.community, waiting.prepared.version):
            self.dropped["another community or version"] += 1
        else:
            waiting.future.set_result(envelope)
            return len(self._waiting) > 1
        return True


def _random_ids() -> Iterator[int]:
    """Yield request ids that nobody can foresee."""
    while True:
        for number in memoryview(secrets.token_bytes(4 * IDS_AT_A_TIME)).cast("I"):
            request_id = number & codec.MAX_REQUEST_ID
            if request_id >= codec.MIN_REQUEST_ID:
                yield request_id


def _v1_or_v2c(agent: Agent) -> tuple[Version, bytes]:
    if agent.version == Version.V3 or not isinstance(agent.credentials, Community):
        raise ValueError(f"{agent.host} is not an agent of SNMPv1 or v2c with a community")
    return agent.version, agent.credentials.name.encode()


def _give_up(future: "asyncio.Future[codec.Envelope]", host: str, timeout: float) -> None:
    if not future.done():
        future.set_exception(NoAnswer(f"{host} gave no answer in {timeout:g} s"))
