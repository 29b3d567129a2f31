"""Pollers that come and go: a pool that follows its workers, and loses nothing by it."""

from builders import MIN, SEC, T0, World, make_node

from facho.engine.model import Cause, Status
from facho.engine.scheduling.pollers import PoolSize


def four_olts():
    return [make_node(number, olt_id=number, next_check=T0) for number in range(1, 5)]


def statuses(world):
    return sorted((row.node.id, row.status) for row in world.slots.rows)


def test_without_pollers_everything_waits_for_one(clock, virtually):
    async def story():
        world = World(clock, four_olts(), pollers=0, seconds=lambda node, slot: 2.0)
        await world.run_for(20 * SEC)
        return world, len(world.scheduler.manager.queue)

    world, waiting = virtually(story())

    assert (waiting, world.slots.rows) == (4, [])


def test_what_waited_runs_when_a_worker_comes_and_says_what_it_waited_for(clock, virtually):
    async def story():
        world = World(clock, four_olts(), pollers=0, seconds=lambda node, slot: 2.0)
        await world.run_for(20 * SEC)
        world.scheduler.manager.resize(4)
        await world.run_for(10 * SEC)
        return world

    world = virtually(story())

    assert [status for _, status in statuses(world)] == [Status.SUCCESS] * 4
    assert all(max(row.waits, key=row.waits.get) is Cause.NO_FREE_POLLER for row in world.slots.rows)


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


def busy(world):
    return sum(not poller.is_free for poller in world.scheduler.manager.pollers)


def test_an_automatic_pool_grows_with_what_is_due_and_shrinks_when_it_was_not_needed_for_a_while(clock, virtually):
    fleet = [make_node(number, olt_id=number, interval=60 * MIN, next_check=T0) for number in range(1, 31)]

    async def story():
        world = World(clock, fleet, pollers=10, size=PoolSize(10, 200), seconds=lambda node, slot: 20.0)
        await world.run_for(5 * SEC)
        during = busy(world), len(world.scheduler.manager.pollers)
        await world.run_for(9 * MIN)
        held = len(world.scheduler.manager.pollers)
        await world.run_for(3 * MIN)
        return world, during, held, len(world.scheduler.manager.pollers)

    world, during, held, after = virtually(story())

    assert during == (30, 40)
    assert (held, after) == (40, 10)
    assert {row.started_at - row.slot < 5 * SEC for row in world.slots.rows} == {True}
    assert not world.scheduler.manager.saturation.is_saturated


def test_an_automatic_pool_stops_at_its_limit_and_is_saturated_then(clock, virtually):
    fleet = [make_node(number, olt_id=number, interval=60 * MIN, next_check=T0) for number in range(1, 31)]

    async def story():
        world = World(clock, fleet, pollers=2, size=PoolSize(2, 8), seconds=lambda node, slot: 60.0)
        await world.run_for(70 * SEC)
        return busy(world), len(world.scheduler.manager.pollers), world.scheduler.manager.saturation.is_saturated

    assert virtually(story()) == (8, 8, True)


def test_an_automatic_pool_does_not_grow_while_the_process_is_short_of_cpu(clock, virtually):
    fleet = [make_node(number, olt_id=number, interval=60 * MIN, next_check=T0) for number in range(1, 31)]
    lag = 0.3

    async def story():
        nonlocal lag
        size = PoolSize(10, 200, lambda: lag)
        world = World(clock, fleet, pollers=10, size=size, seconds=lambda node, slot: 20.0)
        await world.run_for(5 * SEC)
        during = busy(world)
        lag = 0.0
        await world.run_for(5 * SEC)
        return during, busy(world)

    assert virtually(story()) == (10, 30)


def test_a_pool_with_a_number_keeps_it(clock, virtually):
    async def story():
        world = World(clock, four_olts(), pollers=2, seconds=lambda node, slot: 10.0)
        await world.run_for(5 * SEC)
        return busy(world), len(world.scheduler.manager.pollers)

    assert virtually(story()) == (2, 2)


def test_an_automatic_pool_that_shrank_around_a_long_run_grows_again_and_loses_nothing(clock, virtually):
    """Pollers that run something stay although the pool is smaller by now: they are not free, but they are there."""

    def fleet(numbers, due, **more):
        return [make_node(n, olt_id=n, interval=60 * MIN, next_check=due, **more) for n in numbers]

    short, long = fleet(range(1, 13), T0, priority=90), fleet(range(13, 16), T0, priority=10)
    later = fleet(range(20, 40), T0 + 10 * SEC)

    async def story():
        seconds = {node.id: 60.0 for node in long}
        world = World(
            clock,
            [*short, *long, *later],
            pollers=2,
            size=PoolSize(2, 200),
            seconds=lambda node, slot: seconds.get(node.id, 0.5),
        )
        await world.run_for(20 * SEC)
        return world

    world = virtually(story())

    assert len(world.slots.rows) == 35
    assert {row.started_at is not None and row.started_at - row.slot < 5 * SEC for row in world.slots.rows} == {True}


def test_an_automatic_pool_never_has_more_pollers_than_its_limit(clock, virtually):
    fleet = [make_node(n, olt_id=n, interval=MIN, next_check=T0 + n * SEC) for n in range(1, 50)]

    async def story():
        world = World(clock, fleet, pollers=2, size=PoolSize(2, 5), seconds=lambda node, slot: 2.0 + node.id % 7)
        most = 0
        for _ in range(120):
            await world.run_for(1 * SEC)
            most = max(most, len(world.scheduler.manager.pollers))
        return most

    assert virtually(story()) == 5
