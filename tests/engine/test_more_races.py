"""Races: a retry, a probe, a stop or a database outage during something else."""

from dataclasses import replace

import pytest
from builders import ANSWERED, HOUR, MIN, SEC, SILENT, T0, World, make_node
from test_races import accounted, slow

from facho.engine.model import Cause, Outcome, Status, Trigger
from facho.engine.scheduling.grid import Grid


async def away(*args, **kwargs):
    raise OSError("the database is away")


def attempts_of(row):
    return [attempt.started_at - T0 for attempt in row.attempts]


def silent_at_first(node, slot):
    return SILENT if slot == T0 else ANSWERED


def test_a_retry_whose_time_comes_in_the_last_second_of_its_slot_is_not_begun_after_it(clock, virtually):
    async def story():
        node = make_node(1, next_check=T0, retry_delay=298.5 * SEC)
        world = World(clock, [node], outcome=silent_at_first)
        await world.run_for(6 * MIN)
        return world

    world = virtually(story())

    assert [attempts_of(row) for row in world.rows] == [[0 * SEC], [5 * MIN]]
    assert world.rows[0].status is Status.FAILED


def test_a_retry_that_a_scheduler_comes_to_late_is_not_begun_after_its_slot(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)], outcome=silent_at_first)
        await world.run_for(10 * SEC)
        # A machine that slept.
        await clock.sleep(6 * 60)
        await world.run_for(10 * SEC)
        return world

    world = virtually(story())

    assert (world.rows[0].status, len(world.rows[0].attempts)) == (Status.FAILED, 1)
    assert all(row.ended_at for row in world.rows)


def test_a_retry_gives_way_to_the_next_slot_of_a_shorter_interval(clock, virtually):
    async def story():
        node = make_node(1, interval=HOUR, next_check=T0, retry_delay=20 * MIN)
        world = World(clock, [node], outcome=silent_at_first)
        await world.run_for(1 * MIN)
        world.nodes.put(replace(world.nodes.rows[1], interval=5 * MIN))
        await world.run_for(HOUR)
        return world

    world = virtually(story())

    first = world.rows[0]
    assert (first.status, first.cause, len(first.attempts)) == (Status.FAILED, Cause.UNREACHABLE, 1)


def test_a_run_by_hand_between_two_attempts_does_not_take_the_place_of_the_second(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)], outcome=silent_at_first)
        await world.run_for(1 * MIN)
        world.nodes.request_run(1, clock.now())
        await world.run_for(2 * MIN)
        return world

    world = virtually(story())

    assert [(row.trigger, attempts_of(row)) for row in world.rows] == [
        (Trigger.SCHEDULE, [0 * SEC, 121 * SEC]),
        (Trigger.MANUAL, [1 * MIN]),
    ]


def test_a_retry_that_is_given_out_too_late_is_not_begun_after_its_slot(clock, virtually):
    async def story():
        node = make_node(1, next_check=T0, retry_delay=297 * SEC)
        world = World(clock, [node], outcome=silent_at_first)
        await world.run_for(1 * MIN)
        world.slots.reclaim = slow(world.slots.reclaim, clock, 5)
        await world.run_for(5 * MIN)
        return world

    world = virtually(story())

    assert (world.rows[0].status, attempts_of(world.rows[0])) == (Status.FAILED, [0 * SEC])


def test_a_retry_that_cannot_be_ended_now_is_ended_when_the_database_is_back(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0), make_node(2, master_id=1)], outcome=lambda n, s: SILENT)
        await world.run_for(30 * SEC)
        # Its link was taken off, and so it is not tried again.
        world.nodes.disable_node(2)
        await world.run_for(60 * SEC)
        close, world.slots.close = world.slots.close, away
        await world.run_for(60 * SEC)
        world.slots.close = close
        await world.run_for(5 * SEC)
        return world

    world = virtually(story())

    assert [(row.status, row.cause) for row in world.rows] == [
        (Status.FAILED, Cause.UNREACHABLE),
        (Status.INTERRUPTED, Cause.DISABLED),
    ]


def test_a_poller_that_is_interrupted_before_its_first_step_is_free_again(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)])
        await world.scheduler.sync()
        world.scheduler.tick(clock.now())
        world.nodes.enable(1, False)
        world.scheduler.manager.tick()
        world.scheduler.manager.interrupt({1})
        await world.run_for(3 * SEC)
        return world

    world = virtually(story())

    assert all(poller.is_free for poller in world.scheduler.manager.pollers)
    assert accounted(world, 1) == [(T0, 1, Status.SKIPPED, Cause.DISABLED)]


def test_a_retry_whose_poller_has_not_made_its_first_step_waits_on_when_the_engine_stops(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)], outcome=lambda n, s: SILENT)
        await world.run_for(30 * SEC)
        await clock.sleep(95)
        world.scheduler.manager.tick()
        await world.scheduler.manager.stop()
        return world

    (row,) = virtually(story()).rows

    assert (row.status, row.retry_at is None, len(row.attempts)) == (Status.PENDING, False, 1)


def test_a_slot_is_accounted_for_whose_claim_failed_in_the_moment_its_olt_was_disabled(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 10 * SEC)])
        await world.run_for(10 * SEC)
        claim, world.slots.claim = world.slots.claim, slow(away, clock, 3)
        await world.run_for(1 * SEC)
        world.nodes.enable(1, False)
        await world.run_for(5 * SEC)
        world.slots.claim = claim
        await world.run_for(5 * SEC)
        return world

    world = virtually(story())

    assert accounted(world, 1) == [(T0 + 10 * SEC, 1, Status.SKIPPED, Cause.DISABLED)]


@pytest.mark.parametrize(
    ("asleep", "slots", "cause"),
    [
        pytest.param(0, 1, Cause.DISABLED, id="in the second in which it was due"),
        pytest.param(700, 3, Cause.SCHEDULER_LATE, id="after a machine that slept"),
    ],
)
def test_slots_that_nobody_came_to_are_accounted_for_when_their_olt_is_disabled(clock, virtually, asleep, slots, cause):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 10 * SEC)])
        await world.run_for(10 * SEC)
        await clock.sleep(asleep)
        world.nodes.enable(1, False)
        await world.run_for(5 * SEC)
        return world

    assert accounted(virtually(story()), 1) == [(T0 + 10 * SEC, slots, Status.SKIPPED, cause)]


def test_a_slot_expires_although_a_change_of_another_olt_cannot_be_read(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0), make_node(2, next_check=T0 + 1 * SEC, interval=1 * MIN)]
        world = World(clock, nodes, seconds=lambda node, slot: 1000.0)
        await world.run_for(5 * SEC)
        world.nodes.states = away
        world.nodes.put(make_node(3, olt_id=2))
        await world.run_for(2 * MIN)
        return world

    world = virtually(story())

    assert accounted(world, 2) == [
        (T0 + 1 * SEC, 1, Status.SKIPPED, Cause.OLT_BUSY),
        (T0 + 61 * SEC, 1, Status.SKIPPED, Cause.OLT_BUSY),
    ]


def test_a_wish_that_is_read_twice_has_waited_for_what_it_waited_for(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0, priority=90), make_node(2, next_check=T0 + HOUR, interval=HOUR)]
        world = World(clock, nodes, seconds=lambda node, slot: 30.0 if node.id == 1 else 1.0)
        await world.run_for(5 * SEC)
        world.nodes.request_run(2, clock.now())
        await world.run_for(15 * SEC)
        # Anything: the whole OLT is read again.
        world.nodes.put(make_node(3, next_check=T0 + HOUR))
        await world.run_for(60 * SEC)
        return world

    (row,) = [row for row in virtually(story()).rows if row.node.id == 2]

    assert row.trigger is Trigger.MANUAL
    assert row.waits == {Cause.OLT_BUSY: 25.0}


def test_a_second_wish_takes_the_place_of_one_that_was_taken_back(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0, priority=90), make_node(2, next_check=T0 + HOUR, interval=HOUR)]
        world = World(clock, nodes, seconds=lambda node, slot: 30.0 if node.id == 1 else 1.0)
        await world.run_for(5 * SEC)
        world.nodes.request_run(2, clock.now())
        await world.run_for(5 * SEC)
        world.nodes.put(replace(world.nodes.rows[2], run_requested_at=None))
        world.nodes.request_run(2, clock.now())
        await world.run_for(60 * SEC)
        return world

    (row,) = [row for row in virtually(story()).rows if row.node.id == 2]

    assert (row.slot, row.status) == (T0 + 10 * SEC, Status.SUCCESS)


def test_an_interval_that_changes_while_a_slot_is_claimed_takes_effect_after_it(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, interval=HOUR, next_check=T0 + 10 * SEC)])
        await world.run_for(10 * SEC)
        world.slots.claim = slow(world.slots.claim, clock, 5)
        await world.run_for(1 * SEC)
        world.nodes.put(replace(world.nodes.rows[1], interval=5 * MIN))
        await world.run_for(30 * MIN)
        return world

    slots = [slot - T0 for slot, *_ in accounted(virtually(story()), 1)]

    assert slots == [10 * SEC + number * 5 * MIN for number in range(6)]


@pytest.mark.parametrize("is_start", [True, False], ids=["at the start", "later"])
def test_a_node_due_beyond_its_interval_was_put_there_by_a_wrong_clock(is_start):
    node = make_node(1, next_check=T0 + 4 * 365 * 24 * HOUR + 90 * SEC)

    shift = Grid().compare(set(), {1: (node, ())}, {}, (), T0, is_start=is_start)

    assert shift.checks == {1: T0 + 90 * SEC}
    assert shift.skipped == []


def test_a_link_that_failed_is_tried_again_without_the_master_that_did_not(clock, virtually):
    failed = Outcome(Status.FAILED, error_class="TooLong")
    seen = []

    def outcome(node, slot):
        seen.append(node.id)
        return failed if node.id == 2 and seen.count(2) == 1 else ANSWERED

    async def story():
        world = World(clock, [make_node(1, next_check=T0), make_node(2, master_id=1)], outcome=outcome)
        await world.run_for(6 * MIN)
        return world

    world = virtually(story())

    assert seen == [1, 2, 2, 1, 2]
    assert [row.status for row in world.rows] == [Status.SUCCESS] * 4
    assert [row.slot - T0 for row in world.rows] == [0 * SEC, 0 * SEC, 5 * MIN, 5 * MIN]


def test_a_retry_of_a_node_that_was_deleted_is_over(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0), make_node(2)], outcome=lambda n, s: SILENT)
        await world.run_for(30 * SEC)
        world.nodes.remove(1)
        await world.run_for(20 * MIN)
        return world

    row = virtually(story()).rows[0]

    assert (row.status, row.cause, len(row.attempts)) == (Status.INTERRUPTED, Cause.DISABLED, 1)


def test_an_olt_disabled_while_its_retry_is_taken_up_again_is_left_alone(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)], outcome=lambda n, s: SILENT)
        await world.run_for(120 * SEC)
        world.slots.reclaim = slow(world.slots.reclaim, clock, 3)
        await world.run_for(2 * SEC)
        world.nodes.enable(1, False)
        await world.run_for(10 * MIN)
        return world

    world = virtually(story())

    (row,) = world.rows
    assert (row.status, row.cause, len(row.attempts)) == (Status.INTERRUPTED, Cause.DISABLED, 1)
    assert len(world.scheduler.manager.queue) == 0
    assert all(poller.is_free for poller in world.scheduler.manager.pollers)


def test_an_olt_disabled_while_an_attempt_is_put_off_is_not_tried_again(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)], outcome=lambda n, s: SILENT)
        world.runs.finish = slow(world.runs.finish, clock, 3)
        await world.run_for(2 * SEC)
        world.nodes.enable(1, False)
        await world.run_for(10 * MIN)
        return world

    (row,) = virtually(story()).rows

    assert (row.status, row.cause, len(row.attempts)) == (Status.INTERRUPTED, Cause.DISABLED, 1)


def test_a_wish_that_joined_a_slot_which_then_expired_is_still_first_and_served(clock, virtually):
    async def story():
        nodes = [
            make_node(1, next_check=T0, priority=90),
            make_node(2, next_check=T0 + 1 * SEC, interval=1 * MIN),
            make_node(3, next_check=T0 + 1 * SEC, interval=HOUR, priority=95),
        ]
        world = World(clock, nodes, seconds=lambda node, slot: 100.0 if node.id == 1 else 1.0, pollers=1)
        await world.run_for(5 * SEC)
        world.nodes.request_run(2, clock.now())
        await world.run_for(110 * SEC)
        return world

    world = virtually(story())

    assert world.runner.ran[:3] == [1, 2, 3]
    assert accounted(world, 2)[:2] == [
        (T0 + 1 * SEC, 1, Status.SKIPPED, Cause.OLT_BUSY),
        (T0 + 61 * SEC, 1, Status.SUCCESS, None),
    ]
    assert world.nodes.rows[2].run_requested_at is None


def test_an_execution_that_could_not_be_ended_is_interrupted_by_the_next_run_on_its_olt(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0, retries=0)])
        world.runs.finish, finish = away, world.runs.finish
        await world.run_for(10 * SEC)
        stuck = world.rows[0].status
        world.runs.finish = finish
        await world.run_for(5 * MIN)
        return stuck, world

    stuck, world = virtually(story())

    assert stuck is Status.RUNNING
    assert [(row.status, row.cause) for row in world.rows] == [
        (Status.INTERRUPTED, Cause.LEASE_LOST),
        (Status.SUCCESS, None),
    ]
