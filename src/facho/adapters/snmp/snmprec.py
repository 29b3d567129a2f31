"""Recordings of agents in the `.snmprec` format: a line `oid

type

value` per variable.

The type is the number of its tag. A letter after it gives the format of the value: `x` hexadecimal, `e` with escapes
such as `\\x00`; without one it is plain. Empty lines and lines that start with `#` are ignored.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

from facho.adapters.snmp.codec import encode_value
from facho.engine.oid import Oid, parse, text
from facho.engine.snmp import Tag, Value

INTEGERS = frozenset({Tag.INTEGER, Tag.COUNTER32, Tag.GAUGE32, Tag.TIME_TICKS, Tag.COUNTER64})
OCTETS = frozenset({Tag.OCTET_STRING, Tag.IP_ADDRESS, Tag.OPAQUE})
# A missing variable cannot be recorded.
KNOWN_TYPES = INTEGERS | OCTETS | {Tag.NULL, Tag.OBJECT_IDENTIFIER}

ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
ESCAPED = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
    b"\\": b"\\",
    b"'": b"'",
    b'"': b'"',
}


class BadRecording(ValueError):
    """A line of a recording cannot be read. The message names the file and the line."""


class Record(NamedTuple):
    """One variable of a recording."""

    oid: Oid
    tag: Tag
    value: Value


def read_records(path: Path) -> list[Record]:
    """Return the variables of a file in order; BadRecording names a wrong line."""
    return parse_records(path.read_bytes().split(b"\n"), str(path))


def parse_records(lines: Iterable[bytes | str], source: str = "the recording") -> list[Record]:
    """Return the variables of these lines. `source` is their name in errors."""
    records = []
    for number, line in enumerate(lines, 1):
        content = (line.encode() if isinstance(line, str) else line).rstrip(b"\r\n")
        if not content.strip() or content.startswith(b"#"):
            continue
        try:
            records.append(_parse(content))
        except ValueError as error:
            raise BadRecording(f"{source}, line {number}: {error}") from None
    return records


def format_record(record: Record) -> str:
    """Return the line of a variable, without line end. Strings that are not printable ASCII become hexadecimal."""
    encode_value(record.tag, record.value)
    notation, value = _format_value(record.tag, record.value)
    return f"{text(record.oid)}|{int(record.tag)}{notation}|{value}"


def _parse(line: bytes) -> Record:
    parts = line.split(b"|", 2)
    if len(parts) != 3:
        raise ValueError("a line has the form oid|type|value")
    name, kind = (part.decode("ascii", "replace") for part in parts[:2])
    number, notation = (kind[:-1], kind[-1]) if kind[-1:] in ("x", "e") else (kind, "")
    if not (number.isascii() and number.isdigit()) or int(number) not in KNOWN_TYPES:
        raise ValueError(f"{kind!r} is not a type; there are {', '.join(str(int(tag)) for tag in sorted(KNOWN_TYPES))}")
    tag = Tag(int(number))
    if notation and tag not in OCTETS:
        raise ValueError(f"{kind!r} is not a type: only strings have an alternative notation")
    value = _parse_value(tag, notation, parts[2])
    encode_value(tag, value)
    return Record(parse(name), tag, value)


def _parse_value(tag: Tag, notation: str, content: bytes) -> Value:
    if notation == "x":
        return bytes.fromhex(content.decode("ascii", "replace"))
    if notation == "e":
        return ESCAPE.sub(_unescape, content)
    # An address is written with dots; some recorders write its four octets.
    if tag == Tag.IP_ADDRESS and len(content) != 4:
        return IPv4Address(content.decode("ascii", "replace").strip()).packed
    if tag in OCTETS:
        return content
    if tag == Tag.NULL:
        return None
    written = content.decode("ascii", "replace").strip()
    if tag == Tag.OBJECT_IDENTIFIER:
        return parse(written)
    if not re.fullmatch(r"-?\d+", written, re.ASCII):
        raise ValueError(f"{written!r} is not a whole number")
    return int(written)


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code.startswith(b"x") and len(code) == 3:
        return bytes.fromhex(code[1:].decode())
    # A backslash before anything else is a plain backslash.
    return ESCAPED.get(code, match[0])


def _format_value(tag: Tag, value: Value) -> tuple[str, str]:
    """Return the format letter and the value."""
    if tag == Tag.OBJECT_IDENTIFIER and isinstance(value, bytes):
        return "", text(Oid(value))
    if tag == Tag.IP_ADDRESS and isinstance(value, bytes) and len(value) == 4:
        return "", str(IPv4Address(value))
    if isinstance(value, bytes):
        is_plain = tag == Tag.OCTET_STRING and all(0x20 <= octet < 0x7F for octet in value)
        return ("", value.decode("ascii")) if is_plain else ("x", value.hex())
    if tag not in KNOWN_TYPES:
        raise ValueError(f"{tag.name} means that the variable does not exist, so it cannot be recorded")
    return "", "" if value is None else str(value)
