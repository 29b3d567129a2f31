"""A synthetic Huawei MA5603T: HUAWEI-XPON-MIB as its agent serves it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from facho.engine.brand import Position
from facho.engine.oid import Arcs
from facho.engine.snmp import Tag
from facho.simulator.device import (
    Fact,
    InterfaceRow,
    Live,
    Maker,
    TableInput,
    date_and_time,
    fixed_column,
    interface_columns,
    onu_table,
    system_columns,
)
from facho.simulator.encodings import in_charset
from facho.simulator.life import Down, Observed, Onu, Optics
from facho.simulator.mib import MibColumn, MibRows
from facho.simulator.plant import Chassis, Model, Plant

XPON = "1.3.6.1.4.1.2011.6.128.1.1"
CONFIG = f"{XPON}.2.43.1"
VERSION = f"{XPON}.2.45.1"
CONTROL = f"{XPON}.2.46.1"
OPTICS = f"{XPON}.2.51.1"
COUNTERS = f"{XPON}.4.23.1"
PORT = f"{XPON}.2.21.1"
PORT_OPTICS = f"{XPON}.2.23.1"

# What optical columns hold when there is no value: the largest Integer32.
NO_VALUE = 2147483647
# What the control table holds when there is none.
INVALID = -1

# Slots 9 and 10 are for the control boards.
CHASSIS = Chassis(
    slots=(1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16),
    first_port=0,
    first_onu=0,
    models=(
        Model(b"HWTC", "EG8145V5", "V5R020C10S110"),
        Model(b"HWTC", "HG8546M", "V3R017C10S115"),
        Model(b"HWTC", "HG8310M", "V3R015C10S106"),
        Model(b"CDTC", "FD511G-X", "V2.1.1"),
    ),
)

DOWN_CAUSES = {Down.LOS: 1, Down.DYING_GASP: 13, Down.OFFLINE: 9, Down.DEACTIVATED: 8}


def port_index(port: Position) -> int:
    """Return the ifIndex of a PON port: type 125, frame, slot and port in a number of 32 bits."""
    return 125 << 25 | port.shelf << 19 | port.slot << 13 | port.port << 8


def onu_index(onu: Onu) -> Arcs:
    return port_index(onu.position), onu.position.onu or 0


def _port_columns(plant: Plant) -> list[MibColumn]:
    """Return the tables of PON ports: status, number of ONTs, and the optics of the port itself."""
    rows = MibRows(((port_index(port),), number) for number, port in enumerate(plant.ports))
    counts = Counter(replace(onu.position, onu=None) for onu in plant.onus)
    ports = len(plant.ports)
    return [
        fixed_column(f"{PORT}.10", rows, Tag.INTEGER, [1 if counts[port] else 2 for port in plant.ports]),
        fixed_column(f"{PORT}.16", rows, Tag.INTEGER, [counts[port] for port in plant.ports]),
        fixed_column(f"{PORT_OPTICS}.1", rows, Tag.INTEGER, [38 + number % 5 for number in range(ports)]),
        fixed_column(f"{PORT_OPTICS}.2", rows, Tag.INTEGER, [322] * ports),
        fixed_column(f"{PORT_OPTICS}.4", rows, Tag.INTEGER, [400 + 7 * (number % 9) for number in range(ports)]),
        # A PON port has no receive power of its own.
        fixed_column(f"{PORT_OPTICS}.5", rows, Tag.INTEGER, [NO_VALUE] * ports),
    ]


def _optical(column: int, scale: Callable[[Optics], float]) -> Live:
    """Return a column of the optics table: a whole number, or the sentinel for an ONU that is down."""

    def read(_onu: Onu, seen: Observed) -> int:
        return NO_VALUE if seen.optics is None else round(scale(seen.optics))

    return Live(f"{OPTICS}.{column}", Tag.INTEGER, read, optical=True)


def _last_dying_gasp(_onu: Onu, seen: Observed) -> bytes:
    return date_and_time(seen.last_down if seen.cause is Down.DYING_GASP else None, with_zone=True)


ONU_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{CONFIG}.2", Tag.INTEGER, lambda onu: 1),
    Fact(f"{CONFIG}.3", Tag.OCTET_STRING, lambda onu: onu.serial),
    Fact(f"{CONFIG}.7", Tag.OCTET_STRING, lambda onu: onu.line_profile.encode()),
    Fact(f"{CONFIG}.8", Tag.OCTET_STRING, lambda onu: onu.service_profile.encode()),
    # The only text that an ONT has: operators write everything into it.
    Fact(f"{CONFIG}.9", Tag.OCTET_STRING, lambda onu: in_charset(onu, f"{onu.name} - {onu.description}")),
    Fact(f"{VERSION}.1", Tag.OCTET_STRING, lambda onu: b"15AD.A"),
    Fact(f"{VERSION}.4", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Fact(f"{VERSION}.5", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{VERSION}.10", Tag.OCTET_STRING, lambda onu: onu.mac),
    Fact(f"{CONTROL}.1", Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Live(f"{CONTROL}.15", Tag.INTEGER, lambda onu, seen: 1 if seen.up else 2),
    Live(f"{CONTROL}.16", Tag.INTEGER, lambda onu, seen: 5 if seen.syncing else 2 if seen.up else 1),
    Live(f"{CONTROL}.18", Tag.INTEGER, lambda onu, seen: 2 if seen.up else 1),
    Live(f"{CONTROL}.20", Tag.INTEGER, lambda onu, seen: INVALID if seen.distance_m is None else seen.distance_m),
    Live(f"{CONTROL}.22", Tag.OCTET_STRING, lambda onu, seen: date_and_time(seen.last_up, with_zone=True)),
    Live(f"{CONTROL}.23", Tag.OCTET_STRING, lambda onu, seen: date_and_time(seen.last_down, with_zone=True)),
    Live(f"{CONTROL}.24", Tag.INTEGER, lambda onu, seen: DOWN_CAUSES[seen.cause]),
    Live(f"{CONTROL}.25", Tag.OCTET_STRING, _last_dying_gasp),
    _optical(1, lambda optics: optics.temperature_c),
    _optical(2, lambda optics: 12),
    _optical(3, lambda optics: 100 * optics.tx_dbm),
    _optical(4, lambda optics: 100 * optics.rx_dbm),
    _optical(5, lambda optics: 1000 * optics.voltage_v),
    # Sent with an offset, so that it is never negative.
    _optical(6, lambda optics: 100 * optics.olt_rx_dbm + 10000),
    Live(f"{COUNTERS}.3", Tag.COUNTER64, lambda onu, seen: seen.in_octets),
    Live(f"{COUNTERS}.4", Tag.COUNTER64, lambda onu, seen: seen.out_octets),
)


def _columns(site: TableInput) -> list[MibColumn]:
    box = "Huawei-MA5600-V800R018"
    interfaces = [
        InterfaceRow(7 << 25 | 9 << 13 | port << 6, f"ethernet0/9/{port}", f"{box}-ETHERNET") for port in range(2)
    ]
    for port in site.plant.ports:
        name = f"GPON {port.shelf}/{port.slot}/{port.port}"
        interfaces.append(InterfaceRow(port_index(port), name, f"{box}-GPON_UNI"))
    return [
        *system_columns(site, "Huawei Integrated Access Software", "1.3.6.1.4.1.2011.2.123"),
        *interface_columns(interfaces),
        *_port_columns(site.plant),
        *onu_table(site, onu_index, ONU_COLUMNS),
    ]


HUAWEI = Maker("huawei", lambda _onus: CHASSIS, _columns)
