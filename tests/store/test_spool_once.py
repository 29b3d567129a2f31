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
from facho.apps.telemetry.models import Onu, OnuHistory
from facho.engine.model import (
    Collected,
    Completeness,
    CompositeNode,
    JobKind,
    Lease,
    Node,
    Outcome,
    Reading,
    Status,
    Traffic,
)

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
            Onu.objects.create(olt=olt, index=f"1.{onu}", onu=onu, first_seen_at=T0 - MIN, read_at=T0 - MIN)
        self.olt_id, self.lease = olt.pk, Lease(olt.pk, "noc/3", 200)
        self.node = Node(node.pk, olt.pk, job.name, kind, 60 * MIN, olt_name=olt.name)
        self.execution_id = 0

    async def begin(self, process):
        claim = await process.ledger.claim(CompositeNode(self.node, (), T0), poller_id=3, now=T0, waits={})
        (self.execution_id,) = claim.execution_ids
        assert await process.ledger.start(self.execution_id, lease=self.lease, now=T0)

    async def write(self, process, collected=DISCOVERY):
        await process.sink.write(self.node, self.execution_id, collected, lease=self.lease, now=T0 + 9 * SEC)

    async def close(self, process, outcome=DONE):
        await process.ledger.close([self.execution_id], outcome, lease=self.lease, now=T0 + 10 * SEC)

    async def put_off(self, process):
        outcome = Outcome(Status.FAILED, error="no answer", error_class="OltUnreachable")
        await process.ledger.put_off(
            [self.execution_id], outcome, retry_at=T0 + 2 * MIN, lease=self.lease, now=T0 + 10 * SEC
        )

    @property
    def row(self):
        return Execution.objects.get(pk=self.execution_id)

    def times_kept(self):
        """Return how often the harvest is in the history, and how often the absence of ONU 8 has counted."""
        kept = OnuHistory.objects.filter(onu__olt_id=self.olt_id).count()
        assert kept % len(SEEN) == 0
        return kept // len(SEEN), Onu.objects.get(olt_id=self.olt_id, index="1.8").misses


@pytest.fixture
def process(tmp_path):
    process = Process(Machine(), tmp_path / "spool")
    yield process
    process.die()


def test_what_is_said_while_the_database_is_away_lands_in_order_when_it_is_back(process):
    case = Case()

    async def outage():
        await case.begin(process)
        process.machine.is_away = True
        await case.write(process)
        await case.close(process)

    asyncio.run(outage())
    seen = case.times_kept(), case.row.status, process.forwarder.waiting
    process.machine.is_away = False
    asyncio.run(process.forwarder.step(T0))

    assert seen == ((0, 0), "RUNNING", 2)
    assert (case.times_kept(), case.row.status, process.forwarder.waiting) == ((1, 1), "SUCCESS", 0)
    # As it was, not as late as it came.
    assert case.row.ended_at == T0 + 10 * SEC
    assert ExecutionAttempt.objects.get().ended_at == T0 + 10 * SEC
    assert set(OnuHistory.objects.values_list("at", flat=True)) == {T0 + 9 * SEC}


@pytest.mark.parametrize("answers", [1, 2], ids=["of the harvest", "of the harvest and of the end"])
def test_an_answer_that_is_lost_behind_the_commit_makes_nothing_twice(process, answers):
    case = Case()

    async def story():
        await case.begin(process)
        process.machine.lost_answers = answers
        await case.write(process)
        await case.close(process)
        waiting = process.forwarder.waiting
        process.machine.lost_answers = 0
        await process.forwarder.land()
        return waiting

    waiting = asyncio.run(story())

    assert waiting == 2
    assert (case.times_kept(), case.row.status) == ((1, 1), "SUCCESS")
    assert ExecutionAttempt.objects.count() == 1


def test_an_answer_to_an_end_that_is_lost_ends_it_once(process):
    case = Case()

    async def story():
        await case.begin(process)
        await case.write(process)
        process.machine.lost_answers = 1
        await case.close(process)
        await process.forwarder.land()

    asyncio.run(story())

    assert (case.times_kept(), case.row.status) == ((1, 1), "SUCCESS")
    quota = QuotaTracker.objects.get()
    assert (quota.quota_completed, quota.quota_failed, quota.quota_pending) == (1, 0, 0)


def test_an_attempt_that_was_put_off_twice_is_put_off_to_the_same_time(process):
    case = Case()

    async def story():
        await case.begin(process)
        process.machine.lost_answers = 1
        await case.put_off(process)
        await process.forwarder.land()

    asyncio.run(story())

    assert (case.row.status, case.row.retry_at, case.row.lease_token) == ("PENDING", T0 + 2 * MIN, None)
    assert [each.status for each in ExecutionAttempt.objects.all()] == ["FAILED"]


def test_a_discovery_that_found_nobody_and_came_late_accuses_nobody(process):
    case = Case()
    empty = Collected(Completeness.EMPTY, absent=("1.7", "1.8"), scalars={"uptime": 7}, traffic=Traffic(pdus=1))

    async def story():
        await case.begin(process)
        process.machine.is_away = True
        await case.write(process, empty)
        process.machine.is_away = False
        # It is the last step before the file is removed at which it is killed: it comes a second time.
        process.machine.lost_answers = 1
        await process.forwarder.step(T0)
        await process.forwarder.step(T0)

    asyncio.run(story())

    assert process.forwarder.waiting == 0
    assert set(Onu.objects.values_list("misses", flat=True)) == {0}
    assert Olt.objects.get().extra == {"uptime": 7}


async def live(process, case, acknowledged):
    """Collect through an outage, and note down what the runner may rely on."""
    process.machine.is_away = True
    await case.write(process)
    acknowledged.append("harvest")
    await case.close(process)
    acknowledged.append("end")
    process.machine.is_away = False
    await process.forwarder.land()


async def come_back(process, case, acknowledged):
    """Start again, as an engine does."""
    await process.ledger.recover(T0 + MIN)


def run_until_killed(life, kill_at, folder, monkeypatch, case, acknowledged):
    """Return whether it lived to its end, and how many steps it took."""
    machine = Machine(kill_at)
    process = Process(Machine() if life is live else machine, folder)
    if life is live:
        asyncio.run(case.begin(process))
        process.machine.kill_at = kill_at
        machine, process.machine.steps = process.machine, 0
    try:
        with machine.disk(monkeypatch):
            asyncio.run(life(process, case, acknowledged))
    except Killed:
        return False
    finally:
        process.die()
    return True


def check(case, acknowledged, folder):
    """Whoever comes after finds everything that was acknowledged, once, and nothing open."""
    process = Process(Machine(), folder)
    asyncio.run(process.ledger.recover(T0 + MIN))
    kept, missed = case.times_kept()
    assert kept == missed <= 1
    if "harvest" in acknowledged:
        assert kept == 1
    row = case.row
    assert row.status in (("SUCCESS",) if "end" in acknowledged else ("SUCCESS", "INTERRUPTED"))
    assert kept == 1 or row.status == "INTERRUPTED"
    assert process.forwarder.waiting == 0
    process.die()


def test_killed_at_any_step_it_lands_once(tmp_path, monkeypatch):
    reached = set()
    for kill_at in range(1, 100):
        case, folder, acknowledged = Case(kill_at), tmp_path / str(kill_at), []
        lived = run_until_killed(live, kill_at, folder, monkeypatch, case, acknowledged)
        reached.add(tuple(acknowledged))
        check(case, acknowledged, folder)
        if lived:
            break

    assert lived
    # It was killed in every part of its life, and there is enough of it.
    assert reached == {(), ("harvest",), ("harvest", "end")}
    assert kill_at > 20


def test_killed_again_while_it_recovers_it_still_lands_once(tmp_path, monkeypatch):
    random = Random(7)
    killed_twice = 0
    for number in range(30):
        case, folder, acknowledged = Case(number), tmp_path / str(number), []
        run_until_killed(live, random.randint(9, 30), folder, monkeypatch, case, acknowledged)
        killed_twice += not run_until_killed(come_back, random.randint(1, 14), folder, monkeypatch, case, acknowledged)
        check(case, acknowledged, folder)

    assert killed_twice > 10


def test_what_a_dead_holder_left_is_dropped_where_another_has_gone_on(process):
    case = Case()
    later = replace(case.lease, token=300)

    async def story():
        await case.begin(process)
        process.machine.is_away = True
        await case.write(process)
        await case.close(process)
        process.machine.is_away = False
        # Another worker takes the OLT over, and with it this one's execution is over.
        other = CompositeNode(case.node, (), T0 + 60 * MIN)
        claim = await process.db_ledger.claim(other, poller_id=1, now=T0 + 60 * MIN, waits={})
        await process.db_ledger.start(claim.execution_ids[0], lease=later, now=T0 + 60 * MIN)
        await process.forwarder.land()

    asyncio.run(story())

    assert (case.times_kept(), process.forwarder.waiting) == ((0, 0), 0)
    assert (case.row.status, case.row.cause) == ("INTERRUPTED", "lease_lost")
    assert Execution.objects.latest("pk").status == "RUNNING"
