"""SNMP client: v1 and v2c over UDP, each agent queried by the adapter of its version."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from time import monotonic
from typing import Any

from facho.adapters.snmp import codec
from facho.adapters.snmp.codec import PduType
from facho.adapters.snmp.udp import Address, Names, Peer, Sockets
from facho.engine.errors import BadAnswer, NoAnswer, Refused, SnmpError
from facho.engine.observer import Observer
from facho.engine.oid import Oid
from facho.engine.ports import Snmp
from facho.engine.snmp import Agent, Answer, Asked, Cancellable, Community, Done, Line, Operation, SendByTask, Version

# Number of request ids drawn at a time: each system call costs as much as the rest of a request.
IDS_AT_A_TIME = 512
# A loop may count in milliseconds, in seconds. Its timer must not come too early for its own clock.
CLOCK_STEP = 0.001
# How many requests that were answered may still have a deadline.
MANY_DEADLINES = 10_000

PDU_TYPES = {
    Operation.GET: PduType.GET,
    Operation.NEXT: PduType.GET_NEXT,
    Operation.BULK: PduType.GET_BULK,
}


class PendingRequest:
    """A request without an answer yet."""

    __slots__ = ("_adapter", "address", "community", "deadline", "done", "host", "request_id", "timeout", "version")

    def __init__(
        self,
        adapter: "CommunitySnmp",
        agent: Agent,
        peer: Peer,
        community: bytes,
        timeout: float,
        done: Callable[[Any], None],
    ) -> None:
        self._adapter = adapter
        self.request_id = adapter.new_id()
        self.host = agent.host
        self.version = agent.version
        self.address = peer.address
        self.community = community
        self.timeout = timeout
        # By the clock of the loop, once it was sent.
        self.deadline = 0.0
        self.done = done

    def cancel(self) -> None:
        """Leave nothing behind. `done` is not called any more."""
        self._adapter.forget(self)

    def end(self, envelope: codec.Envelope | SnmpError) -> None:
        self._adapter.forget(self)
        self.done(envelope)


class WaitingLine(PendingRequest):
    """A request of a line. Its answer is passed on with undecoded variables."""

    __slots__ = ("asked", "size")

    asked: Asked
    size: int

    def end(self, envelope: codec.Envelope | SnmpError) -> None:
        self._adapter.forget(self)
        answer: Answer | SnmpError
        if isinstance(envelope, SnmpError):
            answer = envelope
        else:
            try:
                answer = codec.unread_answer(envelope, self.asked, self.size)
            except BadAnswer as error:
                answer = _unreadable(self.host, error)
        self.done(answer)


class CommunitySnmp(SendByTask):
    """Queries v1 and v2c agents.

    An answer must come from the requested address, with the id, version and community of a pending request. All
    others are dropped and counted in `dropped`. An unreadable answer is `BadAnswer`; names and values are passed on
    as sent, even if they do not match the request.

    SNMPv1 has no GETBULK. There `get_bulk` uses GETNEXT: it returns one row, so the caller gets fewer variables than
    requested.
    """

    def __init__(self, *, names: Names | None = None) -> None:
        self._names = names or Names()
        self._sockets = Sockets(self._receive)
        self._waiting: dict[int, PendingRequest] = {}
        self._ids = _random_ids()
        # When requests are given up, and their ids, the earliest first; those that were answered stay until then. One
        # timer serves all of them, since one for each would cost more than the rest of a request.
        self._deadlines: list[tuple[float, int]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        # Dropped datagrams, by reason.
        self.dropped: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._ask(agent, PduType.GET, oids, timeout)

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._ask(agent, PduType.GET_NEXT, oids, timeout)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        if agent.version == Version.V1:
            return await self.get_next(agent, oids, timeout=timeout)
        return await self._ask(agent, PduType.GET_BULK, oids, timeout, non_repeaters, max_repetitions)

    def line(self, agent: Agent) -> Line:
        peer = self._names.known(agent.target or agent.host, agent.port)
        # A name has to be looked up first.
        return super().line(agent) if peer is None else CommunityLine(self, agent, peer)

    async def close(self) -> None:
        """Fail all requests in flight, and later ones, with `NoAnswer`."""
        self._closed = True
        for waiting in list(self._waiting.values()):
            waiting.end(NoAnswer(f"Facho stopped before {waiting.host} answered"))
        if self._timer is not None:
            self._timer.cancel()
        self._sockets.close()

    async def _ask(
        self, agent: Agent, pdu_type: PduType, oids: Sequence[Oid], timeout: float, a: int = 0, b: int = 0
    ) -> Answer:
        prepared = codec.prepare(*_v1_or_v2c(agent), pdu_type, oids, a, b)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        host, port = agent.target or agent.host, agent.port
        peer = self._names.known(host, port) or await self._names.find(host, port, timeout=timeout)
        future: asyncio.Future[codec.Envelope | SnmpError] = loop.create_future()
        left = max(deadline - loop.time(), 0.0)
        waiting = PendingRequest(self, agent, peer, prepared.community, left, future.set_result)
        datagram = prepared.datagram(waiting.request_id)
        try:
            self.transmit(waiting, datagram, peer)
            envelope = await future
            if isinstance(envelope, SnmpError):
                raise envelope
            return codec.read_answer(envelope, prepared.expected, len(datagram))
        except BadAnswer as error:
            raise _unreadable(agent.host, error) from None
        finally:
            waiting.cancel()

    def transmit(self, waiting: PendingRequest, datagram: bytes, peer: Peer) -> None:
        """Send a request. If that is not possible it ends with `NoAnswer`, later."""
        loop = asyncio.get_running_loop()
        if loop is not self._sockets.loop:
            self._deadlines, self._timer = [], None
        waiting.deadline = loop.time() + waiting.timeout
        self._waiting[waiting.request_id] = waiting
        if len(self._deadlines) > MANY_DEADLINES + 2 * len(self._waiting):
            self._deadlines = sorted((each.deadline, each.request_id) for each in self._waiting.values())
        else:
            heappush(self._deadlines, (waiting.deadline, waiting.request_id))
        if self._timer is None or waiting.deadline < self._timer.when():
            self._set_timer(loop)
        error = f"Facho stopped before it sent the request to {waiting.host}" if self._closed else ""
        if not self._closed:
            try:
                self._sockets.send(datagram, peer, loop)
            except OSError as failure:
                error = f"no request can be sent to {waiting.host}: {failure.strerror or failure}"
        if error:
            loop.call_soon(self._fail, waiting, NoAnswer(error))

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look again when the earliest request is to be given up."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(self._deadlines[0][0], self._give_up, loop) if self._deadlines else None

    def _give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """End requests that had no answer in time."""
        now, late = loop.time() + CLOCK_STEP, []
        while self._deadlines:
            deadline, request_id = self._deadlines[0]
            waiting = self._waiting.get(request_id)
            if waiting is not None and waiting.deadline == deadline:
                if deadline > now:
                    break
                late.append(waiting)
            heappop(self._deadlines)
        self._set_timer(loop)
        for waiting in late:
            self._fail(waiting, NoAnswer(f"{waiting.host} did not answer within {waiting.timeout:g} s"))

    def _fail(self, waiting: PendingRequest, error: NoAnswer) -> None:
        """End a request without an answer, unless it was cancelled meanwhile."""
        if self._waiting.get(waiting.request_id) is waiting:
            waiting.end(error)

    def new_id(self) -> int:
        """Return an unpredictable request id that no pending request has."""
        while (request_id := next(self._ids)) in self._waiting:
            pass
        return request_id

    def forget(self, waiting: PendingRequest) -> None:
        """Ignore a later answer to a request."""
        if self._waiting.get(waiting.request_id) is waiting:
            del self._waiting[waiting.request_id]

    def _receive(self, data: bytes, sender: Address) -> bool:
        """Pass an answer to its request; return whether other requests are in flight."""
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


class CommunityLine:
    """The way to one agent of v1 or v2c whose address is known."""

    def __init__(self, adapter: CommunitySnmp, agent: Agent, peer: Peer) -> None:
        self._adapter = adapter
        self._agent = agent
        self._peer = peer
        self._version, self._community = _v1_or_v2c(agent)

    def send(self, operation: Operation, asked: Asked, repetitions: int, timeout: float, done: Done) -> Cancellable:
        pdu_type = PDU_TYPES[operation]
        if pdu_type is not PduType.GET_BULK:
            repetitions = 0
        elif self._version is Version.V1:
            pdu_type, repetitions = PduType.GET_NEXT, 0
        variables = asked.variables
        head, tail = codec.framed(self._version, self._community, pdu_type, len(variables), 0, repetitions)
        waiting = WaitingLine(self._adapter, self._agent, self._peer, self._community, timeout, done)
        datagram = b"%b%b%b%b" % (head, waiting.request_id.to_bytes(4, "big"), tail, variables)
        waiting.asked, waiting.size = asked, len(datagram)
        self._adapter.transmit(waiting, datagram, self._peer)
        return waiting


def _random_ids() -> Iterator[int]:
    """Yield unpredictable request ids."""
    while True:
        for number in memoryview(secrets.token_bytes(4 * IDS_AT_A_TIME)).cast("I"):
            request_id = number & codec.MAX_REQUEST_ID
            if request_id >= codec.MIN_REQUEST_ID:
                yield request_id


def _v1_or_v2c(agent: Agent) -> tuple[Version, bytes]:
    if agent.version == Version.V3 or not isinstance(agent.credentials, Community):
        raise ValueError(f"{agent.host} is not an agent of SNMPv1 or v2c with a community")
    return agent.version, agent.credentials.name.encode()


def _unreadable(host: str, error: BadAnswer) -> BadAnswer:
    return BadAnswer(f"{host} sent an answer that cannot be decoded: {error}")


# Result of a request without an answer, by error.
RESULTS: dict[type[BaseException], str] = {NoAnswer: "no_answer", BadAnswer: "bad_answer", Refused: "refused"}


class SnmpByVersion:
    """Queries v1 and v2c agents with a community, v3 agents as a user. Reports every request to the observer."""

    def __init__(
        self, community: Snmp | None = None, usm: Snmp | None = None, observer: Observer | None = None
    ) -> None:
        self._community = community or CommunitySnmp()
        self._usm = usm
        self._observer = observer or Observer()
        self._closed = False

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._observed("get", self._for(agent).get(agent, oids, timeout=timeout))

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._observed("get_next", self._for(agent).get_next(agent, oids, timeout=timeout))

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        asked = self._for(agent).get_bulk(
            agent, oids, non_repeaters=non_repeaters, max_repetitions=max_repetitions, timeout=timeout
        )
        return await self._observed("get_bulk", asked)

    async def _observed(self, operation: str, asked: Awaitable[Answer]) -> Answer:
        began = monotonic()
        answer, result = None, "given_up"
        try:
            answer = await asked
            result = "agent_error" if answer.error_status else "answered"
        except SnmpError as error:
            result = RESULTS.get(type(error), result)
            raise
        finally:
            self._observer.request_ended(operation, result, monotonic() - began, answer)
        return answer

    def line(self, agent: Agent) -> Line:
        return ObservedLine(self._for(agent).line(agent), self._observer)

    async def close(self) -> None:
        self._closed = True
        await self._community.close()
        if self._usm is not None:
            await self._usm.close()

    def _for(self, agent: Agent) -> Snmp:
        if agent.version != Version.V3:
            return self._community
        if self._usm is None:
            if self._closed:
                raise NoAnswer(f"Facho stopped before it sent the request to {agent.host}")
            # The library is only loaded where an OLT speaks v3: most installations never need it.
            from facho.adapters.snmp.usm import UsmSnmp

            self._usm = UsmSnmp()
        return self._usm


class ObservedLine:
    """A line whose requests are reported to the observer."""

    def __init__(self, line: Line, observer: Observer) -> None:
        self._line = line
        self._observer = observer

    def send(self, operation: Operation, asked: Asked, repetitions: int, timeout: float, done: Done) -> Cancellable:
        ended = partial(self._ended, operation, monotonic(), done)
        return self._line.send(operation, asked, repetitions, timeout, ended)

    def _ended(self, operation: Operation, began: float, done: Done, answer: Answer | BaseException) -> None:
        seconds = monotonic() - began
        if isinstance(answer, Answer):
            result = "agent_error" if answer.error_status else "answered"
            self._observer.request_ended(operation, result, seconds, answer)
        else:
            self._observer.request_ended(operation, RESULTS.get(type(answer), "given_up"), seconds, None)
        done(answer)
