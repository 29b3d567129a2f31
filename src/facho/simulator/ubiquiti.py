"""Simulated Ubiquiti UFiber OLT, or UISP Fiber OLT for more ONUs.

Its index is the serial, letter by letter, so rows are sorted by serial. An ONU that is down has zeros in all measured
columns.
"""

from collections.abc import Callable

from facho.engine.oid import Arcs
from facho.engine.snmp import Tag
from facho.simulator.device import (
    Fact,
    InterfaceRow,
    Live,
    Maker,
    TableInput,
    fixed_column,
    interface_columns,
    onu_table,
)
from facho.simulator.device import system_columns as system
from facho.simulator.encodings import has_name, in_charset
from facho.simulator.life import Observed, Onu, Optics
from facho.simulator.mib import SCALAR, MibColumn
from facho.simulator.plant import Chassis, Model

UFIBER = "1.3.6.1.4.1.41112.1.5"
ONU_COUNT = f"{UFIBER}.6.1"
ONUS = f"{UFIBER}.6.2.1"

MODELS = (Model(b"UBNT", "NanoG", "v4.4.2"), Model(b"UBNT", "Loco", "v4.4.2"), Model(b"UBNT", "Wifi", "v4.3.0"))
SMALL = Chassis(MODELS, name="EdgeOS v4.4.2.4598.220304.1412", ports_per_card=8)
LARGE = Chassis(MODELS, name="UISP Fiber OLT XGS 5.1.2", ports_per_card=32)
# A UISP Fiber OLT reports the vendor of its chip.
OBJECT_IDS = {SMALL.name: UFIBER, LARGE.name: "1.3.6.1.4.1.4413"}


def serial(onu: Onu) -> bytes:
    """Return the serial in this vendor's format: with lower-case digits."""
    return onu.serial[:4] + onu.serial[4:].hex().encode()


def onu_index(onu: Onu) -> Arcs:
    return len(serial(onu)), *serial(onu)


def _measured(column: int, tag: Tag, read: Callable[[Onu, Observed], int], *, optical: bool = False) -> Live:
    """Return a column that is 0 for an ONU that is down."""
    return Live(f"{ONUS}.{column}", tag, lambda onu, seen: read(onu, seen) if seen.up else 0, optical=optical)


def _power(dbm: Callable[[Optics], float]) -> Callable[[Onu, Observed], int]:
    """Return the reader of a power in hundredths of a dBm."""
    return lambda _onu, seen: round(100 * dbm(seen.optics)) if seen.optics else 0


ONU_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{ONUS}.1", Tag.OCTET_STRING, serial),
    Fact(f"{ONUS}.2", Tag.OCTET_STRING, lambda onu: in_charset(onu, onu.name) if has_name(onu) else serial(onu)),
    Live(f"{ONUS}.3", Tag.INTEGER, lambda onu, seen: 1 if seen.up else 2),
    Fact(f"{ONUS}.4", Tag.OCTET_STRING, lambda onu: onu.model.encode()),
    _measured(5, Tag.INTEGER, lambda onu, seen: onu.position.port),
    _measured(6, Tag.TIME_TICKS, lambda onu, seen: seen.up_ticks),
    _measured(7, Tag.TIME_TICKS, lambda onu, seen: seen.up_ticks),
    _measured(8, Tag.INTEGER, _power(lambda optics: optics.tx_dbm), optical=True),
    _measured(9, Tag.INTEGER, _power(lambda optics: optics.rx_dbm), optical=True),
    # Sent by the OLT, which goes to the ONU, and received.
    _measured(10, Tag.COUNTER64, lambda onu, seen: seen.out_octets),
    _measured(11, Tag.COUNTER64, lambda onu, seen: seen.in_octets),
)


def _columns(site: TableInput) -> list[MibColumn]:
    chassis = site.plant.chassis
    interfaces = [InterfaceRow(number, f"pon{number}", f"pon{number}") for number in range(1, chassis.ports + 1)]
    return [
        *system(site, chassis.name, OBJECT_IDS[chassis.name]),
        *interface_columns(interfaces),
        fixed_column(ONU_COUNT, SCALAR, Tag.GAUGE32, [len(site.plant.onus)]),
        *onu_table(site, onu_index, ONU_COLUMNS),
    ]


UBIQUITI = Maker("ubiquiti", lambda onus: SMALL if onus <= SMALL.holds else LARGE, _columns)
