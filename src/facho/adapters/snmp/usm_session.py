"""Session with one SNMPv3 agent: converts between our names and values and those of the library `snmp`."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from snmp.async_engine import AsyncScheduler
from snmp.ber import ParseError
from snmp.exception import IncomingMessageError
from snmp.pdu import ReportPDU, ResponsePDU
from snmp.security.usm import UserBasedSecurityModule
from snmp.security.usm.implementation import (
    UsmDecryptionError,
    UsmNotInTimeWindow,
    UsmWrongDigest,
)
from snmp.smi import OID
from snmp.v3.interpreter import (
    SNMPv3Interpreter,
    SNMPv3MessageSorter,
)
from snmp.v3.manager import SNMPv3Manager, SNMPv3MessageTable
from snmp.v3.message import SNMPv3WireMessage, pduTypes
from snmp.v3.requests import SNMPv3RequestHandle

from facho.adapters.snmp import codec
from facho.adapters.snmp.usm_keys import UserKeys
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.oid import Oid
from facho.engine.snmp import Answer

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
