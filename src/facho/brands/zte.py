"""ZTE ZXA10 C300 and C320, GPON, firmware 1.2 and 2.x: the tree 3902.1012, and a little of 3902.1015.

One device numbers its ports in several ways, with equal numbers for different
ports: 268501248 is port 1/1/1 in the 1012 tree and 1/2/2 in IF-MIB (R). Rows
are joined by position, never by number.
"""

import re
from dataclasses import replace
from datetime import timedelta

from facho.brands.decode import (
    NO_VALUE_16,
    UNKNOWN,
    cause,
    choice,
    counter,
    date,
    disabled_by_admin,
    no_optics_when_off,
    power,
    scaled,
    serial,
    signed_16,
    text,
    whole,
)
from facho.brands.templates import DISCOVERY, STATE, TRAFFIC
from facho.engine.brand import Brand, Column, Decoder, IndexSpace, JobTemplate, Manners, PortTable, Position
from facho.engine.model import JobKind
from facho.engine.oid import Arcs, parse

ROOT = "1.3.6.1.4.1.3902"

# The type in the top four bits of an index.
GPON_TYPE, XPON_TYPE, XPON_16_TYPE = 1, 3, 9
# ONUs count from 1, with gaps (C2). One layout has eight bits for them.
MAX_ONU = 255
# Cards with more ports than this have a type of their own where one number names an ONU.
SMALL_CARD = 8


def decode_pon(index: int) -> Position | None:
    """Return the port of an index of the 1012 tree: type(4) shelf-1(4) slot(8) port(8) and eight zero bits. R, C2."""
    port = Position(shelf=(index >> 24 & 0xF) + 1, slot=index >> 16 & 0xFF, port=index >> 8 & 0xFF)
    return port if index >> 28 == GPON_TYPE and not index & 0xFF and port.slot and port.port else None


def encode_pon(position: Position) -> int:
    """Return a port's index in the 1012 tree."""
    if not (1 <= position.shelf <= 16 and 1 <= position.slot <= 255 and 1 <= position.port <= 255):
        raise ValueError(f"{position} is not a port of a ZTE OLT")
    return GPON_TYPE << 28 | position.shelf - 1 << 24 | position.slot << 16 | position.port << 8


def decode_if_index(index: int) -> Position | None:
    """Return the port of an ifIndex, which counts slots and ports from 0. R, on a C320.

    No ONU table has it; the optics of the ports themselves do (1015.3.1.13, C2).
    A C300 leaves out its control cards when it counts slots (C1).
    """
    if index >> 28 != GPON_TYPE or index & 0xFF:
        return None
    return Position(shelf=(index >> 24 & 0xF) + 1, slot=(index >> 16 & 0xFF) + 1, port=(index >> 8 & 0xFF) + 1)


def encode_if_index(position: Position) -> int:
    """Return the ifIndex of a port of a C320."""
    if not (1 <= position.shelf <= 16 and 1 <= position.slot <= 256 and 1 <= position.port <= 256):
        raise ValueError(f"{position} is not a port of a ZTE OLT")
    return GPON_TYPE << 28 | position.shelf - 1 << 24 | position.slot - 1 << 16 | position.port - 1 << 8


def _decode_onu(arcs: Arcs) -> Position | None:
    if len(arcs) != 2 or not 1 <= arcs[1] <= MAX_ONU:
        return None
    port = decode_pon(arcs[0])
    return port and Position(port.shelf, port.slot, port.port, arcs[1])


def _encode_onu(position: Position) -> Arcs:
    if position.onu is None:
        return (encode_pon(position),)
    return (encode_pon(position), _onu(position))


def _onu(position: Position) -> int:
    if position.onu is None or not 1 <= position.onu <= MAX_ONU:
        raise ValueError(f"{position} is not an ONU of a ZTE OLT")
    return position.onu


def _decode_ani(arcs: Arcs) -> Position | None:
    return _decode_onu(arcs[:2]) if len(arcs) == 3 and arcs[2] == 1 else None


def _encode_ani(position: Position) -> Arcs:
    return _encode_onu(position) if position.onu is None else (*_encode_onu(position), 1)


def _decode_xpon(arcs: Arcs) -> Position | None:
    if len(arcs) != 1:
        return _decode_onu(arcs)
    index = arcs[0]
    onu = index >> 8 & 0xFF
    kind = index >> 28
    if index & 0xFF or not onu or kind not in (XPON_TYPE, XPON_16_TYPE):
        return None
    if kind == XPON_TYPE:
        shelf, slot, port = index >> 24 & 0xF, index >> 19 & 0x1F, index >> 16 & 0x7
    else:
        shelf, slot, port = index >> 25 & 0x7, index >> 20 & 0x1F, index >> 16 & 0xF
    return Position(shelf + 1, slot, port + 1, onu) if slot else None


def _encode_xpon(position: Position) -> Arcs:
    if position.onu is None:
        return ()
    onu, port = _onu(position), position.port - 1
    is_small = port < SMALL_CARD
    if not (1 <= position.shelf <= (16 if is_small else 8) and 1 <= position.slot <= 31 and 0 <= port < 16):
        raise ValueError(f"{position} is not an ONU of a ZTE OLT")
    if is_small:
        return (XPON_TYPE << 28 | position.shelf - 1 << 24 | position.slot << 19 | port << 16 | onu << 8,)
    return (XPON_16_TYPE << 28 | position.shelf - 1 << 25 | position.slot << 20 | port << 16 | onu << 8,)


# {pon}.{onu}. R for the ports, C2 for the ONUs.
SPACE = IndexSpace(_decode_onu, _encode_onu)
# {pon}.{onu}.1: the optics of an ONU belong to its only interface to the PON. C2.
ANI_SPACE = IndexSpace(_decode_ani, _encode_ani)
# One number for each ONU: type 3, shelf-1(4) slot(5) port-1(3) onu(8) zero(8), or type 9 on cards of 16 ports,
# shelf-1(3) slot(5) port-1(4) onu(8) zero(8). C1; X on the bits of type 9, which agree up to slot 15 of shelf 1.
# A position does not tell how large its card is, so nothing is asked for by it. Pairs as in the 1012 tree cannot be
# mistaken for these, and are understood as well: for the table that needs this space there is one source only.
XPON_SPACE = IndexSpace(_decode_xpon, _encode_xpon, by_port=False, by_index=False)

ADMIN_STATES = {1: "enabled", 2: "disabled"}  # C2
# C2, one of them live against the command line. Sources that count from 1 have the enumeration of the C600.
STATES = {
    0: "logging",
    1: "los",
    2: "syncing",
    3: "online",
    4: "dying_gasp",
    5: "auth_failed",
    6: "offline",
}
# C2; X: one source counts from 0. 9 is dying gasp in all.
DOWN_CAUSES = {
    1: "unknown",
    2: "los",
    3: "losi",
    4: "lofi",
    5: "sfi",
    6: "loai",
    7: "loami",
    8: "auth_failed",
    9: "dying_gasp",
    10: "deactivated",
    11: "deactivate_failed",
    12: "reset",
    13: "shutdown",
}

# What stands for no light at the OLT, by firmware. C2.
NO_LIGHT = (-80000, 65535, 65535000, UNKNOWN)

# Slow OLTs, which read this from the ONUs one by one: at most once an hour.
OPTICAL_FLOOR = timedelta(hours=1)

ONU_DBM = signed_16(scaled(0.002, -30, low=-45, high=10))  # C2: 5635 -> -18.73 where the command line has -18.762
OLT_DBM = power(0.001, none=NO_LIGHT)  # C2
CELSIUS = signed_16(scaled(1 / 256, low=-60, high=150, digits=1))  # C2
METRES = whole(none=(-1, UNKNOWN))  # R: from 0 to 3793, and 0 is an answer
VOLTS = scaled(0.02, none=(NO_VALUE_16, UNKNOWN), low=0, high=100)  # C2


def _column(
    field: str, number: str, decode: Decoder, space: IndexSpace = SPACE, *, needs: tuple[str, ...] = ()
) -> Column:
    return Column(field, parse(f"{ROOT}.{number}"), decode, space, needs=needs)


def _optical(field: str, number: str, decode: Decoder, space: IndexSpace = ANI_SPACE) -> Column:
    return Column(field, parse(f"{ROOT}.{number}"), decode, space, optical=True, floor=OPTICAL_FLOOR)


COLUMNS = (
    _column("model", "1012.3.28.1.1.1", text),  # C2: the type it was registered as
    _column("name", "1012.3.28.1.1.2", text),  # C2
    _column("description", "1012.3.28.1.1.3", text),  # C2
    _column("serial", "1012.3.28.1.1.5", serial),  # C2
    _column("admin_state", "1012.3.28.2.1.1", choice(ADMIN_STATES)),  # C2
    _column("state", "1012.3.28.2.1.4", choice(STATES, other="unknown"), needs=("admin_state",)),  # C2
    _column("last_up", "1012.3.28.2.1.5", date),  # C2
    _column("last_down", "1012.3.28.2.1.6", date),  # C2
    _column("down_cause", "1012.3.28.2.1.7", cause(DOWN_CAUSES)),  # C2, X
    _column("distance_m", "1012.3.11.4.1.2", METRES),  # R, C2
    _column("vendor", "1012.3.50.11.2.1.1", text),  # C2
    _column("software", "1012.3.50.11.2.1.2", text),  # C2
    _column("equipment_id", "1012.3.50.11.2.1.9", text),  # X: .17 in another source
    _optical("rx_dbm", "1012.3.50.12.1.1.10", ONU_DBM),  # C2
    _optical("tx_dbm", "1012.3.50.12.1.1.14", ONU_DBM),  # C2
    _optical("voltage_v", "1012.3.50.12.1.1.17", VOLTS),  # C2
    _optical("temperature_c", "1012.3.50.12.1.1.19", CELSIUS),  # C2
    # It is in the 1015 tree, where the optics of the ports count from 0 like IF-MIB, but it has the index of the 1012
    # tree: all sources request it with the {pon}.{onu} of the phase state (C2, four of them).
    _optical("olt_rx_dbm", "1015.1010.11.2.1.2", OLT_DBM, SPACE),  # C2
    # In the 1015 tree too, with one number for each ONU (C1).
    _column("in_octets", "1015.1010.5.56.1.1.2", counter, XPON_SPACE),  # C1
    _column("out_octets", "1015.1010.5.56.1.1.3", counter, XPON_SPACE),  # C1
)

TEMPLATES = (
    DISCOVERY,
    STATE,
    # In a separate space, in which nothing is requested by index.
    replace(TRAFFIC, kind=JobKind.WALK),
    JobTemplate(
        "Optical power",
        JobKind.GET,
        OPTICAL_FLOOR,
        ("rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "voltage_v"),
        timeout=timedelta(minutes=50),
    ),
    JobTemplate(
        "Inventory",
        JobKind.TABLE,
        timedelta(hours=6),
        ("software", "vendor", "equipment_id"),
        priority=20,
        timeout=timedelta(minutes=20),
    ),
)

# R: "OLT-1", one for each PON port; a C600 does not have it (C1).
PORT_NAMES = parse(f"{ROOT}.1012.3.13.1.1.1")

ZTE_C300 = Brand(
    id="zte_c300",
    label="ZTE C300 / C320",
    space=SPACE,
    columns={column.field: column for column in COLUMNS},
    discovery=("serial", "name", "description", "model"),
    sys_object_ids=(
        parse(f"{ROOT}.1082.1001.320"),  # C320, firmware 2.1. R
        parse(f"{ROOT}.1082.1001.300"),  # C300, firmware 2.1. C1
        parse(f"{ROOT}.1015"),  # both, firmware 1.2. C1
    ),
    sys_descr=re.compile(r"\bC3[02]0\b.*\bZTE\b"),  # R
    # The ports have names, with or without ONUs.
    probe=PORT_NAMES,
    ports=PortTable(PORT_NAMES, lambda arcs: decode_pon(arcs[0]) if len(arcs) == 1 else None),
    # C1: a C300 hangs when asked for 0 repetitions, and large answers get lost on slow links.
    manners=Manners(max_repetitions=10, timeout=5.0, retries=3, optical_timeout=20.0),
    finish=lambda row: no_optics_when_off(disabled_by_admin(row)),
    templates=TEMPLATES,
)
