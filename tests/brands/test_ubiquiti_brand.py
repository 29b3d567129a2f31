"""Ubiquiti: zeros of an ONU that is off are no values, and its serial is written as the device writes it."""

import pytest

from facho.brands import brand
from facho.engine.brand import Unplaced

UBIQUITI = brand("ubiquiti")

# One row of a recording: 12, and the letters of UBNT20731888.
INDEX = (12, 85, 66, 78, 84, 50, 48, 55, 51, 49, 56, 56, 56)


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("serial", b"UBNT20731f09", "UBNT20731f09"),
        ("name", b"36602_profil_5", "36602_profil_5"),
        ("state", 1, "online"),
        ("state", 2, "offline"),
        ("state", 3, "unknown"),
        ("port", 2, 2),
        ("port", 0, None),
        ("rx_dbm", -2481, -24.81),
        ("rx_dbm", 0, None),
        ("tx_dbm", 228, 2.28),
        ("tx_dbm", 0, 0.0),
        ("connected_s", 302325200, 3023252),
        ("out_octets", 374022085508, 374022085508),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(field, raw, expected):
    assert UBIQUITI.columns[field].decode(raw) == expected


def test_a_number_of_a_port_is_whole():
    assert isinstance(UBIQUITI.columns["port"].decode(2), int)
    assert isinstance(UBIQUITI.columns["uptime_s"].decode(415355800), int)


def test_an_onu_that_is_off_has_nothing_but_its_name():
    row = {"serial": "UBNT2073be78", "state": "offline", "port": 0, "rx_dbm": 0.0, "tx_dbm": 0.0, "in_octets": 0}

    assert UBIQUITI.finish({**row, "out_octets": 0, "uptime_s": 0, "connected_s": 0}) == {
        "serial": "UBNT2073be78",
        "state": "offline",
        **dict.fromkeys(["port", "rx_dbm", "tx_dbm", "in_octets", "out_octets", "uptime_s", "connected_s"]),
    }


def test_an_onu_that_is_on_keeps_what_it_has():
    row = {"state": "online", "port": 2, "tx_dbm": 0.0, "in_octets": 0}

    assert UBIQUITI.finish(row) == row


@pytest.mark.parametrize("field", ["port", "rx_dbm", "tx_dbm", "in_octets", "out_octets", "connected_s", "uptime_s"])
def test_what_is_zero_when_an_onu_is_off_is_read_with_its_state(field):
    assert UBIQUITI.columns[field].needs == ("state",)


def test_the_index_is_a_name():
    assert UBIQUITI.space.decode(INDEX) == Unplaced(INDEX)
    assert UBIQUITI.space.encode(Unplaced(INDEX)) == INDEX
    assert not UBIQUITI.space.by_port
    assert UBIQUITI.space.by_index
