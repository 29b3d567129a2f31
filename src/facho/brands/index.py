"""Index layouts: conversion of an index to a place and back, from a description of its numbers.

A layout has one line per number of an index. A line names the parts of its
number from the highest bit down, each as `name:bits`, or is a single name or a
fixed number:

    type:7=125 shelf:6 slot:6 port:5 spare:8=0
    onu=0..127
    1

`+1` or `-1` after the bits is added to the value. `=125` or `=0..127` is the
required result; other indexes do not match. shelf, slot, port and onu are the
place. Any other part must be fixed, because the index has to be computed from
the place alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from facho.engine.brand import IndexSpace, Position
from facho.engine.oid import MAX_ARC, Arcs

PLACE = ("shelf", "slot", "port", "onu")
ARC_BITS = 32
PART = re.compile(
    r"(?P<name>[a-z_]+)(:(?P<bits>\d+))?(?P<offset>[+-]\d+)?(=(?P<low>0x[0-9a-f]+|\d+)(\.\.(?P<high>0x[0-9a-f]+|\d+))?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """Some bits of a number: `low` to `high` is the valid range, after `offset` was added."""

    name: str
    bits: int
    offset: int
    low: int
    high: int
    # Position above the lowest bit of its number.
    shift: int = 0

    @property
    def is_place(self) -> bool:
        return self.name in PLACE

    def write(self, value: int) -> int:
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.name} {value} is not between {self.low} and {self.high}")
        return value - self.offset << self.shift


# Number, shift, mask, offset, low, high, and the field of a Position: -1 for none.
Step = tuple[int, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of an index: the parts of each of its numbers."""

    arcs: tuple[tuple[Part, ...], ...]
    # The same, in the form for `decode`.
    steps: tuple[Step, ...]

    @property
    def names(self) -> list[str]:
        return [part.name for arc in self.arcs for part in arc if part.is_place]

    @property
    def by_port(self) -> bool:
        """Return whether the ONU has its own number, so that all ONUs of a port share a prefix."""
        return self._port_arcs() is not None

    def decode(self, arcs: Arcs) -> Position | None:
        if len(arcs) != len(self.arcs):
            return None
        # Every row of every answer passes here: no calls, no lookups by name.
        found: list[Any] = [0, 0, 0, None]
        for at, shift, mask, offset, low, high, field in self.steps:
            value = (arcs[at] >> shift & mask) + offset
            if not low <= value <= high:
                return None
            if field >= 0:
                found[field] = value
        return Position(*found)

    def encode(self, position: Position) -> Arcs:
        kind = "port" if position.onu is None else "ONU"
        try:
            for name in ("shelf", "slot"):
                if getattr(position, name) != 0 and name not in self.names:
                    raise ValueError(f"it has no {name}")
            return tuple(
                sum(part.write(getattr(position, part.name) if part.is_place else part.low) for part in parts)
                for parts in (self.arcs if position.onu is not None else self._port_arcs() or ())
            )
        except ValueError as error:
            raise ValueError(f"{position} is not a valid {kind} of this index: {error}") from None

    def _port_arcs(self) -> tuple[tuple[Part, ...], ...] | None:
        at = next((at for at, arc in enumerate(self.arcs) if any(part.name == "onu" for part in arc)), len(self.arcs))
        is_alone = at == len(self.arcs) or len(self.arcs[at]) == 1
        return self.arcs[:at] if is_alone else None


def layout(lines: Sequence[str | int], *, with_onu: bool = True) -> Layout:
    """Return the layout of these lines; ValueError explains an error."""
    arcs = tuple(_arc(line) for line in lines)
    steps: list[Step] = []
    for at, parts in enumerate(arcs):
        # Bits above the described ones must be zero.
        steps.append((at, sum(part.bits for part in parts), -1, 0, 0, 0, -1))
        for part in parts:
            field = PLACE.index(part.name) if part.is_place else -1
            steps.append((at, part.shift, (1 << part.bits) - 1, part.offset, part.low, part.high, field))
    made = Layout(arcs, tuple(steps))
    names = made.names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{twice} is repeated")
    if "port" not in names:
        raise ValueError("no part is called port")
    if with_onu and "onu" not in names:
        raise ValueError("no part is called onu")
    if not with_onu and "onu" in names:
        raise ValueError("a port has no part called onu")
    if with_onu:
        at = next(at for at, parts in enumerate(arcs) if any(part.name == "onu" for part in parts))
        if any(part.is_place for parts in arcs[at + 1 :] for part in parts):
            raise ValueError("after the number with onu only fixed numbers may follow")
    return made


def space(*layouts: Layout) -> IndexSpace:
    """Return the space of an index with one of these layouts. The first that matches is used."""

    def decode(arcs: Arcs) -> Position | None:
        return next((place for each in layouts if (place := each.decode(arcs))), None)

    def encode(position: Position) -> Arcs:
        error = ValueError("an index without a layout")
        for each in layouts:
            try:
                return each.encode(position)
            except ValueError as refusal:
                error = refusal
        raise error

    return IndexSpace(decode, encode, by_port=all(each.by_port for each in layouts))


def _arc(line: str | int) -> tuple[Part, ...]:
    if isinstance(line, int) or line.strip().isdecimal():
        number = int(line)
        if not 0 <= number <= MAX_ARC:
            raise ValueError(f"{number} cannot be part of an OID")
        return (Part("fixed", ARC_BITS, 0, number, number),)
    parts = [_part(text, is_alone=len(line.split()) == 1) for text in line.split()]
    if not parts:
        raise ValueError("a line is empty")
    bits = sum(part.bits for part in parts)
    if bits > ARC_BITS:
        raise ValueError(f"{line!r} has {bits} bits: a number of an OID has {ARC_BITS}")
    shifted = []
    for part in parts:
        bits -= part.bits
        shifted.append(replace(part, shift=bits))
    return tuple(shifted)


def _part(text: str, *, is_alone: bool) -> Part:
    match = PART.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} cannot be read: write name:bits, as in slot:6, port:3+1, type:4=9 or onu:8=1..128")
    if match["bits"] is None and not is_alone:
        raise ValueError(
            f"{text!r} shares its number with other parts: add its number of bits, as in {match['name']}:8"
        )
    bits = int(match["bits"] or ARC_BITS)
    offset = int(match["offset"] or 0)
    if match["low"] is None:
        low, high = max(offset, 0), (1 << bits) - 1 + offset
    else:
        low = int(match["low"], 0)
        high = int(match["high"], 0) if match["high"] else low
    name = match["name"].lower()
    if not (offset <= low <= high < (1 << bits) + offset):
        raise ValueError(f"{text!r} is impossible: {bits} bits give {offset} to {(1 << bits) - 1 + offset}")
    if name not in PLACE and low != high:
        raise ValueError(f"{text!r} has no name: give it a fixed value, as in {match['name']}:{bits}=0")
    return Part(name, bits, offset, low, high)
