"What a run covered, as it is kept: counts by column, and the first failed ports."

from facho.engine.model import Completeness, Coverage
from facho.store import runs

COMPLETE, PARTIAL, EMPTY = Completeness.COMPLETE, Completeness.PARTIAL, Completeness.EMPTY


def test_each_column_counts_its_ports_and_rows():
    kept = runs.summary(
        [
            Coverage("state", 0, 1, COMPLETE, 32),
            Coverage("state", 0, 2, COMPLETE, 8),
            Coverage("state", 0, 3, EMPTY),
            Coverage("rx_dbm", 0, 1, PARTIAL, 12, "no answer in 20.0 s"),
            Coverage("name", None, None, COMPLETE, 40),
        ]
    )

    assert kept["columns"] == {
        "state": {"complete": 2, "partial": 0, "empty": 1, "rows": 40},
        "rx_dbm": {"complete": 0, "partial": 1, "empty": 0, "rows": 12},
        "name": {"complete": 1, "partial": 0, "empty": 0, "rows": 40},
    }
    assert kept["failed"] == [{"field": "rx_dbm", "slot": 0, "port": 1, "reason": "no answer in 20.0 s"}]
    assert kept["more"] == 0


def test_a_run_in_which_all_failed_is_kept_in_part():
    kept = runs.summary([Coverage("rx_dbm", 0, port, PARTIAL, 0, "x\0" * 999) for port in range(150)])

    assert (len(kept["failed"]), kept["more"]) == (100, 50)
    assert kept["columns"]["rx_dbm"]["partial"] == 150
    assert {each["reason"] for each in kept["failed"]} == {"x" * 300}


def test_a_run_that_covers_nothing_has_nothing_to_keep():
    assert runs.summary(()) == {}


def test_of_thousands_of_onus_that_failed_the_first_are_named():
    assert runs.first(f"ONU 0/1/{number}\0" for number in range(5000)) == [f"ONU 0/1/{n}" for n in range(100)]
