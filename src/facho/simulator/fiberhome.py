"""Simulated FiberHome AN5516: one number per ONU, and no optics rows for ONUs that are down."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from facho.engine.brand import Position
from facho.engine.oid import Arcs
from facho.engine.snmp import Tag
from facho.simulator.device import Fact, Live, Maker, TableInput, fixed_column, onu_table, system_columns
from facho.simulator.encodings import in_charset, serial_text
from facho.simulator.life import Down, Observed, Onu, Optics
from facho.simulator.mib import MibColumn, MibRows
from facho.simulator.plant import Chassis, Model, Plant

FIBERHOME = "1.3.6.1.4.1.5875.800"
CARDS = f"{FIBERHOME}.3.9.2.1.1"
OPTICS = f"{FIBERHOME}.3.9.3.3.1"
PORT_COUNTS = f"{FIBERHOME}.3.9.3.4.1.12"
OLT_RX = f"{FIBERHOME}.3.9.3.7.1.2"
RANGING = f"{FIBERHOME}.3.9.6.1.1.1"
ONUS = f"{FIBERHOME}.3.10.1.1"

# Slots 9 and 10 are for the core cards.
CHASSIS = Chassis(
    slots=(1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18),
    models=(
        Model(b"FHTT", "AN5506-04-FA", "RP2617"),
        Model(b"FHTT", "HG6143D", "RP2739"),
        Model(b"FHTT", "AN5506-01-A", "RP2520"),
    ),
    old_charset="gbk",
)

STATES = {Down.LOS: 0, Down.DYING_GASP: 2, Down.OFFLINE: 3, Down.DEACTIVATED: 3}
ONLINE = 1


def port_number(port: Position) -> int:
    return port.slot << 25 | port.port << 19


def onu_number(onu: Onu) -> int:
    """Return slot(6), PON(6), ONU(11) and port(8) of 32 bits; a whole ONU is port 0."""
    return port_number(onu.position) | (onu.position.onu or 0) << 8


def onu_index(onu: Onu) -> Arcs:
    return (onu_number(onu),)


def pon_onu_index(onu: Onu) -> Arcs:
    return port_number(onu.position), onu.position.onu or 0


def _port_columns(plant: Plant) -> list[MibColumn]:
    """Return the number of ONUs per port, and the load of each card in hundredths of a percent."""
    rows = MibRows(((port_number(port),), number) for number, port in enumerate(plant.ports))
    counts = Counter(replace(onu.position, onu=None) for onu in plant.onus)
    slots = sorted({port.slot for port in plant.ports})
    cards = MibRows(((slot,), number) for number, slot in enumerate(slots))
    return [
        fixed_column(PORT_COUNTS, rows, Tag.INTEGER, [counts[port] for port in plant.ports]),
        fixed_column(f"{CARDS}.8", cards, Tag.INTEGER, [458 + slot for slot in slots]),
    ]


def _optical(column: int, scale: Callable[[Optics], float]) -> Live:
    return Live(f"{OPTICS}.{column}", Tag.INTEGER, _hundredths(scale), optical=True, sparse=True)


def _hundredths(scale: Callable[[Optics], float]) -> Callable[[Onu, Observed], int | None]:
    return lambda _onu, seen: None if seen.optics is None else round(100 * scale(seen.optics))


def _pon_name(onu: Onu, seen: Observed) -> bytes | None:
    at = onu.position
    return f"PON {at.slot}/{at.port}/{at.onu}".encode() if seen.up else None


ONU_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{ONUS}.2", Tag.INTEGER, lambda onu: onu.position.slot),
    Fact(f"{ONUS}.3", Tag.INTEGER, lambda onu: onu.position.port),
    Fact(f"{ONUS}.4", Tag.INTEGER, lambda onu: onu.position.onu or 0),
    Fact(f"{ONUS}.5", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Fact(f"{ONUS}.7", Tag.OCTET_STRING, lambda onu: in_charset(onu, onu.name)),
    Fact(f"{ONUS}.8", Tag.OCTET_STRING, lambda onu: b""),
    Fact(f"{ONUS}.10", Tag.OCTET_STRING, lambda onu: serial_text(onu).encode()),
    Live(f"{ONUS}.11", Tag.INTEGER, lambda onu, seen: ONLINE if seen.up else STATES[seen.cause]),
    Fact(f"{ONUS}.12", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{ONUS}.13", Tag.OCTET_STRING, lambda onu: b"WKE2.094.314A01"),
    Fact(f"{ONUS}.14", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Live(f"{OPTICS}.2", Tag.OCTET_STRING, _pon_name, sparse=True),
    _optical(6, lambda optics: optics.rx_dbm),
    _optical(7, lambda optics: optics.tx_dbm),
    _optical(8, lambda optics: optics.voltage_v),
    _optical(9, lambda optics: 12.5),
    _optical(10, lambda optics: optics.temperature_c),
    # 0 while the ONU is down.
    Live(RANGING, Tag.INTEGER, lambda onu, seen: seen.distance_m or 0),
)

PON_ONU_COLUMNS = (Live(OLT_RX, Tag.INTEGER, _hundredths(lambda optics: optics.olt_rx_dbm), optical=True, sparse=True),)


def _columns(site: TableInput) -> list[MibColumn]:
    return [
        *system_columns(site, "AN5516-01", f"{FIBERHOME}.1001.11"),
        *_port_columns(site.plant),
        *onu_table(site, onu_index, ONU_COLUMNS),
        *onu_table(site, pon_onu_index, PON_ONU_COLUMNS),
    ]


FIBERHOME_AN5516 = Maker("fiberhome", lambda _onus: CHASSIS, _columns)
