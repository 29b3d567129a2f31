"""What the engine needs to know of a maker. `brands/` fills these in."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from facho.engine.model import JobKind
from facho.engine.oid import Arcs, Oid
from facho.engine.snmp import Value

Decoder = Callable[[Value], Any]

# What can be known of an ONU besides which one it is (olt, index, slot, port, onu). A column that
# fills anything else fills `extra`.
ONU_FIELDS = (
    "serial",
    "mac",
    "name",
    "description",
    "admin_state",
    "state",
    "rx_dbm",
    "tx_dbm",
    "olt_rx_dbm",
    "distance_m",
    "down_cause",
    "last_up",
    "last_down",
    "model",
    "software",
    "line_profile",
    "service_profile",
    "temperature_c",
    "voltage_v",
    "in_octets",
    "out_octets",
)

# What was observed of an ONU. What an admin set is its `admin_state`: enabled or disabled.
ONU_STATES = (
    "online",
    "offline",
    "los",
    "dying_gasp",
    "auth_failed",
    "logging",
    "syncing",
    "degraded",
    "disabled",
    "unknown",
)


@dataclass(frozen=True, slots=True)
class Position:
    """Where an ONU sits, as the maker's own command line counts. `onu` None names the whole port."""

    shelf: int
    slot: int
    port: int
    onu: int | None = None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """An ONU whose index does not tell where it sits. A column may (`Column.places`), or nobody does."""

    index: Arcs


Place = Position | Unplaced


@dataclass(frozen=True, slots=True)
class IndexSpace:
    """One way in which a table numbers its ONUs.

    A device may have several, with equal numbers that mean different ports, so
    rows of different spaces are joined by place and never by number. `decode`
    gives None for an index that is not an ONU of this space; `encode` takes
    back what `decode` gave, and of a port makes the prefix that all its ONUs
    share. Both may raise ValueError for what no device can have.
    """

    decode: Callable[[Arcs], Place | None]
    # Takes the kind of place that its own `decode` gives.
    encode: Callable[[Any], Arcs]
    # The ONUs of a port share a prefix, so a column can be walked port by port. If not, a port encodes to no arcs.
    by_port: bool = True
    # The index follows from the place for certain, so values can be asked for by it.
    by_index: bool = True


def _as_it_is(place: Unplaced) -> Arcs:
    return place.index


# The index is a name and nothing more.
OPAQUE = IndexSpace(Unplaced, _as_it_is, by_port=False)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an ONU table: `field` names what it fills, `decode` turns the raw value into ours or None."""

    field: str
    oid: Oid
    decode: Decoder
    space: IndexSpace
    # Read live from each ONU by the OLT, one after the other: dear, and only useful for ONUs that are up.
    optical: bool = False
    # Columns that must be read with it, or its value tells half of the truth.
    needs: tuple[str, ...] = ()
    # Its value is where the ONU sits: `decode` gives a Position, or None for a row that is no ONU at all.
    places: bool = False
    # Asked for oftener than this, the OLT suffers. Going below is allowed, and warned about.
    floor: timedelta | None = None


@dataclass(frozen=True, slots=True)
class PortTable:
    """A cheap column with one row for each port that can have ONUs: `decode` turns its index into the port.

    Where the value counts the ONUs of the port, a port that lists fewer has not been read to its end.
    """

    oid: Oid
    decode: Callable[[Arcs], Position | None]
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Manners:
    """How a maker's agents want to be asked, before anything is learned of the one at hand."""

    # Where the sizes of requests begin; they grow while answers succeed.
    max_repetitions: int = 10
    rows_per_get: int = 8
    # The longest wait for an answer. Shorter ones follow from the round trips that were measured.
    timeout: float = 5.0
    optical_timeout: float = 20.0
    # The shortest wait, however fast the agent was so far.
    min_timeout: float = 1.0
    retries: int = 3
    # The most requests in flight that Facho tries by itself.
    max_in_flight: int = 8


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """A job that makes sense for a maker, at an interval that its OLTs can live with.

    One that follows another is its chain, and runs whenever that one does. A
    discovery without columns reads what the brand says.
    """

    name: str
    kind: JobKind
    interval: timedelta
    columns: tuple[str, ...] = ()
    priority: int = 40
    follows: str | None = None
    timeout: timedelta = timedelta(minutes=5)


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
    ports: PortTable | None = None
    # Not proved by a recording or by several sources that agree; pages say so.
    experimental: bool = False
    manners: Manners = field(default_factory=Manners)
    # Rules over a whole row, such as "an ONU that is off has no power".
    finish: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    templates: tuple[JobTemplate, ...] = ()

    def with_needed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return these columns and the ones they need, each once; a name that is no column stays as it is."""
        needs = {name: column.needs for name, column in self.columns.items()}
        return tuple(dict.fromkeys(each for name in names for each in (name, *needs.get(name, ()))))
