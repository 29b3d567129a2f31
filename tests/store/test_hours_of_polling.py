"""The scheduler on the tables: hours of polling in virtual time, and what the quotas say of them afterwards."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from builders import ANSWERED, HOUR, MIN, SEC, T0, StandInRunner
from django.db import connections

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.apps.coordinator.models import QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.engine.model import Cause, Outcome, Status
from facho.engine.quota.quota import hour_of
from facho.engine.scheduling.scheduler import Scheduler
from facho.store.nodes import DbNodeSource
from facho.store.quotas import open_hour, settle
from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots

CENTRAL, NORTE, SUR = "OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03"
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer in 15 s", "OltUnreachable")

# Seconds that a link takes. The slow OLT needs 21 of every 15 minutes.
TAKES = {CENTRAL: 9.0, NORTE: 420.0, SUR: 15.0}


class OtherThread:
    """Stands in for a `DbThread`: the loop waits for it, so no virtual time passes meanwhile."""

    def __init__(self):
        self._pool = ThreadPoolExecutor(max_workers=1)

    async def run(self, work):
        return self.do(work)

    def do(self, work):
        return self._pool.submit(work).result()

    def close(self):
        self.do(connections.close_all)
        self._pool.shutdown()


class SetClock(VirtualClock):
    """A virtual clock that can be set."""

    by = 0 * SEC

    def now(self):
        return super().now() + self.by


class Office:
    """OLTs with the same jobs, a scheduler, and the chores of the hour."""

    def __init__(self, thread):
        self.thread = thread
        self.clock = SetClock(T0)
        self.scheduler = None

    def open(self, *olts):
        self.thread.do(lambda: make_rows(olts))
        return self

    async def poll(self, span):
        """Tick twice a minute, and do the chores once."""
        if self.scheduler is None:
            self._start()
        end = self.clock.monotonic() + span.total_seconds()
        while self.clock.monotonic() < end:
            await self.scheduler.step()
            if self.clock.now().second < 30:
                self._do_chores(self.clock.now())
            await self.clock.sleep(30)

    def set_clock(self, by):
        self.clock.by += by
        self.scheduler.clock_set(by)

    def _do_chores(self, now):
        self.thread.do(lambda: open_hour(now))
        self.thread.do(lambda: settle(now))

    async def die_and_come_back(self, span):
        """Leave everything as it stands, and start again later."""
        for task in self.scheduler.manager._tasks.values():
            task.cancel()
        await self.clock.sleep(span.total_seconds())
        self._start()
        await self._slots.recover(self.clock.now())

    def _start(self):
        self._slots = DbSlots(self.thread)
        runner = StandInRunner(
            self.clock,
            DbRuns(self.thread, self.thread, DbResults(self.thread)),
            seconds=lambda node, slot: TAKES[node.olt_name],
            outcome=lambda node, slot: SILENT if node.olt_name == SUR else ANSWERED,
        )
        self.scheduler = Scheduler(
            pollers=5, nodes=DbNodeSource(self.thread), slots=self._slots, runner=runner, clock=self.clock
        )

    def quotas(self, task="State"):
        """Return what was required, completed, failed, skipped and is pending, hour by hour."""
        rows = QuotaTracker.objects.filter(task_type=task).order_by("period_start")
        columns = [f"quota_{name}" for name in ("required", "completed", "failed", "skipped", "pending")]
        return self.thread.do(lambda: list(rows.values_list(*columns)))

    def statuses(self, **which):
        return self.thread.do(lambda: set(QuotaTracker.objects.filter(**which).values_list("status", flat=True)))

    def violations(self, **which):
        return self.thread.do(lambda: list(QuotaViolation.objects.filter(**which).order_by("period_start")))

    def accounted(self, task, hour):
        """Return how many slots of an hour have a row among the executions."""
        rows = self.thread.do(lambda: list(Execution.objects.filter(node_name=task, trigger="schedule")))
        return sum(row.slots for row in rows if hour_of(row.slot) == hour)


def make_rows(olts):
    power = SnmpJob.objects.create(
        name="Optical power", brand="huawei", kind="table", columns=["rx_dbm"], interval_seconds=900
    )
    SnmpJob.objects.create(name="Names", brand="huawei", kind="table", columns=["name"], follows=power)
    state = SnmpJob.objects.create(
        name="State", brand="huawei", kind="table", columns=["rx_dbm"], interval_seconds=900, priority=60
    )
    for name in olts:
        olt = Olt.objects.create(name=name, brand="huawei", host="127.0.0.1", community="public")
        for job in (power, state):
            job.apply_to([olt])


@pytest.fixture
def office(make_thread):
    """An office on a database that commits, as in production."""
    thread = OtherThread()
    yield Office(thread)
    thread.close()


@pytest.fixture
def virtually():
    """Run a coroutine in virtual time."""

    def run(coroutine):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(coroutine)

    return run


def test_healthy_hours_give_no_violation(office, virtually):
    virtually(office.open(CENTRAL).poll(4 * HOUR + 6 * MIN))

    for task in ("State", "Optical power", "Names"):
        assert office.quotas(task)[:4] == [(4, 4, 0, 0, 0)] * 4
    assert office.statuses(period_end__lte=T0 + 4 * HOUR) == {"COMPLETED"}
    assert office.violations() == []


def test_a_mute_olt_is_critical_in_every_hour_and_its_hours_add_up(office, virtually):
    virtually(office.open(SUR).poll(3 * HOUR + 6 * MIN))

    for task in ("State", "Optical power", "Names"):
        for required, completed, failed, skipped, pending in office.quotas(task)[:3]:
            assert (required, completed, failed + skipped, pending) == (4, 0, 4, 0)
        assert [each.severity for each in office.violations(task_type=task)] == ["CRITICAL"] * 3
    last = office.violations(task_type="State")[-1].report
    assert last["causes"] == {"breaker_open": 4}
    assert [each["code"] for each in last["advice"]] == ["check_reachability"]


def test_an_olt_that_cannot_keep_up_loses_slots_and_every_one_is_accounted_for(office, virtually):
    virtually(office.open(NORTE).poll(3 * HOUR + 6 * MIN))

    lost = 0
    for task in ("State", "Optical power"):
        for number, (required, completed, failed, skipped, pending) in enumerate(office.quotas(task)[:3]):
            assert (required, failed, pending, completed + skipped) == (4, 0, 0, 4)
            assert office.accounted(task, T0 + number * HOUR) == 4
            lost += skipped
    assert lost > 0
    report = office.violations()[-1].report
    assert report["causes"].keys() == {"olt_busy"}
    assert [each["code"] for each in report["advice"]] == ["relieve_olt"]
    late = report["worst_lateness"]
    assert sum(late["parts"].values()) == pytest.approx(late["seconds"])


def test_an_engine_that_was_down_shows_in_the_hours_it_missed(office, virtually):
    async def story():
        await office.poll(1 * HOUR + 30 * MIN)
        await office.die_and_come_back(3 * HOUR)
        await office.poll(1 * HOUR)

    office.open(CENTRAL)
    virtually(story())

    hours = office.quotas()
    assert all(required == 4 for required, *_ in hours)
    assert hours[2:4] == [(4, 0, 0, 4, 0)] * 2
    down = office.violations(task_type="State", period_start__in=[T0 + 2 * HOUR, T0 + 3 * HOUR])
    assert [(each.severity, each.report["causes"]) for each in down] == [("CRITICAL", {"engine_down": 4})] * 2


def test_disabling_and_enabling_an_olt_interrupts_its_hour_and_goes_on(office, virtually):
    async def story():
        await office.poll(20 * MIN)
        office.thread.do(lambda: Olt.objects.get().disable())
        await office.poll(30 * SEC)
        seen = office.quotas(), office.statuses(task_type="State")
        office.thread.do(lambda: Olt.objects.get().enable())
        await office.poll(45 * MIN)
        return seen

    office.open(CENTRAL)
    seen = virtually(story())

    assert seen == ([(2, 2, 0, 0, 0)], {"INTERRUPTED"})
    assert office.quotas()[0] == (5, 5, 0, 0, 0)
    assert office.statuses(period_start=T0) == {"COMPLETED"}


def test_a_job_that_is_disabled_owes_nothing_more(office, virtually):
    def disable():
        node = WorkflowNode.objects.get(job__name="State")
        node.own_enabled = False
        node.save()

    async def story():
        await office.poll(20 * MIN)
        office.thread.do(disable)
        await office.poll(1 * HOUR)

    office.open(CENTRAL)
    virtually(story())

    assert office.quotas() == [(2, 2, 0, 0, 0)]
    assert office.statuses(task_type="State") == {"INTERRUPTED"}
    assert office.quotas("Optical power")[0] == (4, 4, 0, 0, 0)


@pytest.mark.parametrize(
    ("after", "by"),
    [
        pytest.param(70 * MIN, HOUR, id="an hour forward"),
        pytest.param(70 * MIN, -HOUR, id="an hour back", marks=pytest.mark.long),
        pytest.param(59 * MIN + 30 * SEC, 3 * SEC, id="forward at the end of an hour", marks=pytest.mark.long),
        pytest.param(60 * MIN, -25 * MIN, id="back at the end of an hour"),
    ],
)
def test_quotas_balance_after_the_clock_was_set(office, virtually, after, by):
    async def story():
        await office.poll(after)
        office.set_clock(by)
        await office.poll(2 * HOUR)

    office.open(CENTRAL)
    virtually(story())

    now_hour = hour_of(T0 + after + by + 2 * HOUR)
    for task in ("State", "Optical power", "Names"):
        rows = office.thread.do(lambda task=task: list(QuotaTracker.objects.filter(task_type=task)))
        for row in rows:
            assert row.quota_required == (
                row.quota_completed + row.quota_failed + row.quota_skipped + row.quota_pending
            )
            if row.period_start < now_hour:
                assert (row.quota_pending, row.quota_failed) == (0, 0)
                assert row.status != "IN_PROGRESS" or row.period_end > T0 + after + by + 2 * HOUR - 5 * MIN
        hours = {row.period_start: row for row in rows}
        assert all(office.accounted(task, hour) >= row.quota_completed for hour, row in hours.items())
    causes = [cause for row in office.thread.do(lambda: list(QuotaTracker.objects.all())) for cause in row.causes]
    assert set(causes) <= ({"clock_set"} if by >= 25 * MIN else set())
    runs = office.thread.do(lambda: list(Execution.objects.filter(node_name="State", status="SUCCESS")))
    # Four an hour, by the time that really passed.
    assert len(runs) == pytest.approx((after + 2 * HOUR) / (15 * MIN), abs=3)
    assert all(8 <= run.duration <= 60 for run in runs)
