"""Simulated Nokia ISAM 7360: an ONT is an interface whose number contains its place."""

from collections.abc import Callable

from facho.engine.brand import Position
from facho.engine.oid import Arcs
from facho.engine.snmp import Tag
from facho.simulator.device import (
    IF_NAME,
    IF_TABLE,
    Fact,
    Live,
    Maker,
    TableInput,
    mixed_column,
    mixed_rows,
    onu_table,
    system_columns,
)
from facho.simulator.encodings import in_charset
from facho.simulator.life import Observed, Onu, Optics
from facho.simulator.mib import MibColumn
from facho.simulator.plant import Chassis, Model

ISAM = "1.3.6.1.4.1.637.61.1"
ONTS = f"{ISAM}.35.10.1.1"
STATUS = f"{ISAM}.35.10.4.1"
OPTICS = f"{ISAM}.35.10.14.1"
OLT_RX = f"{ISAM}.35.10.18.1.2"

NO_ONT_VALUE = 32768
NO_OLT_VALUE = 65534
ONT_LOST = 1 << 5

PON_LEVEL, ONT_LEVEL = 0xD, 0xE

CHASSIS = Chassis(
    shelf=1,
    slots=(1, 2, 3, 4, 5, 6, 7, 8),
    models=(Model(b"ALCL", "G-010G-A", "3FE46398AFGB89"), Model(b"ALCL", "G-240W-F", "3FE47493IJHK01")),
)


def ont_number(onu: Onu) -> int:
    return _number(onu.position, ONT_LEVEL) | ((onu.position.onu or 1) - 1) << 9


def ont_index(onu: Onu) -> Arcs:
    return (ont_number(onu),)


def _number(at: Position, level: int) -> int:
    """Return slot, level and port: the slot counts from 2, the port from 0."""
    return at.slot + 1 << 25 | level << 21 | at.port - 1 << 16


def _interface_columns(site: TableInput) -> list[MibColumn]:
    # An FWLT-C card adds low bits.
    ports = [_number(port, PON_LEVEL) | 0x2000 for port in site.plant.ports]
    rows = mixed_rows(site, ont_index, [(number,) for number in ports])
    ont, pon = b"nokia FWLT-C  ONT", b"nokia FWLT-C  PON"
    return [
        mixed_column(site, rows, f"{IF_TABLE}.1", Tag.INTEGER, lambda onu, _: ont_number(onu), ports),
        mixed_column(site, rows, f"{IF_TABLE}.2", Tag.OCTET_STRING, lambda onu, _: ont, [pon] * len(ports)),
        mixed_column(
            site, rows, f"{IF_TABLE}.7", Tag.INTEGER, lambda onu, _: 1 if onu.enabled else 2, [1] * len(ports)
        ),
        mixed_column(site, rows, f"{IF_TABLE}.8", Tag.INTEGER, lambda _, seen: 1 if seen.up else 2, [1] * len(ports)),
        mixed_column(site, rows, IF_NAME, Tag.OCTET_STRING, lambda onu, _: b" ONT", [b" PON"] * len(ports)),
    ]


def _optical(oid: str, none: int, scale: Callable[[Optics], float]) -> Live:
    def read(_onu: Onu, seen: Observed) -> int:
        return none if seen.optics is None else round(scale(seen.optics))

    return Live(oid, Tag.INTEGER, read, optical=True)


def _distance(_onu: Onu, seen: Observed) -> int:
    """Return tenths of a kilometre."""
    return NO_OLT_VALUE if seen.distance_m is None else round(seen.distance_m / 100)


ONT_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{ONTS}.2", Tag.INTEGER, lambda onu: 1),
    Fact(f"{ONTS}.5", Tag.OCTET_STRING, lambda onu: onu.serial),
    Fact(f"{ONTS}.9", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{ONTS}.10", Tag.OCTET_STRING, lambda onu: b""),
    Fact(f"{ONTS}.24", Tag.OCTET_STRING, lambda onu: in_charset(onu, onu.name)),
    Fact(f"{ONTS}.26", Tag.OCTET_STRING, lambda onu: onu.model.ljust(20, "_").encode()),
    Live(f"{STATUS}.2", Tag.INTEGER, lambda onu, seen: 0 if seen.up else ONT_LOST),
    Live(f"{STATUS}.3", Tag.INTEGER, _distance),
    Live(f"{STATUS}.11", Tag.TIME_TICKS, lambda onu, seen: seen.up_ticks),
    _optical(f"{OPTICS}.2", NO_ONT_VALUE, lambda optics: optics.rx_dbm / 0.002),
    _optical(f"{OPTICS}.3", NO_ONT_VALUE, lambda optics: optics.voltage_v / 0.02),
    _optical(f"{OPTICS}.4", NO_ONT_VALUE, lambda optics: optics.tx_dbm / 0.002),
    _optical(f"{OPTICS}.6", NO_ONT_VALUE, lambda optics: optics.temperature_c * 256),
    _optical(OLT_RX, NO_OLT_VALUE, lambda optics: 10 * optics.olt_rx_dbm),
)


def _columns(site: TableInput) -> list[MibColumn]:
    return [
        *system_columns(site, "Nokia ISAM 7360 FX, R6.2.04", ISAM),
        *_interface_columns(site),
        *onu_table(site, ont_index, ONT_COLUMNS),
    ]


NOKIA_ISAM = Maker("nokia_isam", lambda _onus: CHASSIS, _columns)
