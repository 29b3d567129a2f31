"""Schedulers that take turns: one at a time, and one whose turn is over writes nothing."""

import asyncio
from datetime import timedelta

import pytest
from builders import MIN, T0
from clocks import HandClock
from django.db import DatabaseError, InterfaceError, transaction

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.apps.polling.models import Lease as LeaseRow
from facho.engine.errors import LeaseLost
from facho.engine.model import Cause, CompositeNode
from facho.store import leases
from facho.store.leases import KEY, TERMS, SchedulerTurn
from facho.store.nodes import DbNodeSource
from facho.store.slots import DbSlots, TurnFence


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def thread(make_thread):
    return make_thread("turns")


@pytest.fixture
def first(thread, clock):
    return SchedulerTurn(thread, clock, "noc-1/100")


@pytest.fixture
def second(make_thread, clock):
    return SchedulerTurn(make_thread("rival"), clock, "noc-2/200")


async def run_out(thread):
    await thread.run(lambda: LeaseRow.objects.filter(key=KEY).update(expires_at=leases.NEVER))


async def takes(turn):
    """Try once, as a standby does each second."""
    return await turn._try()


async def test_one_at_a_time(first, second):
    assert await takes(first)
    assert not await takes(second)
    assert (first.is_ours, second.is_ours) == (True, False)


async def test_the_turn_of_a_dead_one_is_free_when_its_time_is_over(first, second, thread):
    await takes(first)
    await run_out(thread)

    assert await takes(second)


async def test_a_standby_has_it_within_ten_seconds_of_a_death():
    assert TERMS.ttl + timedelta(seconds=leases.TRY_EVERY) < timedelta(seconds=10)


async def test_one_that_is_given_back_is_free_at_once(first, second):
    await takes(first)
    await first.give_back()

    assert not first.is_ours
    assert await takes(second)


async def test_a_paused_one_knows_that_its_time_is_over_before_it_asks(first, clock):
    await takes(first)

    clock.pass_by(TERMS.ttl)

    assert not first.is_ours


async def test_keeping_ends_when_another_has_taken_over(first, second, thread):
    await takes(first)
    await run_out(thread)
    await takes(second)

    await asyncio.wait_for(first.keep(), 20)

    assert (first.is_ours, second.is_ours) == (False, True)


async def test_keeping_ends_when_the_database_is_unavailable_for_too_long(first, clock, monkeypatch):
    await takes(first)
    began = clock.monotonic()

    def away(*_):
        raise DatabaseError("the server closed the connection")

    monkeypatch.setattr(leases, "renew", away)
    await asyncio.wait_for(first.keep(), 20)

    assert not first.is_ours
    assert TERMS.trusted <= clock.monotonic() - began <= TERMS.ttl.total_seconds()


@pytest.mark.parametrize("error", [DatabaseError, InterfaceError], ids=["its server", "its connection"])
async def test_without_a_database_no_scheduler_is_active(first, monkeypatch, error):
    def away(*_):
        raise error("the connection is closed")

    monkeypatch.setattr(leases, "acquire", away)

    assert not await takes(first)


async def test_the_fence_lets_only_the_present_one_pass(first, second, thread, make_thread):
    await takes(first)
    await thread.run(lambda: fenced(first))
    await run_out(thread)
    await takes(second)

    with pytest.raises(LeaseLost):
        await thread.run(lambda: fenced(first))
    await thread.run(lambda: fenced(second))


def fenced(turn):
    with transaction.atomic():
        turn.fence()


def make_node_row():
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    job = SnmpJob.objects.create(name="Optical power", brand="huawei", kind="table", columns=["rx_dbm"])
    job.apply_to([olt])
    WorkflowNode.objects.update(next_run_at=T0)
    return olt.pk


async def test_a_scheduler_whose_turn_is_over_can_neither_claim_nor_move_a_slot(first, second, thread):
    olt_id = await thread.run(make_node_row)
    states = await DbNodeSource(thread).states([olt_id])
    (node,) = states[olt_id].nodes
    await takes(first)
    await run_out(thread)
    await takes(second)
    stale, present = (DbSlots(thread, fence=TurnFence(turn.fence)) for turn in (first, second))
    composite = CompositeNode(node, (), T0)

    with pytest.raises(LeaseLost):
        await stale.claim(composite, poller_id=1, now=T0, waits={})
    with pytest.raises(LeaseLost):
        await stale.reschedule({node.id: T0 + 9 * MIN}, [], now=T0)
    with pytest.raises(LeaseLost):
        await stale.abort(olt_ids=[olt_id], now=T0)

    assert await thread.run(Execution.objects.count) == 0
    assert await thread.run(lambda: WorkflowNode.objects.get().next_run_at) == T0
    assert await present.claim(composite, poller_id=1, now=T0, waits={}) is not None


class Hanging:
    """A thread whose database answers after so many seconds, or not at all."""

    def __init__(self, clock, seconds, error=None):
        self._clock, self._seconds, self._error = clock, seconds, error

    async def run(self, work):
        self._clock.pass_by(timedelta(seconds=self._seconds))
        if self._error is not None:
            raise self._error
        return


@pytest.mark.parametrize(
    "error", [pytest.param(None, id="it answers late"), pytest.param(DatabaseError("gone"), id="it fails")]
)
async def test_a_standby_remembers_how_long_the_database_did_not_answer(clock, error):
    turn = SchedulerTurn(Hanging(clock, 90, error), clock, "noc-2/200")

    since = clock.now()
    await takes(turn)

    assert turn.outages.within(since, clock.now()) == {Cause.DATABASE_UNAVAILABLE: 90.0}
