"""Huawei SmartAX MA5600T, MA5603T, MA5608T, MA5680T, MA5683T and MA5800, GPON."""

import re
from datetime import timedelta
from functools import lru_cache

from facho.brands.decode import (
    UNKNOWN,
    Row,
    cause,
    choice,
    counter,
    date,
    date_text,
    disabled_by_admin,
    mac,
    no_optics_when_off,
    power,
    scaled,
    serial,
    state_by_cause,
    text,
    whole,
)
from facho.brands.templates import DISCOVERY, STATE, TRAFFIC
from facho.engine.brand import Brand, Column, Decoder, IndexSpace, JobTemplate, Manners, PortTable, Position
from facho.engine.model import JobKind
from facho.engine.oid import Arcs, parse

# HUAWEI-XPON-MIB: `.2` has ONT properties and states, `.4` counters.
ROOT = "1.3.6.1.4.1.2011.6.128.1.1"

# The ifIndex of a port: type(7) frame(6) slot(6) port(5) and eight zero bits. R: 32 ports; C2.
# X: one source puts the frame a bit lower, which is the same while the frame is 0, as on every OLT seen.
GPON_TYPE = 125
# ONTs count from 0, to 127 on GPON (M). Denser ports exist; above this it is not an ONT.
MAX_ONU = 255


@lru_cache(maxsize=1024)
def decode_port(if_index: int) -> Position | None:
    """Return the GPON port with this ifIndex; None for other interfaces, which have another layout."""
    if if_index >> 25 != GPON_TYPE or if_index & 0xFF:
        return None
    return Position(shelf=if_index >> 19 & 0x3F, slot=if_index >> 13 & 0x3F, port=if_index >> 8 & 0x1F)


def encode_port(position: Position) -> int:
    """Return the ifIndex of a GPON port."""
    if not (0 <= position.shelf < 64 and 0 <= position.slot < 64 and 0 <= position.port < 32):
        raise ValueError(f"{position} is not a port of a Huawei OLT")
    return GPON_TYPE << 25 | position.shelf << 19 | position.slot << 13 | position.port << 8


def _decode(arcs: Arcs) -> Position | None:
    if len(arcs) != 2 or arcs[1] > MAX_ONU:
        return None
    port = decode_port(arcs[0])
    return port and Position(port.shelf, port.slot, port.port, arcs[1])


def _encode(position: Position) -> Arcs:
    if position.onu is None:
        return (encode_port(position),)
    if not 0 <= position.onu <= MAX_ONU:
        raise ValueError(f"{position} is not an ONU of a Huawei OLT")
    return (encode_port(position), position.onu)


# M: INDEX { ifIndex, hwGponDeviceOntIndex }, in every ONT table.
SPACE = IndexSpace(_decode, _encode)

ADMIN_STATES = {1: "enabled", 2: "disabled"}  # M, C2; -1 is no answer
STATES = {1: "online", 2: "offline"}  # M, C2; -1 is no answer
CONFIG_STATES = {1: "init", 2: "normal", 3: "failed", 4: "no_resume", 5: "configuring"}  # M
MATCH_STATES = {1: "init", 2: "match", 3: "mismatch"}  # M
# M, except for 12, which one source has (C1). -1: the query failed.
DOWN_CAUSES = {
    1: "los",
    2: "losi",
    3: "lofi",
    4: "sfi",
    5: "loai",
    6: "loami",
    7: "deactivate_failed",
    8: "deactivated",
    9: "reset",
    10: "re_registered",
    11: "popup_failed",
    12: "auth_failed",
    13: "dying_gasp",
    15: "loki",
    18: "ring",
    30: "optical_module_off",
    31: "reset_by_command",
    32: "reset_by_button",
    33: "reset_by_software",
    34: "broadcast_attack",
    35: "operator_check_failed",
    37: "rogue",
}
# The run state is only up or down; the down cause refines it.
STATE_BY_CAUSE = {
    "los": "los",
    "losi": "los",
    "lofi": "los",
    "auth_failed": "auth_failed",
    "dying_gasp": "dying_gasp",
}
# Equal counters in both directions are invalid (C1), except with almost no traffic.
LITTLE_TRAFFIC = 1_000_000

# The OLT reads one ONT after the other: 817 of them took an MA5608T between 273 and 774 s (C1). A shorter interval
# would keep it busy all the time.
OPTICAL_FLOOR = timedelta(minutes=15)

DBM = power(0.01)  # M, C2
OLT_DBM = power(0.01, -100)  # M, C2: (v - 10000) / 100; real rows 8775 -> -12.25
CELSIUS = scaled(1, low=-60, high=150, digits=0)  # M
METRES = whole(none=(-1, UNKNOWN))  # M, C2


_state_by_cause = state_by_cause(STATE_BY_CAUSE)


def _finish(row: Row) -> Row:
    in_octets = row.get("in_octets")
    if in_octets is not None and in_octets == row.get("out_octets") and in_octets > LITTLE_TRAFFIC:
        row = {**row, "in_octets": None, "out_octets": None}
    return no_optics_when_off(_state_by_cause(disabled_by_admin(row)))


def _column(field: str, number: str, decode: Decoder, *, needs: tuple[str, ...] = ()) -> Column:
    return Column(field, parse(f"{ROOT}.{number}"), decode, SPACE, needs=needs)


def _optical(field: str, number: str, decode: Decoder) -> Column:
    return Column(field, parse(f"{ROOT}.{number}"), decode, SPACE, optical=True, floor=OPTICAL_FLOOR)


COLUMNS = (
    _column("serial", "2.43.1.3", serial),  # M, C2
    _column("line_profile", "2.43.1.7", text),  # M, C2
    _column("service_profile", "2.43.1.8", text),  # M, C2
    # The description is the only text of an ONT: operators write the customer's name there.
    _column("name", "2.43.1.9", text),  # M, C2
    _column("hardware", "2.45.1.1", text),  # M, C2
    _column("model", "2.45.1.4", text),  # M, C2
    _column("software", "2.45.1.5", text),  # M, C2
    _column("mac", "2.45.1.10", mac),  # M, C2
    _column("admin_state", "2.46.1.1", choice(ADMIN_STATES)),  # M, C2
    _column("state", "2.46.1.15", choice(STATES, other="unknown"), needs=("admin_state", "down_cause")),  # M, C2
    _column("config_state", "2.46.1.16", choice(CONFIG_STATES)),  # M
    _column("match_state", "2.46.1.18", choice(MATCH_STATES)),  # M
    _column("distance_m", "2.46.1.20", METRES),  # M, C2
    _column("last_up", "2.46.1.22", date),  # M, C2
    _column("last_down", "2.46.1.23", date),  # M, C2
    _column("down_cause", "2.46.1.24", cause(DOWN_CAUSES, none=(-1,))),  # M; 12: C1
    _column("last_dying_gasp", "2.46.1.25", date_text),  # M, C2
    # R: UNKNOWN means no value in the optics of a port; C2: here too.
    _optical("temperature_c", "2.51.1.1", CELSIUS),  # M
    _optical("bias_ma", "2.51.1.2", scaled(1, digits=0)),  # M
    _optical("tx_dbm", "2.51.1.3", DBM),  # M, C2
    _optical("rx_dbm", "2.51.1.4", DBM),  # M, C2
    _optical("voltage_v", "2.51.1.5", scaled(0.001, low=0, high=100)),  # M
    _optical("olt_rx_dbm", "2.51.1.6", OLT_DBM),  # M, C2
    _column("in_octets", "4.23.1.3", counter, needs=("out_octets",)),  # M, C2: up, which is from the ONU
    _column("out_octets", "4.23.1.4", counter, needs=("in_octets",)),  # M, C2
)

# ONTs on each PON port. R, M.
ONTS_OF_PORT = parse(f"{ROOT}.2.21.1.16")

TEMPLATES = (
    DISCOVERY,
    STATE,
    TRAFFIC,
    # Half an hour leaves the OLT idle most of the time, and twice as many ONTs as measured still fit.
    JobTemplate(
        "Optical power",
        JobKind.GET,
        timedelta(minutes=30),
        ("rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "voltage_v", "bias_ma"),
        timeout=timedelta(minutes=25),
    ),
    JobTemplate(
        "Inventory",
        JobKind.TABLE,
        timedelta(hours=6),
        ("model", "software", "hardware", "mac"),
        priority=20,
        timeout=timedelta(minutes=20),
    ),
)

HUAWEI = Brand(
    id="huawei",
    label="Huawei MA5600T / MA5800",
    space=SPACE,
    columns={column.field: column for column in COLUMNS},
    discovery=("serial", "name", "line_profile", "service_profile"),
    # Seen below it: 115 MA5680T, 123 MA5603T (R), 133 MA5683T, 248 MA5608T, 381 MA5801 (C1). The vendor's switches and
    # routers are there as well; the probe excludes them.
    sys_object_ids=(parse("1.3.6.1.4.1.2011.2"),),
    sys_descr=re.compile(r"Huawei Integrated Access Software"),  # R
    probe=ONTS_OF_PORT,
    # M: 0 to 127.
    first_onu=0,
    ports=PortTable(ONTS_OF_PORT, lambda arcs: decode_port(arcs[0]) if len(arcs) == 1 else None, counts=True),
    # C1, measured on an MA5608T: 25 rows per request are best, 2 to 8 % of the answers are lost. Optics are read from
    # one ONT after the other. That needs no limit: a second request in flight brings no more, so the window stays at
    # one.
    manners=Manners(max_repetitions=25, timeout=5.0, retries=4, optical_timeout=20.0),
    finish=_finish,
    templates=TEMPLATES,
)
