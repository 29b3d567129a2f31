"""What slots and runs promise: each slot once, each execution ended once, and never two at a time on one OLT."""

import pytest
from builders import MIN, SEC, T0
from worlds import OLD, PRESENT, WORLDS, by_hand, done, scheduled

from facho.engine.errors import OltBusy
from facho.engine.model import Cause, Outcome, Skipped, Status, Trigger

SUCCESS = Outcome(Status.SUCCESS)


@pytest.fixture(params=WORLDS)
def world(request, db):
    return request.param()


@pytest.fixture
def power(world):
    return world.add("Optical power", next_check=T0)


def test_a_claim_opens_one_pending_execution(world, power):
    claim = world.claim(scheduled(power), now=T0 + 2 * SEC, waits={Cause.OLT_BUSY: 1.5, Cause.NO_FREE_POLLER: 0.5})

    (row,) = world.rows()
    assert claim.execution_ids == (row.id,)
    assert (row.node_id, row.slot, row.status, row.poller_id) == (power.id, T0, Status.PENDING, 3)
    assert (row.trigger, row.claimed_at, row.started_at) == (Trigger.SCHEDULE, T0 + 2 * SEC, None)
    assert row.waits == {"olt_busy": 1.5, "no_free_poller": 0.5}


def test_a_slot_delivered_three_times_runs_once(world, power):
    claims = [world.claim(scheduled(power)) for _ in range(3)]

    assert [claim is None for claim in claims] == [False, True, True]
    assert len(world.rows()) == 1


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        pytest.param(0 * SEC, T0 + 5 * MIN, id="in time"),
        pytest.param(40 * SEC, T0 + 5 * MIN, id="a little late"),
        pytest.param(5 * MIN, T0 + 10 * MIN, id="as the next one is due"),
        pytest.param(17 * MIN, T0 + 20 * MIN, id="three slots late"),
    ],
)
def test_the_next_slot_is_fixed_when_one_is_claimed(world, power, late, expected):
    claim = world.claim(scheduled(power), now=T0 + late)

    assert claim.next_check == expected
    assert world.now_of(power) == (expected, None)


def test_slots_slept_through_are_put_down_to_the_longest_wait(world, power):
    waits = {Cause.SCHEDULER_LATE: 1.0, Cause.OLT_BUSY: 700.0, Cause.NO_FREE_POLLER: 319.0}

    claim = world.claim(scheduled(power), now=T0 + 17 * MIN, waits=waits)

    (skipped,) = [row for row in world.rows() if row.id not in claim.execution_ids]
    assert (skipped.status, skipped.cause) == (Status.SKIPPED, Cause.OLT_BUSY)
    assert (skipped.slot, skipped.slots) == (T0 + 5 * MIN, 3)


def test_a_claim_in_time_skips_nothing(world, power):
    world.claim(scheduled(power), now=T0 + 4 * MIN)

    assert [row.status for row in world.rows()] == [Status.PENDING]


def test_each_link_gets_an_execution_in_the_same_poller_under_its_master(world, power):
    names = world.add("Names", master_id=power.id)
    software = world.add("Software", master_id=power.id)

    claim = world.claim(scheduled(power, names, software), waits={Cause.OLT_BUSY: 2.0})

    rows = world.rows()
    master = rows[0].id
    assert claim.execution_ids == tuple(row.id for row in rows)
    assert [row.node_id for row in rows] == [power.id, names.id, software.id]
    assert [row.master_id for row in rows] == [None, master, master]
    assert {row.poller_id for row in rows} == {3}
    assert [row.waits for row in rows] == [{"olt_busy": 2.0}, {}, {}]


def test_a_manual_run_clears_the_wish_and_leaves_the_grid_alone(world):
    power = world.add("Optical power", next_check=T0 + 3 * MIN)
    world.wish(power, T0)

    claim = world.claim(by_hand(power), now=T0 + 1 * SEC)

    assert claim.next_check is None
    assert world.now_of(power) == (T0 + 3 * MIN, None)
    assert [(row.slot, row.trigger) for row in world.rows()] == [(T0, Trigger.MANUAL)]


def test_a_manual_run_that_waited_for_long_skips_no_slots(world):
    power = world.add("Optical power", next_check=T0 + 3 * MIN)
    world.wish(power, T0)

    world.claim(by_hand(power), now=T0 + 60 * MIN, waits={Cause.OLT_BUSY: 3600.0})

    assert [row.status for row in world.rows()] == [Status.PENDING]


def test_a_wish_is_served_once(world, power):
    world.wish(power, T0 - 1 * SEC)
    wished = by_hand(power, slot=T0 - 1 * SEC)

    claims = [world.claim(wished), world.claim(wished)]

    assert claims[0] is not None
    assert claims[1] is None


def test_a_scheduled_run_serves_a_wish_as_well(world, power):
    world.wish(power, T0 - 1 * SEC)

    world.claim(scheduled(power))

    assert world.now_of(power) == (T0 + 5 * MIN, None)
    assert world.claim(by_hand(power, slot=T0 - 1 * SEC)) is None


def test_a_chained_node_run_by_hand_has_no_next_slot(world, power):
    names = world.add("Names", master_id=power.id)
    world.wish(names, T0)

    claim = world.claim(by_hand(names))

    assert claim.next_check is None
    assert world.now_of(names) == (None, None)
    assert [row.master_id for row in world.rows()] == [None]


def test_nothing_is_claimed_on_a_disabled_olt(world, power):
    world.disable()

    assert world.claim(scheduled(power)) is None
    assert world.rows() == []


def test_nothing_is_claimed_for_a_node_that_was_deleted(world, power):
    world.delete(power)

    assert world.claim(scheduled(power)) is None
    assert world.rows() == []


def test_a_node_that_is_due_at_another_time_is_not_claimed(world, power):
    world.reschedule({power.id: T0 + 1 * MIN})

    assert world.claim(scheduled(power)) is None
    assert world.now_of(power) == (T0 + 1 * MIN, None)


def test_a_claim_that_cannot_have_all_its_links_changes_nothing(world, power):
    names = world.add("Names", master_id=power.id)
    world.reschedule({}, Skipped(names, T0, 1, Cause.DISABLED))

    assert world.claim(scheduled(power, names)) is None
    assert world.now_of(power) == (T0, None)
    assert [row.status for row in world.rows()] == [Status.SKIPPED]


def test_scheduling_sets_and_takes_away_when_a_master_is_due(world, power):
    names = world.add("Names", master_id=power.id)

    world.reschedule({power.id: T0 + 7 * SEC, names.id: T0 + 7 * SEC, 999_999: T0})
    due = world.now_of(power)[0]
    world.reschedule({power.id: None})

    assert due == T0 + 7 * SEC
    assert world.now_of(power)[0] is None
    assert world.now_of(names)[0] is None


def test_skipped_slots_are_written_once(world, power):
    lost = Skipped(power, T0, 12, Cause.ENGINE_DOWN)

    world.reschedule({}, lost)
    world.reschedule({}, lost)

    (row,) = world.rows()
    assert (row.slot, row.slots, row.status, row.cause) == (T0, 12, Status.SKIPPED, Cause.ENGINE_DOWN)
    assert (row.started_at, row.poller_id) == (None, None)


def test_no_slots_and_deleted_nodes_leave_no_rows(world, power):
    names = world.add("Names", master_id=power.id)
    world.delete(names)

    world.reschedule({}, Skipped(power, T0, 0, Cause.OLT_BUSY), Skipped(names, T0, 1, Cause.DISABLED))

    assert world.rows() == []


def test_a_claimed_execution_starts_once(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids

    begun = [
        world.start(id_, now=T0 + 1 * SEC),
        # Who has begun it, and did not hear of it, is told again. Anybody else comes too late.
        world.start(id_, now=T0 + 2 * SEC),
        world.start(id_, now=T0 + 3 * SEC, token=PRESENT - 1),
    ]

    row = world.row(id_)
    assert begun == [True, True, False]
    assert (row.status, row.started_at, row.token) == (Status.RUNNING, T0 + 1 * SEC, PRESENT)


def test_an_execution_that_was_ended_does_not_start(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.close([id_], Outcome(Status.INTERRUPTED, Cause.STOPPED), token=None)

    assert world.start(id_) is False
    assert world.row(id_).status is Status.INTERRUPTED


def test_an_olt_never_has_two_executions_running(world, power):
    names = world.add("Names", next_check=T0)
    first, second = (world.claim(scheduled(node)).execution_ids[0] for node in (power, names))
    world.start(first)

    with pytest.raises(OltBusy):
        world.start(second)

    assert world.row(first).status is Status.RUNNING
    assert world.row(second).status is Status.PENDING


def test_an_older_holder_cannot_push_the_present_one_aside(world, power):
    names = world.add("Names", next_check=T0)
    first, second = (world.claim(scheduled(node)).execution_ids[0] for node in (power, names))
    world.start(first)

    with pytest.raises(OltBusy):
        world.start(second, token=OLD)


def test_the_next_link_starts_when_the_one_before_has_ended(world, power):
    names = world.add("Names", master_id=power.id)
    first, second = world.claim(scheduled(power, names)).execution_ids
    world.start(first)
    world.close([first], SUCCESS)

    assert world.start(second) is True


def test_closing_writes_how_it_ended(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)

    world.close([id_], Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer"), now=T0 + 9 * SEC)

    row = world.row(id_)
    assert (row.status, row.cause, row.ended_at) == (Status.FAILED, Cause.UNREACHABLE, T0 + 9 * SEC)


def test_what_a_holder_of_an_older_lease_says_is_not_written(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_, token=PRESENT)

    world.close([id_], SUCCESS, token=OLD)
    world.close([id_], SUCCESS, token=None)

    assert world.row(id_).status is Status.RUNNING


def test_an_execution_ends_once(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)
    world.close([id_], SUCCESS, now=T0 + 1 * SEC)

    world.close([id_], Outcome(Status.INTERRUPTED, Cause.STOPPED), now=T0 + 2 * SEC)

    row = world.row(id_)
    assert (row.status, row.cause, row.ended_at) == (Status.SUCCESS, None, T0 + 1 * SEC)


def test_several_end_together_whether_they_have_begun_or_not(world, power):
    names = world.add("Names", master_id=power.id)
    ids = world.claim(scheduled(power, names)).execution_ids
    world.start(ids[0])

    world.close(ids, Outcome(Status.INTERRUPTED, Cause.STOPPED))

    assert [(row.status, row.cause) for row in world.rows()] == [(Status.INTERRUPTED, Cause.STOPPED)] * 2


def test_what_was_never_begun_can_be_ended_without_a_lease(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids

    world.close([id_], Outcome(Status.SKIPPED, Cause.DISABLED), token=None)

    assert world.row(id_).status is Status.SKIPPED


def test_recovering_interrupts_everything_a_dead_engine_left_open(world, power):
    names = world.add("Names", master_id=power.id)
    ended = world.add("Software", next_check=T0)
    (finished,) = world.claim(scheduled(ended)).execution_ids
    world.start(finished)
    world.close([finished], SUCCESS)
    running, pending = world.claim(scheduled(power, names)).execution_ids
    world.start(running)

    counts = [done(world.slots.recover(T0 + 1 * MIN)).interrupted for _ in range(2)]

    assert counts == [2, 0]
    assert world.row(finished).status is Status.SUCCESS
    for id_ in (running, pending):
        row = world.row(id_)
        assert (row.status, row.cause, row.ended_at) == (Status.INTERRUPTED, Cause.ENGINE_DOWN, T0 + 1 * MIN)


def test_after_recovering_the_olt_can_be_polled_again(world, power):
    (left,) = world.claim(scheduled(power)).execution_ids
    world.start(left)
    done(world.slots.recover(T0))

    (next_one,) = world.claim(scheduled(power, slot=T0 + 5 * MIN)).execution_ids

    assert world.start(next_one, token=PRESENT + 1) is True


def test_an_execution_left_running_by_an_older_holder_does_not_block_its_olt(world, power):
    """As after a close that the database missed: the lease is given up, the row still says RUNNING."""
    (left,) = world.claim(scheduled(power)).execution_ids
    world.start(left, token=OLD)
    (next_one,) = world.claim(scheduled(power, slot=T0 + 5 * MIN)).execution_ids

    begun = world.start(next_one, token=PRESENT, now=T0 + 5 * MIN)
    world.close([left], SUCCESS, token=OLD)

    row = world.row(left)
    assert begun is True
    assert (row.status, row.cause, row.ended_at) == (Status.INTERRUPTED, Cause.LEASE_LOST, T0 + 5 * MIN)
