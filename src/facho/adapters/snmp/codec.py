"""Codec of SNMPv1 and v2c messages. No sockets, no clock: bytes in, values out, and back.

A repeated request is encoded once (`prepare`) and only gets a new request id. An answer is first compared with the
last one, byte by byte, and decoded only if needed.

For any input the result is a value or BadAnswer. Bytes after the end of a message are ignored, because some agents
send their whole buffer. Bytes left over *inside* a message are refused, because a length must be wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any

from facho.engine.errors import BadAnswer
from facho.engine.oid import Oid
from facho.engine.snmp import Answer, Asked, Missing, Tag, Value, Version, digest

SEQUENCE = 0x30

# Maximum octets of an unsigned type. Octets before these must be padding.
UNSIGNED_OCTETS: dict[int, int] = {Tag.COUNTER32: 4, Tag.GAUGE32: 4, Tag.TIME_TICKS: 4, Tag.COUNTER64: 8}
# Nine octets hold every 64-bit number, including the leading zero of an unsigned one.
MAX_INTEGER_OCTETS = 9
RAW_TAGS = frozenset({Tag.OCTET_STRING, Tag.IP_ADDRESS, Tag.OPAQUE})
EMPTY_VALUES: dict[int, Value] = {Tag.NULL: None, **{missing.value: missing for missing in Missing}}
# Some agents send an empty OID for 0.0.
ZERO_DOT_ZERO = Oid(b"\x00")


def tlv(tag: int, content: bytes) -> bytes:
    """Return the content with its tag and length in front."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + content


def integer(number: int, tag: int = Tag.INTEGER) -> bytes:
    """Return a number in as few octets as it fits, the sign included."""
    size = (number + (number < 0)).bit_length() // 8 + 1
    return tlv(tag, number.to_bytes(size, "big", signed=True))


def encode_value(tag: int, value: Value) -> bytes:
    """Return an encoded value; ValueError if it does not match the tag."""
    if tag in EMPTY_VALUES and value is EMPTY_VALUES[tag]:
        return bytes((tag, 0))
    if isinstance(value, int) and (tag == Tag.INTEGER or 0 <= value < 1 << 8 * UNSIGNED_OCTETS.get(tag, 0)):
        return integer(value, tag)
    if isinstance(value, bytes) and (tag in RAW_TAGS or tag == Tag.OBJECT_IDENTIFIER):
        return tlv(tag, value)
    raise ValueError(f"{value!r} is not a value of tag 0x{tag:02x}")


def read_tlv(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of the element at `at`, and the start and end of its content.

    The end may be beyond the data, as given by the length. The caller checks it.
    """
    size = data[at + 1]
    start = at + 2
    if size >= 0x80:
        octets = size & 0x7F
        if not 0 < octets <= 4:
            raise BadAnswer(f"a length at byte {at + 1} has a form that SNMP does not use")
        start += octets
        if start > len(data):
            raise IndexError
        size = int.from_bytes(data[at + 2 : start], "big")
    return data[at], start, start + size


def enter(data: bytes, at: int, tag: int, end: int) -> tuple[int, int]:
    """Return the start and end of the content of a TLV with this tag. It must end before `end`."""
    found, start, stop = read_tlv(data, at)
    if found != tag:
        raise BadAnswer(f"there is a tag 0x{found:02x} at byte {at} where 0x{tag:02x} belongs")
    if stop > end:
        raise BadAnswer(f"what begins at byte {at} is longer than what it is part of")
    return start, stop


def read_integer(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the INTEGER at `at`, and its end."""
    start, stop = enter(data, at, Tag.INTEGER, end)
    if not 0 < stop - start <= MAX_INTEGER_OCTETS:
        raise BadAnswer(f"an integer has {stop - start} octets")
    return int.from_bytes(data[start:stop], "big", signed=True), stop


def read_value(tag: int, content: bytes) -> Value:
    """Return the value of a TLV. The most common types come first."""
    if tag == 0x02 and 0 < len(content) <= MAX_INTEGER_OCTETS:
        return int.from_bytes(content, "big", signed=True)
    octets = UNSIGNED_OCTETS.get(tag)
    if octets is not None:
        return int.from_bytes(content, "big") if 0 < len(content) <= octets else _padded(tag, content, octets)
    if tag in RAW_TAGS:
        return content
    if tag == Tag.OBJECT_IDENTIFIER:
        return checked_oid(content or ZERO_DOT_ZERO)
    if tag in EMPTY_VALUES and not content:
        return EMPTY_VALUES[tag]
    raise BadAnswer(f"a value of tag 0x{tag:02x} with {len(content)} octets is none that SNMP knows")


def _padded(tag: int, content: bytes, octets: int) -> int:
    """Return a counter, gauge or tick with more octets than needed: some agents put a sign in front."""
    padding = content[:-octets]
    if not content or (padding.strip(b"\x00") and padding.strip(b"\xff")):
        raise BadAnswer(f"a value of tag 0x{tag:02x} has {len(content)} octets that do not fit it")
    return int.from_bytes(content[-octets:], "big")


def checked_oid(content: bytes) -> Oid:
    """Return an OID that has at least one number and whose last number is whole."""
    if not content or content[-1] >= 0x80:
        raise BadAnswer("an OID is empty or cut off")
    return Oid(content)


# Request ids always have four octets, so that they can be replaced in an encoded request. In this range four octets are
# also the shortest form, which some agents require.
MIN_REQUEST_ID = 0x01000000
MAX_REQUEST_ID = 0x7FFFFFFF

REQUEST_ID_HEADER = bytes((Tag.INTEGER, 4))
# The usual form of a longer answer: lengths of two octets, and no error.
LONG_SEQUENCE = bytes((SEQUENCE, 0x82))
LONG_RESPONSE = bytes((0xA2, 0x82))
SHORT_VERSION = bytes((Tag.INTEGER, 1))
NO_ERROR = bytes((Tag.INTEGER, 1, 0, Tag.INTEGER, 1, 0, *LONG_SEQUENCE))
NULL_VALUE = bytes((Tag.NULL, 0))
COMMUNITY_VERSIONS = frozenset({Version.V1, Version.V2C})

# An encoded OID with tag and length, and the OID itself.
Name = tuple[bytes, Oid]


class PduType(IntEnum):
    """PDU types of Facho and its simulator, by tag."""

    GET = 0xA0
    GET_NEXT = 0xA1
    RESPONSE = 0xA2
    SET = 0xA3
    GET_BULK = 0xA5


REQUEST_TYPES = frozenset(PduType) - {PduType.RESPONSE}


@dataclass(slots=True)
class Prepared:
    """An encoded request without its request id. It contains the community, so its repr shows nothing."""

    community: bytes = field(repr=False)
    # Expected names in the answer to a GET; empty for other requests.
    expected: tuple[Name, ...] = field(repr=False)
    head: bytes = field(repr=False)
    tail: bytes = field(repr=False)

    def datagram(self, request_id: int) -> bytes:
        """Return the message. The id is between MIN_REQUEST_ID and MAX_REQUEST_ID."""
        return self.head + request_id.to_bytes(4, "big") + self.tail


def prepare(
    version: Version, community: bytes, pdu_type: PduType, oids: Sequence[Oid], a: int = 0, b: int = 0
) -> Prepared:
    """Return a request that can be sent many times. `a` and `b` are non-repeaters and max-repetitions of a GETBULK."""
    variables = b"".join([_asked(oid) for oid in oids])
    head, tail = framed(version, community, pdu_type, len(variables), a, b)
    expected = tuple([(tlv(0x06, oid), oid) for oid in oids]) if pdu_type == PduType.GET else ()
    return Prepared(community, expected, head, tail + variables)


@lru_cache(maxsize=4096)
def framed(version: Version, community: bytes, pdu_type: PduType, size: int, a: int, b: int) -> tuple[bytes, bytes]:
    """Return the bytes before and behind the request id of a request with `size` bytes of variables."""
    tail = integer(a) + integer(b) + tlv(SEQUENCE, bytes(size))
    pdu = tlv(pdu_type, REQUEST_ID_HEADER + bytes(4) + tail)
    message = tlv(SEQUENCE, integer(version) + tlv(Tag.OCTET_STRING, community) + pdu)
    return message[: -len(tail) - 4], tail[: len(tail) - size]


def _asked(oid: Oid) -> bytes:
    """Return a variable of a request, with NULL as its value. A request has dozens, so the usual case is one step."""
    size = len(oid)
    if size < 0x7C:
        return b"\x30%c\x06%c%b\x05\x00" % (size + 4, size, oid)
    return tlv(SEQUENCE, tlv(Tag.OBJECT_IDENTIFIER, oid) + NULL_VALUE)


@dataclass(slots=True)
class Envelope:
    """The start of a message, to find its request. The rest is not decoded yet."""

    version: int
    community: bytes = field(repr=False)
    pdu_type: int
    request_id: int
    # The message, the position of its error status, and the ends of its PDU and of itself as given by their lengths.
    data: bytes = field(repr=False)
    body: int
    pdu_end: int
    end: int


def open_answer(data: bytes) -> Envelope:
    """Read a message as far as its request id, even if its end is missing; BadAnswer if that is not possible."""
    try:
        # An answer of over 255 bytes in its usual form.
        if data[:2] == LONG_SEQUENCE and data[4:6] == SHORT_VERSION and data[6] < 2 and data[7] == 4 and data[8] < 0x80:
            at = 9 + data[8]
            start, from_bytes = at + 10, int.from_bytes
            if start <= len(data) and data[at : at + 2] == LONG_RESPONSE and data[at + 4 : at + 6] == REQUEST_ID_HEADER:
                request_id = from_bytes(data[at + 6 : start], "big", signed=True)
                pdu_end, end = at + 4 + from_bytes(data[at + 2 : at + 4], "big"), 4 + from_bytes(data[2:4], "big")
                return Envelope(data[6], data[9:at], PduType.RESPONSE, request_id, data, start, pdu_end, end)
        tag, at, end = read_tlv(data, 0)
        if tag != SEQUENCE:
            raise BadAnswer(f"the message begins with a tag 0x{tag:02x}")
        limit = len(data)
        version, at = read_integer(data, at, limit)
        if version not in COMMUNITY_VERSIONS:
            raise BadAnswer(f"the message has the version number {version}")
        start, at = enter(data, at, Tag.OCTET_STRING, limit)
        community = data[start:at]
        pdu_type, at, pdu_end = read_tlv(data, at)
        request_id, body = read_integer(data, at, limit)
        return Envelope(version, community, pdu_type, request_id, data, body, pdu_end, end)
    except IndexError:
        raise BadAnswer(f"the message is cut off after {len(data)} bytes") from None


class WireAnswer(Answer):
    """An answer as received. Its variables are decoded on access, or by `read_answer`."""

    __slots__ = ("_asked", "_digest", "_expected", "_variables")

    def __init__(
        self, data: bytes, at: int, end: int, asked: Sequence[Oid] = (), expected: Sequence[Name] = (), sent: int = 0
    ) -> None:
        try:
            self.error_status, self.error_index, at = _numbers(data, at, end)
        except IndexError:
            raise BadAnswer(f"the answer is cut off after {len(data)} bytes") from None
        self._variables = data[at:end]
        self._digest = b""
        self._asked = asked
        self._expected = expected
        self.bytes_sent = sent
        self.bytes_received = len(data)

    def __getattr__(self, name: str) -> Any:
        if name not in DECODED:
            raise AttributeError(name)
        self._decode()
        return getattr(self, name)

    def _decode(self) -> None:
        try:
            self.oids, self.values, tags = _variables(self._variables, 0, len(self._variables), self._expected)
        except IndexError:
            raise BadAnswer(f"the answer is cut off after {self.bytes_received} bytes") from None
        self.tags = bytes(tags)

    @property
    def digest(self) -> bytes:
        if not self._digest:
            self._digest = digest(self._variables)
        return self._digest

    def split(self, lengths: bytes) -> tuple[bytes, list[bytes]] | None:
        names, values = [], []
        data, at = self._variables, 0
        try:
            for size in lengths:
                start = at + 4 + size
                stop = at + 2 + data[at + 1]
                if (
                    data[at + 3] != size
                    or data[at] != SEQUENCE
                    or data[at + 2] != 0x06
                    or data[start : start + 2] not in PLAIN_HEADERS
                    or start + 2 + data[start + 1] != stop
                    or size > 0x7F
                    or data[at + 1] > 0x7F
                ):
                    return None
                names.append(data[at + 4 : start])
                values.append(data[start:stop])
                at = stop
        except IndexError:
            return None
        return (b"".join(names), values) if at == len(data) else None

    @staticmethod
    def value_of(encoded: bytes) -> Value:
        return read_value(encoded[0], encoded[2:])

    def __len__(self) -> int:
        if isinstance(self._asked, Asked) and self._asked.digest == self.digest:
            return self._asked.answered
        return len(self.oids)


DECODED = frozenset({"oids", "values", "tags"})

# Tag and length of values that `read_value` accepts with any content.
PLAIN_HEADERS = frozenset(
    bytes((tag, size))
    for tag, sizes in {
        Tag.INTEGER: range(1, MAX_INTEGER_OCTETS + 1),
        Tag.OCTET_STRING: range(0x80),
        **{tag: range(1, most + 1) for tag, most in UNSIGNED_OCTETS.items()},
    }.items()
    for size in sizes
)


def unread_answer(envelope: Envelope, asked: Sequence[Oid], bytes_sent: int = 0) -> WireAnswer:
    """Return the answer to a request with undecoded variables; see `Asked`."""
    _check_is_answer(envelope)
    return WireAnswer(envelope.data, envelope.body, envelope.end, asked, (), bytes_sent)


def read_answer(envelope: Envelope, expected: Sequence[Name] = (), bytes_sent: int = 0) -> WireAnswer:
    """Return the decoded answer. Names as in `expected` are recognised without decoding them."""
    _check_is_answer(envelope)
    return _read(WireAnswer(envelope.data, envelope.body, envelope.end, (), expected, bytes_sent))


def _check_is_answer(envelope: Envelope) -> None:
    if envelope.pdu_type != PduType.RESPONSE:
        raise BadAnswer(f"the message is not an answer but a PDU 0x{envelope.pdu_type:02x}")
    _check_lengths(envelope)


def _read(answer: WireAnswer) -> WireAnswer:
    """Decode the variables now, so that errors are raised here."""
    answer._decode()
    return answer


def decode_answer(data: bytes, expected: Sequence[Name] | None = None) -> tuple[int, bytes, int, Answer]:
    """Return request id, community, version and answer; BadAnswer for other bytes."""
    envelope = open_answer(data)
    answer = read_answer(envelope, expected or ())
    return envelope.request_id, envelope.community, envelope.version, answer


def decode_pdu(content: bytes) -> tuple[int, Answer]:
    """Return request id and answer from the content of a response PDU, as in SNMPv3."""
    try:
        request_id, at = read_integer(content, 0, len(content))
    except IndexError:
        raise BadAnswer("the PDU is cut off before its request id") from None
    return request_id, _read(WireAnswer(content, at, len(content)))


def _check_lengths(envelope: Envelope) -> None:
    if envelope.end > len(envelope.data) or envelope.pdu_end != envelope.end:
        raise BadAnswer(f"the lengths in a message of {len(envelope.data)} bytes do not fit together")


def _numbers(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return the two numbers after the request id, and the start of the variables, which fill the rest."""
    if data[at : at + 8] == NO_ERROR and at + 10 + int.from_bytes(data[at + 8 : at + 10], "big") == end:
        return 0, 0, at + 10
    first, at = read_integer(data, at, end)
    second, at = read_integer(data, at, end)
    at, stop = enter(data, at, SEQUENCE, end)
    if stop != end:
        raise BadAnswer("there are bytes left over behind the variables")
    return first, second, at


def _variables(data: bytes, at: int, end: int, expected: Sequence[Name]) -> tuple[list[Oid], list[Value], bytearray]:
    """Return names, values and tags.

    This loop takes most of the time. Short forms, strings and small integers are read in place. Any other variable
    goes to `_odd_variable`, which accepts all forms of BER and checks each step.
    """
    oids: list[Oid] = []
    values: list[Value] = []
    tags = bytearray()
    from_bytes = int.from_bytes
    at = _known_variables(data, at, end, expected, oids, values, tags)
    while at < end:
        size = data[at + 1]
        name_size = data[at + 3]
        stop = at + 2 + size
        name = at + 4
        start = name + name_size + 2
        if (
            size > 0x7F
            or not 0 < name_size <= 0x7F
            or start + data[start - 1] != stop
            or stop > end
            or data[at] != SEQUENCE
            or data[at + 2] != 0x06
            or data[start - 3] > 0x7F
        ):
            at = _odd_variable(data, at, end, oids, values, tags)
            continue
        tag = data[start - 2]
        oids.append(data[name : start - 2])  # type: ignore[arg-type]  # an Oid is bytes; a cast would cost 5 %
        if tag == 0x02 and start < stop < start + 5:
            values.append(from_bytes(data[start:stop], "big", signed=True))
        elif tag == 0x04:
            values.append(data[start:stop])
        else:
            values.append(read_value(tag, data[start:stop]))
        tags.append(tag)
        at = stop
    return oids, values, tags


def _known_variables(
    data: bytes,
    at: int,
    end: int,
    expected: Sequence[Name],
    oids: list[Oid],
    values: list[Value],
    tags: bytearray,
) -> int:
    """Read variables while they are the requested ones in the usual short form, and return the end position."""
    from_bytes = int.from_bytes
    for header, oid in expected:
        if at >= end:
            break
        size = data[at + 1]
        start = at + len(header) + 4
        stop = at + 2 + size
        if (
            not data.startswith(header, at + 2)
            or size > 0x7F
            or start + data[start - 1] != stop
            or stop > end
            or data[at] != SEQUENCE
        ):
            break
        tag = data[start - 2]
        oids.append(oid)
        if tag == 0x02 and start < stop < start + 5:
            values.append(from_bytes(data[start:stop], "big", signed=True))
        elif tag == 0x04:
            values.append(data[start:stop])
        else:
            values.append(read_value(tag, data[start:stop]))
        tags.append(tag)
        at = stop
    return at


def _odd_variable(data: bytes, at: int, end: int, oids: list[Oid], values: list[Value], tags: bytearray) -> int:
    """Read one variable in any form of BER, and return its end."""
    at, stop = enter(data, at, SEQUENCE, end)
    start, at = enter(data, at, Tag.OBJECT_IDENTIFIER, stop)
    oid = checked_oid(data[start:at])
    tag, start, value_end = read_tlv(data, at)
    if value_end != stop:
        raise BadAnswer(f"the value at byte {at} does not fill its variable")
    oids.append(oid)
    values.append(read_value(tag, data[start:stop]))
    tags.append(tag)
    return stop


@dataclass(frozen=True, slots=True)
class Request:
    """A request as an agent receives it. Its repr does not show the community."""

    version: Version
    community: bytes = field(repr=False)
    pdu_type: PduType
    request_id: int
    # Non-repeaters and max-repetitions of a GETBULK; error status and index, which are 0, of all others.
    non_repeaters: int
    max_repetitions: int
    oids: tuple[Oid, ...]


def decode_request(data: bytes) -> Request:
    """Return a request as an agent receives it; BadAnswer for other bytes."""
    envelope = open_answer(data)
    if envelope.pdu_type not in REQUEST_TYPES:
        raise BadAnswer(f"the message is not a request but a PDU 0x{envelope.pdu_type:02x}")
    _check_lengths(envelope)
    try:
        first, second, at = _numbers(data, envelope.body, envelope.end)
        oids, _, _ = _variables(data, at, envelope.end, ())
    except IndexError:
        raise BadAnswer(f"the request is cut off after {len(data)} bytes") from None
    version, pdu_type = Version(envelope.version), PduType(envelope.pdu_type)
    return Request(version, envelope.community, pdu_type, envelope.request_id, first, second, tuple(oids))


def encode_varbind(oid: Oid, tag: int, value: Value) -> bytes:
    """Return an encoded variable; ValueError if the value does not match the tag."""
    return tlv(SEQUENCE, tlv(Tag.OBJECT_IDENTIFIER, oid) + encode_value(tag, value))


def encode_response(
    request: Request, error_status: int, error_index: int, varbinds: Iterable[tuple[Oid, int, Value]]
) -> bytes:
    """Return an agent's answer to a request."""
    encoded = [encode_varbind(oid, tag, value) for oid, tag, value in varbinds]
    return encode_response_parts(request, error_status, error_index, encoded)


def encode_response_parts(
    request: Request, error_status: int, error_index: int, encoded_varbinds: Iterable[bytes]
) -> bytes:
    """Return an agent's answer from encoded variables."""
    variables = tlv(SEQUENCE, b"".join(encoded_varbinds))
    numbers = integer(request.request_id) + integer(error_status) + integer(error_index)
    pdu = tlv(PduType.RESPONSE, numbers + variables)
    return tlv(SEQUENCE, integer(request.version) + tlv(Tag.OCTET_STRING, request.community) + pdu)
