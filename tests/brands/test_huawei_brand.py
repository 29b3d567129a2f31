"""Huawei: what the columns and the rules of a row make of what an MA5600T answers."""

import pytest

from facho.brands.decode import UNKNOWN, scaled, serial
from facho.brands.huawei import DBM, HUAWEI, OLT_DBM, SPACE
from facho.engine.brand import Position
from facho.engine.oid import text


def finish(**row):
    assert HUAWEI.finish is not None
    return HUAWEI.finish(row)


# What was seen, and where: R in a recording, C1 in one public source, C2 in several, M in the maker's MIB.
@pytest.mark.parametrize(
    ("if_index", "frame_slot_port"),
    [
        pytest.param(4194304000, (0, 0, 0), id="R: first port"),
        pytest.param(4194307840, (0, 0, 15), id="R: last port of a card"),
        pytest.param(4194312192, (0, 1, 0), id="R: second card"),
        pytest.param(4194316032, (0, 1, 15), id="R: its last port"),
        pytest.param(4194338304, (0, 4, 6), id="C1: a port in the middle"),
        pytest.param(4194344960, (0, 5, 0), id="C1: an MA5800"),
    ],
)
def test_a_pon_port_is_read_from_its_if_index(if_index, frame_slot_port):
    assert SPACE.decode((if_index, 7)) == Position(*frame_slot_port, 7)
    assert SPACE.encode(Position(*frame_slot_port)) == (if_index,)


@pytest.mark.parametrize("if_index", [234938368, 234946624], ids=["R: ethernet0/7/0", "R: ethernet0/8/1"])
def test_an_ethernet_port_is_not_a_pon_port(if_index):
    assert SPACE.decode((if_index, 7)) is None


@pytest.mark.parametrize(
    ("decode", "raw", "expected"),
    [
        pytest.param(OLT_DBM, 8775, -12.25, id="C1: power at the OLT"),
        pytest.param(OLT_DBM, 8413, -15.87, id="C1: weaker"),
        pytest.param(OLT_DBM, 8565, -14.35, id="C1: between"),
        pytest.param(OLT_DBM, 8630, -13.70, id="C1: trailing zero"),
        pytest.param(OLT_DBM, UNKNOWN, None, id="C1: no power at the OLT"),
        pytest.param(DBM, UNKNOWN, None, id="R: no power"),
        pytest.param(DBM, -2153, -21.53, id="M: power at the ONU"),
        pytest.param(DBM, 711, 7.11, id="R: power sent by the OLT's port"),
        pytest.param(scaled(0.01), 322, 3.22, id="R: voltage of the OLT's port"),
        pytest.param(HUAWEI.columns["distance_m"].decode, -1, None, id="M: no distance"),
        pytest.param(HUAWEI.columns["distance_m"].decode, 1235, 1235, id="M: a distance"),
        pytest.param(serial, bytes.fromhex("485754437d4630c3"), "HWTC7D4630C3", id="C1: serial"),
        pytest.param(serial, bytes.fromhex("4344544350573a79"), "CDTC50573A79", id="C1: printable serial"),
        pytest.param(serial, bytes.fromhex("5a544547c851c62f"), "ZTEGC851C62F", id="C1: another maker's ONU"),
    ],
)
def test_values_seen_on_real_devices(decode, raw, expected):
    assert decode(raw) == expected


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("state", 1, "online"),
        ("state", 2, "offline"),
        ("state", -1, "unknown"),
        ("admin_state", 1, "enabled"),
        ("admin_state", 2, "disabled"),
        ("admin_state", -1, None),
        ("down_cause", 1, "los"),
        ("down_cause", 13, "dying_gasp"),
        ("down_cause", 99, "code_99"),
        ("down_cause", -1, None),
        ("temperature_c", 45, 45.0),
        ("temperature_c", UNKNOWN, None),
        ("voltage_v", 3300, 3.3),
        ("bias_ma", 12, 12.0),
        ("bias_ma", UNKNOWN, None),
        ("rx_dbm", UNKNOWN, None),
        ("tx_dbm", 234, 2.34),
        ("olt_rx_dbm", UNKNOWN, None),
        ("in_octets", 2**40, 2**40),
        ("name", b"Juan Quispe", "Juan Quispe"),
        ("config_state", 2, "normal"),
        ("match_state", 3, "mismatch"),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(field, raw, expected):
    assert HUAWEI.columns[field].decode(raw) == expected


@pytest.mark.parametrize(
    ("row", "state"),
    [
        pytest.param({"state": "online", "down_cause": "los"}, "online", id="up: why it was down no longer matters"),
        pytest.param({"state": "offline", "down_cause": "dying_gasp"}, "dying_gasp", id="lost its power"),
        pytest.param({"state": "offline", "down_cause": "los"}, "los", id="lost its light"),
        pytest.param({"state": "offline", "down_cause": "losi"}, "los", id="lost its light, alone"),
        pytest.param({"state": "offline", "down_cause": "lofi"}, "los", id="lost its frames"),
        pytest.param({"state": "offline", "down_cause": "auth_failed"}, "auth_failed", id="not let in"),
        pytest.param({"state": "offline", "down_cause": "reset"}, "offline", id="a cause that is no state"),
        pytest.param({"state": "offline", "down_cause": None}, "offline", id="no cause"),
        pytest.param({"state": "offline"}, "offline", id="the cause was not read"),
        pytest.param(
            {"state": "offline", "down_cause": "los", "admin_state": "disabled"},
            "disabled",
            id="switched off by an admin",
        ),
        pytest.param({"state": "online", "admin_state": "disabled"}, "online", id="seen up although switched off"),
        pytest.param({"state": "unknown", "down_cause": "los"}, "unknown", id="the query failed"),
    ],
)
def test_the_state_of_an_onu_that_is_down_says_why(row, state):
    assert finish(**row)["state"] == state


@pytest.mark.parametrize(
    ("raw_cause", "state"),
    [(1, "los"), (2, "los"), (3, "los"), (12, "auth_failed"), (13, "dying_gasp"), (9, "offline"), (99, "offline")],
)
def test_the_number_of_a_cause_becomes_a_state(raw_cause, state):
    columns = HUAWEI.columns

    row = finish(state=columns["state"].decode(2), down_cause=columns["down_cause"].decode(raw_cause))

    assert row["state"] == state


def test_an_onu_that_is_down_has_no_optics_but_keeps_the_rest():
    row = finish(state="offline", rx_dbm=-21.53, tx_dbm=2.1, olt_rx_dbm=-24.0, temperature_c=45.0, name="ONU 7")

    assert row == {
        "state": "offline",
        "rx_dbm": None,
        "tx_dbm": None,
        "olt_rx_dbm": None,
        "temperature_c": None,
        "name": "ONU 7",
    }


@pytest.mark.parametrize("state", ["online", "unknown"])
def test_an_onu_that_may_be_up_keeps_its_optics(state):
    assert finish(state=state, rx_dbm=-21.53)["rx_dbm"] == -21.53


def test_optics_read_without_the_state_are_kept():
    assert finish(rx_dbm=-21.53, voltage_v=3.3) == {"rx_dbm": -21.53, "voltage_v": 3.3}


@pytest.mark.parametrize(
    ("in_octets", "out_octets", "expected"),
    [
        pytest.param(5_000_000, 5_000_000, (None, None), id="the same in both directions: garbage"),
        pytest.param(5_000_000, 5_000_001, (5_000_000, 5_000_001), id="not the same"),
        pytest.param(0, 0, (0, 0), id="an ONU without traffic"),
        pytest.param(None, None, (None, None), id="nothing read"),
    ],
)
def test_counters_that_mirror_each_other_are_not_believed(in_octets, out_octets, expected):
    row = finish(in_octets=in_octets, out_octets=out_octets)

    assert (row["in_octets"], row["out_octets"]) == expected


def test_a_rule_leaves_the_row_it_was_given_alone():
    row = {"state": "offline", "down_cause": "los", "rx_dbm": -40.0, "in_octets": 9_000_000, "out_octets": 9_000_000}
    before = dict(row)

    finish(**row)
    HUAWEI.finish(row)

    assert row == before


def test_power_is_asked_for_where_the_mib_has_it():
    columns = {field: text(column.oid) for field, column in HUAWEI.columns.items() if column.optical}

    base = "1.3.6.1.4.1.2011.6.128.1.1.2.51.1"
    assert columns == {
        "temperature_c": f"{base}.1",
        "bias_ma": f"{base}.2",
        "tx_dbm": f"{base}.3",
        "rx_dbm": f"{base}.4",
        "voltage_v": f"{base}.5",
        "olt_rx_dbm": f"{base}.6",
    }
