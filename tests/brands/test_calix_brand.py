"""Calix: power is in milliwatts, and the column called dying gasp is not read."""

import pytest

from facho.brands import brand
from facho.engine.brand import Unplaced
from facho.engine.oid import text

CALIX = brand("calix_axos")


@pytest.mark.parametrize("field", ["rx_dbm", "tx_dbm", "olt_rx_dbm"])
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(301, -15.21, id="R: strong"),
        pytest.param(96, -20.18, id="R: fair"),
        pytest.param(39, -24.09, id="R: weak"),
        pytest.param(0, None, id="no light"),
        pytest.param(-1, None, id="less than no light"),
        pytest.param(2147483647, None, id="the largest Integer32"),
    ],
)
def test_power_is_made_of_milliwatts(field, raw, expected):
    assert CALIX.columns[field].decode(raw) == expected


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("state", 0, "unknown"),
        ("state", 1, "online"),
        ("state", 2, "degraded"),
        ("state", 3, "unknown"),
        ("admin_state", 1, "enabled"),
        ("admin_state", 2, "disabled"),
        ("name", b"10021", "10021"),
    ],
)
def test_a_column_turns_a_raw_value_into_ours(field, raw, expected):
    assert CALIX.columns[field].decode(raw) == expected


def test_an_ont_that_is_degraded_still_has_power():
    assert CALIX.finish({"state": "degraded", "rx_dbm": -29.0})["rx_dbm"] == -29.0


def test_the_column_that_is_always_dying_gasp_is_not_read():
    assert "1.3.6.1.4.1.6321.1.2.4.2.6.1.1.5" not in {text(column.oid) for column in CALIX.columns.values()}


def test_the_index_says_nothing_of_the_port():
    assert CALIX.space.decode((7,)) == Unplaced((7,))
