"""How readings get into the database: in one stream where that is quicker, and failing as everything else fails."""

import pytest
from builders import MIN, T0
from django.db import DataError, IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu
from facho.engine.model import Reading
from facho.store import sql
from facho.store.inventory import Columns, Inventory
from facho.store.runs import write_columns
from facho.store.sql import merge_twins

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


def keep(olt, harvest, now=T0):
    fields = {name for reading in harvest for name in reading.values}
    write_columns(Inventory.load(olt.pk, fields), Columns.of(harvest), now)


@pytest.mark.usefixtures("postgres")
def test_on_postgresql_new_rows_are_copied(olt):
    told = tables_copied(lambda: keep(olt, readings(30, rx_dbm=-20.0)))

    assert told == ["onu_data", "onu_search", "onu_events"]
    assert Onu.objects.count() == 30


@pytest.mark.usefixtures("postgres")
@pytest.mark.parametrize(
    ("count", "is_one_statement"),
    [
        pytest.param(19, False, id="a few: a statement each"),
        pytest.param(20, True, id="many: one statement over arrays"),
    ],
)
def test_on_postgresql_many_rows_are_updated_by_one_statement(olt, count, is_one_statement):
    keep(olt, readings(count, name="client", rx_dbm=-20.0))

    with CaptureQueriesContext(connection) as queries:
        keep(olt, readings(count, name="client", rx_dbm=-21.0), T0 + MIN)

    assert any("unnest" in each["sql"] for each in queries) is is_one_statement
    assert set(Onu.objects.values_list("name", "rx_dbm")) == {("client", -21.0)}


def test_nothing_to_write_costs_nothing():
    with CaptureQueriesContext(connection) as queries:
        sql.write(Onu, ("index",), [])

    assert len(queries) == 0


@pytest.mark.parametrize(
    ("row", "error"),
    [
        pytest.param((None, "online"), IntegrityError, id="a row that breaks a rule"),
        pytest.param(("1.7", "x" * 13), DataError, id="a value that does not fit"),
    ],
)
@pytest.mark.usefixtures("postgres")
def test_what_goes_wrong_in_a_stream_is_an_error_of_django(olt, row, error):
    columns = ("index", "state", "olt_id", "extra", "misses", "moved_from", "first_seen_at", "own_read_at")

    with pytest.raises(error), transaction.atomic():
        sql.write(Onu, columns, [(*row, olt.pk, "{}", 0, "", T0, T0)])

    assert Onu.objects.count() == 0


def test_readings_that_have_no_twins_are_not_touched():
    harvest = readings(3, rx_dbm=-20.0)

    assert merge_twins(harvest) is harvest
