"""What slots and runs promise where executions run in other processes: those are left to their holder."""

from dataclasses import replace

import pytest
from builders import MIN, T0
from worlds import WORLDS, by_hand, done, scheduled

from facho.engine.model import Cause, LeftOver, Outcome, Recovery, Status

SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")


@pytest.fixture(params=WORLDS)
def world(request, db):
    return request.param()


@pytest.fixture
def ids(world):
    power = world.add("Optical power", next_check=T0)
    names = world.add("Names", master_id=power.id)
    return world.claim(scheduled(power, names)).execution_ids


def progress(world, ids):
    return [done(world.slots.progress(ids))[id_] for id_ in ids]


def test_it_tells_who_waits_who_runs_and_who_has_ended(world, ids):
    first, second = ids
    assert [outcome.status for outcome in progress(world, ids)] == [Status.PENDING, Status.PENDING]
    assert not any(outcome.is_over for outcome in progress(world, ids))

    world.start(first)
    assert [outcome.status for outcome in progress(world, ids)] == [Status.RUNNING, Status.PENDING]

    world.close([first], replace(SILENT, error="row 7"))
    world.close([second], Outcome(Status.SKIPPED, Cause.UNREACHABLE))
    ends = progress(world, ids)
    assert [(outcome.status, outcome.cause, outcome.error) for outcome in ends] == [
        (Status.FAILED, Cause.UNREACHABLE, "row 7"),
        (Status.SKIPPED, Cause.UNREACHABLE, ""),
    ]
    assert all(outcome.is_over for outcome in ends)


def test_pending_work_for_another_attempt_tells_when_and_how_the_last_one_ended(world, ids):
    first, second = ids
    world.start(first)
    world.put_off([first], SILENT, retry_at=T0 + 2 * MIN)
    world.put_off([second], Outcome(Status.SKIPPED, Cause.UNREACHABLE), retry_at=T0 + 2 * MIN)

    waiting = progress(world, ids)

    assert [outcome.status for outcome in waiting] == [Status.PENDING] * 2
    assert [outcome.retry_at for outcome in waiting] == [T0 + 2 * MIN] * 2
    assert all(outcome.is_over for outcome in waiting)
    assert [(last.status, last.cause, last.retry_at) for last in map(Outcome.as_last, waiting)] == [
        (Status.FAILED, Cause.UNREACHABLE, None),
        (Status.SKIPPED, Cause.UNREACHABLE, None),
    ]


def test_nobody_is_told_of_what_there_is_not(world, ids):
    assert done(world.slots.progress([10**6])) == {}


def test_an_engine_that_starts_leaves_alone_what_another_process_holds_the_olt_for(world, ids):
    world.start(ids[0])
    world.held_elsewhere()

    recovery = done(world.slots.recover(T0 + 1 * MIN))

    (left,) = recovery.left
    assert (recovery.interrupted, left.execution_ids, left.is_running, left.attempts) == (0, ids, True, 1)
    assert [outcome.status for outcome in progress(world, ids)] == [Status.RUNNING, Status.PENDING]


def test_an_engine_that_starts_ends_what_nobody_holds_the_olt_for(world, ids):
    world.start(ids[0])

    recovery = done(world.slots.recover(T0 + 1 * MIN))

    assert (recovery.interrupted, recovery.left) == (2, ())
    assert {outcome.status for outcome in progress(world, ids)} == {Status.INTERRUPTED}


def test_what_was_given_out_and_not_begun_waits_for_the_engine_that_starts(world, ids):
    recovery = done(world.slots.recover(T0 + 1 * MIN))

    nodes = sorted(node.id for node in world.polled())
    assert recovery == Recovery(
        left=(LeftOver(world.olt_id, T0, T0, tuple(zip(ids, nodes, strict=True)), attempts=0, is_running=False),)
    )
    assert [(each.status, each.retry_at) for each in progress(world, ids)] == [(Status.PENDING, T0 + 1 * MIN)] * 2
    ends = [(last.status, last.cause) for last in map(Outcome.as_last, progress(world, ids))]
    assert ends == [(Status.SKIPPED, Cause.ENGINE_DOWN)] * 2


def test_it_waits_although_the_olt_is_held_for_another(world, ids):
    world.start(ids[0])
    world.put_off(ids, SILENT, retry_at=T0 + 2 * MIN)
    world.held_elsewhere()

    (left,) = done(world.slots.recover(T0 + 1 * MIN)).left

    assert (left.execution_ids, left.is_running, left.attempts) == (ids, False, 1)


def test_what_a_link_of_a_chain_has_left_waits_alone(world, ids):
    world.start(ids[0])
    world.close([ids[0]], Outcome(Status.SUCCESS))

    (left,) = done(world.slots.recover(T0 + 1 * MIN)).left

    assert left.execution_ids == ids[1:]


def test_what_a_person_asked_for_is_not_begun_behind_their_back(world):
    power = world.add("Optical power")
    world.wish(power, T0)
    (id_,) = world.claim(by_hand(power, slot=T0)).execution_ids

    recovery = done(world.slots.recover(T0 + 1 * MIN))

    assert (recovery.interrupted, recovery.left) == (1, ())
    assert world.row(id_).cause is Cause.ENGINE_DOWN


def test_who_runs_it_is_written_down_when_it_begins(world, ids):
    done(world.runs.start(ids[0], lease=world.lease(), now=T0, poller_id=17))

    assert [world.row(id_).poller_id for id_ in ids] == [17, 3]


def test_who_lost_the_olt_to_another_can_end_nothing_although_that_one_has_not_begun(world, ids):
    world.start(ids[0])
    world.taken_over()

    world.close(ids, Outcome(Status.SUCCESS))
    world.put_off(ids, SILENT, retry_at=T0 + 2 * MIN)

    assert [outcome.status for outcome in progress(world, ids)] == [Status.RUNNING, Status.PENDING]
