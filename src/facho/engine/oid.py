"""Object identifiers. Inside Facho an OID is the content of its BER encoding.

Answers carry OIDs in that form, so known OIDs and prefixes are found by comparing bytes. Numbers are decoded only on
demand.
"""

from collections.abc import Iterable
from typing import NewType

Oid = NewType("Oid", bytes)
Arcs = tuple[int, ...]

# The largest number an arc may have (RFC 2578, 3.5).
MAX_ARC = 2**32 - 1
MAX_ARCS = 128


def parse(text: str) -> Oid:
    """Return the OID written as `1.3.6.1` or `.1.3.6.1`; ValueError explains what is invalid."""
    parts = text.strip().removeprefix(".").split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is not an OID: write numbers with dots between them, like 1.3.6.1.2.1.1.5.0")
    return from_arcs(tuple(map(int, parts)))


def from_arcs(arcs: Arcs) -> Oid:
    """Return a whole OID; its first two arcs share a byte."""
    if len(arcs) < 2 or len(arcs) > MAX_ARCS:
        raise ValueError(f"an OID has 2 to {MAX_ARCS} numbers, not {len(arcs)}")
    if arcs[0] > 2 or (arcs[0] < 2 and arcs[1] > 39):
        raise ValueError(f"no OID begins with {arcs[0]}.{arcs[1]}")
    if max(arcs) > MAX_ARC:
        raise ValueError(f"{max(arcs)} cannot be part of an OID: numbers go from 0 to {MAX_ARC}")
    return Oid(pack((40 * arcs[0] + arcs[1], *arcs[2:])))


def pack(arcs: Iterable[int]) -> bytes:
    """Return the bytes of arcs that follow others: an index, or a column number."""
    out = bytearray()
    for arc in arcs:
        if not 0 <= arc <= MAX_ARC + 80:
            raise ValueError(f"{arc} cannot be part of an OID: numbers go from 0 to {MAX_ARC}")
        if arc < 0x80:
            out.append(arc)
        else:
            groups = [arc & 0x7F]
            while arc := arc >> 7:
                groups.append(arc & 0x7F | 0x80)
            out += bytes(reversed(groups))
    return bytes(out)


def unpack(suffix: bytes) -> Arcs:
    """Return the numbers in the bytes of an index. The inverse of `pack`."""
    arcs = []
    arc = 0
    for byte in suffix:
        arc = arc << 7 | byte & 0x7F
        if byte < 0x80:
            arcs.append(arc)
            arc = 0
    if suffix and suffix[-1] >= 0x80:
        raise ValueError("the last number of this OID is cut off")
    return tuple(arcs)


def arcs(oid: Oid) -> Arcs:
    """Return all numbers of a whole OID."""
    first, *rest = unpack(oid)
    top = min(first // 40, 2)
    return (top, first - 40 * top, *rest)


def text(oid: Oid) -> str:
    """Return the OID in dotted form."""
    return ".".join(map(str, arcs(oid)))
