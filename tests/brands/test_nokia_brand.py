"""Nokia: the ifIndex of an ONT says where it is, and that it is one."""

import pytest

from facho.brands import brand
from facho.engine.brand import Position

NOKIA = brand("nokia_isam")


@pytest.mark.parametrize(
    ("index", "position"),
    [
        pytest.param(96468992, Position(0, 1, 1, 1), id="R: first ONT"),
        pytest.param(96714752, Position(0, 1, 4, 97), id="R: ONT 97 alone on its port"),
        pytest.param(96733184, Position(0, 1, 5, 5), id="R: another port"),
        pytest.param(331481088, Position(0, 8, 3, 1), id="C1: another card"),
        pytest.param(62914560, Position(0, 0, 1, 1), id="C1: a box with one card"),
    ],
)
def test_an_ont_is_read_from_its_if_index(index, position):
    assert NOKIA.space.decode((index,)) == position
    assert NOKIA.space.encode(position) == (index,)


def test_a_port_is_no_ont():
    port = (1 + 1) << 25 | 0xD << 21 | 0x2000

    assert NOKIA.space.decode((port,)) is None


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("serial", bytes.fromhex("414c434cf8a1b2c3"), "ALCLF8A1B2C3"),
        ("rx_dbm", -10450, -20.9),
        ("rx_dbm", 32768, None),
        ("tx_dbm", 1150, 2.3),
        ("tx_dbm", 32768, None),
        ("olt_rx_dbm", -231, -23.1),
        ("olt_rx_dbm", 65534, None),
        ("distance_m", 37, 3700),
        ("distance_m", 65534, None),
        ("temperature_c", 11648, 45.5),
        ("temperature_c", 32768, None),
        ("state", 1, "online"),
        ("state", 2, "offline"),
        ("admin_state", 2, "disabled"),
        ("uptime_s", 123400, 1234),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(field, raw, expected):
    assert NOKIA.columns[field].decode(raw) == expected


def test_an_ont_that_somebody_switched_off_is_disabled_and_has_no_power():
    row = {"state": "offline", "admin_state": "disabled", "rx_dbm": -20.9}

    assert NOKIA.finish(row) == {"state": "disabled", "admin_state": "disabled", "rx_dbm": None}


def test_a_slow_agent_is_given_its_time():
    assert (NOKIA.manners.min_timeout, NOKIA.manners.timeout, NOKIA.manners.optical_timeout) == (5.0, 10.0, 30.0)
