"""C-Data: three ways to number ONUs, on devices that say the same of themselves."""

from datetime import UTC, datetime

import pytest

from facho.brands import brand
from facho.engine.brand import Position

GPON, EPON, FD11 = brand("cdata_gpon"), brand("cdata_epon"), brand("cdata_fd11")


@pytest.mark.parametrize(
    ("profile", "index", "position"),
    [
        pytest.param(GPON, (4718593,), Position(0, 0, 1, 1), id="C2: gpon 0/0/1, ONU 1"),
        pytest.param(GPON, (4722689,), Position(0, 0, 2, 1), id="C2: gpon 0/0/2, ONU 1"),
        pytest.param(GPON, (16779265,), Position(1, 0, 8, 1), id="C1: GPON that is numbered as EPON"),
        pytest.param(EPON, (16780545,), Position(1, 0, 13, 1), id="M: the first port behind 12 uplinks"),
        pytest.param(FD11, (1, 3, 7), Position(0, 0, 3, 7), id="C2: 1.pon.onu"),
    ],
)
def test_an_onu_is_read_from_its_index(profile, index, position):
    assert profile.space.decode(index) == position
    assert profile.space.encode(position) == index


@pytest.mark.parametrize(("profile", "index"), [(GPON, 4718593), (GPON, 16779265), (EPON, 16780545)])
def test_optics_have_two_zeros_behind_the_same_index(profile, index):
    optics = profile.columns["rx_dbm"].space

    assert optics.decode((index, 0, 0)) == profile.space.decode((index,))
    assert optics.decode((index,)) is None


@pytest.mark.parametrize(
    ("profile", "field", "raw", "expected"),
    [
        (GPON, "serial", bytes.fromhex("48575443a6652b0b"), "HWTCA6652B0B"),
        (GPON, "state", 1, "online"),
        (GPON, "rx_dbm", -2181, -21.81),
        (GPON, "temperature_c", 4386, 43.86),
        (GPON, "down_cause", b"dying-gasp", "dying_gasp"),
        (GPON, "down_cause", b"LOS", "los"),
        (GPON, "down_cause", b"--", None),
        (GPON, "last_down", b"2024-12-23 10:34:15", datetime(2024, 12, 23, 10, 34, 15, tzinfo=UTC)),
        (GPON, "registered_s", 1585704, 1585704),
        (EPON, "mac", bytes.fromhex("a24f0218e580"), "a2:4f:02:18:e5:80"),
        (EPON, "state", 3, "unknown"),
        (EPON, "rx_dbm", -1697, -16.97),
        (FD11, "state", 1, "online"),
        (FD11, "state", 2, "unknown"),
        (FD11, "rx_dbm", 96, -20.18),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(profile, field, raw, expected):
    assert profile.columns[field].decode(raw) == expected


@pytest.mark.parametrize("profile", [GPON, EPON], ids=["gpon", "epon"])
@pytest.mark.parametrize(("cause", "state"), [("losi", "los"), ("dying_gasp", "dying_gasp"), ("reboot", "offline")])
def test_an_onu_that_is_down_says_why(profile, cause, state):
    assert profile.finish({"state": "offline", "down_cause": cause})["state"] == state


def test_an_onu_of_an_old_device_is_in_no_slot():
    assert FD11.finish({"state": "online"}) == {"state": "online", "slot": None}
