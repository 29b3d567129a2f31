"""ZTE: what the columns and the rules of a row make of what a C300 or C320 answers."""

import pytest

from facho.brands import brand
from facho.brands.decode import UNKNOWN
from facho.brands.zte import ANI_SPACE, OLT_DBM, ONU_DBM, SPACE, XPON_SPACE, ZTE_C300, decode_if_index, encode_if_index
from facho.engine.brand import Position
from facho.engine.oid import text


def finish(**row):
    assert ZTE_C300.finish is not None
    return ZTE_C300.finish(row)


# What was seen, and where: R in a recording, C1 in one public source, C2 in several.
@pytest.mark.parametrize(
    ("pon", "slot", "port"),
    [
        pytest.param(268501248, 1, 1, id="R: first port"),
        pytest.param(268503040, 1, 8, id="R: last port of a card"),
        pytest.param(268566784, 2, 1, id="C1: second card"),
        pytest.param(268570624, 2, 16, id="C1: last port of a large card"),
        pytest.param(269225984, 12, 16, id="C1: a card far to the right"),
    ],
)
def test_a_port_of_the_1012_tree_is_read_from_its_index(pon, slot, port):
    assert SPACE.decode((pon, 7)) == Position(1, slot, port, 7)
    assert ANI_SPACE.decode((pon, 7, 1)) == Position(1, slot, port, 7)
    assert SPACE.encode(Position(1, slot, port)) == (pon,)


@pytest.mark.parametrize(
    ("if_index", "slot", "port"),
    [
        pytest.param(268435456, 1, 1, id="R: gpon_1/1/1"),
        pytest.param(268437248, 1, 8, id="R: gpon_1/1/8"),
        pytest.param(268632064, 4, 1, id="R: gei_1/4/1"),
    ],
)
def test_a_port_of_if_mib_is_read_from_its_index(if_index, slot, port):
    assert decode_if_index(if_index) == Position(1, slot, port)
    assert encode_if_index(Position(1, slot, port)) == if_index


def test_an_onu_by_one_number():
    assert XPON_SPACE.decode((805830912,)) == Position(1, 1, 1, 1)


@pytest.mark.parametrize(
    "index", [285279233, 285278465, 285278977, 1360052481], ids=["gei", "1/1/1", "1/3/1", "channel"]
)
def test_an_index_of_the_1082_tree_is_none_of_these(index):
    assert SPACE.decode((index, 1)) is None
    assert decode_if_index(index) is None
    assert XPON_SPACE.decode((index,)) is None


@pytest.mark.parametrize(
    ("decode", "raw", "expected"),
    [
        pytest.param(ONU_DBM, 6227, -17.546, id="C2: power at the ONU"),
        pytest.param(ONU_DBM, 5340, -19.320, id="C2: weaker"),
        pytest.param(ONU_DBM, 6901, -16.198, id="C2: stronger"),
        pytest.param(ONU_DBM, 5635, -18.730, id="C2: close to the command line"),
        pytest.param(ONU_DBM, 64032, -33.008, id="C2: a negative number of 16 bits"),
        pytest.param(ONU_DBM, 65535, None, id="C2: no power at the ONU"),
        pytest.param(ONU_DBM, 29999, None, id="more than an ONU can get"),
        pytest.param(ONU_DBM, UNKNOWN, None, id="the largest Integer32"),
        pytest.param(OLT_DBM, -28544, -28.544, id="C2: power at the OLT"),
        pytest.param(OLT_DBM, -80000, None, id="C2: no light"),
        pytest.param(OLT_DBM, 65535000, None, id="C2: no light, other firmware"),
        pytest.param(OLT_DBM, 65535, None, id="C2: no light, another firmware"),
    ],
)
def test_values_seen_on_real_devices(decode, raw, expected):
    assert decode(raw) == expected


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("state", 0, "logging"),
        ("state", 1, "los"),
        ("state", 2, "syncing"),
        ("state", 3, "online"),
        ("state", 4, "dying_gasp"),
        ("state", 5, "auth_failed"),
        ("state", 6, "offline"),
        ("state", 7, "unknown"),
        ("admin_state", 1, "enabled"),
        ("admin_state", 2, "disabled"),
        ("down_cause", 9, "dying_gasp"),
        ("down_cause", 2, "los"),
        ("down_cause", 14, "code_14"),
        ("distance_m", 0, 0),
        ("distance_m", 3793, 3793),
        ("distance_m", -1, None),
        ("temperature_c", 11520, 45.0),
        ("temperature_c", 11648, 45.5),
        ("temperature_c", 65536 - 5 * 256, -5.0),
        ("temperature_c", 65535, None),
        ("voltage_v", 165, 3.3),
        ("voltage_v", 65535, None),
        ("serial", bytes.fromhex("5a544547c851c62f"), "ZTEGC851C62F"),
        ("in_octets", 2**40, 2**40),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(field, raw, expected):
    assert ZTE_C300.columns[field].decode(raw) == expected


@pytest.mark.parametrize(
    ("row", "state"),
    [
        pytest.param({"state": "offline", "admin_state": "disabled"}, "disabled", id="switched off by an admin"),
        pytest.param({"state": "offline", "admin_state": "enabled"}, "offline", id="off by itself"),
        pytest.param({"state": "los", "admin_state": "disabled"}, "los", id="the light is gone as well"),
        pytest.param({"state": "online", "admin_state": "disabled"}, "online", id="seen up although switched off"),
    ],
)
def test_an_onu_that_somebody_switched_off_is_disabled(row, state):
    assert finish(**row)["state"] == state


@pytest.mark.parametrize("state", ["los", "dying_gasp", "offline", "logging", "syncing", "auth_failed"])
def test_an_onu_that_is_not_online_has_no_optics(state):
    row = finish(state=state, rx_dbm=-30.0, olt_rx_dbm=-28.5, voltage_v=3.3)

    assert row == {"state": state, "rx_dbm": None, "olt_rx_dbm": None, "voltage_v": None}


def test_each_column_is_joined_by_the_space_of_its_own_table():
    spaces = {field: column.space for field, column in ZTE_C300.columns.items() if column.space is not SPACE}

    assert spaces == {
        "rx_dbm": ANI_SPACE,
        "tx_dbm": ANI_SPACE,
        "voltage_v": ANI_SPACE,
        "temperature_c": ANI_SPACE,
        "in_octets": XPON_SPACE,
        "out_octets": XPON_SPACE,
    }


def test_power_is_asked_for_where_it_is():
    columns = {field: text(column.oid) for field, column in ZTE_C300.columns.items() if column.optical}

    assert columns == {
        "rx_dbm": "1.3.6.1.4.1.3902.1012.3.50.12.1.1.10",
        "tx_dbm": "1.3.6.1.4.1.3902.1012.3.50.12.1.1.14",
        "voltage_v": "1.3.6.1.4.1.3902.1012.3.50.12.1.1.17",
        "temperature_c": "1.3.6.1.4.1.3902.1012.3.50.12.1.1.19",
        "olt_rx_dbm": "1.3.6.1.4.1.3902.1015.1010.11.2.1.2",
    }


C600 = brand("zte_c600")


@pytest.mark.parametrize(
    ("if_index", "shelf", "slot", "port"),
    [
        pytest.param(285278465, 1, 1, 1, id="C2: first port"),
        pytest.param(285278977, 1, 3, 1, id="C2: third card"),
        pytest.param(285279233, 1, 4, 1, id="R: the number of gei_1/4/1"),
        pytest.param(1360052481, 101, 3, 1, id="C1: the first channel of a port with two"),
        pytest.param(1360052482, 201, 3, 1, id="C1: its second channel"),
    ],
)
def test_a_port_of_a_c600_is_read_from_its_index(if_index, shelf, slot, port):
    position = Position(shelf, slot, port, 7)

    assert C600.space.decode((if_index, 7)) == position
    assert C600.columns["rx_dbm"].space.decode((if_index, 7, 1)) == position
    assert C600.space.encode(Position(shelf, slot, port)) == (if_index,)


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("state", 0, "unknown"),
        ("state", 1, "logging"),
        ("state", 2, "los"),
        ("state", 3, "syncing"),
        ("state", 4, "online"),
        ("state", 5, "dying_gasp"),
        ("state", 6, "auth_failed"),
        ("state", 7, "offline"),
        ("down_cause", 9, "dying_gasp"),
        ("down_cause", 14, "code_14"),
        ("rx_dbm", 6227, -17.546),
        ("rx_dbm", 64032, -33.008),
        ("rx_dbm", 65535, None),
        ("rx_dbm", 29999, None),
        ("olt_rx_dbm", -28544, -28.544),
        ("olt_rx_dbm", -80000, None),
        ("olt_rx_dbm", 65535000, None),
        ("serial", bytes.fromhex("5a544547c851c62f"), "ZTEGC851C62F"),
    ],
)
def test_a_column_of_a_c600_turns_a_raw_value_into_ours(field, raw, expected):
    assert C600.columns[field].decode(raw) == expected


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        pytest.param({"state": "dying_gasp", "down_cause": None}, "dying_gasp", id="the state tells"),
        pytest.param({"state": "los"}, "los", id="the column is not there"),
        pytest.param({"state": "los", "down_cause": "losi"}, "losi", id="the column tells more"),
        pytest.param({"state": "offline", "down_cause": None}, None, id="nobody tells"),
    ],
)
def test_where_a_c600_has_no_cause_the_state_has_to_do(row, cause):
    assert C600.finish(row)["down_cause"] == cause


def test_the_names_of_the_ports_say_which_there_are():
    assert ZTE_C300.ports.decode((268501248,)) == Position(1, 1, 1)
    assert ZTE_C300.ports.decode((268501248, 1)) is None
    assert ZTE_C300.ports.decode((285278465,)) is None
