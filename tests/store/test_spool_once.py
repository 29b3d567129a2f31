"""Everything lands once: whatever is lost on the way to the database, and wherever the process is killed."""

import asyncio
from dataclasses import replace
from random import Random

import pytest
from builders import MIN, SEC, T0
from mortal import Killed, Machine, Process

from facho.apps.coordinator.models import QuotaTracker
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.telemetry.models import Onu
from facho.engine.model import (
    Collected,
    Completeness,
    CompositeNode,
    JobKind,
    Lease,
    Node,
    Outcome,
    Reading,
    RunResult,
    Status,
    Traffic,
)
from history_rows import stored

pytestmark = pytest.mark.django_db

# ONU 7 is there, and so are most; ONU 8 is not.
SEEN = tuple(Reading(f"1.{onu}", 0, 1, onu, {"state": "online", "rx_dbm": -21.53}) for onu in (7, *range(20, 40)))
DISCOVERY = Collected(Completeness.COMPLETE, SEEN, traffic=Traffic(pdus=9), absent=("1.8",))
DONE = Outcome(Status.SUCCESS, readings=len(SEEN), completeness=Completeness.COMPLETE, traffic=Traffic(pdus=9))


class Case:
    """An OLT with its ONUs, and a discovery that has begun on it."""

    def __init__(self, number=1, kind=JobKind.DISCOVERY):
        olt = Olt.objects.create(name=f"OLT-{number:03}", brand="huawei", host="127.0.0.1", community="public")
        job, _ = SnmpJob.objects.get_or_create(name="Discovery", brand="huawei", kind=kind, interval_seconds=3600)
        node = WorkflowNode.objects.create(olt=olt, job=job, next_run_at=T0)
        for onu in (7, 8, *range(20, 40)):
            Onu.objects.create(olt=olt, index=f"1.{onu}", onu=onu, first_seen_at=T0 - MIN, own_read_at=T0 - MIN)
        self.olt_id, self.lease = olt.pk, Lease(olt.pk, "noc/3", 200)
        self.node = Node(node.pk, olt.pk, job.name, kind, 60 * MIN, olt_name=olt.name)
        self.execution_id = 0

    async def begin(self, process):
        claim = await process.slots.claim(CompositeNode(self.node, (), T0), poller_id=3, now=T0, waits={})
        (self.execution_id,) = claim.execution_ids
        assert await process.runs.start(self.execution_id, lease=self.lease, now=T0)

    def result(self, collected=DISCOVERY, outcome=DONE):
        return RunResult((self.execution_id,), outcome, self.lease, T0 + 9 * SEC, self.node, collected)

    async def finish(self, process, **how):
        await process.runs.finish(self.result(**how))

    async def put_off(self, process):
        outcome = Outcome(Status.FAILED, error="no answer", error_class="OltUnreachable", retry_at=T0 + 2 * MIN)
        await process.runs.finish(RunResult((self.execution_id,), outcome, self.lease, T0 + 9 * SEC))

    @property
    def row(self):
        return Execution.objects.get(pk=self.execution_id)

    def times_kept(self):
        """Return how often the harvest is in the history, and how often the absence of ONU 8 has counted."""
        own = set(Onu.objects.filter(olt_id=self.olt_id).values_list("pk", flat=True))
        kept = sum(onu in own for onu, _ in stored())
        assert kept % len(SEEN) == 0
        return kept // len(SEEN), Onu.objects.get(olt_id=self.olt_id, index="1.8").misses


@pytest.fixture
def process(tmp_path):
    process = Process(Machine(), tmp_path / "spool")
    yield process
    process.die()


def test_what_is_said_while_the_database_is_unavailable_lands_in_order_when_it_is_back(process):
    case = Case()

    async def outage():
        await case.begin(process)
        process.machine.is_away = True
        await case.finish(process)

    asyncio.run(outage())
    seen = case.times_kept(), case.row.status, process.delivery.waiting
    process.machine.is_away = False
    asyncio.run(process.delivery.step(T0))

    assert seen == ((0, 0), "RUNNING", 1)
    assert (case.times_kept(), case.row.status, process.delivery.waiting) == ((1, 1), "SUCCESS", 0)
    # As it was, not as late as it came.
    assert case.row.ended_at == T0 + 9 * SEC
    assert ExecutionAttempt.objects.get().ended_at == T0 + 9 * SEC
    assert {at for _, at in stored()} == {T0 + 9 * SEC}


def test_a_result_whose_confirmation_is_lost_is_stored_once(process):
    case = Case()

    async def story():
        await case.begin(process)
        process.machine.lost_answers = 1
        await case.finish(process)
        waiting = process.delivery.waiting
        await process.delivery.flush()
        return waiting

    waiting = asyncio.run(story())

    assert waiting == 1
    assert (case.times_kept(), case.row.status) == ((1, 1), "SUCCESS")
    assert ExecutionAttempt.objects.count() == 1
    quota = QuotaTracker.objects.get()
    assert (quota.quota_completed, quota.quota_failed, quota.quota_pending) == (1, 0, 0)


def test_an_attempt_that_was_put_off_twice_is_put_off_to_the_same_time(process):
    case = Case()

    async def story():
        await case.begin(process)
        process.machine.lost_answers = 1
        await case.put_off(process)
        await process.delivery.flush()

    asyncio.run(story())

    assert (case.row.status, case.row.retry_at, case.row.lease_token) == ("PENDING", T0 + 2 * MIN, None)
    assert [each.status for each in ExecutionAttempt.objects.all()] == ["FAILED"]


def test_a_discovery_that_found_no_onu_counts_its_absences_once(process):
    case = Case()
    empty = Collected(Completeness.EMPTY, absent=("1.8",), scalars={"uptime": 7}, traffic=Traffic(pdus=1))

    async def story():
        await case.begin(process)
        process.machine.is_away = True
        await case.finish(process, collected=empty)
        process.machine.is_away = False
        # Stored, but not removed from the spool: it is delivered a second time.
        process.machine.lost_answers = 1
        await process.delivery.step(T0)
        await process.delivery.step(T0)

    asyncio.run(story())

    assert process.delivery.waiting == 0
    assert case.times_kept() == (0, 1)
    assert Olt.objects.get().extra == {"uptime": 7}


async def live(process, case, acknowledged):
    """Collect during an outage, and note what the runner may rely on."""
    process.machine.is_away = True
    await case.finish(process)
    acknowledged.append("result")
    process.machine.is_away = False
    await process.delivery.flush()


async def come_back(process, case, acknowledged):
    """Start again, as an engine does."""
    await process.slots.recover(T0 + MIN)


def run_until_killed(life, kill_at, folder, case, acknowledged):
    """Return whether it lived to its end, and how many steps it took."""
    machine = Machine(kill_at)
    process = Process(Machine() if life is live else machine, folder)
    if life is live:
        asyncio.run(case.begin(process))
        process.machine.kill_at = kill_at
        machine, process.machine.steps = process.machine, 0
    try:
        asyncio.run(life(process, case, acknowledged))
    except Killed:
        return False
    finally:
        process.die()
    return True


def check(case, acknowledged, folder):
    """The next process finds every acknowledged result once, and no open execution."""
    process = Process(Machine(), folder)
    asyncio.run(process.slots.recover(T0 + MIN))
    kept, missed = case.times_kept()
    assert kept == missed <= 1
    # Readings and outcome are there together, or neither is.
    assert case.row.status == ("SUCCESS" if kept else "INTERRUPTED")
    assert kept or not acknowledged
    assert process.delivery.waiting == 0
    process.die()


def test_killed_at_any_step_it_lands_once(tmp_path):
    reached = set()
    for kill_at in range(1, 100):
        case, folder, acknowledged = Case(kill_at), tmp_path / str(kill_at), []
        lived = run_until_killed(live, kill_at, folder, case, acknowledged)
        reached.add(tuple(acknowledged))
        check(case, acknowledged, folder)
        if lived:
            break

    assert lived
    # It was killed before and after the result was safe.
    assert reached == {(), ("result",)}
    assert kill_at > 8


def test_killed_again_while_it_recovers_it_still_lands_once(tmp_path):
    random = Random(7)
    killed_twice = 0
    for number in range(30):
        case, folder, acknowledged = Case(number), tmp_path / str(number), []
        run_until_killed(live, random.randint(2, 9), folder, case, acknowledged)
        killed_twice += not run_until_killed(come_back, random.randint(1, 6), folder, case, acknowledged)
        check(case, acknowledged, folder)

    assert killed_twice > 10


def test_what_a_dead_holder_left_is_dropped_where_another_has_gone_on(process):
    case = Case()
    later = replace(case.lease, token=300)

    async def story():
        await case.begin(process)
        process.machine.is_away = True
        await case.finish(process)
        process.machine.is_away = False
        # Another worker takes the OLT over, and with it this one's execution is over.
        other = CompositeNode(case.node, (), T0 + 60 * MIN)
        claim = await process.other_slots.claim(other, poller_id=1, now=T0 + 60 * MIN, waits={})
        await process.other_runs.start(claim.execution_ids[0], lease=later, now=T0 + 60 * MIN)
        await process.delivery.flush()

    asyncio.run(story())

    assert (case.times_kept(), process.delivery.waiting) == ((0, 0), 0)
    assert (case.row.status, case.row.cause) == ("INTERRUPTED", "lease_lost")
    assert Execution.objects.latest("pk").status == "RUNNING"
