"""A scheduler that takes over leaves to others what they may still bring in: a lease may be over, and work not lost."""

import pytest
from builders import MIN, SEC, T0
from worlds import DEVICE, DbWorld, done, scheduled

from facho.engine.model import Claim, Lease, Outcome, Status
from facho.store import leases
from facho.store.slots import DbSlots, TurnFence

pytestmark = pytest.mark.django_db

SUCCESS = Outcome(Status.SUCCESS, readings=7)


@pytest.fixture
def world():
    world = DbWorld()
    # Others take turns with it, and there are workers elsewhere.
    world.slots = DbSlots(world.slots._thread, fence=TurnFence(lambda: None))
    return world


@pytest.fixture
def ids(world):
    power = world.add("Optical power", next_check=T0)
    names = world.add("Names", master_id=power.id)
    return world.claim(scheduled(power, names)).execution_ids


@pytest.fixture
def lease(world):
    """The lease of a worker that lost the database for longer than it lasts."""
    key = leases.key_of(DEVICE)
    token = leases.acquire(key, "noc-1/1", leases.OLT_TERMS.ttl)
    leases.release(key, token)
    return Lease(world.olt_id, "noc-1/1", token, DEVICE)


def test_what_a_worker_ran_while_the_database_was_unavailable_still_lands(world, ids, lease):
    done(world.runs.start(ids[0], lease=lease, now=T0))

    recovery = done(world.slots.recover(T0 + 1 * MIN))
    world.close([ids[0]], SUCCESS, token=lease.token, now=T0 + 20 * SEC)

    (left,) = recovery.left
    assert (recovery.interrupted, left.execution_ids, left.is_running) == (0, ids, True)
    row = world.row(ids[0])
    assert (row.status, row.ended_at) == (Status.SUCCESS, T0 + 20 * SEC)


def test_what_nobody_had_begun_waits_for_a_worker(world, ids, lease):
    recovery = done(world.slots.recover(T0 + 1 * MIN))

    (left,) = recovery.left
    assert (recovery.interrupted, left.execution_ids, left.is_running) == (0, ids, False)
    assert {world.row(id_).retry_at for id_ in ids} == {T0 + 1 * MIN}


def test_a_message_of_the_scheduler_before_begins_nothing_any_more(world, ids):
    done(world.slots.recover(T0 + 1 * MIN))
    token = leases.acquire(leases.key_of(DEVICE), "noc-1/1", leases.OLT_TERMS.ttl)
    lease = Lease(world.olt_id, "noc-1/1", token, DEVICE)

    by_old_message = done(world.runs.start(ids[0], lease=lease, now=T0 + 1 * MIN))
    is_ours = world.reclaim(Claim(scheduled(*world.polled()), ids, 1, None))
    by_new_message = done(world.runs.start(ids[0], lease=lease, now=T0 + 1 * MIN))

    assert (by_old_message, is_ours, by_new_message) == (False, True, True)


def test_who_runs_it_is_not_known_before_a_worker_begins_it(world, ids, lease):
    before = [world.row(id_).poller_id for id_ in ids]
    done(world.runs.start(ids[0], lease=lease, now=T0, poller_id=17))

    assert before == [None, None]
    assert [world.row(id_).poller_id for id_ in ids] == [17, None]


def test_nothing_begins_with_a_lease_that_another_has_had_since(world, ids, lease):
    key = leases.key_of(DEVICE)
    leases.release(key, leases.acquire(key, "noc-2/1", leases.OLT_TERMS.ttl))

    has_begun = done(world.runs.start(ids[0], lease=lease, now=T0))

    assert not has_begun
    assert world.row(ids[0]).status is Status.PENDING
