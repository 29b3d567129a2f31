"""How readings get into the database: in one stream where that is quicker, and failing as everything else fails."""

import pytest
from builders import MIN, T0
from django.db import DataError, IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu, OnuHistory
from facho.engine.model import Reading
from facho.store import bulk
from facho.store.rows import Rows, merge_twins
from facho.store.writer import write_readings

pytestmark = pytest.mark.django_db


@pytest.fixture
def olt(db):
    return Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")


@pytest.fixture
def postgres(db):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no COPY")


def readings(count, **values):
    return [Reading(f"1.{n}", 0, 1, n, values) for n in range(count)]


def tables_copied(work):
    """Return the tables that COPY wrote into, in order."""
    with CaptureQueriesContext(connection) as queries:
        work()
    return [each["sql"].split('"')[1] for each in queries if each["sql"].startswith("COPY")]


@pytest.mark.usefixtures("postgres")
@pytest.mark.parametrize(
    ("count", "copied"),
    [
        pytest.param(19, ["onu_history"], id="a few: only the history, which needs no temporary table"),
        pytest.param(20, ["facho_incoming", "onu_history"], id="many: the state too"),
    ],
)
def test_on_postgresql_many_rows_are_copied(olt, count, copied):
    told = tables_copied(lambda: write_readings(olt.pk, readings(count, rx_dbm=-20.0), T0))

    assert told == copied
    assert Onu.objects.count() == OnuHistory.objects.count() == count


@pytest.mark.usefixtures("postgres")
def test_rows_with_different_columns_are_copied_one_kind_after_the_other(olt):
    harvest = [*readings(30, name="client"), *(Reading(f"2.{n}", 0, 2, n, {"mac": "aa"}) for n in range(30))]

    told = tables_copied(lambda: write_readings(olt.pk, harvest, T0))

    assert told == ["facho_incoming", "facho_incoming"]
    assert Onu.objects.filter(name="client", mac=None).count() == Onu.objects.filter(name=None, mac="aa").count() == 30


@pytest.mark.usefixtures("postgres")
@pytest.mark.django_db(transaction=True)
def test_nothing_temporary_is_left_behind(olt):
    for number in range(2):
        with transaction.atomic():
            write_readings(olt.pk, readings(30, rx_dbm=-20.0), T0 + number * MIN)

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relname = %s", [bulk.INCOMING])
        assert cursor.fetchone() == (0,)


def test_rows_are_written_in_the_order_of_their_columns_whatever_that_is(olt):
    columns = ("misses", "index", "moved_from", "extra", "state", "olt_id", "first_seen_at", "read_at")
    values = [(n, f"1.{n}", "", "{}", "online", olt.pk, *[bulk_time()] * 2) for n in range(30)]

    bulk.write(Rows(Onu._meta.db_table, columns, values, ("olt_id", "index"), ("misses",)))

    assert set(Onu.objects.values_list("index", "misses")) == {(f"1.{n}", n) for n in range(30)}


def bulk_time():
    return connection.ops.adapt_datetimefield_value(T0)


def test_nothing_to_write_costs_nothing():
    with CaptureQueriesContext(connection) as queries:
        bulk.write(Rows("onu_data", ("index",), []))

    assert len(queries) == 0


@pytest.mark.parametrize(
    ("row", "error"),
    [
        pytest.param((None, "online"), IntegrityError, id="a row that breaks a rule"),
        pytest.param((1, "x" * 13), DataError, id="a value that does not fit"),
    ],
)
@pytest.mark.usefixtures("postgres")
def test_what_goes_wrong_in_a_stream_is_an_error_of_django(row, error):
    with pytest.raises(error), transaction.atomic():
        bulk.write(Rows("onu_history", ("onu_id", "state", "at"), [(*row, T0)]))

    assert OnuHistory.objects.count() == 0


def test_readings_that_have_no_twins_are_not_touched():
    harvest = readings(3, rx_dbm=-20.0)

    assert merge_twins(harvest) is harvest
