"""The few rules of BER that SNMP uses, written for speed: tags are one byte, lengths are definite.

Readers raise BadAnswer or IndexError for bytes that break a rule; `codec` turns the latter into BadAnswer.
"""

from facho.engine.errors import BadAnswer
from facho.engine.oid import Oid
from facho.engine.snmp import Missing, Tag, Value

SEQUENCE = 0x30

# Maximum octets of an unsigned type. Octets before these must be padding.
UNSIGNED_OCTETS: dict[int, int] = {Tag.COUNTER32: 4, Tag.GAUGE32: 4, Tag.TIME_TICKS: 4, Tag.COUNTER64: 8}
# Nine octets hold every number of 64 bits, with the zero that keeps an unsigned one positive.
MAX_INTEGER_OCTETS = 9
RAW_TAGS = frozenset({Tag.OCTET_STRING, Tag.IP_ADDRESS, Tag.OPAQUE})
EMPTY_VALUES: dict[int, Value] = {Tag.NULL: None, **{missing.value: missing for missing in Missing}}
# An object identifier of no length: agents mean 0.0 by it.
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
    """Return a value as it stands on the wire; ValueError where the tag and the value do not go together."""
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
    """Return where the content of a TLV with this tag begins and ends; its end must not lie behind `end`."""
    found, start, stop = read_tlv(data, at)
    if found != tag:
        raise BadAnswer(f"there is a tag 0x{found:02x} at byte {at} where 0x{tag:02x} belongs")
    if stop > end:
        raise BadAnswer(f"what begins at byte {at} is longer than what it is part of")
    return start, stop


def read_integer(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the INTEGER at `at`, and where it ends."""
    start, stop = enter(data, at, Tag.INTEGER, end)
    return signed(data[start:stop]), stop


def signed(content: bytes) -> int:
    """Return the number that the content of an INTEGER stands for."""
    if 0 < len(content) <= MAX_INTEGER_OCTETS:
        return int.from_bytes(content, "big", signed=True)
    raise BadAnswer(f"an integer has {len(content)} octets")


def read_value(tag: int, content: bytes) -> Value:
    """Return the value that the content of a TLV stands for. The commonest types come first."""
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
    """Return a counter, gauge or tick with more octets than it needs: agents put a sign in front of them."""
    padding = content[:-octets]
    if not content or (padding.strip(b"\x00") and padding.strip(b"\xff")):
        raise BadAnswer(f"a value of tag 0x{tag:02x} has {len(content)} octets that do not fit it")
    return int.from_bytes(content[-octets:], "big")


def checked_oid(content: bytes) -> Oid:
    """Return an OID that has at least one number and whose last number is whole."""
    if not content or content[-1] >= 0x80:
        raise BadAnswer("an OID is empty or cut off")
    return Oid(content)
