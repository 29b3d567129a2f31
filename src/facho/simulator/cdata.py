"""Simulated C-Data OLTs. Three families share one sysObjectID and number ONUs in three ways."""

from collections.abc import Callable
from dataclasses import replace

from facho.engine.oid import Arcs
from facho.engine.snmp import Tag
from facho.simulator.device import (
    Fact,
    InterfaceRow,
    Live,
    Maker,
    TableInput,
    interface_columns,
    onu_table,
    system_columns,
)
from facho.simulator.encodings import has_name, in_charset, milliwatts, time_text
from facho.simulator.life import Down, Observed, Onu, Optics
from facho.simulator.mib import MibColumn
from facho.simulator.plant import Chassis, Model

OBJECT_ID = "1.3.6.1.4.1.17409"
EPON = f"{OBJECT_ID}.2.3"
GPON = f"{OBJECT_ID}.2.8"
EPON_ONUS, EPON_OPTICS, EPON_TRAFFIC = f"{EPON}.4.1.1", f"{EPON}.4.2.1", f"{EPON}.10.1.1"
EPON_LAST_DOWN = "1.3.6.1.4.1.34592.1.3.100.12.3.1.1"
GPON_ONUS, GPON_SOFTWARE, GPON_OPTICS = f"{GPON}.4.1.1", f"{GPON}.4.2.1", f"{GPON}.4.4.1"
# In the EPON tree, on both.
OLT_RX = f"{EPON}.3.6.1.2"
LEGACY_ONUS = "1.3.6.1.4.1.34592.1.3.4.1.1"

# Value of optical columns without a reading.
NO_VALUE = 65535
# PON ports are numbered after the uplinks of the box.
UPLINKS = 12

EPON_CHASSIS = Chassis(
    models=(Model(b"CDTC", "FD502GW", "V1.1.4"), Model(b"CDTC", "FD600-301", "V2.0.7")),
    ports_per_card=16,
    onus_per_port=64,
    old_charset="gbk",
)
GPON_CHASSIS = replace(
    EPON_CHASSIS,
    models=(Model(b"CDTC", "FD511G-X", "V2.1.1"), Model(b"ZTEG", "F660V6.0", "V6.0.10P6N20")),
    onus_per_port=128,
)

REASONS = {Down.LOS: b"losi", Down.DYING_GASP: b"dying-gasp", Down.OFFLINE: b"--", Down.DEACTIVATED: b"deactive"}


def epon_index(onu: Onu) -> Arcs:
    """Return device, card, port and ONU, one byte each."""
    return (1 << 24 | (UPLINKS + onu.position.port) << 8 | (onu.position.onu or 0),)


def gpon_index(onu: Onu) -> Arcs:
    return (0x480000 | onu.position.port - 1 << 12 | (onu.position.onu or 0),)


def legacy_index(onu: Onu) -> Arcs:
    return 1, onu.position.port, onu.position.onu or 0


def _of_card(index: Callable[[Onu], Arcs]) -> Callable[[Onu], Arcs]:
    """Return the index of tables that also count cards and ports of an ONU, with 0.0 for the whole ONU."""
    return lambda onu: (*index(onu), 0, 0)


def _name(technology: str) -> Callable[[Onu], bytes]:
    """Return the reader of a name: the configured one, or the place."""

    def read(onu: Onu) -> bytes:
        if has_name(onu):
            return in_charset(onu, onu.name)
        return f"{technology} 0/0/{onu.position.port} onu {onu.position.onu}".encode()

    return read


def _optical(oid: str, scale: Callable[[Optics], float], none: int = NO_VALUE) -> Live:
    def read(_onu: Onu, seen: Observed) -> int:
        return none if seen.optics is None else round(scale(seen.optics))

    return Live(oid, Tag.INTEGER, read, optical=True)


def _since_up(_onu: Onu, seen: Observed) -> int:
    return seen.up_ticks // 100


EPON_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{EPON_ONUS}.2", Tag.OCTET_STRING, _name("epon")),
    Fact(f"{EPON_ONUS}.7", Tag.OCTET_STRING, lambda onu: onu.mac),
    Live(f"{EPON_ONUS}.8", Tag.INTEGER, lambda onu, seen: 1 if seen.up else 2),
    Fact(f"{EPON_ONUS}.9", Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Fact(f"{EPON_ONUS}.13", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{EPON_ONUS}.15", Tag.INTEGER, lambda onu: onu.distance_m),
    Live(f"{EPON_ONUS}.18", Tag.INTEGER, _since_up),
    Fact(f"{EPON_ONUS}.25", Tag.OCTET_STRING, lambda onu: onu.serial[:4]),
    Fact(f"{EPON_ONUS}.26", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Fact(f"{EPON_ONUS}.27", Tag.OCTET_STRING, lambda onu: b"V1.0"),
    Live(f"{EPON_LAST_DOWN}.6", Tag.OCTET_STRING, lambda onu, seen: time_text(seen.last_down)),
    Live(f"{EPON_LAST_DOWN}.7", Tag.OCTET_STRING, lambda onu, seen: REASONS[seen.cause]),
    _optical(OLT_RX, lambda optics: 100 * optics.olt_rx_dbm),
)
EPON_CARD_COLUMNS: tuple[Fact | Live, ...] = (
    _optical(f"{EPON_OPTICS}.4", lambda optics: 100 * optics.rx_dbm),
    _optical(f"{EPON_OPTICS}.5", lambda optics: 100 * optics.tx_dbm),
    Live(f"{EPON_TRAFFIC}.4", Tag.COUNTER64, lambda onu, seen: seen.in_octets),
    Live(f"{EPON_TRAFFIC}.26", Tag.COUNTER64, lambda onu, seen: seen.out_octets),
)

GPON_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{GPON_ONUS}.2", Tag.OCTET_STRING, _name("gpon")),
    Fact(f"{GPON_ONUS}.3", Tag.OCTET_STRING, lambda onu: onu.serial),
    Fact(f"{GPON_ONUS}.5", Tag.OCTET_STRING, lambda onu: onu.serial[:4]),
    Fact(f"{GPON_ONUS}.6", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Live(f"{GPON_ONUS}.7", Tag.INTEGER, lambda onu, seen: 1 if seen.up else 2),
    Fact(f"{GPON_ONUS}.8", Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Fact(f"{GPON_ONUS}.9", Tag.INTEGER, lambda onu: onu.distance_m),
    Fact(f"{GPON_ONUS}.11", Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Live(f"{GPON_ONUS}.12", Tag.INTEGER, _since_up),
    Live(f"{GPON_ONUS}.13", Tag.INTEGER, _since_up),
    Live(f"{GPON_ONUS}.102", Tag.OCTET_STRING, lambda onu, seen: time_text(seen.last_down)),
    Live(f"{GPON_ONUS}.103", Tag.OCTET_STRING, lambda onu, seen: REASONS[seen.cause]),
    # One per image.
    Fact(f"{GPON_SOFTWARE}.2", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{GPON_SOFTWARE}.6", Tag.OCTET_STRING, lambda onu: b""),
    _optical(OLT_RX, lambda optics: 100 * optics.olt_rx_dbm),
)
GPON_CARD_COLUMNS: tuple[Fact | Live, ...] = (
    _optical(f"{GPON_OPTICS}.4", lambda optics: 100 * optics.rx_dbm),
    _optical(f"{GPON_OPTICS}.5", lambda optics: 100 * optics.tx_dbm),
    _optical(f"{GPON_OPTICS}.7", lambda optics: 100 * optics.voltage_v),
    _optical(f"{GPON_OPTICS}.8", lambda optics: 100 * optics.temperature_c),
)

LEGACY_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{LEGACY_ONUS}.4", Tag.OCTET_STRING, _name("epon")),
    Fact(f"{LEGACY_ONUS}.6", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{LEGACY_ONUS}.7", Tag.OCTET_STRING, lambda onu: onu.mac),
    Live(f"{LEGACY_ONUS}.11", Tag.INTEGER, lambda onu, seen: 1 if seen.up else 2),
    Fact(f"{LEGACY_ONUS}.13", Tag.INTEGER, lambda onu: onu.distance_m),
    # Tenths of a microwatt; 0 without light.
    _optical(f"{LEGACY_ONUS}.36", lambda optics: 10000 * milliwatts(optics.rx_dbm), none=0),
    _optical(f"{LEGACY_ONUS}.37", lambda optics: 10000 * milliwatts(optics.tx_dbm), none=0),
)


def _epon(site: TableInput) -> list[MibColumn]:
    interfaces = [InterfaceRow(1 << 24 | port << 8, f"ge0/0/{port}", "") for port in range(1, UPLINKS + 1)]
    for port in site.plant.ports:
        interfaces.append(InterfaceRow(1 << 24 | UPLINKS + port.port << 8, f"pon0/0/{port.port}", ""))
    return [
        *system_columns(site, "FD1216S-B0", OBJECT_ID),
        *interface_columns(interfaces),
        *onu_table(site, epon_index, EPON_COLUMNS),
        *onu_table(site, _of_card(epon_index), EPON_CARD_COLUMNS),
    ]


def _gpon(site: TableInput) -> list[MibColumn]:
    return [
        *system_columns(site, "FD1616SN-R1", OBJECT_ID),
        *onu_table(site, gpon_index, GPON_COLUMNS),
        *onu_table(site, _of_card(gpon_index), GPON_CARD_COLUMNS),
    ]


def _legacy(site: TableInput) -> list[MibColumn]:
    return [*system_columns(site, "FD1104S", OBJECT_ID), *onu_table(site, legacy_index, LEGACY_COLUMNS)]


CDATA_EPON = Maker("cdata_epon", lambda _onus: EPON_CHASSIS, _epon)
CDATA_GPON = Maker("cdata_gpon", lambda _onus: GPON_CHASSIS, _gpon)
CDATA_FD11 = Maker("cdata_fd11", lambda _onus: EPON_CHASSIS, _legacy)
