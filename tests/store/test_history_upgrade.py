"""The table of readings of earlier versions becomes chunks: nothing is lost, and nothing is stored twice."""

from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from builders import HOUR, MIN, SEC, T0
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.history import series, start_of_day
from facho.apps.telemetry.models import HistoryChunk, HistoryDay, Onu
from facho.engine.chunks import FIELDS
from facho.store import history_upgrade
from facho.store.history_upgrade import NotConverted, convert, is_pending
from history_rows import readings

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)
D0 = start_of_day(T0)
FAR = datetime(2999, 1, 1, 5, tzinfo=UTC)


@pytest.fixture
def old(transactional_db):
    """The old table as its migrations left it: on PostgreSQL in partitions."""
    state = MigrationLoader(connection).project_state(("telemetry", "0006_repair_replaced_onus"))
    model = state.apps.get_model("telemetry", "OnuHistory")
    with connection.schema_editor() as editor:
        editor.create_model(model)
    with connection.schema_editor() as editor:
        import_module("facho.apps.telemetry.migrations.0004_history_by_day").split(None, editor)
    yield model.objects
    if is_pending():
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE onu_history")


@pytest.fixture
def onus(old):
    made = []
    for name, count in (("OLT-CENTRAL-01", 3), ("OLT-NORTE-02", 140)):
        olt = Olt.objects.create(name=name, brand="huawei", host=f"127.0.0.{len(name)}", community="public")
        rows = [Onu(olt=olt, index=f"1.{n}", onu=n, first_seen_at=T0, own_read_at=T0) for n in range(count)]
        made += Onu.objects.bulk_create(rows)
    return made


@pytest.fixture
def rows(old, onus):
    """Readings of three days and of a clock that was wrong, as (ONU, time) with their values."""
    made = {}
    for number, onu in enumerate(onus):
        for hours in range(0, 72, 9):
            at = D0 + hours * HOUR
            made[onu.pk, at] = {"state": "online" if number % 7 else "los"}
            made[onu.pk, at + 5 * SEC] = {"in_octets": hours * 10**9 + number, "out_octets": None}
            made[onu.pk, at + 9 * SEC] = {"rx_dbm": -20.0 - number / 100 if number % 5 else None, "tx_dbm": 2.125}
    made[onus[0].pk, FAR] = {"temperature_c": 41.0}
    # A run that read nothing but missing values.
    made[onus[1].pk, D0 + 5 * MIN] = {}
    model = old.model
    old.bulk_create((model(onu_id=onu, at=at, **values) for (onu, at), values in made.items()), batch_size=200)
    return made


def present(rows, onu):
    return [
        {"at": at, **{name: value for name, value in values.items() if value is not None}}
        for (onu_id, at), values in sorted(rows.items(), key=lambda each: each[0][1])
        if onu_id == onu.pk
    ]


def test_every_reading_comes_out_as_it_was(rows, onus):
    steps = []

    summary = convert(lambda *step: steps.append(step))

    assert [readings(onu) for onu in onus] == [present(rows, onu) for onu in onus]
    assert not is_pending()
    assert steps[0] == (f"Converting the history: {D0:%Y-%m-%d}", 0, len(rows))
    assert steps[-1] == ("Comparing the values before and after", len(rows), len(rows))
    assert len(steps) == 5
    assert summary.startswith(f"The history is converted: {len(rows):,} readings")


def test_days_have_daily_values_afterwards(rows, onus):
    convert(print)

    days = series(onus[1].pk, ["in_octets", "tx_dbm"], D0, D0 + 2 * DAY, DAY)

    assert [day["in_octets"]["sum"] for day in days] == [18 * 10**9, 27 * 10**9, 18 * 10**9]
    assert days[0]["tx_dbm"] == {"min": 2.125, "mean": 2.125, "max": 2.125}


def test_two_readings_of_one_moment_are_both_kept(old, onus):
    for power in (-20.0, -21.0):
        old.create(onu_id=onus[0].pk, at=T0, rx_dbm=power)

    convert(print)

    assert [row["rx_dbm"] for row in readings(onus[0])] == [-20.0, -21.0]


def test_nothing_is_done_without_the_old_table():
    assert not is_pending()

    convert(pytest.fail)


class Killed(BaseException):
    """The process is gone."""


def test_it_goes_on_where_it_was_interrupted_at_any_statement(rows, onus):
    expected = [present(rows, onu) for onu in onus[:4]]
    interruptions, step = 0, 0

    def execute(run, *statement):
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return run(*statement)

    while is_pending():
        left = step = step + 1
        try:
            with connection.execute_wrapper(execute):
                convert(lambda *step: None)
        except Killed:
            interruptions += 1

    assert interruptions > 20
    assert [readings(onu) for onu in onus[:4]] == expected
    assert sum(len(readings(onu)) for onu in onus) == len(rows)


def test_counts_that_differ_stop_it_and_the_old_table_stays(rows, onus, monkeypatch):
    encode = history_upgrade.encode
    with monkeypatch.context() as patch:
        patch.setattr(history_upgrade, "encode", lambda kind, cells: encode(kind, [None, *cells[1:]]))
        with pytest.raises(NotConverted) as stopped:
            convert(print)

    assert "tx_dbm had 1,144 values and has" in str(stopped.value)
    assert "The table onu_history is unchanged" in str(stopped.value)
    assert is_pending()
    assert not HistoryChunk.objects.exists()
    assert not HistoryDay.objects.exists()

    convert(print)

    assert [readings(onu) for onu in onus[:4]] == [present(rows, onu) for onu in onus[:4]]


def test_every_field_of_a_reading_has_a_place():
    state = MigrationLoader(None, ignore_no_migrations=True).project_state(("telemetry", "0006_repair_replaced_onus"))
    fields = {field.name for field in state.apps.get_model("telemetry", "OnuHistory")._meta.fields}

    assert fields - set(FIELDS) == {"id", "onu", "at"}
