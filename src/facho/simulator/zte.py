"""Simulated ZTE C320, or C300 for more ONUs, with the trees of firmware 2.1.

One PON port has several numbers. In the 1012 tree slots and ports count from 1; in IF-MIB and for the optics of ports
from 0, so a number of one is often another port in the other. The traffic of an ONU has one number for port and ONU
together.
"""

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
from facho.simulator.plant import ONUS_PER_PORT, PORTS_IN_USE, PORTS_PER_CARD, Chassis, Model, Plant

ZTE = "1.3.6.1.4.1.3902"
PORT_NAME = f"{ZTE}.1012.3.13.1.1.1"
CONFIG = f"{ZTE}.1012.3.28.1.1"
STATUS = f"{ZTE}.1012.3.28.2.1"
RANGING = f"{ZTE}.1012.3.11.4.1"
VERSION = f"{ZTE}.1012.3.50.11.2.1"
OPTICS = f"{ZTE}.1012.3.50.12.1.1"
OLT_RX = f"{ZTE}.1015.1010.11.2.1.2"
TRAFFIC = f"{ZTE}.1015.1010.5.56.1.1"
PORT_OPTICS = f"{ZTE}.1015.3.1.13.1"

NO_OPTICS = 65535
# Values of the OLT's receiver without light.
NO_LIGHT = -80000
NO_READING = 65535000

C320 = Chassis(
    name="C320",
    shelf=1,
    slots=(1, 2),
    models=(
        Model(b"ZTEG", "F660V6.0", "V6.0.10P6N20"),
        Model(b"ZTEG", "F601V6.0", "V6.0.1P1T3"),
        Model(b"ZTEG", "F670LV9.0", "V9.0.11P1N16"),
        Model(b"HWTC", "HG8310M", "V3R015C10S106"),
    ),
)
# Slots 10 and 11 are for the control cards.
C300 = replace(C320, name="C300", slots=(2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17))
C320_HOLDS = int(len(C320.slots) * PORTS_PER_CARD * PORTS_IN_USE) * ONUS_PER_PORT

PHASES = {Down.LOS: 1, Down.DYING_GASP: 4, Down.OFFLINE: 6, Down.DEACTIVATED: 6}
REASONS = {Down.LOS: 2, Down.DYING_GASP: 9, Down.OFFLINE: 1, Down.DEACTIVATED: 10}


def port_index(port: Position) -> int:
    """Return the number of a PON port in the 1012 tree."""
    return 1 << 28 | port.shelf - 1 << 24 | port.slot << 16 | port.port << 8


def if_index(port: Position) -> int:
    """Return the number of a PON port in IF-MIB, which counts slots and ports from 0."""
    return 1 << 28 | port.shelf - 1 << 24 | port.slot - 1 << 16 | port.port - 1 << 8


def onu_index(onu: Onu) -> Arcs:
    return port_index(onu.position), onu.position.onu or 0


def optics_index(onu: Onu) -> Arcs:
    """Return the index of optical columns, which also counts the PON interfaces of an ONU: it has one."""
    return *onu_index(onu), 1


def traffic_index(onu: Onu) -> Arcs:
    """Return the single number of an ONU on a card of 16 ports."""
    at = onu.position
    return (9 << 28 | at.shelf - 1 << 25 | at.slot << 20 | at.port - 1 << 16 | (at.onu or 0) << 8,)


def _port_columns(plant: Plant) -> list[MibColumn]:
    rows = MibRows(((port_index(port),), number) for number, port in enumerate(plant.ports))
    if_rows = MibRows(((if_index(port),), number) for number, port in enumerate(plant.ports))
    names = [f"OLT-{port.port}".encode() for port in plant.ports]
    ports = range(len(plant.ports))
    return [
        fixed_column(PORT_NAME, rows, Tag.OCTET_STRING, names),
        fixed_column(f"{PORT_OPTICS}.4", if_rows, Tag.INTEGER, [4000 + 70 * (number % 9) for number in ports]),
        fixed_column(f"{PORT_OPTICS}.12", if_rows, Tag.INTEGER, [38000 + 500 * (number % 5) for number in ports]),
    ]


def _phase(_onu: Onu, seen: Observed) -> int:
    """Return the phase state: 0 logging, 1 LOS, 2 synchronising, 3 working, 4 dying gasp, 6 offline."""
    if seen.syncing:
        return 2
    return 3 if seen.up else PHASES[seen.cause]


def olt_rx(_onu: Onu, seen: Observed) -> int:
    """Return the power that the OLT receives from an ONU, in thousandths of a dBm."""
    if seen.optics is None:
        return NO_LIGHT if seen.cause is Down.LOS else NO_READING
    return round(1000 * seen.optics.olt_rx_dbm)


def optical(oid: str, scale: Callable[[Optics], float]) -> Live:
    """Return a column of an optics table: 16 bits, the negative half on top, all ones for an ONU that is down."""

    def read(_onu: Onu, seen: Observed) -> int:
        return NO_OPTICS if seen.optics is None else round(scale(seen.optics)) % 65536

    return Live(oid, Tag.INTEGER, read, optical=True)


ONU_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{CONFIG}.1", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Fact(f"{CONFIG}.2", Tag.OCTET_STRING, lambda onu: in_charset(onu, onu.name)),
    Fact(f"{CONFIG}.3", Tag.OCTET_STRING, lambda onu: in_charset(onu, onu.description)),
    Fact(f"{CONFIG}.5", Tag.OCTET_STRING, lambda onu: onu.serial),
    Fact(f"{CONFIG}.17", Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Fact(f"{STATUS}.1", Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Live(f"{STATUS}.2", Tag.INTEGER, lambda onu, seen: 1 if seen.up else 2),
    Live(f"{STATUS}.4", Tag.INTEGER, _phase),
    Live(f"{STATUS}.5", Tag.OCTET_STRING, lambda onu, seen: date_and_time(seen.last_up, with_zone=False)),
    Live(f"{STATUS}.6", Tag.OCTET_STRING, lambda onu, seen: date_and_time(seen.last_down, with_zone=False)),
    Live(f"{STATUS}.7", Tag.INTEGER, lambda onu, seen: REASONS[seen.cause]),
    Live(f"{RANGING}.2", Tag.INTEGER, lambda onu, seen: seen.distance_m or 0),
    Fact(f"{VERSION}.1", Tag.OCTET_STRING, lambda onu: onu.serial[:4]),
    Fact(f"{VERSION}.2", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{VERSION}.9", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Live(OLT_RX, Tag.INTEGER, olt_rx, optical=True),
)

OPTICS_COLUMNS = (
    optical(f"{OPTICS}.10", lambda optics: (optics.rx_dbm + 30) / 0.002),
    optical(f"{OPTICS}.14", lambda optics: (optics.tx_dbm + 30) / 0.002),
    optical(f"{OPTICS}.17", lambda optics: optics.voltage_v / 0.02),
    optical(f"{OPTICS}.19", lambda optics: optics.temperature_c * 256),
)

TRAFFIC_COLUMNS = (
    Live(f"{TRAFFIC}.2", Tag.COUNTER64, lambda onu, seen: seen.in_octets),
    Live(f"{TRAFFIC}.3", Tag.COUNTER64, lambda onu, seen: seen.out_octets),
)


def _columns(site: TableInput) -> list[MibColumn]:
    model = site.plant.chassis.name
    descr = f"{model} Version V2.1.0 Software, Copyright (c) by ZTE Corporation Compiled"
    interfaces = [InterfaceRow(1 << 28 | 3 << 16 | port << 8, f"gei_1/4/{port + 1}", "") for port in range(2)]
    for port in site.plant.ports:
        interfaces.append(InterfaceRow(if_index(port), f"gpon_{port.shelf}/{port.slot}/{port.port}", ""))
    return [
        *system_columns(site, descr, f"{ZTE}.1082.1001.{model[1:]}.2.1"),
        *interface_columns(interfaces),
        *_port_columns(site.plant),
        *onu_table(site, onu_index, ONU_COLUMNS),
        *onu_table(site, optics_index, OPTICS_COLUMNS),
        *onu_table(site, traffic_index, TRAFFIC_COLUMNS),
    ]


ZTE_C300 = Maker("zte_c300", lambda onus: C320 if onus <= C320_HOLDS else C300, _columns)
