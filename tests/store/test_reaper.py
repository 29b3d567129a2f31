"""Executions left open by a database outage are found without a restart; others are not ended."""

import pytest
from builders import HOUR, MIN, SEC, T0

from contracts.worlds import DbWorld, scheduled
from facho.apps.coordinator.models import QuotaTracker
from facho.apps.jobs.models import SnmpJob
from facho.engine.model import Cause, Outcome, Status
from facho.engine.scheduling.grid import Gap
from facho.store.recovery import SLACK, reap

pytestmark = pytest.mark.django_db

SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def power(world):
    """Optical power: every five minutes, and at most five."""
    return world.add("Optical power", next_check=T0)


OLDEST = 5 * MIN + 5 * MIN + SLACK


def statuses(world):
    return [row.status for row in world.rows()]


@pytest.mark.parametrize("begun", [True, False], ids=["running", "never begun"])
def test_what_is_older_than_it_can_get_is_interrupted_and_counted(world, power, begun):
    (id_,) = world.claim(scheduled(power)).execution_ids
    if begun:
        world.start(id_)

    reaped = [reap(T0 + OLDEST), reap(T0 + OLDEST + 1 * SEC), reap(T0 + OLDEST + 2 * SEC)]

    row, quota = world.row(id_), QuotaTracker.objects.get()
    assert reaped == [0, 1, 0]
    assert (row.status, row.cause, row.ended_at) == (Status.INTERRUPTED, Cause.LEASE_LOST, T0 + OLDEST + 1 * SEC)
    assert (quota.quota_failed, quota.causes) == (1, {"lease_lost": 1})


def test_pending_work_for_another_attempt_has_its_slot_to_do_so(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)
    world.put_off([id_], SILENT, retry_at=T0 + 4 * MIN)

    assert reap(T0 + 9 * MIN) == 0
    assert reap(T0 + OLDEST + 1 * SEC) == 1


def test_a_link_has_the_time_of_those_before_it(world, power):
    names = world.add("Names", master_id=power.id)
    world.claim(scheduled(power, names))

    assert reap(T0 + OLDEST + 4 * MIN) == 0
    assert reap(T0 + OLDEST + 6 * MIN) == 2


def test_a_link_has_the_time_of_those_before_it_also_when_they_have_ended(world, power):
    names = world.add("Names", master_id=power.id)
    ids = world.claim(scheduled(power, names)).execution_ids
    world.start(ids[0])
    world.close(ids[:1], Outcome(Status.SUCCESS), now=T0 + 5 * MIN)

    assert reap(T0 + OLDEST + 4 * MIN) == 0
    assert reap(T0 + OLDEST + 6 * MIN) == 1


def test_what_takes_long_by_its_settings_is_left_alone(world, power):
    SnmpJob.objects.update(timeout_seconds=3600)
    world.claim(scheduled(power))

    assert reap(T0 + 1 * HOUR) == 0


def test_the_execution_of_a_deleted_node_is_ended_in_the_end(world, power):
    world.claim(scheduled(power))
    world.delete(power)

    assert reap(T0 + 2 * HOUR) == 0
    assert reap(T0 + 2 * HOUR + SLACK + 1 * SEC) == 1
    assert statuses(world) == [Status.INTERRUPTED]


def test_what_was_claimed_before_the_clock_was_set_forward_is_not_older_by_that(world, power):
    world.start(world.claim(scheduled(power)).execution_ids[0])
    gap = Gap(T0 + 1 * MIN, T0 + 61 * MIN)

    assert reap(T0 + 62 * MIN, gap) == 0
    assert reap(T0 + 1 * HOUR + OLDEST + 1 * SEC, gap) == 1
