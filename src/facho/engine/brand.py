"""Brand profiles as the engine uses them. `brands/` provides the values."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import Any

from facho.engine.model import JobKind
from facho.engine.oid import Arcs, Oid
from facho.engine.snmp import Value

Decoder = Callable[[Value], Any]

# Fields of an ONU besides its key (olt, index, slot, port, onu). Any other field is stored in `extra`.
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

# Number of ONUs that a PON port can have, and the id of the first one, for most brands. GPON splits by up to 128.
ONUS_PER_PORT = 128
FIRST_ONU = 1

# Observed states. The configured state is `admin_state`: enabled or disabled.
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
    """Place of an ONU, numbered as on the vendor's command line. `onu` None: the whole port."""

    shelf: int
    slot: int
    port: int
    onu: int | None = None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """An ONU whose index does not contain its place. A column may (`Column.places`)."""

    index: Arcs


Place = Position | Unplaced


@dataclass(frozen=True, slots=True)
class IndexSpace:
    """Numbering of ONUs in a table.

    A device may have several, in which equal numbers mean different ports, so rows of different spaces are joined by
    place and never by number. `decode` returns None for an index that is not an ONU of this space. `encode` is its
    inverse; for a port it returns the prefix of all its ONUs. Both may raise ValueError for impossible values.
    """

    decode: Callable[[Arcs], Place | None]
    # Takes the kind of place that its own `decode` returns.
    encode: Callable[[Any], Arcs]
    # ONUs of a port share a prefix, so a column can be walked by port. If not, a port encodes to no arcs.
    by_port: bool = True
    # The index follows from the place, so values can be requested by index.
    by_index: bool = True


# The index is only a name.
OPAQUE = IndexSpace(Unplaced, attrgetter("index"), by_port=False)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an ONU table: `field` is its name, `decode` converts the raw value, or returns None."""

    field: str
    oid: Oid
    decode: Decoder
    space: IndexSpace
    # Read live from each ONU by the OLT, one after the other: expensive, and useful only for ONUs with light.
    optical: bool = False
    # Columns that must be read with it for a correct value.
    needs: tuple[str, ...] = ()
    # Its value is the place: `decode` returns a Position, or None for a row that is not an ONU.
    places: bool = False
    # Shorter intervals overload the OLT. They are allowed with a warning.
    floor: timedelta | None = None


@dataclass(frozen=True, slots=True)
class PortTable:
    """A cheap column with one row per port that can have ONUs: `decode` converts its index to the port.

    If the value is the number of ONUs, a port that lists fewer was not read to the end.
    """

    oid: Oid
    decode: Callable[[Arcs], Position | None]
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Manners:
    """Request parameters of a brand, before anything is learned about an agent."""

    # Initial request sizes; they grow while answers succeed.
    max_repetitions: int = 10
    rows_per_get: int = 8
    # Maximum time-out in seconds. Shorter ones follow from measured round trips.
    timeout: float = 5.0
    optical_timeout: float = 20.0
    # Minimum time-out in seconds.
    min_timeout: float = 1.0
    retries: int = 3
    # Maximum number of requests in flight in automatic mode.
    max_in_flight: int = 8


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """A usual job of a brand, at an interval that its OLTs can handle.

    A chained template runs after its master. A discovery without columns reads the default columns of the brand.
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
    """Profile of a brand: data and a few functions."""

    id: str
    label: str
    # Space of the index that identifies an ONU in Facho.
    space: IndexSpace
    columns: Mapping[str, Column]
    # Default columns of a discovery. The first one decides which ONUs exist.
    discovery: tuple[str, ...]
    sys_object_ids: tuple[Oid, ...] = ()
    sys_descr: re.Pattern[str] | None = None
    # A column that only agents of this brand answer.
    probe: Oid | None = None
    ports: PortTable | None = None
    onus_per_port: int = ONUS_PER_PORT
    first_onu: int = FIRST_ONU
    # Not confirmed by a recording or by several sources that agree; the pages show it.
    experimental: bool = False
    manners: Manners = field(default_factory=Manners)
    # Rules over a whole row, such as "an ONU that is off has no power".
    finish: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    templates: tuple[JobTemplate, ...] = ()

    def with_needed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return these columns and the ones they need, each once; unknown names are kept."""
        needs = {name: column.needs for name, column in self.columns.items()}
        return tuple(dict.fromkeys(each for name in names for each in (name, *needs.get(name, ()))))
