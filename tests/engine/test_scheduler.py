"""Ticks: what is offered when, and what a change in the database does."""

import asyncio
from dataclasses import replace

import pytest
from builders import HOUR, MIN, SEC, T0, World, make_node

from facho.engine.model import Cause, Outcome, Status, Trigger


def lived(clock, virtually, span, nodes, **more):
    """Return a world after it has run for a while."""

    async def story():
        world = World(clock, nodes, **more)
        await world.run_for(span)
        return world

    return virtually(story())


def slots(rows, node_id, *statuses):
    return [row.slot for row in rows if row.node.id == node_id and (not statuses or row.status in statuses)]


def test_five_minutes_are_twelve_runs_an_hour_however_long_a_run_takes(clock, virtually):
    world = lived(
        clock, virtually, 2 * HOUR + 1 * SEC, [make_node(1, next_check=T0 + 5 * MIN)], seconds=lambda node, slot: 40.0
    )

    assert slots(world.rows, 1) == [T0 + n * 5 * MIN for n in range(1, 25)]


def test_a_new_node_runs_first_after_a_minute_and_its_share_of_the_spread(clock, virtually):
    world = lived(clock, virtually, 3 * MIN, [make_node(7)])

    (slot,) = slots(world.rows, 7)
    assert T0 + 1 * MIN <= slot <= T0 + 2 * MIN


def test_a_failing_node_without_retries_waits_for_its_next_slot(clock, virtually):
    node = make_node(1, next_check=T0, retries=0)
    world = lived(clock, virtually, 9 * MIN, [node], outcome=lambda node, slot: Outcome(Status.FAILED))

    assert slots(world.rows, 1, Status.FAILED) == [T0, T0 + 5 * MIN]


def test_slots_that_pass_while_the_olt_is_busy_are_skipped_with_that_cause(clock, virtually):
    long = make_node(1, next_check=T0, priority=90, interval=HOUR)
    short = make_node(2, next_check=T0, interval=1 * MIN)
    world = lived(clock, virtually, 5 * MIN, [long, short], seconds=lambda node, slot: 210.0 if node.id == 1 else 1.0)

    skipped = [row for row in world.rows if row.node.id == 2 and row.status is Status.SKIPPED]
    assert [(row.slot, row.slots, row.cause) for row in skipped] == [
        (T0 + n * MIN, 1, Cause.OLT_BUSY) for n in range(3)
    ]
    assert slots(world.rows, 2, Status.SUCCESS) == [T0 + 3 * MIN, T0 + 4 * MIN]


def test_slots_lost_while_the_engine_was_down_are_accounted_for_and_not_made_up(clock, virtually):
    world = lived(clock, virtually, 4 * MIN, [make_node(1, next_check=T0 - 62 * MIN)])

    (lost, *ran) = world.rows
    assert (lost.status, lost.cause, lost.slot, lost.slots) == (
        Status.SKIPPED,
        Cause.ENGINE_DOWN,
        T0 - 62 * MIN,
        13,
    )
    assert [row.slot for row in ran] == [T0 + 3 * MIN]


@pytest.mark.parametrize(
    ("opened", "cause"),
    [
        pytest.param(T0 - 62 * MIN, Cause.BREAKER_OPEN, id="before the slot"),
        pytest.param(T0 - 61 * MIN, Cause.ENGINE_DOWN, id="after the slot"),
    ],
)
def test_slots_that_an_open_breaker_kept_are_not_put_down_to_the_restart(clock, virtually, opened, cause):
    async def story():
        world = World(clock, [make_node(1, olt_id=7, next_check=T0 - 62 * MIN)])
        world.nodes.breakers[7] = opened
        await world.run_for(10 * SEC)
        return world.rows

    (lost,) = virtually(story())

    assert (lost.status, lost.cause, lost.slots) == (Status.SKIPPED, cause, 13)


def test_a_slot_that_passed_during_a_quick_restart_still_runs(clock, virtually):
    world = lived(clock, virtually, 1 * MIN, [make_node(1, next_check=T0 - 8 * SEC)])

    assert slots(world.rows, 1, Status.SUCCESS) == [T0 - 8 * SEC]


def test_a_hundred_wishes_for_a_run_give_one_run_and_leave_the_grid_alone(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 5 * MIN)])
        await world.run_for(10 * SEC)
        asked = [world.nodes.request_run(1, clock.now()) for _ in range(100)]
        await world.run_for(6 * MIN)
        return world, asked

    world, asked = virtually(story())

    assert asked.count(True) == 1
    assert [(row.slot, row.trigger) for row in world.rows] == [
        (T0 + 10 * SEC, Trigger.MANUAL),
        (T0 + 5 * MIN, Trigger.SCHEDULE),
    ]


def test_a_manual_run_of_a_master_brings_its_chain_and_one_of_a_link_comes_alone(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + HOUR), make_node(2, master_id=1)])
        await world.run_for(5 * SEC)
        world.nodes.request_run(1, clock.now())
        await world.run_for(10 * SEC)
        world.nodes.request_run(2, clock.now())
        await world.run_for(10 * SEC)
        return world

    world = virtually(story())

    assert world.runner.ran == [1, 2, 2]
    assert [row.master_id for row in world.rows] == [None, 0, None]


def test_a_disabled_olt_is_let_go_at_the_next_tick_and_starts_afresh_when_enabled(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 1 * MIN)])
        await world.run_for(2 * MIN)
        world.nodes.enable(1, False)
        await world.run_for(HOUR)
        world.nodes.enable(1)
        await world.run_for(3 * MIN)
        return world

    world = virtually(story())

    first, second = slots(world.rows, 1)
    assert first == T0 + 1 * MIN
    assert T0 + 63 * MIN <= second <= T0 + 64 * MIN


def test_a_slot_that_was_waiting_when_its_node_was_disabled_is_accounted_for(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0, priority=90), make_node(2, next_check=T0)]
        world = World(clock, nodes, seconds=lambda node, slot: 100.0)
        await world.run_for(5 * SEC)
        world.nodes.disable_node(2)
        await world.run_for(200 * SEC)
        return world

    world = virtually(story())

    (row,) = [row for row in world.rows if row.node.id == 2]
    assert (row.slot, row.status, row.cause) == (T0, Status.SKIPPED, Cause.DISABLED)
    assert world.nodes.rows[2].next_check is None


def test_a_new_interval_takes_effect_without_a_burst(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, interval=HOUR, next_check=T0 + 50 * MIN)])
        await world.run_for(1 * MIN)
        world.nodes.put(replace(world.nodes.rows[1], interval=10 * MIN))
        await world.run_for(30 * MIN)
        return world

    world = virtually(story())

    assert slots(world.rows, 1) == [T0 + 10 * MIN, T0 + 20 * MIN, T0 + 30 * MIN]


def test_a_queued_composite_runs_as_it_is_set_up_when_its_turn_comes(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0, priority=90), make_node(2, next_check=T0)]
        world = World(clock, nodes, seconds=lambda node, slot: 30.0 if node.id == 1 else 1.0)
        await world.run_for(5 * SEC)
        world.nodes.put(make_node(3, master_id=2))
        await world.run_for(60 * SEC)
        return world

    world = virtually(story())

    assert world.runner.ran == [1, 2, 3]


def test_a_slot_somebody_else_took_is_not_run_again(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 1 * MIN)])
        await world.run_for(5 * SEC)
        # As an engine on another machine would: the row moves on, the revision does not.
        world.nodes.rows[1] = replace(world.nodes.rows[1], next_check=T0 + 6 * MIN)
        await world.run_for(10 * MIN)
        return world

    world = virtually(story())

    assert slots(world.rows, 1) == [T0 + 6 * MIN]


def test_stopping_interrupts_what_runs_and_begins_nothing_new(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0), make_node(2, olt_id=2, next_check=T0)]
        world = World(clock, nodes, pollers=1, seconds=lambda node, slot: 1000.0)
        await world.run_for(5 * SEC)
        await world.scheduler.manager.stop()
        await asyncio.sleep(10)
        return world

    world = virtually(story())

    assert world.runner.ran == [1]


def test_a_database_that_is_unavailable_is_waited_for_and_nothing_is_lost(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 10 * SEC)])
        await world.run_for(5 * SEC)
        claim, standings = world.slots.claim, world.nodes.standings
        calls = []

        async def away(*args, **kwargs):
            calls.append(clock.now())
            raise OSError("the database is away")

        world.slots.claim = world.nodes.standings = away
        await world.run_for(60 * SEC)
        world.slots.claim, world.nodes.standings = claim, standings
        await world.run_for(10 * SEC)
        return world, len(calls)

    world, calls = virtually(story())

    assert slots(world.rows, 1, Status.SUCCESS) == [T0 + 10 * SEC]
    assert calls < 150


def test_rows_are_looked_at_every_four_seconds_though_no_tick_is_as_late_as_the_one_before(clock, virtually):
    looks = []

    async def story():
        world = World(clock, [make_node(1, next_check=T0 + HOUR)])

        async def fingerprints(look=world.nodes.fingerprints):
            looks.append(round((clock.now() - T0).total_seconds()))
            return await look()

        world.nodes.fingerprints = fingerprints
        for _ in range(13):
            await world.scheduler.step()
            await clock.sleep(0.999)

    virtually(story())

    assert looks == [0, 4, 8, 12]


def test_a_change_is_passed_on_with_the_tick_that_sees_it(clock, virtually):
    async def story():
        world = World(clock, [make_node(1), make_node(2, olt_id=2)])
        await world.run_for(9 * SEC)
        world.nodes.disable_node(1)
        await world.run_for(2 * SEC)
        world.nodes.breakers[2] = clock.now()
        await world.run_for(2 * SEC)
        del world.nodes.breakers[2]
        await world.run_for(2 * SEC)
        return world.changed

    changed = virtually(story())

    assert [at - T0 for at, olt_ids in changed if 1 in olt_ids][:2] == [0 * SEC, 9 * SEC]
    assert [at - T0 for at, olt_ids in changed if 2 in olt_ids] == [0 * SEC, 11 * SEC, 13 * SEC]
