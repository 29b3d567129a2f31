"""The SNMP port for v1 and v2c: one UDP socket for all OLTs, with any number of requests in flight."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from facho.adapters.snmp import codec
from facho.adapters.snmp.codec import PduType, Prepared
from facho.adapters.snmp.udp import Address, Names, Peer, Sockets
from facho.engine.errors import BadAnswer, NoAnswer, SnmpError
from facho.engine.oid import Oid
from facho.engine.snmp import Agent, Answer, Asked, Cancellable, Community, Done, Operation, SendByTask, Version

# How many encoded requests are kept. One with 60 OIDs takes about 16 kB.
PREPARED_LIMIT = 2048
# How many request ids are drawn at a time: each call to the system costs as much as the rest of a request.
IDS_AT_A_TIME = 512

PDU_TYPES = {
    Operation.GET: PduType.GET,
    Operation.NEXT: PduType.GET_NEXT,
    Operation.BULK: PduType.GET_BULK,
}


class PendingRequest:
    """A request that has no answer yet."""

    __slots__ = ("_adapter", "address", "community", "done", "host", "request_id", "timeout", "timer", "version")

    def __init__(
        self,
        adapter: "CommunitySnmp",
        request_id: int,
        agent: Agent,
        peer: Peer,
        community: bytes,
        timeout: float,
        done: Callable[[codec.Envelope | SnmpError], None],
    ) -> None:
        self._adapter = adapter
        self.request_id = request_id
        self.host = agent.host
        self.version = agent.version
        self.address = peer.address
        self.community = community
        self.timeout = timeout
        self.done = done
        self.timer = asyncio.get_running_loop().call_later(timeout, self._give_up)

    def cancel(self) -> None:
        """Leave nothing behind. `done` is not called any more."""
        self.timer.cancel()
        self._adapter.forget(self)

    def end(self, envelope: codec.Envelope | SnmpError) -> None:
        self.cancel()
        self.done(envelope)

    def _give_up(self) -> None:
        self.end(NoAnswer(f"{self.host} gave no answer in {self.timeout:g} s"))


class CommunitySnmp(SendByTask):
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
        self._waiting: dict[int, PendingRequest] = {}
        self._ids = _random_ids()
        self._closed = False
        # GETs of known ONUs come again with every run; a GETBULK begins somewhere else each time.
        self._prepare_get = lru_cache(maxsize=prepared_limit)(codec.prepare)
        # Datagrams that were no answers to anything, by reason.
        self.dropped: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        version, community = _v1_or_v2c(agent)
        prepared = self._prepare_get(version, community, PduType.GET, tuple(oids))
        return await self._ask(agent, prepared, timeout)

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        version, community = _v1_or_v2c(agent)
        return await self._ask(agent, codec.prepare(version, community, PduType.GET_NEXT, oids), timeout)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        if agent.version == Version.V1:
            return await self.get_next(agent, oids, timeout=timeout)
        version, community = _v1_or_v2c(agent)
        prepared = codec.prepare(version, community, PduType.GET_BULK, oids, non_repeaters, max_repetitions)
        return await self._ask(agent, prepared, timeout)

    def send(
        self, agent: Agent, operation: Operation, asked: Asked, repetitions: int, *, timeout: float, done: Done
    ) -> Cancellable:
        peer = self._names.known(agent.target or agent.host, agent.port)
        if peer is None:
            # The name has to be looked up first.
            return super().send(agent, operation, asked, repetitions, timeout=timeout, done=done)
        version, community = _v1_or_v2c(agent)
        pdu_type = PDU_TYPES[operation]
        if pdu_type is PduType.GET_BULK and version is Version.V1:
            pdu_type = PduType.GET_NEXT
        head, tail = codec.framed(
            version, community, pdu_type, len(asked.variables), repetitions if pdu_type is PduType.GET_BULK else 0
        )
        request_id = self._new_id()
        datagram = b"%b%b%b%b" % (head, request_id.to_bytes(4, "big"), tail, asked.variables)

        def ended(envelope: codec.Envelope | SnmpError) -> None:
            if isinstance(envelope, SnmpError):
                done(envelope)
                return
            try:
                answer: Answer | BadAnswer = codec.unread_answer(envelope, asked, len(datagram))
            except BadAnswer as error:
                answer = _unreadable(agent, error)
            done(answer)

        return self._transmit(PendingRequest(self, request_id, agent, peer, community, timeout, ended), datagram, peer)

    async def close(self) -> None:
        """Fail what is in flight with `NoAnswer`, and everything that is asked later."""
        self._closed = True
        for waiting in list(self._waiting.values()):
            waiting.end(NoAnswer(f"Facho stopped before {waiting.host} answered"))
        self._sockets.close()

    async def _ask(self, agent: Agent, prepared: Prepared, timeout: float) -> Answer:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        host, port = agent.target or agent.host, agent.port
        peer = self._names.known(host, port) or await self._names.find(host, port, timeout=timeout)
        future: asyncio.Future[codec.Envelope | SnmpError] = loop.create_future()
        request_id = self._new_id()
        datagram = prepared.datagram(request_id)
        left = max(deadline - loop.time(), 0.0)
        waiting = PendingRequest(self, request_id, agent, peer, prepared.community, left, future.set_result)
        try:
            envelope = await self._transmitted(waiting, datagram, peer, future)
            return codec.read_answer(envelope, prepared.expected, len(datagram))
        except BadAnswer as error:
            raise _unreadable(agent, error) from None
        finally:
            waiting.cancel()

    async def _transmitted(
        self, waiting: PendingRequest, datagram: bytes, peer: Peer, future: "asyncio.Future[codec.Envelope | SnmpError]"
    ) -> codec.Envelope:
        self._transmit(waiting, datagram, peer)
        envelope = await future
        if isinstance(envelope, SnmpError):
            raise envelope
        return envelope

    def _transmit(self, waiting: PendingRequest, datagram: bytes, peer: Peer) -> PendingRequest:
        """Send a request. If that is not possible it ends with `NoAnswer`, later."""
        self._waiting[waiting.request_id] = waiting
        error = f"Facho stopped before it asked {waiting.host}" if self._closed else ""
        if not self._closed:
            try:
                self._sockets.send(datagram, peer)
            except OSError as failure:
                error = f"{waiting.host} cannot be asked: {failure.strerror or failure}"
        if error:
            waiting.timer.cancel()
            waiting.timer = asyncio.get_running_loop().call_later(0, waiting.end, NoAnswer(error))
        return waiting

    def _new_id(self) -> int:
        """Return a request id that no other request has, and that nobody can foresee."""
        return next(each for each in self._ids if each not in self._waiting)

    def forget(self, waiting: PendingRequest) -> None:
        """Drop the answer to a request if it still comes."""
        if self._waiting.get(waiting.request_id) is waiting:
            del self._waiting[waiting.request_id]

    def _receive(self, data: bytes, sender: Address) -> bool:
        """Hand an answer to its request; return whether other requests are in flight."""
        try:
            envelope = codec.open_answer(data)
        except BadAnswer:
            self.dropped["unreadable"] += 1
            return True
        waiting = self._waiting.get(envelope.request_id)
        if waiting is None:
            self.dropped["late or unknown id"] += 1
        elif waiting.address != sender:
            self.dropped["from another address"] += 1
        elif envelope.community != waiting.community or envelope.version != waiting.version:
            self.dropped["another community or version"] += 1
        else:
            others = len(self._waiting) > 1
            waiting.end(envelope)
            return others
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


def _unreadable(agent: Agent, error: BadAnswer) -> BadAnswer:
    return BadAnswer(f"{agent.host} sent an answer that cannot be read: {error}")
