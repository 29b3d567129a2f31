"""A synthetic OLT: what it is, what hangs on it, and what its agent can tell. Each maker has a file for its tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from facho.engine.brand import Position
from facho.engine.oid import Arcs, arcs, parse
from facho.engine.snmp import Tag
from facho.simulator.life import DAY, Observed, Onu, observe
from facho.simulator.mib import SCALAR, Column, Mib, Raw, Rows
from facho.simulator.plant import Plant

SYSTEM = "1.3.6.1.2.1.1"
IF_TABLE = "1.3.6.1.2.1.2.2.1"
IF_NAME = "1.3.6.1.2.1.31.1.1.1.1"

# How often somebody upgrades the OLT, which is when its uptime begins again. TimeTicks hold 497 days.
BETWEEN_REBOOTS = 300 * DAY

# A time that never was: what agents say of an ONU that has not been up yet.
NEVER = bytes(8)

ReadFact = Callable[[Onu], Raw]
ReadLive = Callable[[Onu, Observed], Raw]


@dataclass(frozen=True, slots=True)
class Fact:
    """A column whose values do not change: OID, type, and how to read it from an ONU."""

    oid: str
    tag: Tag
    read: ReadFact


@dataclass(frozen=True, slots=True)
class Live:
    """A column whose values change with time. An `optical` one is fetched from the ONU itself, which takes long."""

    oid: str
    tag: Tag
    read: ReadLive
    optical: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """A row of IF-MIB."""

    index: int
    name: str
    descr: str


@dataclass(frozen=True, slots=True)
class Device:
    """An OLT made of Python."""

    name: str
    brand: str
    plant: Plant
    mib: Mib


class Watch:
    """Looks at ONUs. Whole seconds are fine enough, and what was seen in this second need not be worked out again."""

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


def onu_rows(plant: Plant, index: Callable[[Position], Arcs]) -> Rows:
    """Return the rows of all ONUs in one of the maker's index spaces."""
    return Rows(((index(onu.position), number) for number, onu in enumerate(plant.onus)), of_onus=True)


def onu_columns(plant: Plant, watch: Watch, rows: Rows, columns: Iterable[Fact | Live]) -> list[Column]:
    """Return columns of ONUs that share an index."""
    return [
        _fact(column, rows, plant) if isinstance(column, Fact) else _live(column, rows, watch) for column in columns
    ]


def _fact(fact: Fact, rows: Rows, plant: Plant) -> Column:
    return Column(numbers(fact.oid), rows, fact.tag, lambda number, _now: fact.read(plant.onus[number]), fixed=True)


def _live(live: Live, rows: Rows, watch: Watch) -> Column:
    def read(number: int, now: float) -> Raw:
        return live.read(*watch.look(number, now))

    return Column(numbers(live.oid), rows, live.tag, read, optical=live.optical)


def fixed_column(oid: str, rows: Rows, tag: Tag, values: Sequence[Raw]) -> Column:
    """Return a column whose values are listed by subject."""
    return Column(numbers(oid), rows, tag, lambda number, _now: values[number], fixed=True)


def system_columns(name: str, descr: str, object_id: str, seed: int) -> list[Column]:
    """Return the system group: sysDescr, sysObjectID, sysUpTime, sysName."""

    def uptime(_number: int, now: float) -> int:
        return int((now + seed * DAY) % BETWEEN_REBOOTS * 100)

    return [
        fixed_column(f"{SYSTEM}.1", SCALAR, Tag.OCTET_STRING, [descr.encode()]),
        fixed_column(f"{SYSTEM}.2", SCALAR, Tag.OBJECT_IDENTIFIER, [parse(object_id)]),
        Column(numbers(f"{SYSTEM}.3"), SCALAR, Tag.TIME_TICKS, uptime),
        fixed_column(f"{SYSTEM}.5", SCALAR, Tag.OCTET_STRING, [name.encode()]),
    ]


def interface_columns(interfaces: Sequence[Interface]) -> list[Column]:
    """Return ifIndex, ifDescr, ifOperStatus and ifName."""
    rows = Rows(((interface.index,), number) for number, interface in enumerate(interfaces))
    return [
        # A large ifIndex does not fit its own type: agents let it become negative.
        fixed_column(f"{IF_TABLE}.1", rows, Tag.INTEGER, [signed32(each.index) for each in interfaces]),
        fixed_column(f"{IF_TABLE}.2", rows, Tag.OCTET_STRING, [each.descr.encode() for each in interfaces]),
        fixed_column(f"{IF_TABLE}.8", rows, Tag.INTEGER, [1] * len(interfaces)),
        fixed_column(IF_NAME, rows, Tag.OCTET_STRING, [each.name.encode() for each in interfaces]),
    ]


def numbers(oid: str) -> Arcs:
    return arcs(parse(oid))


def signed32(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number


def date_and_time(moment: float | None, *, with_zone: bool) -> bytes:
    """Return a DateAndTime in UTC: 8 octets, or 11 where the agent adds its zone (RFC 2579)."""
    if moment is None:
        return NEVER
    time = datetime.fromtimestamp(moment, UTC)
    fields = (time.month, time.day, time.hour, time.minute, time.second, time.microsecond // 100_000)
    return time.year.to_bytes(2, "big") + bytes(fields) + (b"+\x00\x00" if with_zone else b"")
