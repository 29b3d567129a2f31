"""The history on PostgreSQL is kept by days: made ahead, dropped whole, and no reading is ever without a place."""

import logging
from datetime import UTC, datetime, timedelta, timezone

import pytest
from builders import HOUR, SEC, T0
from django.db import IntegrityError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from history_rows import Elsewhere, read, table_of

from contracts.worlds import Inline, done
from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu, OnuHistory
from facho.engine.events import Event
from facho.engine.model import Reading
from facho.store import partitions
from facho.store.partitions import drop_oldest, make, make_ahead, start_of_day
from facho.store.retention import Sweep, rules
from facho.store.writer import write_readings

DAY = timedelta(days=1)
TODAY = T0.date()
MIDNIGHT = start_of_day(T0)

pytestmark = pytest.mark.django_db

on_postgres = pytest.mark.usefixtures("postgres")


@pytest.fixture
def postgres(db):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no partitions")


@pytest.fixture
def olt(db):
    return Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")


@pytest.fixture
def onu(olt):
    return Onu.objects.create(olt=olt, index="1.7", onu=7, first_seen_at=T0, read_at=T0)


def made_days():
    """Return the days of the tests that have a partition; those of the real today are the migration's."""
    return [each.start.date() for each in partitions.partitions() if each.end < T0 + 100 * DAY]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param(MIDNIGHT, MIDNIGHT, id="midnight is the day's own"),
        pytest.param(MIDNIGHT - 1 * SEC, MIDNIGHT - DAY, id="a second before it is not"),
        pytest.param(
            datetime(2026, 3, 1, 20, 0, tzinfo=timezone(-5 * HOUR)),
            datetime(2026, 3, 2, tzinfo=UTC),
            id="eight in the evening in Colombia is tomorrow",
        ),
    ],
)
def test_a_day_is_one_of_utc(at, expected):
    assert start_of_day(at) == expected


def test_where_there_can_be_no_partitions_none_are_made(monkeypatch):
    monkeypatch.setattr(connection, "vendor", "sqlite")

    with CaptureQueriesContext(connection) as queries:
        made = make_ahead(T0)

    assert (made, len(queries)) == ([], 0)


@on_postgres
class TestMaking:
    def test_today_and_three_days_to_come_have_theirs_and_are_made_once(self):
        first = make_ahead(T0)
        again = make_ahead(T0 + 1 * HOUR)
        tomorrow = make_ahead(T0 + DAY)

        assert first == [TODAY, TODAY + DAY, TODAY + 2 * DAY, TODAY + 3 * DAY]
        assert (again, tomorrow) == ([], [TODAY + 4 * DAY])
        assert made_days() == [*first, *tomorrow]

    def test_the_migration_has_made_those_of_the_day_of_the_installation(self):
        there = [each for each in partitions.partitions() if each.start > T0]

        assert len(there) >= 4
        assert [each.table for each in there] == [f"onu_history_{each.start:%Y%m%d}" for each in there]
        assert make(each.start.date() for each in there) == []

    def test_a_reading_is_in_the_partition_of_its_day(self, onu):
        make_ahead(T0)

        rows = read(onu, MIDNIGHT, T0, MIDNIGHT + DAY - timedelta(microseconds=1), MIDNIGHT + DAY)

        today = f"onu_history_{TODAY:%Y%m%d}"
        assert [table_of(row) for row in rows] == [today, today, today, f"onu_history_{TODAY + DAY:%Y%m%d}"]

    def test_a_harvest_is_in_the_partition_of_its_day(self, olt):
        make_ahead(T0)
        readings = [Reading(f"1.{n}", 0, 1, n, {"state": "online", "rx_dbm": -20.0}) for n in range(50)]

        write_readings(olt.pk, readings, T0)

        rows = OnuHistory.objects.filter(onu__olt=olt)
        assert {table_of(row) for row in rows} == {f"onu_history_{TODAY:%Y%m%d}"}
        assert len({row.pk for row in rows}) == 50

    @pytest.mark.parametrize("age", [-400 * DAY, 400 * DAY], ids=["long past", "of a clock that is wrong"])
    def test_a_reading_whose_day_has_none_is_kept_all_the_same(self, onu, age):
        make_ahead(T0)

        (row,) = read(onu, T0 + age)

        assert OnuHistory.objects.get(at=T0 + age) == row
        assert table_of(row) == "onu_history_default"

    def test_a_day_that_began_without_ends_without_and_the_others_have_theirs(self, onu):
        (row,) = read(onu, T0)

        made = make_ahead(T0)

        assert made == [TODAY + DAY, TODAY + 2 * DAY, TODAY + 3 * DAY]
        assert table_of(row) == "onu_history_default"
        assert table_of(read(onu, T0 + 1 * HOUR)[0]) == "onu_history_default"

    def test_a_day_that_began_without_keeps_nobody_waiting(self, onu):
        read(onu, T0)

        with CaptureQueriesContext(connection) as queries:
            make([TODAY])

        assert [each["sql"] for each in queries if each["sql"].startswith(("LOCK", "CREATE"))] == []

    def test_a_reading_that_comes_while_its_partition_is_made_is_no_failure(self, onu, monkeypatch):
        read(onu, T0)
        monkeypatch.setattr(partitions, "_has_strays", lambda day: False)

        assert make([TODAY, TODAY + DAY]) == [TODAY + DAY]
        assert OnuHistory.objects.count() == 1

    def test_a_partition_that_another_process_made_meanwhile_is_no_failure(self, monkeypatch):
        make([TODAY])
        monkeypatch.setattr(partitions, "partitions", list)

        assert make([TODAY, TODAY + DAY]) == [TODAY + DAY]

    def test_every_partition_has_the_indexes_that_pages_need(self):
        make_ahead(T0)
        tables = ["onu_history_default", *(each.table for each in partitions.partitions())]

        with connection.cursor() as cursor:
            found = {
                table: {
                    tuple(each["columns"])
                    for each in connection.introspection.get_constraints(cursor, table).values()
                    if each["index"] or each["primary_key"]
                }
                for table in tables
            }

        assert len(tables) >= 8
        for columns in found.values():
            assert {("onu_id", "at"), ("at",), ("id", "at")} <= columns

    def test_a_chart_reads_only_the_days_that_it_shows(self, onu):
        make_ahead(T0)
        shown = OnuHistory.objects.filter(onu=onu, at__gte=T0, at__lte=T0 + DAY).order_by("at")

        plan = shown.explain()

        assert f"{TODAY:%Y%m%d}" in plan
        assert f"{TODAY + 2 * DAY:%Y%m%d}" not in plan


@on_postgres
class TestRowsOfAllPartitions:
    def test_an_onu_that_goes_takes_its_readings_of_every_day_along(self, olt, onu):
        other = Onu.objects.create(olt=olt, index="1.8", onu=8, first_seen_at=T0, read_at=T0)
        make_ahead(T0)
        read(onu, T0, T0 + DAY, T0 - 300 * DAY)
        (kept,) = read(other, T0)

        onu.delete()
        connection.check_constraints()

        assert OnuHistory.objects.get() == kept

    def test_an_olt_that_goes_takes_them_too(self, olt, onu):
        make_ahead(T0)
        read(onu, T0, T0 + DAY)

        olt.delete()
        connection.check_constraints()

        assert OnuHistory.objects.count() == Onu.objects.count() == 0

    @pytest.mark.parametrize("at", [T0, T0 - 300 * DAY], ids=["in a partition", "in the default one"])
    def test_the_database_refuses_a_reading_of_an_onu_that_is_gone(self, onu, at):
        make_ahead(T0)
        gone = onu.pk
        onu.delete()
        OnuHistory.objects.create(onu_id=gone, at=at)

        with pytest.raises(IntegrityError):
            connection.check_constraints()

    def test_the_database_refuses_that_an_onu_goes_behind_the_back_of_its_readings(self, onu):
        make_ahead(T0)
        read(onu, T0)
        Onu.objects.filter(pk=onu.pk)._raw_delete("default")

        with pytest.raises(IntegrityError):
            connection.check_constraints()

    def test_a_reading_is_found_by_its_id_alone(self, onu):
        make_ahead(T0)
        rows = read(onu, T0, T0 + DAY)

        assert [OnuHistory.objects.get(pk=row.pk).at for row in rows] == [T0, T0 + DAY]


@on_postgres
class TestDropping:
    def test_only_a_day_that_is_over_is_dropped_and_its_readings_are_counted(self, onu):
        make_ahead(T0)
        read(onu, T0, T0 + 1 * HOUR, T0 + DAY)

        at_noon = drop_oldest(MIDNIGHT + 12 * HOUR)
        at_midnight = drop_oldest(MIDNIGHT + DAY)

        assert (at_noon, at_midnight) == (0, 2)
        assert made_days() == [TODAY + DAY, TODAY + 2 * DAY, TODAY + 3 * DAY]
        assert OnuHistory.objects.get().at == T0 + DAY

    def test_the_oldest_goes_first_and_empty_ones_go_with_it(self, onu):
        make_ahead(T0)
        read(onu, T0 + DAY, T0 + 2 * DAY)

        counts = [drop_oldest(MIDNIGHT + 4 * DAY) for _ in range(3)]

        assert counts == [1, 1, 0]
        assert made_days() == []

    def test_readings_in_the_default_partition_stay(self, onu):
        (stray,) = read(onu, T0 - 10 * DAY)
        make_ahead(T0)

        drop_oldest(MIDNIGHT + 4 * DAY)

        assert OnuHistory.objects.get() == stray

    def test_the_readings_of_a_large_one_are_estimated(self, onu, monkeypatch):
        make_ahead(T0)
        read(onu, *(T0 + n * SEC for n in range(30)))
        with connection.cursor() as cursor:
            cursor.execute("UPDATE pg_class SET reltuples = 1e6 WHERE relname = %s", [f"onu_history_{TODAY:%Y%m%d}"])
        monkeypatch.setattr(partitions, "LARGE", 0)

        assert drop_oldest(MIDNIGHT + DAY) == 1_000_000


class Still:
    """A clock that stands still."""

    def monotonic(self):
        return 0.0

    async def sleep(self, seconds):
        pass


def sweep(days=90):
    history = [rule for rule in rules(logs=7, executions=30, history=days) if rule.model is OnuHistory]
    done(Sweep(thread=Inline(), clock=Still(), rules=history).run(T0))


@on_postgres
class TestRetention:
    LIMIT = TODAY - 90 * DAY

    def test_days_that_are_too_old_are_dropped_whole_and_how_much_that_was_is_told_once(self, onu, caplog):
        caplog.set_level(logging.INFO)
        make([self.LIMIT - 2 * DAY, self.LIMIT - DAY, self.LIMIT, TODAY])
        read(onu, *(T0 - age for age in (92 * DAY, 91 * DAY, 91 * DAY + HOUR, 90 * DAY + HOUR, 90 * DAY, HOUR)))

        sweep()
        sweep()

        assert made_days() == [self.LIMIT, TODAY]
        # By whole days: what was read on the last of them before this time stays until that day is over.
        ages = [T0 - at for at in OnuHistory.objects.values_list("at", flat=True)]
        assert sorted(ages) == [HOUR, 90 * DAY, 90 * DAY + HOUR]
        told = [record.details for record in caplog.records if getattr(record, "event", None) is Event.ROWS_EXPIRED]
        assert told == [{"rows": 3, "table": "onu_history", "days": 90}]

    def test_readings_without_a_partition_go_by_the_same_days(self, onu):
        make([self.LIMIT - DAY])
        read(onu, *(T0 - age for age in (95 * DAY, 92 * DAY, 91 * DAY, 90 * DAY + HOUR, 90 * DAY)))

        sweep()

        ages = [T0 - at for at in OnuHistory.objects.values_list("at", flat=True)]
        assert sorted(ages) == [90 * DAY, 90 * DAY + HOUR]

    def test_a_partition_that_is_in_use_is_left_for_later_and_not_emptied_row_by_row(self, onu, monkeypatch):
        make([self.LIMIT - DAY])
        read(onu, T0 - 91 * DAY)

        with monkeypatch.context() as patch:
            patch.setattr(partitions, "_drop", lambda partition: None)
            sweep()
        left = OnuHistory.objects.count()
        sweep()

        assert (left, OnuHistory.objects.count()) == (1, 0)

    def test_strays_are_not_looked_for_in_the_partition_of_every_day(self, onu):
        make_ahead(T0)
        read(onu, T0 - 91 * DAY, T0 - 92 * DAY, T0)
        with CaptureQueriesContext(connection) as queries:
            sweep()
        (deletion,) = [each["sql"] for each in queries if each["sql"].startswith("DELETE")]

        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {deletion}")
            plan = "\n".join(row[0] for row in cursor.fetchall())

        assert OnuHistory.objects.get().at == T0
        assert "onu_history_default" in plan
        assert f"onu_history_{TODAY:%Y%m%d}" not in plan


@pytest.fixture
def clean_up(transactional_db):
    yield
    if partitions.are_used():
        for each in partitions.partitions():
            if each.end < T0 + 100 * DAY:
                partitions._drop(each)


@on_postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_up")
class TestWhileOthersUseIt:
    READING = "SELECT count(*) FROM onu_history"
    WRITING = "UPDATE onu_data SET misses = 0"

    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch):
        monkeypatch.setattr(partitions, "LOCK_TIMEOUT", 20)

    def test_a_partition_that_is_read_is_dropped_at_the_next_try(self, onu):
        make_ahead(T0)
        read(onu, T0)

        with Elsewhere(self.READING):
            in_vain = drop_oldest(MIDNIGHT + DAY)
        dropped = drop_oldest(MIDNIGHT + DAY)

        assert (in_vain, dropped) == (None, 1)

    def test_days_to_come_can_wait_while_tomorrow_has_its_own(self, onu):
        make([TODAY, TODAY + DAY])

        with Elsewhere(self.WRITING):
            in_vain = make_ahead(T0)
        made = make_ahead(T0)

        assert (in_vain, made) == ([], [TODAY + 2 * DAY, TODAY + 3 * DAY])

    def test_it_is_heard_of_where_tomorrow_has_none(self, onu):
        make([TODAY])

        with Elsewhere(self.WRITING), pytest.raises(OperationalError, match="lock timeout"):
            make_ahead(T0)

    def test_one_is_made_while_another_is_read(self, onu):
        make([TODAY])
        read(onu, T0)

        with Elsewhere(f"TABLE onu_history_{TODAY:%Y%m%d}"):
            made = make([TODAY + DAY])

        assert made == [TODAY + DAY]
