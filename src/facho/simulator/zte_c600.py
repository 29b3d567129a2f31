"""Simulated ZTE C600: the tree 3902.1082, where the port of an ONU is the ifIndex. It has no tree 1012."""

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
from facho.simulator.encodings import has_name, in_charset, serial_text
from facho.simulator.life import Down, Observed, Onu
from facho.simulator.mib import MibColumn, MibRows
from facho.simulator.plant import Chassis, Model, Plant
from facho.simulator.zte import REASONS, olt_rx, optical

ZTE = "1.3.6.1.4.1.3902"
CARDS = f"{ZTE}.1082.10.1.2.4.1"
GPON = f"{ZTE}.1082.500"
CONFIG = f"{GPON}.10.2.3.3.1"
STATUS = f"{GPON}.10.2.3.8.1"
RANGING = f"{GPON}.10.2.3.10.1"
VERSION = f"{GPON}.20.2.1.2.1"
OPTICS = f"{GPON}.20.2.2.2.1"
OLT_RX = f"{GPON}.1.2.4.2.1.2"
TRAFFIC = f"{GPON}.4.2.2.2.1"

# Slots 10 and 11 are for the control cards.
CHASSIS = Chassis(
    shelf=1,
    slots=(3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17),
    models=(
        Model(b"ZTEG", "F670LV9.0", "V9.0.11P1N16"),
        Model(b"ZTEG", "F6600PV9.0", "V9.0.10P2N3"),
        Model(b"ZTEG", "F601V7.0", "V7.0.10P1T1"),
    ),
)

# One more than in the tree 1012.
PHASES = {Down.LOS: 2, Down.DYING_GASP: 5, Down.OFFLINE: 7, Down.DEACTIVATED: 7}
SYNCING, WORKING = 3, 4


def if_index(port: Position) -> int:
    """Return the ifIndex of a PON port: type 1, rack 1, and a byte each for shelf, slot and port."""
    return 1 << 28 | 1 << 24 | port.shelf << 16 | port.slot << 8 | port.port


def onu_index(onu: Onu) -> Arcs:
    return if_index(onu.position), onu.position.onu or 0


def optics_index(onu: Onu) -> Arcs:
    return *onu_index(onu), 1


def _card_columns(plant: Plant) -> list[MibColumn]:
    """Return model, state and ports of each card. The spare one was removed."""
    slots = [*sorted({port.slot for port in plant.ports}), 19]
    rows = MibRows(((1, 1, slot), number) for number, slot in enumerate(slots))
    return [
        fixed_column(f"{CARDS}.4", rows, Tag.OCTET_STRING, [b"GFGH"] * len(slots)),
        fixed_column(f"{CARDS}.5", rows, Tag.INTEGER, [1] * (len(slots) - 1) + [4]),
        fixed_column(f"{CARDS}.7", rows, Tag.INTEGER, [plant.chassis.ports_per_card] * len(slots)),
    ]


def _phase(_onu: Onu, seen: Observed) -> int:
    if seen.syncing:
        return SYNCING
    return WORKING if seen.up else PHASES[seen.cause]


ONU_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{CONFIG}.1", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Fact(f"{CONFIG}.2", Tag.OCTET_STRING, lambda onu: in_charset(onu, onu.name) if has_name(onu) else b""),
    Fact(f"{CONFIG}.3", Tag.OCTET_STRING, lambda onu: in_charset(onu, onu.description)),
    Fact(f"{CONFIG}.6", Tag.OCTET_STRING, lambda onu: onu.serial),
    Fact(f"{CONFIG}.18", Tag.OCTET_STRING, lambda onu: b"1," + serial_text(onu).encode()),
    Fact(f"{STATUS}.1", Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Live(f"{STATUS}.4", Tag.INTEGER, _phase),
    Live(f"{STATUS}.5", Tag.OCTET_STRING, lambda onu, seen: date_and_time(seen.last_up, with_zone=True)),
    Live(f"{STATUS}.6", Tag.OCTET_STRING, lambda onu, seen: date_and_time(seen.last_down, with_zone=True)),
    Live(f"{STATUS}.7", Tag.INTEGER, lambda onu, seen: REASONS[seen.cause]),
    Live(f"{RANGING}.2", Tag.INTEGER, lambda onu, seen: seen.distance_m or 0),
    Fact(f"{VERSION}.1", Tag.OCTET_STRING, lambda onu: onu.serial[:4]),
    Fact(f"{VERSION}.2", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Live(f"{VERSION}.7", Tag.INTEGER, lambda onu, seen: 1 if seen.up else 2),
    Fact(f"{VERSION}.8", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Live(OLT_RX, Tag.INTEGER, olt_rx, optical=True),
    Live(f"{TRAFFIC}.1", Tag.COUNTER64, lambda onu, seen: seen.in_octets),
    Live(f"{TRAFFIC}.44", Tag.COUNTER64, lambda onu, seen: seen.out_octets),
)

OPTICS_COLUMNS = (
    optical(f"{OPTICS}.10", lambda optics: (optics.rx_dbm + 30) / 0.002),
    optical(f"{OPTICS}.14", lambda optics: (optics.tx_dbm + 30) / 0.002),
    optical(f"{OPTICS}.17", lambda optics: optics.voltage_v / 0.02),
    optical(f"{OPTICS}.19", lambda optics: optics.temperature_c * 256),
)


def _columns(site: TableInput) -> list[MibColumn]:
    descr = "C600 Version V1.2.1 Software, Copyright (c) by ZTE Corporation Compiled"
    interfaces = [
        InterfaceRow(if_index(port), f"gpon_olt-{port.shelf}/{port.slot}/{port.port}", f"GPON {port.port}")
        for port in site.plant.ports
    ]
    return [
        *system_columns(site, descr, f"{ZTE}.1082.1001.600.1.1"),
        *interface_columns(interfaces),
        *_card_columns(site.plant),
        *onu_table(site, onu_index, ONU_COLUMNS),
        *onu_table(site, optics_index, OPTICS_COLUMNS),
    ]


ZTE_C600 = Maker("zte_c600", lambda _onus: CHASSIS, _columns)
