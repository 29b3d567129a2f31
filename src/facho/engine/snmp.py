"""Values of the SNMP port: agents, requests and answers."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
from hashlib import blake2b
from typing import Any, Protocol, overload

from facho.engine.device import device_at, host_name, ip_address
from facho.engine.oid import Oid


class Missing(Enum):
    """Reasons for a variable without a value (RFC 3416, 3)."""

    NO_SUCH_OBJECT = 0x80
    NO_SUCH_INSTANCE = 0x81
    END_OF_MIB_VIEW = 0x82


# INTEGER, counters, gauges and ticks are int; strings, addresses and opaques are bytes;
# an object identifier is an Oid (bytes too: the tag tells); NULL is None.
Value = int | bytes | Missing | None

# The longest OID whose variable in a request has a length of one byte.
MAX_ASKED = 0x7B


class Tag(IntEnum):
    """Type of a value on the wire."""

    INTEGER = 0x02
    OCTET_STRING = 0x04
    NULL = 0x05
    OBJECT_IDENTIFIER = 0x06
    IP_ADDRESS = 0x40
    COUNTER32 = 0x41
    GAUGE32 = 0x42
    TIME_TICKS = 0x43
    OPAQUE = 0x44
    COUNTER64 = 0x46
    NO_SUCH_OBJECT = 0x80
    NO_SUCH_INSTANCE = 0x81
    END_OF_MIB_VIEW = 0x82


class ErrorStatus(IntEnum):
    """Error status of an agent (RFC 3416, 3)."""

    NO_ERROR = 0
    TOO_BIG = 1
    NO_SUCH_NAME = 2
    BAD_VALUE = 3
    READ_ONLY = 4
    GEN_ERR = 5
    NO_ACCESS = 6
    WRONG_TYPE = 7
    WRONG_LENGTH = 8
    WRONG_ENCODING = 9
    WRONG_VALUE = 10
    NO_CREATION = 11
    INCONSISTENT_VALUE = 12
    RESOURCE_UNAVAILABLE = 13
    COMMIT_FAILED = 14
    UNDO_FAILED = 15
    AUTHORIZATION_ERROR = 16
    NOT_WRITABLE = 17
    INCONSISTENT_NAME = 18


class Operation(StrEnum):
    """Kinds of requests, by the names of their methods in the SNMP port."""

    GET = "get"
    NEXT = "get_next"
    BULK = "get_bulk"


class Asked(Sequence[Oid]):
    """OIDs of a request that is repeated in every run, with facts about its last answer."""

    __slots__ = ("answered", "digest", "variables")

    def __init__(self, oids: Iterable[Oid]) -> None:
        # Name and NULL of each variable in BER, in the short form; ValueError for an OID that is too long for it.
        self.variables = b"".join([_asked(oid) for oid in oids])
        # Digest of the last answer, and the number of its variables.
        self.digest = b""
        self.answered = 0

    def _oids(self) -> list[Oid]:
        oids, at, variables = [], 0, self.variables
        while at < len(variables):
            stop = at + 4 + variables[at + 3]
            oids.append(Oid(variables[at + 4 : stop]))
            at = stop + 2
        return oids

    def __len__(self) -> int:
        return len(self._oids())

    def __iter__(self) -> Iterator[Oid]:
        return iter(self._oids())

    @overload
    def __getitem__(self, place: int) -> Oid: ...
    @overload
    def __getitem__(self, place: slice) -> list[Oid]: ...
    def __getitem__(self, place: int | slice) -> Oid | list[Oid]:
        return self._oids()[place]


def _asked(oid: Oid) -> bytes:
    size = len(oid)
    if size > MAX_ASKED:
        raise ValueError(f"an OID of {size} bytes does not fit the short form")
    return b"\x30%c\x06%c%b\x05\x00" % (size + 4, size, oid)


@dataclass(slots=True)
class Answer:
    """One answer: variables by position, with the agent's error status.

    `oids`, `values` and `tags` have the same length, which may differ from the request: an agent can return fewer
    variables. An error status outside RFC 3416 is kept as its number.
    """

    error_status: int
    error_index: int
    oids: list[Oid]
    values: list[Value]
    tags: bytes
    # Of the datagrams, for the statistics of an execution.
    bytes_sent: int = 0
    bytes_received: int = 0

    @property
    def digest(self) -> bytes:
        """Return 16 bytes that are equal only for equal variables."""
        return digest(repr((self.oids, self.values, self.tags)).encode())

    def split(self, lengths: bytes) -> tuple[bytes, list[bytes]] | None:
        """Return all names joined, and the raw values; see `value_of`.

        None if the names do not have these lengths, if a value is not a plain number or string, or if the message is
        not available. Then use `oids` and `values`.
        """
        return None

    @staticmethod
    def value_of(encoded: bytes) -> Value:
        """Return the decoded value of an entry of `split`."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[tuple[Oid, Value]]:
        return iter(zip(self.oids, self.values, strict=True))

    def __len__(self) -> int:
        return len(self.oids)


def digest(data: bytes) -> bytes:
    """Return a 16-byte digest."""
    return blake2b(data, digest_size=16).digest()


class Version(IntEnum):
    """SNMP versions by their number on the wire."""

    V1 = 0
    V2C = 1
    V3 = 3


@dataclass(frozen=True, slots=True)
class Community:
    """Community of SNMPv1 and v2c. It never appears in a repr."""

    name: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """SNMPv3 user. Without keys it is noAuthNoPriv; secrets never appear in a repr."""

    name: str
    auth: str = ""  # "", SHA1, SHA224, SHA256, SHA384 or SHA512
    auth_key: str = field(default="", repr=False)
    priv: str = ""  # "", AES128, AES192 or AES256
    priv_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Agent:
    """An SNMP agent: host, version and secret.

    Requests go to `target`, and the device follows from it, so the holder of the lease of `device` polls only that
    address.
    """

    host: str
    port: int
    version: Version
    credentials: Community | User
    # IP address of a host name. Empty: unknown, or `host` is an IP address.
    address: str = ""
    # Why nothing may be sent to it, as a sentence.
    barred: str = ""

    @property
    def target(self) -> str:
        """Return the IP address for requests; empty for an unresolved name."""
        return self.address or ip_address(self.host)

    @property
    def obstacle(self) -> str:
        """Return why no request can be sent, as a sentence; empty if it can."""
        if self.barred or self.target:
            return self.barred
        return f"The name {self.host} could not be resolved. Check the name and the name server."

    @property
    def device(self) -> str:
        return device_at(self.target or host_name(self.host), self.port)


# Gets the answer to a request, or the error that came instead.
Done = Callable[[Answer | BaseException], None]


class Cancellable(Protocol):
    """A request in progress."""

    def cancel(self) -> object: ...


class Line(Protocol):
    """The way to one agent, for requests that are sent run after run."""

    def send(self, operation: Operation, asked: Asked, repetitions: int, timeout: float, done: Done) -> Cancellable:
        """Send a request. `done` is called once, later, unless the request is cancelled.

        It gets the answer or the error. The answer may not have been read yet: then `BadAnswer` comes from the first
        look at its variables.
        """


_sending: set["asyncio.Task[Answer]"] = set()


class SendByTask:
    """`Snmp.line` for an adapter that has only coroutines."""

    def line(self, agent: Agent) -> Line:
        return TaskLine(self, agent)


class TaskLine:
    """A task for each request."""

    def __init__(self, snmp: Any, agent: Agent) -> None:
        self._snmp = snmp
        self._agent = agent

    def send(self, operation: Operation, asked: Asked, repetitions: int, timeout: float, done: Done) -> Cancellable:
        how = {"max_repetitions": repetitions} if operation is Operation.BULK else {}
        asking: Coroutine[Any, Any, Answer] = getattr(self._snmp, operation)(self._agent, asked, timeout=timeout, **how)
        task = asyncio.ensure_future(asking)
        # An event loop keeps only weak references to its tasks.
        _sending.add(task)
        task.add_done_callback(_sending.discard)
        task.add_done_callback(lambda ended: None if ended.cancelled() else done(ended.exception() or ended.result()))
        return task
