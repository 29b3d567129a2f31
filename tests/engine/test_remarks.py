"""Counting runs in which a column had no value."""

import pytest

from facho.engine.remarks import blank_columns, count_blank_runs


@pytest.mark.parametrize(
    ("before", "had_values", "after"),
    [
        pytest.param({}, {"rx_dbm": True}, {}, id="a value: nothing to count"),
        pytest.param({}, {"rx_dbm": False}, {"rx_dbm": 1}, id="the first run without"),
        pytest.param({"rx_dbm": 11}, {"rx_dbm": False}, {"rx_dbm": 12}, id="one more"),
        pytest.param({"rx_dbm": 11}, {"rx_dbm": True}, {}, id="the first value clears it"),
        pytest.param({"rx_dbm": 11}, {"rx_dbm": None}, {"rx_dbm": 11}, id="a run that cannot tell"),
        pytest.param({"rx_dbm": 11}, {}, {"rx_dbm": 11}, id="a run that failed"),
        pytest.param({"rx_dbm": 11}, {"name": True}, {}, id="the job no longer reads it"),
    ],
)
def test_runs_without_a_value_are_counted_by_column(before, had_values, after):
    assert count_blank_runs(before, had_values) == after


def test_three_runs_are_worth_a_remark():
    assert blank_columns({"rx_dbm": 3, "name": 2, "vlan": 12}) == {"rx_dbm": 3, "vlan": 12}
