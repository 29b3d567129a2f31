"""What happens when two things happen at once: a claim and a change, a wish and a slot, a failure and a wish."""

import asyncio
from dataclasses import replace

from builders import MIN, SEC, T0, World, make_composite, make_node

from facho.engine.model import Cause, Status, Trigger
from facho.engine.scheduling.queue import NodeQueue


def slow(method, clock, seconds):
    """Return the same, as an overloaded database does it: later."""

    async def later(*args, **kwargs):
        await clock.sleep(seconds)
        return await method(*args, **kwargs)

    return later


def accounted(world, node_id):
    return [(row.slot, row.slots, row.status, row.cause) for row in world.rows if row.node.id == node_id]


def test_a_slot_refused_while_another_olt_is_read_is_not_forgotten(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, olt_id=1, next_check=T0 + 10 * SEC), make_node(2, olt_id=2)])
        await world.run_for(10 * SEC)
        # As an engine on another machine would: the row moves on, the revision does not.
        world.nodes.rows[1] = replace(world.nodes.rows[1], next_check=T0 + 5 * MIN)
        world.slots.claim = slow(world.slots.claim, clock, 2)
        await world.run_for(1 * SEC)
        world.nodes.states = slow(world.nodes.states, clock, 3)
        world.nodes.put(make_node(3, olt_id=2))
        await world.run_for(6 * MIN)
        return world

    world = virtually(story())

    assert accounted(world, 1) == [(T0 + 5 * MIN, 1, Status.SUCCESS, None)]


def test_a_slot_refused_while_its_olt_is_read_is_not_forgotten(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 10 * SEC)])
        await world.run_for(10 * SEC)
        world.nodes.rows[1] = replace(world.nodes.rows[1], next_check=T0 + 5 * MIN)
        world.slots.claim = slow(world.slots.claim, clock, 2)
        await world.run_for(1 * SEC)
        world.slots.reschedule = slow(world.slots.reschedule, clock, 3)
        world.nodes.put(make_node(3))
        await world.run_for(6 * MIN)
        return world

    world = virtually(story())

    assert accounted(world, 1) == [(T0 + 5 * MIN, 1, Status.SUCCESS, None)]


def test_a_slot_that_was_being_claimed_when_its_olt_was_disabled_is_accounted_for(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 10 * SEC)])
        await world.run_for(10 * SEC)
        world.slots.claim = slow(world.slots.claim, clock, 3)
        await world.run_for(1 * SEC)
        world.nodes.enable(1, False)
        await world.run_for(10 * SEC)
        return world

    world = virtually(story())

    assert accounted(world, 1) == [(T0 + 10 * SEC, 1, Status.SKIPPED, Cause.DISABLED)]
    assert world.nodes.rows[1].next_check is None


def test_a_slot_refused_because_its_olt_was_just_disabled_is_accounted_for(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 10 * SEC), make_node(2, next_check=T0 + 60 * MIN)])
        await world.run_for(10 * SEC)
        world.nodes.standings = slow(world.nodes.standings, clock, 0.5)
        await world.scheduler.step()
        world.nodes.enable(1, False)
        await world.run_for(5 * SEC)
        return world

    world = virtually(story())

    assert accounted(world, 1) == [(T0 + 10 * SEC, 1, Status.SKIPPED, Cause.DISABLED)]
    assert (world.nodes.rows[1].next_check, world.nodes.rows[2].next_check) == (None, None)


def test_a_wish_that_was_served_already_leaves_the_grid_alone(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 5 * MIN)])
        await world.run_for(2 * SEC)
        world.nodes.request_run(1, clock.now())
        await world.scheduler.sync()
        # Somebody took it back in the last moment.
        world.nodes.rows[1] = replace(world.nodes.rows[1], run_requested_at=None)
        await world.run_for(6 * MIN)
        return world

    world = virtually(story())

    assert accounted(world, 1) == [(T0 + 5 * MIN, 1, Status.SUCCESS, None)]


def test_a_wish_that_is_refused_does_not_cost_the_slot_behind_it(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 5 * SEC)])
        await world.run_for(2 * SEC)
        world.nodes.request_run(1, clock.now())
        world.slots.claim = slow(world.slots.claim, clock, 20)
        await world.run_for(1 * SEC)
        # Somebody took it back; the slot that came due meanwhile is claimed next.
        world.nodes.rows[1] = replace(world.nodes.rows[1], run_requested_at=None)
        await world.run_for(6 * MIN)
        return world

    world = virtually(story())

    assert [slot for slot, *_ in accounted(world, 1)] == [T0 + 5 * SEC, T0 + 305 * SEC]


def test_a_wish_during_a_claim_that_fails_does_not_cost_the_slot(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 10 * SEC)])
        await world.run_for(10 * SEC)
        claim = world.slots.claim

        async def away(*args, **kwargs):
            await clock.sleep(2)
            raise OSError("the database is away")

        world.slots.claim = away
        await world.run_for(1 * SEC)
        world.nodes.request_run(1, clock.now())
        await world.run_for(1 * SEC)
        world.slots.claim = claim
        await world.run_for(6 * MIN)
        return world

    world = virtually(story())

    assert [row.slot for row in world.rows if row.trigger is Trigger.SCHEDULE] == [T0 + 10 * SEC, T0 + 310 * SEC]
    assert world.nodes.rows[1].run_requested_at is None


def test_a_slot_that_joins_a_wish_has_waited_since_the_slot(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0, priority=90), make_node(2, next_check=T0 + 20 * SEC)]
        world = World(clock, nodes, seconds=lambda node, slot: 30.0 if node.id == 1 else 1.0)
        await world.run_for(5 * SEC)
        world.nodes.request_run(2, clock.now())
        await world.run_for(60 * SEC)
        return world

    world = virtually(story())

    (row,) = [row for row in world.rows if row.node.id == 2]
    assert (row.slot, row.trigger) == (T0 + 20 * SEC, Trigger.SCHEDULE)
    assert row.waits == {Cause.OLT_BUSY: (row.claimed_at - row.slot).total_seconds()}


def test_a_wait_that_ends_between_two_ticks_is_put_down_to_what_ended_it(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0), make_node(2, next_check=T0 + 10 * SEC)]
        world = World(clock, nodes, seconds=lambda node, slot: 10.5)
        await world.run_for(15 * SEC)
        return world

    world = virtually(story())

    (row,) = [row for row in world.rows if row.node.id == 2]
    assert row.waits == {Cause.OLT_BUSY: 0.5}


def test_what_is_put_back_keeps_its_slot_beside_a_wish():
    queue = NodeQueue()
    queue.offer(make_composite(1, slot=T0), T0)
    taken = queue.take(T0)
    queue.offer(make_composite(1, slot=T0 + 3 * SEC, trigger=Trigger.MANUAL, urgent=True), T0 + 3 * SEC)

    queue.put_back(taken, now=T0 + 3 * SEC)

    (waiting,) = queue
    assert (waiting.composite.slot, waiting.composite.trigger) == (T0, Trigger.SCHEDULE)
    assert waiting.composite.urgent


def test_stopping_while_a_slot_is_being_claimed_leaves_nothing_open(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0), make_node(2, master_id=1)])
        claim = world.slots.claim

        async def told_late(*args, **kwargs):
            claimed = await claim(*args, **kwargs)
            await clock.sleep(2)
            return claimed

        world.slots.claim = told_late
        await world.run_for(1 * SEC)
        await world.scheduler.manager.stop()
        return world

    world = virtually(story())

    assert [(row.status, row.cause) for row in world.rows] == [(Status.INTERRUPTED, Cause.STOPPED)] * 2
    assert world.runner.ran == []


def test_stopping_twice_is_stopping_once(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)], seconds=lambda node, slot: 100.0)
        await world.run_for(3 * SEC)
        await asyncio.gather(world.scheduler.manager.stop(), world.scheduler.manager.stop())
        return world.scheduler.manager

    assert all(poller.is_free for poller in virtually(story()).pollers)
