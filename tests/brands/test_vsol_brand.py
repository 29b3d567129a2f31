"""V-SOL: optics are texts, and the milliwatts in them are not the power."""

from datetime import UTC, datetime

import pytest

from facho.brands import brand
from facho.engine.brand import Position

VSOL = brand("vsol_epon")


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("rx_dbm", b"0.03 mW (-14.61 dBm)", -14.61),
        ("rx_dbm", b"0.00 mW (-27.45 dBm)", -27.45),
        ("rx_dbm", b"0.00 mW (-65535 dBm)", None),
        ("rx_dbm", b"0.00 mW (- dBm)", None),
        ("rx_dbm", b"0.03 mW", None),
        ("rx_dbm", b"-", None),
        ("tx_dbm", b"2.38 mW (3.77 dBm)", 3.77),
        ("temperature_c", b"30.67 C", 30.67),
        ("temperature_c", b"-", None),
        ("voltage_v", b"3.27 V", 3.27),
        ("bias_ma", b"11.65 mA", 11.65),
        ("name", b"AAAAAA", "AAAAAA"),
        ("mac", b"a2:4f:02:18:e5:80", "a2:4f:02:18:e5:80"),
        ("state", 1, "online"),
        ("state", 0, "offline"),
        ("down_cause", 0, "los"),
        ("down_cause", 1, "dying_gasp"),
        ("distance_m", 1234, 1234),
        ("last_up", b"2024/05/31 13:45:00", datetime(2024, 5, 31, 13, 45, tzinfo=UTC)),
        ("last_up", b"N/A", None),
        ("in_octets", 2**40, 2**40),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(field, raw, expected):
    assert VSOL.columns[field].decode(raw) == expected


def test_an_onu_is_in_no_slot():
    assert VSOL.space.decode((1, 7)) == Position(0, 0, 1, 7)
    assert VSOL.finish({"name": "AAAAAA"}) == {"name": "AAAAAA", "slot": None}


def test_a_port_is_the_beginning_of_the_index_of_its_onus():
    assert VSOL.space.by_port
    assert VSOL.space.encode(Position(0, 0, 3)) == (3,)


@pytest.mark.parametrize(("cause", "state"), [("los", "los"), ("dying_gasp", "dying_gasp"), ("code_2", "offline")])
def test_an_onu_that_is_off_says_why_and_has_no_power(cause, state):
    row = VSOL.finish({"state": "offline", "down_cause": cause, "rx_dbm": -14.61})

    assert (row["state"], row["rx_dbm"]) == (state, None)
