"""Pollers that come and go: a pool that follows its workers, and loses nothing by it."""

import asyncio

from builders import MIN, SEC, T0, World, make_node

from facho.engine.model import Cause, Outcome, Status
from facho.engine.scheduler import Scheduler


def four_olts():
    return [make_node(number, olt_id=number, next_check=T0) for number in range(1, 5)]


def statuses(world):
    return sorted((row.node.id, row.status) for row in world.ledger.rows)


def test_without_pollers_everything_waits_for_one(clock, virtually):
    async def story():
        world = World(clock, four_olts(), pollers=0, seconds=lambda node, slot: 2.0)
        await world.run_for(20 * SEC)
        return world, len(world.scheduler.manager.queue)

    world, waiting = virtually(story())

    assert (waiting, world.ledger.rows) == (4, [])


def test_what_waited_runs_when_a_worker_comes_and_says_what_it_waited_for(clock, virtually):
    async def story():
        world = World(clock, four_olts(), pollers=0, seconds=lambda node, slot: 2.0)
        await world.run_for(20 * SEC)
        world.scheduler.manager.resize(4)
        await world.run_for(10 * SEC)
        return world

    world = virtually(story())

    assert [status for _, status in statuses(world)] == [Status.SUCCESS] * 4
    assert all(max(row.waits, key=row.waits.get) is Cause.NO_FREE_POLLER for row in world.ledger.rows)


def test_a_pool_that_shrinks_finishes_what_runs_and_gives_out_no_more(clock, virtually):
    async def story():
        world = World(clock, four_olts(), pollers=3, seconds=lambda node, slot: 10.0)
        manager = world.scheduler.manager
        await world.run_for(2 * SEC)
        manager.resize(1)
        busy = [sum(not poller.is_free for poller in manager.pollers)]
        await world.run_for(10 * SEC)
        busy.append(sum(not poller.is_free for poller in manager.pollers))
        size = len(manager.pollers)
        await world.run_for(30 * SEC)
        return world, busy, size

    world, busy, size = virtually(story())

    assert (busy, size) == ([3, 1], 1)
    assert [status for _, status in statuses(world)] == [Status.SUCCESS] * 4


def test_a_pool_without_pollers_is_saturated_only_while_somebody_waits(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 2 * MIN)], pollers=0, seconds=lambda node, slot: 1.0)
        await world.run_for(90 * SEC)
        before = world.scheduler.manager.saturation.is_saturated
        await world.run_for(2 * MIN)
        return before, world.scheduler.manager.saturation.is_saturated

    assert virtually(story()) == (False, True)


def test_seats_are_handed_out_by_number_after_any_change(clock, virtually):
    async def story():
        world = World(clock, [], pollers=0)
        manager = world.scheduler.manager
        for size in (5, 2, 0, 3):
            manager.resize(size)
        return [poller.id for poller in manager.pollers]

    assert virtually(story()) == [1, 2, 3]


def test_an_olt_on_which_something_goes_on_is_left_alone_until_it_is_over(clock, virtually):
    """A scheduler that takes over finds executions that workers still run."""

    async def story():
        nodes = [make_node(1, olt_id=1, next_check=T0), make_node(2, olt_id=1, next_check=T0 + 30 * SEC)]
        world = World(clock, nodes, seconds=lambda node, slot: 120.0 if node.id == 1 else 1.0)
        await world.run_for(5 * SEC)
        world.ledger.held.add(1)
        heir = Scheduler(pollers=4, nodes=world.nodes, ledger=world.ledger, runner=world.runner, clock=clock)
        task = asyncio.ensure_future(heir.run())
        await clock.sleep(60)
        meanwhile = list(world.runner.ran)
        await clock.sleep(90)
        task.cancel()
        return world, meanwhile

    world, meanwhile = virtually(story())

    assert meanwhile == [1]
    assert world.runner.ran == [1, 2]
    assert [row.status for row in world.rows] == [Status.SUCCESS, Status.SUCCESS]


def test_what_an_earlier_scheduler_would_have_tried_again_ends_as_it_stands(clock, virtually):
    async def story():
        silent = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")
        node = make_node(1, olt_id=1, next_check=T0)
        world = World(clock, [node], seconds=lambda node, slot: 20.0, outcome=lambda node, slot: silent)
        await world.run_for(5 * SEC)
        world.ledger.held.add(1)
        heir = Scheduler(pollers=4, nodes=world.nodes, ledger=world.ledger, runner=world.runner, clock=clock)
        task = asyncio.ensure_future(heir.run())
        await clock.sleep(30)
        task.cancel()
        return world.rows[0], heir.manager.is_busy(1)

    row, is_busy = virtually(story())

    assert (row.status, row.cause, row.retry_at) == (Status.FAILED, Cause.UNREACHABLE, None)
    assert not is_busy
