"""Simulated OLT: its kind, its plant, and its MIB. Each vendor has a file for its tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from facho.engine.oid import Arcs, parse
from facho.engine.oid import arcs as arcs_of
from facho.engine.snmp import Tag
from facho.simulator.life import DAY, Observed, Onu, observe
from facho.simulator.mib import SCALAR, Mib, MibColumn, MibRows, Raw
from facho.simulator.plant import Chassis, Plant, grow
from facho.simulator.recorded import RecordedMib

SYSTEM = "1.3.6.1.2.1.1"
IF_TABLE = "1.3.6.1.2.1.2.2.1"
IF_NAME = "1.3.6.1.2.1.31.1.1.1.1"

# Interval between reboots, when the uptime restarts. TimeTicks hold 497 days.
BETWEEN_REBOOTS = 300 * DAY

# Value of agents for a time of an ONU that has not been up yet.
NEVER = bytes(8)

ReadFact = Callable[[Onu], Raw]
ReadLive = Callable[[Onu, Observed], Raw | None]


@dataclass(frozen=True, slots=True)
class Fact:
    """A column with constant values: OID, type, and reader."""

    oid: str
    tag: Tag
    read: ReadFact


@dataclass(frozen=True, slots=True)
class Live:
    """A column whose values change with time. An `optical` one is slow, because it is read from the ONU itself.

    A `sparse` one has no row for an ONU for which `read` returns None.
    """

    oid: str
    tag: Tag
    read: ReadLive
    optical: bool = False
    sparse: bool = False


@dataclass(frozen=True, slots=True)
class InterfaceRow:
    """A row of IF-MIB."""

    index: int
    name: str
    descr: str


class Watch:
    """Observes ONUs, cached for each second."""

    def __init__(self, onus: Sequence[Onu]) -> None:
        self._onus = onus
        self._seen: list[tuple[float, Observed] | None] = [None] * len(onus)

    def look(self, number: int, now: float) -> tuple[Onu, Observed]:
        onu = self._onus[number]
        second = now // 1
        seen = self._seen[number]
        if seen is None or seen[0] != second:
            seen = self._seen[number] = second, observe(onu, second)
        return onu, seen[1]


@dataclass(frozen=True, slots=True)
class TableInput:
    """Input of a vendor's tables."""

    name: str
    seed: int
    plant: Plant
    watch: Watch


@dataclass(frozen=True, slots=True)
class Maker:
    """A kind of OLT: chassis by number of ONUs, and columns."""

    brand: str
    chassis: Callable[[int], Chassis]
    columns: Callable[[TableInput], list[MibColumn]]

    def build(self, name: str, onus: int, seed: int, dark_ports: int = 0, dark_since: float | None = None) -> "Device":
        """Return an OLT with this many ONUs."""
        return self.with_plant(name, seed, grow(self.chassis(onus), onus, seed, dark_ports, dark_since))

    def with_plant(self, name: str, seed: int, plant: Plant) -> "Device":
        """Return an OLT with these ONUs."""
        mib = Mib(self.columns(TableInput(name, seed, plant, Watch(plant.onus))))
        return Device(name, self.brand, plant, mib, self, seed)


@dataclass(frozen=True, slots=True)
class Device:
    """A simulated OLT, synthetic or from a recording; the latter has no vendor and an empty plant."""

    name: str
    brand: str
    plant: Plant
    mib: Mib | RecordedMib
    maker: Maker | None = None
    seed: int = 0

    def replanted(self, plant: Plant) -> "Device":
        """Return the same OLT with other ONUs."""
        if self.maker is None:
            raise ValueError(f"{self.name} is a recording: its ONUs cannot be changed")
        return self.maker.with_plant(self.name, self.seed, plant)


def onu_table(site: TableInput, index: Callable[[Onu], Arcs], columns: Iterable[Fact | Live]) -> list[MibColumn]:
    """Return columns of all ONUs with a common index."""
    rows = MibRows(((index(onu), number) for number, onu in enumerate(site.plant.onus)), of_onus=True)
    return [
        _fact(column, rows, site.plant) if isinstance(column, Fact) else _live(column, rows, site.watch)
        for column in columns
    ]


def mixed_column(
    site: TableInput, rows: MibRows, oid: str, tag: Tag, read: ReadLive, others: Sequence[Raw], *, optical: bool = False
) -> MibColumn:
    """Return a column with other rows among the ONUs: their subjects are numbered after those of ONUs."""
    onus = len(site.plant.onus)

    def read_any(number: int, now: float) -> Raw | None:
        return read(*site.watch.look(number, now)) if number < onus else others[number - onus]

    return MibColumn(numbers(oid), rows, tag, read_any, optical=optical)


def mixed_rows(site: TableInput, index: Callable[[Onu], Arcs], others: Sequence[Arcs]) -> MibRows:
    """Return the rows of all ONUs and the other rows."""
    of_onus = [(index(onu), number) for number, onu in enumerate(site.plant.onus)]
    return MibRows([*of_onus, *((arcs, len(of_onus) + number) for number, arcs in enumerate(others))], of_onus=True)


def _fact(fact: Fact, rows: MibRows, plant: Plant) -> MibColumn:
    return MibColumn(numbers(fact.oid), rows, fact.tag, lambda number, _now: fact.read(plant.onus[number]), fixed=True)


def _live(live: Live, rows: MibRows, watch: Watch) -> MibColumn:
    def read(number: int, now: float) -> Raw | None:
        return live.read(*watch.look(number, now))

    return MibColumn(numbers(live.oid), rows, live.tag, read, optical=live.optical, sparse=live.sparse)


def fixed_column(oid: str, rows: MibRows, tag: Tag, values: Sequence[Raw]) -> MibColumn:
    """Return a column with values listed by subject."""
    return MibColumn(numbers(oid), rows, tag, lambda number, _now: values[number], fixed=True)


def system_columns(site: TableInput, descr: str, object_id: str) -> list[MibColumn]:
    """Return the system group: sysDescr, sysObjectID, sysUpTime, sysName."""
    return [
        fixed_column(f"{SYSTEM}.1", SCALAR, Tag.OCTET_STRING, [descr.encode()]),
        fixed_column(f"{SYSTEM}.2", SCALAR, Tag.OBJECT_IDENTIFIER, [parse(object_id)]),
        MibColumn(numbers(f"{SYSTEM}.3"), SCALAR, Tag.TIME_TICKS, lambda _, now: uptime_ticks(site.seed, now)),
        fixed_column(f"{SYSTEM}.5", SCALAR, Tag.OCTET_STRING, [site.name.encode()]),
    ]


def uptime_ticks(seed: int, now: float) -> int:
    """Return the sysUpTime of an OLT."""
    return int((now + seed * DAY) % BETWEEN_REBOOTS * 100)


def interface_columns(interfaces: Sequence[InterfaceRow]) -> list[MibColumn]:
    """Return ifIndex, ifDescr, ifOperStatus and ifName."""
    rows = MibRows(((interface.index,), number) for number, interface in enumerate(interfaces))
    # A large ifIndex does not fit its own type: agents let it become negative.
    indexes = [each.index - 2**32 if each.index >= 2**31 else each.index for each in interfaces]
    return [
        fixed_column(f"{IF_TABLE}.1", rows, Tag.INTEGER, indexes),
        fixed_column(f"{IF_TABLE}.2", rows, Tag.OCTET_STRING, [each.descr.encode() for each in interfaces]),
        fixed_column(f"{IF_TABLE}.8", rows, Tag.INTEGER, [1] * len(interfaces)),
        fixed_column(IF_NAME, rows, Tag.OCTET_STRING, [each.name.encode() for each in interfaces]),
    ]


def numbers(oid: str) -> Arcs:
    return arcs_of(parse(oid))


def date_and_time(moment: float | None, *, with_zone: bool) -> bytes:
    """Return a DateAndTime in UTC: 8 octets, or 11 if the agent adds its zone (RFC 2579)."""
    if moment is None:
        return NEVER
    time = datetime.fromtimestamp(moment, UTC)
    fields = (time.month, time.day, time.hour, time.minute, time.second, time.microsecond // 100_000)
    return time.year.to_bytes(2, "big") + bytes(fields) + (b"+\x00\x00" if with_zone else b"")
