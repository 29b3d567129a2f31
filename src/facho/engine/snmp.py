"""Values of the SNMP port: whom to ask, and what comes back."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from facho.engine.oid import Oid


class Missing(Enum):
    """Why a variable has no value. Three different things, kept apart (RFC 3416, 3)."""

    NO_SUCH_OBJECT = 0x80
    NO_SUCH_INSTANCE = 0x81
    END_OF_MIB_VIEW = 0x82


# INTEGER, counters, gauges and ticks are int; strings, addresses and opaques are bytes;
# an object identifier is an Oid (bytes too: the tag tells); NULL is None.
Value = int | bytes | Missing | None


class Tag(IntEnum):
    """The type of a value on the wire."""

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
    """What an agent says instead of values (RFC 3416, 3)."""

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


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: variables by position, with the agent's error surfaced, never swallowed.

    `oids`, `values` and `tags` have the same length, which may be any: an agent
    can answer fewer variables than were asked for. An error status that RFC
    3416 does not know is kept as its number.
    """

    error_status: int
    error_index: int
    oids: list[Oid]
    values: list[Value]
    tags: bytes
    # Of the datagrams, for the statistics of an execution.
    bytes_sent: int = 0
    bytes_received: int = 0

    def __iter__(self) -> Iterator[tuple[Oid, Value]]:
        return iter(zip(self.oids, self.values, strict=True))

    def __len__(self) -> int:
        return len(self.oids)


class Version(IntEnum):
    """SNMP versions by the number they have on the wire."""

    V1 = 0
    V2C = 1
    V3 = 3


@dataclass(frozen=True, slots=True)
class Community:
    """The secret of SNMPv1 and v2c. It never shows in a repr."""

    name: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """A user of SNMPv3. Without keys it is noAuthNoPriv; the secrets never show in a repr."""

    name: str
    auth: str = ""  # "", SHA1, SHA224, SHA256, SHA384 or SHA512
    auth_key: str = field(default="", repr=False)
    priv: str = ""  # "", AES128, AES192 or AES256
    priv_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Agent:
    """Whom to ask: an address, a version, and its secret."""

    host: str
    port: int
    version: Version
    credentials: Community | User
