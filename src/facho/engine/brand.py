"""What the engine needs to know of a maker. `brands/` fills these in."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from facho.engine.oid import Arcs, Oid
from facho.engine.snmp import Value

Decoder = Callable[[Value], Any]


@dataclass(frozen=True, slots=True)
class Position:
    """Where an ONU sits, as the maker's own command line counts. `onu` None names the whole port."""

    shelf: int
    slot: int
    port: int
    onu: int | None = None


@dataclass(frozen=True, slots=True)
class IndexSpace:
    """One way in which a table numbers its ONUs.

    A device may have several, with equal numbers that mean different ports, so
    rows of different spaces are joined by position and never by number.
    `decode` gives None for an index that is not an ONU of this space; `encode`
    of a port gives the prefix that all its ONUs share.
    """

    decode: Callable[[Arcs], Position | None]
    encode: Callable[[Position], Arcs]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an ONU table: `field` names what it fills, `decode` turns the raw value into ours or None."""

    field: str
    oid: Oid
    decode: Decoder
    space: IndexSpace
    # Read live from each ONU by the OLT, one after the other: dear, and only useful for ONUs that are up.
    optical: bool = False


@dataclass(frozen=True, slots=True)
class Manners:
    """How a maker's agents want to be asked, before anything is learned of the one at hand."""

    max_repetitions: int = 10
    rows_per_get: int = 8
    timeout: float = 5.0
    retries: int = 3
    optical_timeout: float = 20.0


@dataclass(frozen=True, slots=True)
class Brand:
    """A maker's profile: data plus a few functions."""

    id: str
    label: str
    # The space of the index that names an ONU in Facho.
    space: IndexSpace
    columns: Mapping[str, Column]
    # What a discovery reads when its job names no columns. The first one decides which ONUs exist.
    discovery: tuple[str, ...]
    sys_object_ids: tuple[Oid, ...] = ()
    sys_descr: re.Pattern[str] | None = None
    # A column that only this maker's agents answer.
    probe: Oid | None = None
    manners: Manners = field(default_factory=Manners)
    # Rules over a whole row, such as "an ONU that is off has no power".
    finish: Callable[[dict[str, Any]], dict[str, Any]] | None = None
