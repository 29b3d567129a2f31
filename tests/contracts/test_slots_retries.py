"""What slots and runs promise about further attempts, and about what a person no longer wants."""

import pytest
from builders import MIN, SEC, T0
from worlds import OLD, PRESENT, WORLDS, by_hand, done, scheduled

from facho.engine.model import Cause, Outcome, Status

SUCCESS = Outcome(Status.SUCCESS)
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")
LATER = T0 + 2 * MIN


@pytest.fixture(params=WORLDS)
def world(request, db):
    return request.param()


@pytest.fixture
def power(world):
    return world.add("Optical power", next_check=T0)


@pytest.fixture
def names(world, power):
    return world.add("Names", master_id=power.id)


@pytest.fixture
def claim(world, power, names):
    """A claim of both, of which the first attempt has failed and a second is planned."""
    claim = world.claim(scheduled(power, names))
    world.start(claim.execution_ids[0], now=T0 + 1 * SEC)
    world.put_off(claim.execution_ids, SILENT, retry_at=LATER, now=T0 + 16 * SEC)
    return claim


def test_an_attempt_that_failed_leaves_its_executions_pending(world, claim):
    master, chained = world.rows()

    assert [(row.status, row.retry_at, row.token, row.ended_at) for row in (master, chained)] == [
        (Status.PENDING, LATER, None, None)
    ] * 2
    assert master.attempts == [(Status.FAILED, T0 + 1 * SEC, T0 + 16 * SEC)]
    assert chained.attempts == []


def test_only_the_holder_of_the_lease_puts_off(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_, token=PRESENT)

    world.put_off([id_], SILENT, retry_at=LATER, token=OLD)

    assert (world.row(id_).status, world.row(id_).retry_at) == (Status.RUNNING, None)


def test_what_has_ended_is_not_put_off(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)
    world.close([id_], SUCCESS)

    world.put_off([id_], SILENT, retry_at=LATER)

    assert (world.row(id_).status, world.row(id_).retry_at) == (Status.SUCCESS, None)


def test_while_it_waits_neither_its_olt_nor_its_grid_are_held(world, power, claim):
    other = world.add("Software", next_check=T0)
    (id_,) = world.claim(scheduled(other)).execution_ids

    assert world.start(id_, token=PRESENT + 1) is True
    assert world.now_of(power) == (T0 + 5 * MIN, None)


def test_pending_work_is_taken_up_once(world, claim):
    taken = [world.reclaim(claim, poller_id=5), world.reclaim(claim, poller_id=6)]

    assert taken == [True, False]
    assert [(row.status, row.poller_id, row.retry_at) for row in world.rows()] == [(Status.PENDING, 5, None)] * 2


def test_what_never_waited_is_not_taken_up(world, power):
    claim = world.claim(scheduled(power))

    assert world.reclaim(claim) is False
    assert world.rows()[0].poller_id == 3


def test_of_what_was_ended_in_part_nothing_is_taken_up(world, claim):
    world.close(claim.execution_ids[1:], Outcome(Status.SKIPPED, Cause.DISABLED), token=None)

    assert world.reclaim(claim) is False
    assert (world.rows()[0].retry_at, world.rows()[0].poller_id) == (LATER, 3)


def test_a_further_attempt_counts_on_and_keeps_the_first_start(world, claim):
    master = claim.execution_ids[0]
    world.reclaim(claim)

    world.start(master, token=PRESENT + 1, now=LATER)
    world.close([master], SUCCESS, token=PRESENT + 1, now=LATER + 9 * SEC)

    row = world.row(master)
    assert (row.status, row.started_at, row.ended_at) == (Status.SUCCESS, T0 + 1 * SEC, LATER + 9 * SEC)
    assert row.attempts == [
        (Status.FAILED, T0 + 1 * SEC, T0 + 16 * SEC),
        (Status.SUCCESS, LATER, LATER + 9 * SEC),
    ]


def test_an_attempt_of_an_earlier_holder_writes_nothing_any_more(world, claim):
    master = claim.execution_ids[0]
    world.reclaim(claim)
    world.start(master, token=PRESENT + 1, now=LATER)

    world.close([master], SUCCESS, token=PRESENT)

    assert world.row(master).status is Status.RUNNING


def test_pending_work_can_be_ended_without_a_lease(world, claim):
    world.close(claim.execution_ids, SILENT, token=None, now=LATER)

    assert [(row.status, row.cause, row.retry_at) for row in world.rows()] == [
        (Status.FAILED, Cause.UNREACHABLE, None)
    ] * 2


def test_pending_work_for_a_further_attempt_is_not_begun_before_it_was_taken_up(world, claim):
    master = claim.execution_ids[0]

    is_begun = [world.start(master, token=PRESENT + 1, now=LATER)]
    world.reclaim(claim)
    is_begun.append(world.start(master, token=PRESENT + 1, now=LATER))

    assert is_begun == [False, True]


def test_recovering_leaves_pending_work_for_a_further_attempt(world, claim):
    before = [(row.status, row.cause, row.retry_at) for row in world.rows()]

    recovery = done(world.slots.recover(LATER))

    assert recovery.interrupted == 0
    assert [left.execution_ids for left in recovery.left] == [claim.execution_ids]
    assert [(row.status, row.cause, row.retry_at) for row in world.rows()] == before


def test_what_was_taken_up_again_and_not_begun_is_left_with_its_error(world, claim):
    world.reclaim(claim)

    (left,) = done(world.slots.recover(LATER)).left

    stands = done(world.slots.progress(claim.execution_ids))
    assert (left.execution_ids, left.attempts) == (claim.execution_ids, 1)
    assert [stands[id_].retry_at for id_ in claim.execution_ids] == [LATER] * 2
    assert stands[claim.execution_ids[0]].as_last().status is Status.FAILED
    assert world.reclaim(claim)


def test_disabling_an_olt_interrupts_all_that_is_open_on_it(world, power, names, claim):
    running = world.add("Software", next_check=T0)
    (id_,) = world.claim(scheduled(running)).execution_ids
    world.start(id_, token=PRESENT + 1, now=T0 + 20 * SEC)
    world.wish(names, T0 + 21 * SEC)
    world.claim(by_hand(names, slot=T0 + 21 * SEC))
    world.disable()

    count = world.abort(olts=[world.olt_id], now=T0 + 30 * SEC)

    assert count == 4
    assert {(row.status, row.cause, row.ended_at, row.retry_at) for row in world.rows()} == {
        (Status.INTERRUPTED, Cause.DISABLED, T0 + 30 * SEC, None)
    }
    assert world.row(id_).attempts == [(Status.INTERRUPTED, T0 + 20 * SEC, T0 + 30 * SEC)]


def test_after_an_abort_what_the_runner_says_is_not_written(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)
    world.disable()
    world.abort(olts=[world.olt_id])

    world.close([id_], SUCCESS)

    assert world.row(id_).status is Status.INTERRUPTED


def test_disabling_a_node_ends_pending_work_of_it_and_of_its_chain(world, power, claim):
    world.disable_node(power)

    count = world.abort(nodes=[power], now=LATER)

    assert count == 2
    assert {(row.status, row.cause) for row in world.rows()} == {(Status.INTERRUPTED, Cause.DISABLED)}


def test_disabling_a_node_lets_what_runs_come_to_its_end(world, power, names):
    ids = world.claim(scheduled(power, names)).execution_ids
    world.start(ids[0])

    count = world.abort(nodes=[power])

    assert count == 1
    assert [row.status for row in world.rows()] == [Status.RUNNING, Status.INTERRUPTED]


def test_disabling_a_link_leaves_its_master_alone(world, power, names):
    ids = world.claim(scheduled(power, names)).execution_ids

    count = world.abort(nodes=[names])

    assert count == 1
    assert [world.row(id_).status for id_ in ids] == [Status.PENDING, Status.INTERRUPTED]


def test_aborting_one_olt_or_node_leaves_others_alone(world, power, claim):
    other = world.add("Software", next_check=T0)

    assert world.abort(nodes=[other]) == 0
    assert world.abort(olts=[world.olt_id + 1]) == 0
    assert {row.status for row in world.rows()} == {Status.PENDING}


def test_what_was_aborted_does_not_start(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.abort(nodes=[power])

    assert world.start(id_) is False


@pytest.mark.parametrize("by", [60 * MIN, -60 * MIN], ids=["forward", "back"])
def test_pending_work_moves_with_the_clock_and_keeps_its_slot(world, claim, by):
    done(world.slots.move(claim.execution_ids, by))

    master = world.rows()[0]
    assert (master.slot, master.retry_at, master.started_at) == (T0, LATER + by, T0 + 1 * SEC + by)
    assert master.attempts == [(Status.FAILED, T0 + 1 * SEC + by, T0 + 16 * SEC + by)]


def test_what_does_not_wait_stays_when_the_clock_is_set(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)

    done(world.slots.move([id_], 60 * MIN))

    assert world.row(id_).started_at == T0


@pytest.mark.parametrize("by", [60 * MIN, -60 * MIN, -3 * SEC], ids=["forward", "back", "three seconds back"])
def test_a_run_is_as_long_as_it_was_measured_whatever_the_clock_says(world, claim, by):
    master = claim.execution_ids[0]
    world.reclaim(claim)
    world.start(master, token=PRESENT + 1, now=LATER)

    ended = LATER + 9 * SEC + by
    world.close([master], Outcome(Status.SUCCESS, seconds=9.0, clock_set=by), token=PRESENT + 1, now=ended)

    row = world.row(master)
    assert (row.started_at, row.ended_at) == (T0 + 1 * SEC + by, ended)
    assert row.attempts == [
        (Status.FAILED, T0 + 1 * SEC + by, T0 + 16 * SEC + by),
        (Status.SUCCESS, LATER + by, ended),
    ]


def test_a_start_that_had_to_be_repeated_moves_no_times(world, power):
    """The connection broke after the commit of the first call; the run itself began with the second one."""
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_, now=T0 + 1 * SEC)
    world.start(id_, now=T0 + 3 * SEC)

    world.close([id_], Outcome(Status.SUCCESS, seconds=4.0), now=T0 + 7 * SEC)

    row = world.row(id_)
    assert (row.claimed_at, row.started_at, row.ended_at) == (T0, T0 + 1 * SEC, T0 + 7 * SEC)
    assert row.attempts == [(Status.SUCCESS, T0 + 1 * SEC, T0 + 7 * SEC)]


def test_slots_ahead_that_have_an_execution_are_known(world, power, names):
    world.claim(scheduled(power, names))

    assert done(world.slots.taken([power.id, names.id], after=T0 - 1 * SEC)) == {power.id: {T0}, names.id: {T0}}
    assert done(world.slots.taken([power.id], after=T0)) == {}
    assert done(world.slots.taken([names.id], after=T0 - 1 * SEC)) == {names.id: {T0}}
