"""Error messages of a run: what failed together is told together."""

import pytest

from facho.engine.collect.messages import Stop, describe_gaps, describe_left, describe_stops

SILENCE, REFUSAL = "the OLT stopped answering", "no answer"
FIVE = ("serial", "name", "state", "rx_dbm", "tx_dbm")


@pytest.mark.parametrize(
    ("stops", "told"),
    [
        pytest.param([], [], id="nothing stopped"),
        pytest.param(
            [Stop("name", REFUSAL, "ONU 0/1/7", 7)], ["name: no answer after ONU 0/1/7, 7 rows kept"], id="one column"
        ),
        pytest.param([Stop("name", REFUSAL)], ["name: no answer before the first row"], id="a column without a row"),
        pytest.param(
            [Stop("serial", SILENCE, "ONU 1/6/3", 20), *(Stop(field, SILENCE) for field in FIVE[1:])],
            ["5 columns: the OLT stopped answering after ONU 1/6/3"],
            id="the run ended: all columns that were left",
        ),
        pytest.param(
            [Stop(field, SILENCE) for field in FIVE[:2]],
            ["serial, name: the OLT stopped answering before the first row"],
            id="the run ended before the first row",
        ),
        pytest.param(
            [Stop("name", SILENCE, f"ONU 0/{port}/3", 3) for port in (1, 2, 3)],
            ["name: the OLT stopped answering after ONU 0/3/3"],
            id="the run ended: a column in parts",
        ),
        pytest.param(
            [Stop(field, REFUSAL, "ONU 0/1/7", 7) for field in FIVE[:2]],
            ["serial, name: no answer after ONU 0/1/7"],
            id="the same row",
        ),
        pytest.param(
            [Stop("name", REFUSAL, f"ONU 0/{port}/7", 7) for port in (1, 2)],
            ["name: no answer after ONU 0/1/7, 7 rows kept", "name: no answer after ONU 0/2/7, 7 rows kept"],
            id="different rows, and the run went on",
        ),
    ],
)
def test_columns_that_stopped_together_are_one_sentence(stops, told):
    assert describe_stops(stops, SILENCE) == told


@pytest.mark.parametrize(
    ("gaps", "told"),
    [
        pytest.param(
            [(field, "ONU 0/1/7", REFUSAL) for field in FIVE],
            ["5 columns of ONU 0/1/7: no answer"],
            id="all columns of an ONU",
        ),
        pytest.param(
            [("name", f"ONU 0/1/{onu}", REFUSAL) for onu in (7, 9)],
            ["name of ONU 0/1/7, ONU 0/1/9: no answer"],
            id="a few ONUs are named",
        ),
        pytest.param(
            [(field, f"ONU 0/1/{onu}", REFUSAL) for onu in range(1, 1201) for field in FIVE[:2]],
            ["serial, name of 1,200 ONUs, the first ONU 0/1/1: no answer"],
            id="many ONUs are counted",
        ),
        pytest.param(
            [("name", "ONU 0/1/7", REFUSAL), ("name", "ONU 0/1/9", "no usable answer")],
            ["name of ONU 0/1/7: no answer", "name of ONU 0/1/9: no usable answer"],
            id="different reasons",
        ),
    ],
)
def test_rows_that_failed_alike_are_one_sentence(gaps, told):
    assert describe_gaps(gaps) == told


def test_columns_that_left_a_port_at_the_same_row_are_one_sentence():
    gaps = [(field, "ONU 0/1/7", REFUSAL) for field in FIVE[:3]]

    assert describe_left(gaps) == ["serial, name, state: no answer after ONU 0/1/7, the rest of the port was skipped"]
