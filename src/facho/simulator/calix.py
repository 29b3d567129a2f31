"""Simulated Calix E7-2 with AXOS: ONT numbers have no meaning, and powers are in milliwatts."""

from collections.abc import Callable

from facho.engine.oid import Arcs
from facho.engine.snmp import Tag
from facho.simulator.device import Fact, Live, Maker, TableInput, onu_table, system_columns
from facho.simulator.encodings import milliwatts
from facho.simulator.life import Observed, Onu, Optics
from facho.simulator.mib import MibColumn
from facho.simulator.plant import WEAK_DBM, Chassis, Model

AXOS = "1.3.6.1.4.1.6321.1.2.4"
ONTS = f"{AXOS}.2.6.1.1"

CHASSIS = Chassis(
    shelf=1,
    slots=(1, 2),
    models=(Model(b"CXNK", "GP1100X", "12.2.12.9.1"), Model(b"CXNK", "844GE-1", "12.2.13.0.96")),
)

INVALID, ENABLED, DEGRADED = 0, 1, 2


def onu_index(onu: Onu) -> Arcs:
    return (1 + onu.number + onu.number // 7,)


def onu_id(onu: Onu) -> bytes:
    """Return the operator's name of the ONT."""
    return str(1000 + onu.number).encode()


def _state(_onu: Onu, seen: Observed) -> int:
    if seen.optics is None:
        return INVALID
    return DEGRADED if seen.optics.rx_dbm < WEAK_DBM else ENABLED


def _optical(column: int, read: Callable[[Optics], float]) -> Live:
    """Return a power in ten-thousandths of a milliwatt. No light is 0."""
    return Live(
        f"{ONTS}.{column}",
        Tag.INTEGER,
        lambda _onu, seen: round(10000 * milliwatts(read(seen.optics))) if seen.optics else 0,
        optical=True,
    )


ONU_COLUMNS: tuple[Fact | Live, ...] = (
    Fact(f"{ONTS}.2", Tag.OCTET_STRING, onu_id),
    Fact(f"{ONTS}.3", Tag.INTEGER, lambda onu: 1 if onu.enabled else 2),
    Live(f"{ONTS}.4", Tag.INTEGER, _state),
    # Dying gasp: true on every healthy ONT.
    Live(f"{ONTS}.5", Tag.INTEGER, lambda onu, seen: 1 if seen.up else -1),
    _optical(6, lambda optics: optics.rx_dbm),
    _optical(7, lambda optics: optics.tx_dbm),
    _optical(8, lambda optics: optics.olt_rx_dbm),
    Fact(f"{ONTS}.9", Tag.OCTET_STRING, lambda onu: onu.software.encode()),
    Fact(f"{ONTS}.10", Tag.OCTET_STRING, lambda onu: b"BVL3AZ1FTA"),
)


def _columns(site: TableInput) -> list[MibColumn]:
    return [*system_columns(site, "Calix E7-2, AXOS R21.4.1", AXOS), *onu_table(site, onu_index, ONU_COLUMNS)]


CALIX_AXOS = Maker("calix_axos", lambda _onus: CHASSIS, _columns)
