"""Simulated V-SOL V1600D, an EPON OLT: powers, voltages and times are texts, and ONUs have a MAC and no serial."""

from collections import Counter
from collections.abc import Callable

from facho.engine.oid import Arcs
from facho.engine.snmp import Tag
from facho.simulator.device import (
    Fact,
    Live,
    Maker,
    ReadLive,
    TableInput,
    fixed_column,
    numbers,
    onu_table,
    system_columns,
)
from facho.simulator.encodings import in_charset, milliwatts, time_text
from facho.simulator.life import Down, Observed, Onu, Optics
from facho.simulator.mib import MibColumn, MibRows
from facho.simulator.plant import Chassis, Model

VSOL = "1.3.6.1.4.1.37950.1.1.5"
PORT_OPTICS = f"{VSOL}.10.13.1.1"
TRAFFIC = f"{VSOL}.12.1.20.1"
ONUS = f"{VSOL}.12.1.25.1"
PORT_COUNTS = f"{VSOL}.12.1.27.1"
# The same columns again, with rows only for ONUs that are up.
ONLINE_ONUS = f"{VSOL}.12.1.29.1"
VERSION = f"{VSOL}.12.2.1.2.1"
OPTICS = f"{VSOL}.12.2.1.8.1"

CHASSIS = Chassis(
    models=(
        Model(b"VSOL", "V2801D", "V1.9.0.2"),
        Model(b"VSOL", "V2802RH", "V2.0.1"),
        Model(b"HWTC", "HG8010", "V1.0"),
    ),
    ports_per_card=16,
    onus_per_port=64,
)


def onu_index(onu: Onu) -> Arcs:
    return onu.position.port, onu.position.onu or 0


def _port_columns(site: TableInput) -> list[MibColumn]:
    """Return the number of ONUs and of ONUs up per port, and the optics of the port, as text."""
    ports, onus = site.plant.ports, site.plant.onus
    rows = MibRows(((port.port,), number) for number, port in enumerate(ports))
    counts = Counter(onu.position.port for onu in onus)

    def online(number: int, now: float) -> int:
        port = ports[number].port
        return sum(site.watch.look(n, now)[1].up for n, onu in enumerate(onus) if onu.position.port == port)

    return [
        fixed_column(f"{PORT_COUNTS}.2", rows, Tag.INTEGER, [counts[port.port] for port in ports]),
        MibColumn(numbers(f"{PORT_COUNTS}.3"), rows, Tag.INTEGER, online),
        fixed_column(f"{PORT_OPTICS}.2", rows, Tag.OCTET_STRING, [b"27.84 .C"] * len(ports)),
        fixed_column(f"{PORT_OPTICS}.3", rows, Tag.OCTET_STRING, [b"3.22 V"] * len(ports)),
        fixed_column(f"{PORT_OPTICS}.4", rows, Tag.OCTET_STRING, [b"7.01 mA"] * len(ports)),
        fixed_column(f"{PORT_OPTICS}.5", rows, Tag.OCTET_STRING, [b"6.56 dbm"] * len(ports)),
    ]


def _time(moment: float | None) -> bytes:
    return time_text(moment, between="/", never=b"N/A")


# Columns of both tables of ONUs.
READERS: tuple[tuple[int, Tag, ReadLive], ...] = (
    (4, Tag.INTEGER, lambda onu, seen: 1 if seen.up else 0),
    (5, Tag.OCTET_STRING, lambda onu, seen: onu.mac.hex(":").encode()),
    (9, Tag.OCTET_STRING, lambda onu, seen: in_charset(onu, onu.name)),
    (13, Tag.OCTET_STRING, lambda onu, seen: onu.model.encode()),
    # 0 the fibre, 1 the power.
    (15, Tag.INTEGER, lambda onu, seen: 0 if seen.cause is Down.LOS else 1),
    (17, Tag.INTEGER, lambda onu, seen: onu.distance_m),
    (18, Tag.OCTET_STRING, lambda onu, seen: _time(seen.last_up)),
    (19, Tag.OCTET_STRING, lambda onu, seen: _time(seen.last_down)),
)


def _if_up(read: ReadLive) -> ReadLive:
    return lambda onu, seen: read(onu, seen) if seen.up else None


def _optical(column: int, write: Callable[[Optics], str]) -> Live:
    """Return a column of optics as text. For an ONU that is down it depends on the cause."""

    def read(_onu: Onu, seen: Observed) -> bytes:
        if seen.optics is None:
            return b"-" if seen.cause is Down.LOS else b"0.00 mW (-65535.00 dBm)"
        return write(seen.optics).encode()

    return Live(f"{OPTICS}.{column}", Tag.OCTET_STRING, read, optical=True)


def power_text(dbm: float) -> str:
    return f"{milliwatts(dbm):.2f} mW ({dbm:.2f} dBm)"


ONU_COLUMNS: tuple[Fact | Live, ...] = (
    *(Live(f"{ONUS}.{column}", tag, read) for column, tag, read in READERS),
    *(Live(f"{ONLINE_ONUS}.{column}", tag, _if_up(read), sparse=True) for column, tag, read in READERS),
    Live(f"{TRAFFIC}.3", Tag.COUNTER64, lambda onu, seen: seen.in_octets),
    Live(f"{TRAFFIC}.10", Tag.COUNTER64, lambda onu, seen: seen.out_octets),
    Fact(f"{VERSION}.3", Tag.OCTET_STRING, lambda onu: onu.serial[:4]),
    Fact(f"{VERSION}.4", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Fact(f"{VERSION}.6", Tag.OCTET_STRING, lambda onu: b"V3.0"),
    Fact(f"{VERSION}.7", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{OPTICS}.1", Tag.INTEGER, lambda onu: onu.position.port),
    Fact(f"{OPTICS}.2", Tag.INTEGER, lambda onu: onu.position.onu or 0),
    _optical(3, lambda optics: f"{optics.temperature_c:.2f} C"),
    _optical(4, lambda optics: f"{optics.voltage_v:.2f} V"),
    _optical(5, lambda optics: "11.65 mA"),
    _optical(6, lambda optics: power_text(optics.tx_dbm)),
    _optical(7, lambda optics: power_text(optics.rx_dbm)),
)


def _columns(site: TableInput) -> list[MibColumn]:
    return [
        *system_columns(site, "V1600D", f"{VSOL}.10.14.1"),
        *_port_columns(site),
        *onu_table(site, onu_index, ONU_COLUMNS),
    ]


VSOL_EPON = Maker("vsol_epon", lambda _onus: CHASSIS, _columns)
