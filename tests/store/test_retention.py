"""What is too old goes, and nothing else: in small batches, found by an index, with room for others in between."""

import asyncio
import logging
import re
from functools import partial

import pytest
from builders import HOUR, T0
from django.db import IntegrityError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from retention_rows import DAY, RULES, Watch, make_history, sweep

from contracts.worlds import Inline, done
from facho.alerts.models import Alert, Delivery
from facho.apps.changes.models import Change
from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, Forecast, QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution, ExecutionAttempt, PollerStats
from facho.apps.telemetry.models import HistoryChunk, HistoryDay, HistoryMonth, HistoryRun, Onu, OnuEvent
from facho.engine.events import Event
from facho.store import retention
from facho.store.retention import Sweep, next_size

pytestmark = pytest.mark.django_db


@pytest.fixture
def olt(db):
    return Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")


@pytest.fixture
def onu(olt):
    return Onu.objects.create(olt=olt, index="1.7", onu=7, first_seen_at=T0, own_read_at=T0)


def make_execution(olt, age, status="SUCCESS", master=None):
    started = None if status == "PENDING" else T0 - age
    row = Execution.objects.create(
        olt=olt, node_name="Optical power", slot=T0 - age, status=status, master_execution=master, started_at=started
    )
    ExecutionAttempt.objects.create(execution=row, number=1, status=status, started_at=T0 - age)
    return row


def hours(model, olt, **more):
    """Make a row of an hour that is just too old, and one of an hour that is not."""
    made = {}
    for name, age in (("old", 90 * DAY + HOUR), ("young", 89 * DAY)):
        at = T0 - age
        made[name] = model.objects.create(olt=olt, period_start=at, period_end=at + HOUR, **more)
    # Django writes the time of creation by itself.
    model.objects.filter(pk=made["old"].pk).update(created_at=T0 - 90 * DAY - HOUR)
    model.objects.filter(pk=made["young"].pk).update(created_at=T0 - 89 * DAY)
    return made["young"]


@pytest.mark.parametrize(
    ("size", "held", "expected"),
    [
        pytest.param(100, 0.04, 25, id="too long: as many as would have been short"),
        pytest.param(100, 0.02, 100, id="just not too long: as it is"),
        pytest.param(100, 0.01, 100, id="just not short: as it is"),
        pytest.param(100, 0.009, 125, id="short: a quarter more"),
        pytest.param(20, 3.0, 20, id="never fewer than twenty"),
        pytest.param(50, 3.0, 20, id="down to twenty"),
        pytest.param(200, 0.001, 200, id="never more than two hundred"),
        pytest.param(180, 0.001, 200, id="up to two hundred"),
    ],
)
def test_a_batch_is_sized_by_how_long_the_last_one_held_the_lock(size, held, expected):
    assert next_size(size, held) == expected


@pytest.mark.parametrize("cost", [1e-6, 1e-5, 8e-5, 2e-4, 5e-4])
def test_whatever_a_row_costs_the_batches_settle_below_the_limit(cost):
    size, longest = retention.FIRST, []
    for _ in range(60):
        longest.append(size * cost)
        size = next_size(size, size * cost)

    # With room for a machine that is busy with other things.
    assert max(longest) <= 0.05
    assert size == retention.MOST or max(longest[-5:]) >= retention.SHORT


def test_log_entries_go_after_their_days(olt):
    for age in (8 * DAY, 7 * DAY, 6 * DAY):
        CoordinatorLog.objects.create(
            olt=olt, event_type="TASK_ADDED", level="INFO", message=str(age.days), timestamp=T0 - age
        )

    sweep()

    assert sorted(CoordinatorLog.objects.values_list("message", flat=True)) == ["6", "7"]


def test_readings_go_after_their_days_and_the_onu_stays(onu):
    make_history(onu, [91 * DAY] * 250 + [90 * DAY, 1 * DAY])

    sweep()

    assert sorted(HistoryRun.objects.values_list("at", flat=True)) == [T0 - 90 * DAY, T0 - 1 * DAY]
    assert Onu.objects.count() == 1


def test_events_go_after_their_days_and_the_onu_stays(onu):
    ages = [91 * DAY] * 30 + [90 * DAY, 1 * DAY]
    OnuEvent.objects.bulk_create(
        OnuEvent(onu=onu, olt=onu.olt, at=T0 - age, field="state", old="online", new="los") for age in ages
    )

    sweep()

    assert sorted(OnuEvent.objects.values_list("at", flat=True)) == [T0 - 90 * DAY, T0 - 1 * DAY]
    assert Onu.objects.count() == 1


def make_chunk(model, onu, age):
    """Make a chunk whose last value has this age; it begins long before."""
    last = T0 - age
    model.objects.create(
        olt_id=onu.olt_id, field="rx_dbm", start=last - 20 * DAY, last_at=last, first_onu=1, last_onu=9, data=b"packed"
    )


@pytest.mark.parametrize(
    ("model", "days"), [pytest.param(HistoryChunk, 90, id="readings"), pytest.param(HistoryMonth, 730, id="daily")]
)
def test_a_chunk_goes_when_its_last_value_is_too_old(onu, model, days):
    for age in (days + 1, days, 1):
        make_chunk(model, onu, age * DAY)

    sweep()

    assert sorted(model.objects.values_list("last_at", flat=True)) == [T0 - days * DAY, T0 - 1 * DAY]


def test_daily_values_stay_longer_than_readings(onu):
    for age in (731, 730, 91):
        HistoryDay.objects.create(olt_id=onu.olt_id, at=T0 - age * DAY, data=b"packed")

    sweep()

    assert sorted(HistoryDay.objects.values_list("at", flat=True)) == [T0 - 730 * DAY, T0 - 91 * DAY]


def test_readings_that_came_late_are_found_among_younger_ones(onu):
    make_history(onu, [1 * DAY] * 250 + [91 * DAY] + [1 * DAY] * 10)

    sweep()

    assert HistoryRun.objects.count() == 260


@pytest.mark.parametrize(
    ("model", "more"),
    [
        pytest.param(QuotaTracker, {"task_type": "Optical power"}, id="quotas"),
        pytest.param(QuotaViolation, {"task_type": "Optical power", "severity": "LOW"}, id="violations"),
        pytest.param(ExecutionPlan, {"status": "COMPLETED"}, id="plans"),
    ],
)
def test_hours_go_after_their_days(olt, model, more):
    young = hours(model, olt, **more)

    sweep()

    assert model.objects.get() == young


def test_changes_go_after_their_days():
    for age in (729, 731):
        Change.objects.create(at=T0 - age * DAY, interface="cli", action="login", actor=str(age))

    sweep()

    assert [change.actor for change in Change.objects.all()] == ["729"]


def test_the_load_of_the_pool_goes_after_its_days():
    counts = {field.name: 0 for field in PollerStats._meta.concrete_fields if field.name not in ("id", "timestamp")}
    for age in (91 * DAY, 1 * DAY):
        PollerStats.objects.create(timestamp=T0 - age, **counts)

    sweep()

    assert PollerStats.objects.get().timestamp == T0 - 1 * DAY


def test_an_alert_goes_when_it_has_been_over_for_its_days(olt):
    def make(opened, recovered, key):
        over = None if recovered is None else T0 - recovered
        return Alert.objects.create(key=key, opened_at=T0 - opened, last_seen_at=T0, recovered_at=over)

    old = make(100 * DAY, 91 * DAY, "over")
    Delivery.objects.create(alert=old, created_at=T0 - 1 * DAY, due_at=T0)
    lasting = make(100 * DAY, None, "lasts")
    recent = make(100 * DAY, 89 * DAY, "just over")

    sweep()

    assert set(Alert.objects.all()) == {lasting, recent}
    assert Delivery.objects.count() == 0


def test_a_delivery_goes_after_its_days_and_its_alert_stays_if_it_lasts():
    alert = Alert.objects.create(key="lasts", opened_at=T0 - 100 * DAY, last_seen_at=T0)
    for age in (91 * DAY, 89 * DAY):
        Delivery.objects.create(alert=alert, created_at=T0 - age, due_at=T0 - age)

    sweep()

    assert Delivery.objects.get().created_at == T0 - 89 * DAY
    assert Alert.objects.count() == 1


def test_a_forecast_goes_after_its_days_unless_it_still_runs():
    for status, ended in (("DONE", T0 - 91 * DAY), ("RUNNING", None), ("DONE", T0 - 89 * DAY)):
        row = Forecast.objects.create(status=status, ended_at=ended)
        Forecast.objects.filter(pk=row.pk).update(requested_at=T0 - 91 * DAY)

    sweep()

    assert set(Forecast.objects.values_list("status", "ended_at")) == {("RUNNING", None), ("DONE", T0 - 89 * DAY)}


class TestExecutions:
    def test_a_master_goes_with_its_links_and_all_their_attempts(self, olt):
        old = make_execution(olt, 31 * DAY)
        for _ in range(2):
            make_execution(olt, 31 * DAY, "FAILED", master=old)
        young = make_execution(olt, 29 * DAY)
        link = make_execution(olt, 29 * DAY, master=young)

        sweep()

        assert set(Execution.objects.all()) == {young, link}
        assert set(ExecutionAttempt.objects.values_list("execution", flat=True)) == {young.pk, link.pk}

    @pytest.mark.parametrize("status", ["SUCCESS", "PARTIAL", "FAILED", "INTERRUPTED", "SKIPPED"])
    def test_whatever_has_ended_goes(self, olt, status):
        make_execution(olt, 31 * DAY, status)

        sweep()

        assert Execution.objects.count() == 0

    @pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
    def test_what_has_not_ended_stays_however_old_it_is(self, olt, status):
        row = make_execution(olt, 365 * DAY, status)

        sweep()

        assert Execution.objects.get() == row
        assert ExecutionAttempt.objects.count() == 1

    @pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
    def test_a_link_that_has_not_ended_keeps_its_whole_composite(self, olt, status):
        master = make_execution(olt, 31 * DAY)
        make_execution(olt, 31 * DAY, master=master)
        make_execution(olt, 31 * DAY, status, master=master)

        sweep()

        assert Execution.objects.count() == 3

    def test_those_that_stay_keep_nobody_else(self, olt, monkeypatch):
        monkeypatch.setattr(retention, "FIRST", 2)
        for number in range(5):
            make_execution(olt, (40 + number) * DAY, "PENDING")
        for number in range(5):
            make_execution(olt, (31 + number) * DAY)

        sweep()

        assert set(Execution.objects.values_list("status", flat=True)) == {"PENDING"}

    def test_nothing_else_hangs_on_them(self):
        """A new table that refers to executions must be handled in `retention`."""
        assert {relation.related_model for relation in Execution._meta.related_objects} == {Execution, ExecutionAttempt}


def plan_of(query):
    """Return how the database carries out a query."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Tables of a few rows are read whole and sorted, unless that is made dear.
            for way in ("seqscan", "bitmapscan", "sort"):
                cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"EXPLAIN {'QUERY PLAN' if connection.vendor == 'sqlite' else ''} {query}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_no_table_is_read_from_end_to_end(rule, olt, onu):
    make_history(onu, [91 * DAY] * 20)
    make_execution(olt, 31 * DAY, master=make_execution(olt, 31 * DAY))
    hours(ExecutionPlan, olt, status="COMPLETED")
    with CaptureQueriesContext(connection) as queries:
        sweep(only=rule.label)
    asked = [each["sql"] for each in queries if each["sql"].startswith(("SELECT", "DELETE"))]

    plans = {sql: plan_of(sql) for sql in asked}

    assert plans
    for sql, plan in plans.items():
        # A table that is read in its own order is left after the first rows.
        assert not re.search(r"^SCAN|Seq Scan", plan, re.M) or "LIMIT 200" in sql
        assert not re.search(r"TEMP B-TREE|\bSort\b", plan)


def test_where_there_is_no_index_by_time_only_the_first_rows_are_looked_at(olt, monkeypatch):
    monkeypatch.setattr(retention, "LEAST_LOOKED_AT", 2)
    monkeypatch.setattr(retention, "FIRST", 2)
    make = partial(QuotaViolation.objects.create, olt=olt, period_end=T0, severity="LOW")
    ages = [89, 95, 94, 93, 1, 1, 1, 96]
    for number, age in enumerate(ages):
        row = make(task_type=f"job {number}", period_start=T0)
        QuotaViolation.objects.filter(pk=row.pk).update(created_at=T0 - age * DAY)

    sweep(only="coordinator.QuotaViolation")

    left = QuotaViolation.objects.order_by("pk").values_list("created_at", flat=True)
    assert not retention.is_indexed(QuotaViolation, "created_at")
    # What was written as if it were older than what came before it has to wait until it is among the first.
    assert [(T0 - at).days for at in left] == [89, 1, 1, 1, 96]


def test_each_batch_is_a_transaction_and_a_job_of_its_own(onu, monkeypatch):
    monkeypatch.setattr(retention, "FIRST", 10)
    make_history(onu, [91 * DAY] * 35)
    deleted = []

    class Counting(Inline):
        async def run(self, work):
            before = HistoryRun.objects.count()
            result = work()
            deleted.append(before - HistoryRun.objects.count())
            return result

    clock = Watch(step=0.005)
    sweep(thread=Counting(), clock=clock, only="telemetry.HistoryRun")

    # Short ones grow by a quarter; in between, others get their turn.
    assert deleted == [10, 12, 13, 0]
    assert len(clock.slept) == 3


@pytest.mark.parametrize(
    ("took", "pause"),
    [
        pytest.param(0.04, 0.36, id="three times as long as it took"),
        pytest.param(0.001, 0.02, id="and never quite none"),
    ],
)
def test_after_a_batch_the_others_have_their_turn(onu, took, pause):
    make_history(onu, [91 * DAY] * 5)
    # It is looked at when a batch begins, when it has the lock, when it has it no more, and when all is done.
    clock = Watch(step=took)

    sweep(clock=clock, only="telemetry.HistoryRun")

    assert clock.slept == [pytest.approx(pause)]


def test_what_a_table_can_bear_is_remembered_for_the_next_run(onu, monkeypatch):
    monkeypatch.setattr(retention, "FIRST", 500)
    slow = Sweep(
        thread=Inline(),
        clock=Watch(step=1 / 32),
        rules=[rule for rule in RULES if rule.label == "telemetry.HistoryRun"],
    )
    sizes = []
    for _ in range(3):
        make_history(onu, [91 * DAY] * 10)
        sizes += slow._sizes.values()
        done(slow.run(T0))

    assert sizes == [500, 160, 51]


def test_a_run_has_an_end_and_the_next_one_goes_on(onu, monkeypatch):
    monkeypatch.setattr(retention, "MOST", 100)
    make_history(onu, [91 * DAY] * 1000)
    clock = Watch(step=retention.BUDGET / 10)

    sweep(clock=clock, only="telemetry.HistoryRun")
    left = HistoryRun.objects.count()
    sweep(clock=Watch(), only="telemetry.HistoryRun")

    assert 0 < left < 1000
    assert HistoryRun.objects.count() == 0


def test_a_run_tells_once_a_table_how_much_went(olt, onu, caplog):
    caplog.set_level(logging.INFO)
    make_history(onu, [91 * DAY] * 300)
    make_execution(olt, 31 * DAY, master=make_execution(olt, 31 * DAY))

    sweep()
    sweep()

    told = [(record.event, record.details) for record in caplog.records]
    assert told == [
        (Event.ROWS_EXPIRED, {"rows": 2, "table": "snmp_executions", "days": 30}),
        (Event.ROWS_EXPIRED, {"rows": 300, "table": "onu_history_runs", "days": 90}),
    ]


def test_a_table_that_fails_keeps_no_other_and_the_failure_is_heard_of(onu, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    make_history(onu, [91 * DAY] * 300)

    def broken(before, size):
        raise IntegrityError("somebody refers to it")

    monkeypatch.setattr(retention, "_executions", broken)
    with pytest.raises(IntegrityError, match="somebody refers to it"):
        sweep()

    assert HistoryRun.objects.count() == 0
    assert [record.details["rows"] for record in caplog.records] == [300]


def test_a_database_that_goes_away_halfway_is_asked_once_a_table_and_what_is_gone_is_told(onu, caplog):
    caplog.set_level(logging.INFO)
    make_history(onu, [91 * DAY] * 300)

    class Leaving(Inline):
        jobs = 0

        async def run(self, work):
            self.jobs += 1
            if self.jobs > 3:
                raise OperationalError("the database is away")
            return work()

    thread = Leaving()
    with pytest.raises(OperationalError):
        sweep(thread=thread)

    assert [record.details["rows"] for record in caplog.records] == [50]
    assert thread.jobs == len(RULES) + 1


async def test_other_work_of_the_thread_comes_between_the_batches(make_thread, monkeypatch):
    monkeypatch.setattr(retention, "MOST", 10)
    monkeypatch.setattr(retention, "FIRST", 10)
    thread = make_thread("store-write")
    seen = []

    def make():
        olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
        make_history(Onu.objects.create(olt=olt, index="1.7", first_seen_at=T0, own_read_at=T0), [91 * DAY] * 50)

    class Patient(Watch):
        async def sleep(self, seconds):
            seen.append(await thread.run(HistoryRun.objects.count))

    await thread.run(make)
    await asyncio.wait_for(Sweep(thread=thread, clock=Patient(), rules=RULES).run(T0), 30)

    assert seen == [40, 30, 20, 10, 0]
