"""SNMP v3, on the library `snmp`, which does all of the security.

Keys, signatures, ciphers, engine ids and time windows are the library's. Deriving keys from passwords is slow, so it
runs in a thread; no other step blocks. A session converts between our names and values and those of the library.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from snmp.async_engine import AsyncScheduler
from snmp.ber import ParseError
from snmp.exception import IncomingMessageError
from snmp.pdu import GetBulkRequestPDU, GetNextRequestPDU, GetRequestPDU, ReportPDU, ResponsePDU
from snmp.requests import Timeout
from snmp.security.usm import UserBasedSecurityModule
from snmp.security.usm.implementation import UsmDecryptionError, UsmNotInTimeWindow, UsmWrongDigest
from snmp.smi import OID
from snmp.v3.interpreter import SNMPv3Interpreter, SNMPv3MessageSorter
from snmp.v3.manager import (
    AuthenticationFailure,
    PrivacyFailure,
    RequestError,
    SNMPv3Manager,
    SNMPv3MessageTable,
    TimeWindowFailure,
    UnknownUserName,
    UnsupportedSecurityLevel,
)
from snmp.v3.message import SNMPv3WireMessage, pduTypes
from snmp.v3.requests import SNMPv3RequestHandle

from facho.adapters.snmp import codec
from facho.adapters.snmp.udp import Address, Names, Sockets
from facho.adapters.snmp.usm_keys import Keys, UserKeys
from facho.engine.errors import BadAnswer, NoAnswer, Refused
from facho.engine.oid import Oid
from facho.engine.snmp import Agent, Answer, SendByTask, User, Version

logger = logging.getLogger(__name__)

# Maximum UDP datagram over IPv4, announced to agents.
MAX_MESSAGE = 65507

# Reasons for refusing a message, the most significant first.
REASONS = (
    (UsmWrongDigest, "its signature is wrong"),
    (UsmDecryptionError, "it cannot be decrypted"),
    (UsmNotInTimeWindow, "it is too old"),
    (ParseError, "it cannot be read"),
    (IncomingMessageError, "it does not belong to the request"),
)
# The library raises the bare class for a message id without a pending request.
LATE = "late or unknown id"


class Name(OID):
    """An OID to request, from its bytes. The library's own encoding is wrong for some, such as 2.16."""

    def __init__(self, oid: Oid) -> None:
        super().__init__()
        self._oid = oid

    def serialize(self) -> bytes:
        return self._oid


class Response(ResponsePDU):
    """The library's answer with its variables read by our codec: 50 times faster, and as in v2c."""

    def __init__(self, request_id: int, answer: Answer) -> None:
        super().__init__(requestID=request_id)
        self.answer = answer

    @classmethod
    def deserialize(cls, data: Any) -> "Response":
        try:
            return cls(*codec.decode_pdu(bytes(data[:])))
        except BadAnswer as error:
            raise cls.DeserializeError(str(error)) from error


# The only place where the library looks up the type of an answer.
pduTypes[ResponsePDU.TAG] = Response


class Handle(SNMPv3RequestHandle):
    """A request in flight. Its result is the agent's answer, without the library's interpretation."""

    session: "UsmSession"
    bytes_sent = 0

    def push(self, response: Any) -> None:
        if self.active():
            answer: Answer = response.answer
            answer.bytes_sent, answer.bytes_received = self.bytes_sent, self.session.size
            self.future.set_result(answer)
            self.onDeactivate()

    def fail(self, sentence: str) -> None:
        if self.active():
            self.future.set_exception(NoAnswer(sentence))
            self.onDeactivate()


class Manager(SNMPv3Manager):
    """The library's manager of one user at one agent, with our handles."""

    def openRequestNoTimeout(self, pdu: Any, *callbacks: Callable[[int], None]) -> Handle:  # noqa: N802  # its name
        request_id = self.requestIDAuthority.reserve()
        release = self.requestIDAuthority.release
        handle = Handle(self.scheduler, pdu.withRequestID(request_id), release, *callbacks)
        handle.session = self.channel
        return handle


class Interpreter(SNMPv3Interpreter):
    """The library's interpreter on a monotonic clock: a step of the wall clock must not make messages look old."""

    def decode(self, data: bytes) -> Any:
        return self.usm.processIncoming(SNMPv3WireMessage.decodeExact(data), time.monotonic())

    def encode(self, message: Any) -> bytes:
        return bytes(self.usm.prepareOutgoing(message, time.monotonic()))


class UsmSession:
    """One user at one agent: engine id, time, and requests in flight.

    Nothing is shared with other agents, so answers cannot be confused. To the library this is both channel and
    sender.
    """

    msgMaxSize = MAX_MESSAGE  # noqa: N815  # the library's name

    def __init__(self, host: str, keys: UserKeys, send: Callable[[bytes], None]) -> None:
        usm = UserBasedSecurityModule()
        user = keys.name.encode()
        usm.addUser(user, "", **keys.settings)
        self.user = keys.name
        self._host = host
        self._send = send
        self._interpreter = Interpreter(usm)
        # The sorter keeps only a weak reference to the table.
        self._table = SNMPv3MessageTable()
        self._sorter = SNMPv3MessageSorter(self._interpreter)
        self._sorter.register(ReportPDU, self._table)
        self._sorter.register(ResponsePDU, self._table)
        scheduler = AsyncScheduler(asyncio.get_running_loop())
        level = usm.defaultSecurityLevel(user, "")
        self._manager = Manager(scheduler, self._table, self, self, "", user, level, engineID=None, autowait=False)
        # Size of the current message.
        self.size = 0
        # Refused messages of the agent, and the reason of the last one.
        self.refusals = 0
        self.refusal = ""

    @property
    def in_flight(self) -> int:
        return len(self._manager.requests)

    def ask(self, pdu: Any, timeout: float) -> Handle:
        """Send a request once. The library's repetition comes after our time-out."""
        handle: Handle = self._manager.makeRequest(pdu, wait=False, timeout=timeout, refreshPeriod=timeout + 1)
        return handle

    def send(self, message: Any, _channel: Any) -> None:
        """Send a message of the library. Its size is stored with its request; that of a discovery is not."""
        data = self._interpreter.encode(message)
        try:
            self._send(data)
        except OSError as error:
            self.fail(f"no request can be sent to {self._host}: {error.strerror or error}")
            return
        state = self._manager.requests.get(message.scopedPDU.pdu.requestID)
        if state is not None:
            state.handle.bytes_sent += len(data)

    def hear(self, data: bytes) -> str | None:
        """Take a message, or return the reason for refusing it."""
        self.size = len(data)
        try:
            self._sorter.hear(data, self)
        except IncomingMessageError as error:
            if type(error) is IncomingMessageError:
                return LATE
            return next(reason for kind, reason in REASONS if isinstance(error, kind))
        return None

    def fail(self, sentence: str) -> None:
        """End all requests in flight with `NoAnswer`."""
        for state in list(self._manager.requests.values()):
            state.handle.fail(sentence)


REFUSED = "rejected user {user}"
REFUSALS = {
    AuthenticationFailure: "rejected the authentication of user {user}: check its authentication protocol and password",
    PrivacyFailure: "cannot decrypt the requests of user {user}: check its privacy protocol and password",
    UnknownUserName: "does not know user {user}",
    UnsupportedSecurityLevel: "does not allow this security level for user {user}: check authentication and privacy",
    TimeWindowFailure: "rejected the time of our requests; the device may need a new engine id",
}


class UsmSnmp(SendByTask):
    """Queries v3 agents.

    A message that is unsigned, old or of another request is dropped, and the request keeps waiting. After the
    time-out the error separates no answer (`NoAnswer`), unacceptable messages (`BadAnswer`) and denied access
    (`Refused`). A report of denied access can be forged, so it is also raised only after the time-out.

    The first request to an agent costs one more message, by which the library discovers its engine id.
    """

    def __init__(self, *, names: Names | None = None) -> None:
        self._names = names or Names()
        self._sockets = Sockets(self._receive)
        self._keys = Keys()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sessions: dict[Address, dict[User, UsmSession]] = {}
        self._closed = False
        # Dropped datagrams, by reason.
        self.dropped: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        return sum(session.in_flight for sessions in self._sessions.values() for session in sessions.values())

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._ask(agent, GetRequestPDU(*map(Name, oids)), timeout)

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._ask(agent, GetNextRequestPDU(*map(Name, oids)), timeout)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        # The library refuses more non-repeaters than names; to an agent they mean all names (RFC 3416, 4.2.3).
        first = min(non_repeaters, len(oids))
        pdu = GetBulkRequestPDU(*map(Name, oids), nonRepeaters=first, maxRepetitions=max_repetitions)
        return await self._ask(agent, pdu, timeout)

    async def close(self) -> None:
        """Fail all requests in flight, and later ones, with `NoAnswer`."""
        self._closed = True
        for sessions in self._sessions.values():
            for session in sessions.values():
                session.fail("Facho stopped before the agent answered")
        self._sessions.clear()
        self._sockets.close()
        self._keys.close()

    async def _ask(self, agent: Agent, pdu: Any, timeout: float) -> Answer:
        session = await self._session(agent, timeout)
        refusals = session.refusals
        handle = session.ask(pdu, timeout)
        try:
            answer: Answer = await handle.future
        except Timeout:
            count = session.refusals - refusals
            if not count:
                raise NoAnswer(f"{agent.host} did not answer within {timeout:g} s") from None
            raise BadAnswer(f"{agent.host} sent {count} invalid messages; the last one: {session.refusal}") from None
        except RequestError as error:
            sentence = REFUSALS.get(type(error), REFUSED).format(user=session.user)
            raise Refused(f"{agent.host} {sentence}") from error
        finally:
            # After a cancellation the library would keep the request forever.
            handle.onDeactivate()
        return answer

    async def _session(self, agent: Agent, timeout: float) -> UsmSession:
        """Return the session with the agent in its current configuration."""
        if agent.version != Version.V3 or not isinstance(agent.credentials, User):
            raise ValueError(f"{agent.host} is not an agent of SNMPv3 with a user")
        user = agent.credentials
        self._refuse_if_closed(agent)
        keys = await self._keys.of(user)
        peer = await self._names.find(agent.target or agent.host, agent.port, timeout=timeout)
        self._refuse_if_closed(agent)
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._sessions.clear()
            self._loop = loop
        sessions = self._sessions.setdefault(peer.address, {})
        if user not in sessions:
            sessions[user] = UsmSession(agent.host, keys, lambda data: self._sockets.send(data, peer, loop))
        return sessions[user]

    def _refuse_if_closed(self, agent: Agent) -> None:
        if self._closed:
            raise NoAnswer(f"Facho stopped before it sent the request to {agent.host}")

    def _receive(self, data: bytes, sender: Address) -> bool:
        """Pass a message to its session. More may always follow: discoveries and reports."""
        sessions = [session for session in self._sessions.get(sender, {}).values() if session.in_flight]
        if not sessions:
            self.dropped["nobody there was asked"] += 1
            return True
        try:
            # More than one only if an agent is queried as several users.
            reasons = [session.hear(data) for session in sessions]
        except Exception:
            # Bytes from outside must never stop the reading, whatever they do in the library.
            logger.exception("%s: a message of %d bytes could not be handled", sender[0], len(data))
            reasons = ["it cannot be read"]
        if None not in reasons:
            reason = str(reasons[-1])
            self.dropped[reason] += 1
            for session in sessions if reason != LATE else ():
                session.refusals += 1
                session.refusal = reason
        return True
