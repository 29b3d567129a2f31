"""BDCOM: ONUs are interfaces, and only the name of one says that it is an ONU, and where."""

import pytest

from facho.brands import brand
from facho.engine.brand import OPAQUE, Position

BDCOM = brand("bdcom_gpon")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param(b"GPON0/2:29", Position(0, 0, 2, 29), id="R: an ONU"),
        pytest.param(b"gpon1/16:128", Position(0, 1, 16, 128), id="in small letters"),
        pytest.param(b"GPON0/2", None, id="R: a port"),
        pytest.param(b"EPON0/1:3", None, id="an EPON ONU"),
        pytest.param(b"GigaEthernet0/1", None, id="an uplink"),
        pytest.param(b"GPON0/2:29.1", None, id="something below an ONU"),
        pytest.param(b"XGPON0/2:29", None, id="a name that only ends alike"),
        pytest.param(b"", None, id="no name"),
        pytest.param(29, None, id="a number"),
    ],
)
def test_the_name_of_an_interface_says_where_an_onu_is(name, place):
    assert BDCOM.columns["place"].decode(name) == place


def test_whatever_is_read_from_the_interfaces_is_read_with_their_names():
    for_all_interfaces = {"name", "state", "in_octets", "out_octets"}

    assert BDCOM.columns["place"].places
    assert {name for name, column in BDCOM.columns.items() if "place" in column.needs} == for_all_interfaces
    assert BDCOM.discovery[0] == "place"
    assert {id(column.space) for column in BDCOM.columns.values()} == {id(OPAQUE)}


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("state", 1, "online"),
        ("state", 2, "offline"),
        ("state", 7, "unknown"),
        ("serial", b"HWTC:7d4630c3", "HWTC7D4630C3"),
        ("serial", b"HWTC7D4630C3", "HWTC7D4630C3"),
        ("rx_dbm", -231, -23.1),
        ("rx_dbm", -65535, None),
        ("rx_dbm", -2147483648, None),
        ("rx_dbm", 2147483648, None),
        ("rx_dbm", -501, None),
        ("rx_dbm", -500, -50.0),
        ("olt_rx_dbm", -257, -25.7),
        ("distance_m", 12345, 1234.5),
        ("distance_m", -65535, None),
        ("down_cause", 0, None),
        ("down_cause", 1, "dying_gasp"),
        ("down_cause", 8, "wire_down"),
        ("down_cause", 12, "code_12"),
        ("admin_state", 2, "disabled"),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(field, raw, expected):
    assert BDCOM.columns[field].decode(raw) == expected


@pytest.mark.parametrize(
    ("row", "state"),
    [
        pytest.param({"state": "offline", "down_cause": "wire_down"}, "los", id="the fibre is cut"),
        pytest.param({"state": "offline", "down_cause": "los"}, "los", id="the light is gone"),
        pytest.param({"state": "offline", "down_cause": "dying_gasp"}, "dying_gasp", id="its power is gone"),
        pytest.param({"state": "offline", "down_cause": "code_12"}, "offline", id="a cause that nobody knows"),
        pytest.param({"state": "offline", "down_cause": None}, "offline", id="no cause"),
        pytest.param(
            {"state": "offline", "down_cause": "los", "admin_state": "disabled"},
            "disabled",
            id="somebody switched it off",
        ),
        pytest.param({"state": "online", "down_cause": "los"}, "online", id="it is back"),
    ],
)
def test_an_onu_that_is_down_says_why(row, state):
    assert BDCOM.finish(row)["state"] == state


def test_an_onu_that_is_down_has_no_power_and_keeps_its_counts():
    row = {"state": "offline", "rx_dbm": -23.1, "in_octets": 0}

    assert BDCOM.finish(row) == {"state": "offline", "rx_dbm": None, "in_octets": 0}
