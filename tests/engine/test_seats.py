"""Pollers that come and go: a pool that follows its workers, and loses nothing by it."""

from builders import MIN, SEC, T0, World, make_node

from facho.engine.model import Cause, Status


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
