"""Readings in columns."""

from facho.engine.batch import UNREAD, Batch, BatchLayout
from facho.engine.model import Collected, Completeness, Reading

READINGS = (
    Reading("1.7", 0, 1, 7, {"state": "online", "rx_dbm": -21.5}),
    Reading("1.8", 0, 1, 8, {"state": "offline", "rx_dbm": None}),
    Reading("2.1", 0, 2, 1, {"state": "online"}),
)


def test_readings_become_columns_with_a_mark_where_nothing_was_read():
    batch = Batch.of(READINGS)

    assert batch.layout == BatchLayout(("1.7", "1.8", "2.1"), (0, 0, 0), (1, 1, 2), (7, 8, 1))
    assert batch.columns == {"state": ["online", "offline", "online"], "rx_dbm": [-21.5, None, UNREAD]}


def test_columns_become_the_same_readings():
    batch = Batch.of(READINGS)

    assert tuple(batch) == READINGS
    assert batch == READINGS
    assert batch == READINGS
    assert (len(batch), batch[1], batch[1:]) == (3, READINGS[1], READINGS[1:])


def test_onus_without_values_are_readings_too():
    bare = (Reading("1.7", 0, 1, 7, {}), Reading("1.8", None, None, None, {}))

    assert Batch.of(bare) == bare


def test_a_batch_without_onus_is_empty():
    assert not Batch.of(())
    assert Batch.of(()) == ()


def test_a_column_has_a_value_if_any_onu_has_one():
    batch = Batch.of([Reading("1.7", 0, 1, 7, {"rx_dbm": None}), Reading("1.8", 0, 1, 8, {})])

    assert not batch.has_value("rx_dbm")
    assert not batch.has_value("tx_dbm")
    assert Batch.of(READINGS).has_value("rx_dbm")


def test_equal_columns_are_shared_with_the_batch_before():
    first = Batch.of(READINGS)
    changed = (*READINGS[:2], Reading("2.1", 0, 2, 1, {"state": "los"}))

    second = Batch.of(changed).sharing(first)

    assert second == changed
    assert second.layout is first.layout
    assert second.columns["rx_dbm"] is first.columns["rx_dbm"]
    assert second.columns["state"] == ["online", "offline", "los"]


def test_nothing_is_shared_with_a_batch_of_other_onus():
    first, second = Batch.of(READINGS), Batch.of(READINGS[:2])

    assert second.sharing(first) is second


def test_a_result_has_a_batch_however_it_was_made():
    batch = Batch.of(READINGS)

    assert Collected(Completeness.COMPLETE, READINGS).batch == batch
    assert Collected(Completeness.COMPLETE, batch).batch is batch
