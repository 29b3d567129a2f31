"""The table of readings as it was before becomes a partition, and can be made one table again."""

from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from builders import SEC, T0
from django.db import connection
from history_rows import read, table_of

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu, OnuHistory
from facho.store import partitions
from facho.store.partitions import drop_oldest, make_ahead

DAY = timedelta(days=1)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def onu(migration):
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    return Onu.objects.create(olt=olt, index="1.7", onu=7, first_seen_at=T0, read_at=T0)


@pytest.fixture
def migration(transactional_db):
    """Give the migration on a database that has not seen it; leave one that has, and no rows."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no partitions")
    module = import_module("facho.apps.telemetry.migrations.0004_history_by_day")

    class Steps:
        def split(self):
            with connection.schema_editor() as editor:
                module.split(None, editor)

        def join(self):
            with connection.schema_editor() as editor:
                module.join(None, editor)

    steps = Steps()
    steps.join()
    yield steps
    if is_partitioned():
        steps.join()
    OnuHistory.objects.all().delete()
    steps.split()


def is_partitioned():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relkind FROM pg_class WHERE oid = 'onu_history'::regclass")
        (kind,) = cursor.fetchone()
    return kind == "p"


def test_readings_stay_where_they_are_and_new_ones_have_partitions(migration, onu):
    old = read(onu, T0, T0 + DAY)

    migration.split()

    assert list(OnuHistory.objects.order_by("at")) == old
    assert {table_of(row) for row in old} == {"onu_history_before"}
    tomorrow = partitions.partitions()[0].end
    (new,) = read(onu, tomorrow)
    assert table_of(new) == f"onu_history_{tomorrow:%Y%m%d}"
    assert new.pk == old[-1].pk + 1


def test_what_was_dated_into_the_future_finds_its_place(migration, onu):
    far = datetime(2999, 1, 1, tzinfo=UTC)
    rows = read(onu, T0, far)

    migration.split()

    assert [table_of(row) for row in rows] == ["onu_history_before", "onu_history_default"]


def test_the_old_table_goes_when_all_of_it_is_too_old(migration, onu):
    read(onu, T0, T0 + DAY)
    migration.split()
    (before, *rest) = partitions.partitions()

    assert drop_oldest(before.end - 1 * SEC) == 0
    assert drop_oldest(before.end) == 2
    assert partitions.partitions() == rest


def test_one_table_again_has_every_reading_and_all_it_had(migration, onu):
    with connection.cursor() as cursor:
        plain = connection.introspection.get_constraints(cursor, "onu_history")
    rows = read(onu, T0, datetime(2999, 1, 1, tzinfo=UTC))
    migration.split()

    migration.join()

    assert list(OnuHistory.objects.order_by("at")) == rows
    assert not is_partitioned()
    with connection.cursor() as cursor:
        assert connection.introspection.get_constraints(cursor, "onu_history") == plain
    assert read(onu, T0)[0].pk == rows[-1].pk + 1


def test_a_table_without_rows_leaves_nothing_behind(migration):
    migration.split()

    tables = [each.table for each in partitions.partitions()]
    assert len(tables) == 4
    assert "onu_history_before" not in tables
    assert make_ahead(partitions.partitions()[0].start) == []
