"""FiberHome: two index spaces, joined by place, and a state that is all there is to know of why."""

import pytest

from facho.brands import brand
from facho.engine.brand import Position

FIBERHOME = brand("fiberhome")


@pytest.mark.parametrize(
    ("index", "position"),
    [
        pytest.param(606089733 & ~0xFF, Position(0, 18, 4, 50), id="V: the worked example of the maker"),
        pytest.param(34078976, Position(0, 1, 1, 1), id="C1: PON 1/1/1"),
        pytest.param(34079232, Position(0, 1, 1, 2), id="C1: PON 1/1/2"),
        pytest.param(67633408, Position(0, 2, 1, 1), id="C1: 0x04080100"),
    ],
)
def test_an_onu_is_read_from_its_index(index, position):
    assert FIBERHOME.space.decode((index,)) == position
    assert FIBERHOME.space.encode(position) == (index,)


def test_what_the_olt_measures_is_joined_to_the_same_onu():
    at_the_olt = FIBERHOME.columns["olt_rx_dbm"].space

    assert at_the_olt.decode((34078720, 7)) == Position(0, 1, 1, 7)
    assert FIBERHOME.space.encode(at_the_olt.decode((34078720, 7))) == (34078720 + (7 << 8),)


def test_what_the_olt_measures_can_be_walked_port_by_port_and_the_rest_cannot():
    assert [name for name, column in FIBERHOME.columns.items() if column.space.by_port] == ["olt_rx_dbm"]
    assert all(column.space.by_index for column in FIBERHOME.columns.values())


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("state", 0, "los"),
        ("state", 1, "online"),
        ("state", 2, "dying_gasp"),
        ("state", 3, "offline"),
        ("state", 4, "unknown"),
        ("serial", b"FHTT12345678", "FHTT12345678"),
        ("serial", bytes.fromhex("4648545412345678"), "FHTT12345678"),
        ("rx_dbm", -2153, -21.53),
        ("olt_rx_dbm", -1850, -18.5),
        ("voltage_v", 327, 3.27),
        ("temperature_c", 4512, 45.12),
        ("bias_ma", 1165, 11.65),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(field, raw, expected):
    assert FIBERHOME.columns[field].decode(raw) == expected


@pytest.mark.parametrize(
    ("state", "cause"), [("los", "los"), ("dying_gasp", "dying_gasp"), ("offline", None), ("online", None)]
)
def test_the_state_tells_why_an_onu_is_down(state, cause):
    assert FIBERHOME.finish({"state": state}).get("down_cause") == cause


def test_an_onu_that_is_off_is_not_at_no_distance():
    assert FIBERHOME.finish({"state": "offline", "distance_m": 0}) == {"state": "offline", "distance_m": None}
    assert FIBERHOME.finish({"state": "online", "distance_m": 0}) == {"state": "online", "distance_m": 0}
    assert FIBERHOME.columns["distance_m"].needs == ("state",)
