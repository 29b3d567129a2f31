"""Simulated BDCOM GP3600: ONUs are rows of IF-MIB, among ports and uplinks.

They are numbered in the order of registration, so the index does not contain the place. Only the name does, such as
GPON0/2:29.
"""

from collections.abc import Callable

from facho.engine.oid import Arcs
from facho.engine.snmp import Tag
from facho.simulator.device import (
    IF_NAME,
    IF_TABLE,
    Fact,
    Live,
    Maker,
    ReadLive,
    TableInput,
    fixed_column,
    mixed_column,
    mixed_rows,
    numbers,
    onu_table,
    system_columns,
    uptime_ticks,
)
from facho.simulator.encodings import in_charset, serial_text
from facho.simulator.life import Down, Observed, Onu, Optics
from facho.simulator.mib import MibColumn, MibRows, Raw
from facho.simulator.plant import Chassis, Model

BDCOM = "1.3.6.1.4.1.3320"
IF_X_TABLE = "1.3.6.1.2.1.31.1.1.1"
PORTS = f"{BDCOM}.10.2.1.1"
OLT_RX = f"{BDCOM}.10.2.3.1.3"
INFO = f"{BDCOM}.10.3.1.1"
ADMIN = f"{BDCOM}.10.3.2.1.3"
STATUS = f"{BDCOM}.10.3.3.1"
OPTICS = f"{BDCOM}.10.3.4.1"

FIRST_UPLINK, UPLINKS = 97, 13
FIRST_PORT = FIRST_UPLINK + UPLINKS
FIRST_ONU = 1179
# One in this many registered ONUs was deleted again.
LEFT_ONE_IN = 5

# Values of optical columns without a reading, by firmware.
NO_LIGHT, NO_READING = -65535, -2147483648

CHASSIS = Chassis(
    models=(
        Model(b"BDCM", "GP1702", "10.0.26E"),
        Model(b"BDCM", "GP1501", "10.0.26A"),
        Model(b"HWTC", "HG8310M", "V3R015"),
    ),
    ports_per_card=16,
)

REASONS = {Down.LOS: 6, Down.DYING_GASP: 1, Down.OFFLINE: 5, Down.DEACTIVATED: 3}


def onu_number(onu: Onu) -> int:
    return FIRST_ONU + onu.number + onu.number // LEFT_ONE_IN


def onu_index(onu: Onu) -> Arcs:
    return (onu_number(onu),)


def onu_name(onu: Onu) -> bytes:
    return f"GPON{onu.position.slot}/{onu.position.port}:{onu.position.onu}".encode()


def _last_change(seed: int) -> ReadLive:
    """Return the reader of ifLastChange: the uptime of the OLT at that moment, or 0 if that was before its start."""

    def read(_onu: Onu, seen: Observed) -> int:
        changed = seen.last_up if seen.up else seen.last_down
        if changed is None or seen.at - changed > uptime_ticks(seed, seen.at) / 100:
            return 0
        return uptime_ticks(seed, changed)

    return read


def _interface_columns(site: TableInput) -> list[MibColumn]:
    uplinks = [f"GigaEthernet0/{number}" for number in range(1, UPLINKS + 1)]
    ports = [f"GPON{port.slot}/{port.port}" for port in site.plant.ports]
    names = [name.encode() for name in (*uplinks, *ports)]
    size = len(names)
    rows = mixed_rows(site, onu_index, [(FIRST_UPLINK + number,) for number in range(size)])

    def column(oid: str, tag: Tag, read: ReadLive, others: list[Raw]) -> MibColumn:
        return mixed_column(site, rows, oid, tag, read, others)

    zeros: list[Raw] = [0] * size
    return [
        column(
            f"{IF_TABLE}.1", Tag.INTEGER, lambda onu, _: onu_number(onu), list(range(FIRST_UPLINK, FIRST_UPLINK + size))
        ),
        column(f"{IF_TABLE}.2", Tag.OCTET_STRING, lambda onu, _: onu_name(onu), list(names)),
        column(f"{IF_TABLE}.7", Tag.INTEGER, lambda onu, _: 1 if onu.enabled else 2, [1] * size),
        column(f"{IF_TABLE}.8", Tag.INTEGER, lambda _, seen: 1 if seen.up else 2, [1] * size),
        column(f"{IF_TABLE}.9", Tag.TIME_TICKS, _last_change(site.seed), zeros),
        column(IF_NAME, Tag.OCTET_STRING, lambda onu, _: onu_name(onu), list(names)),
        column(f"{IF_X_TABLE}.6", Tag.COUNTER64, lambda _, seen: seen.in_octets, zeros),
        column(f"{IF_X_TABLE}.10", Tag.COUNTER64, lambda _, seen: seen.out_octets, zeros),
        column(f"{IF_X_TABLE}.18", Tag.OCTET_STRING, lambda onu, _: in_charset(onu, onu.name), [b""] * size),
    ]


def _port_columns(site: TableInput) -> list[MibColumn]:
    """Return the number of ONUs up and down on each port, and the list of their numbers, each followed by a comma."""
    ports, onus = site.plant.ports, site.plant.onus
    rows = MibRows(((FIRST_PORT + number,), number) for number in range(len(ports)))
    on_port = [[n for n, onu in enumerate(onus) if onu.position.port == port.port] for port in ports]
    lists = [b"".join(b"%d," % onu_number(onus[n]) for n in numbers_of) for numbers_of in on_port]

    def count(up: bool) -> Callable[[int, float], int]:
        return lambda number, now: sum(site.watch.look(n, now)[1].up is up for n in on_port[number])

    return [
        MibColumn(numbers(f"{PORTS}.4"), rows, Tag.INTEGER, count(up=True)),
        MibColumn(numbers(f"{PORTS}.5"), rows, Tag.INTEGER, count(up=False)),
        fixed_column(f"{PORTS}.6", rows, Tag.OCTET_STRING, lists),
    ]


def _optical(oid: str, scale: Callable[[Optics], float]) -> Live:
    def read(_onu: Onu, seen: Observed) -> int:
        if seen.optics is None:
            return NO_LIGHT if seen.cause is Down.LOS else NO_READING
        return round(scale(seen.optics))

    return Live(oid, Tag.INTEGER, read, optical=True)


def _status(_onu: Onu, seen: Observed) -> int:
    """Return 3 configured, 2 deregistered, 4 lost."""
    return 3 if seen.up else 4 if seen.cause is Down.LOS else 2


ONU_COLUMNS: tuple[Fact | Live, ...] = (
    _optical(OLT_RX, lambda optics: 10 * optics.olt_rx_dbm),
    Fact(f"{INFO}.2", Tag.OCTET_STRING, lambda onu: onu.serial[:4]),
    Fact(f"{INFO}.3", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    Fact(f"{INFO}.4", Tag.OCTET_STRING, lambda onu: onu.serial),
    Live(f"{INFO}.19", Tag.TIME_TICKS, lambda onu, seen: seen.up_ticks),
    Fact(f"{INFO}.20", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    # In tenths of a metre, as it was when the ONU was last ranged.
    Fact(f"{INFO}.33", Tag.INTEGER, lambda onu: 10 * onu.distance_m),
    Live(f"{INFO}.35", Tag.INTEGER, lambda onu, seen: REASONS[seen.cause]),
    Fact(ADMIN, Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Fact(f"{STATUS}.2", Tag.OCTET_STRING, lambda onu: serial_text(onu, ":").encode()),
    Live(f"{STATUS}.4", Tag.INTEGER, _status),
    _optical(f"{OPTICS}.2", lambda optics: 10 * optics.rx_dbm),
    _optical(f"{OPTICS}.3", lambda optics: 10 * optics.tx_dbm),
)


def _columns(site: TableInput) -> list[MibColumn]:
    descr = "BDCOM(tm) GP3600-16B Software, Version 74104\nhardware version: A"
    return [
        *system_columns(site, descr, f"{BDCOM}.1.390.0"),
        *_interface_columns(site),
        *_port_columns(site),
        *onu_table(site, onu_index, ONU_COLUMNS),
    ]


BDCOM_GPON = Maker("bdcom_gpon", lambda _onus: CHASSIS, _columns)
