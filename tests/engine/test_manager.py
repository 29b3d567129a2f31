"""Pollers: limit, state, and saturation."""

import asyncio

from builders import SEC, T0, World, make_composite, make_node

from facho.engine.scheduling.pollers import SAMPLES, Saturation
from facho.engine.scheduling.snapshot import snapshot


def test_an_olt_gets_one_composite_at_a_time_and_blocks_no_other(clock, virtually):
    async def story():
        nodes = [make_node(1, olt_id=7, next_check=T0), make_node(2, olt_id=7, next_check=T0)]
        world = World(clock, [*nodes, make_node(3, olt_id=8, next_check=T0)], pollers=3)
        await world.scheduler.step()
        await asyncio.sleep(0.5)
        return world

    world = virtually(story())

    assert world.runner.ran == [1, 3]


def test_a_poller_is_busy_from_the_masters_start_to_the_last_links_end(clock, virtually):
    async def story():
        chain = [make_node(2, master_id=1, priority=50), make_node(3, master_id=1)]
        world = World(clock, [make_node(1, next_check=T0), *chain], pollers=2, seconds=lambda node, slot: 10.0)
        seen = []
        for _ in range(32):
            await world.scheduler.step()
            await clock.sleep(1)
            poller = snapshot(world.scheduler.manager, clock.now())["pollers"][0]
            seen.append((poller["status"], poller["node"], poller["link"], poller["links"]))
        return world, seen

    world, seen = virtually(story())

    assert seen[:9] == [("BUSY", "node 1", 1, 3)] * 9
    assert seen[10:19] == [("BUSY", "node 2", 2, 3)] * 9
    assert seen[20:29] == [("BUSY", "node 3", 3, 3)] * 9
    assert seen[31] == ("FREE", None, None, None)
    assert {row.poller_id for row in world.rows} == {1}
    assert [row.master_id for row in world.rows] == [None, 0, 0]


def test_the_queue_says_what_each_composite_waits_for(clock, virtually):
    async def story():
        nodes = [make_node(1, olt_id=7, next_check=T0, priority=90), make_node(2, olt_id=7, next_check=T0)]
        world = World(clock, [*nodes, make_node(3, olt_id=8, next_check=T0)], pollers=1)
        world.runner._seconds = lambda node, slot: 60.0
        await world.run_for(8 * SEC)
        return snapshot(world.scheduler.manager, clock.now())

    shown = virtually(story())

    assert [(item["node_id"], item["waiting_for"]) for item in shown["queue"]["next"]] == [
        (2, "olt_busy"),
        (3, "no_free_poller"),
    ]
    assert shown["queue"]["delayed"] == 2
    assert shown["stats"]["busy_pollers"] == 1


def test_pending_work_for_a_breaker_stands_in_the_queue_and_is_not_counted_as_delayed(clock, virtually):
    async def story():
        nodes = [make_node(1, olt_id=7, next_check=T0), make_node(2, olt_id=8, next_check=T0)]
        world = World(clock, [make_node(3, olt_id=9, next_check=T0, priority=90), *nodes], pollers=1)
        world.runner._seconds = lambda node, slot: 60.0
        world.nodes.breakers[7] = T0
        await world.run_for(8 * SEC)
        return snapshot(world.scheduler.manager, clock.now())

    shown = virtually(story())

    assert [(item["node_id"], item["waiting_for"]) for item in shown["queue"]["next"]] == [
        (1, "breaker_open"),
        (2, "no_free_poller"),
    ]
    assert shown["queue"]["delayed"] == shown["stats"]["delayed"] == 1


def test_a_composite_that_breaks_its_runner_frees_the_poller(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)], pollers=1)

        async def broken(claim, watch):
            raise RuntimeError("a defect")

        world.runner.run = broken
        await world.run_for(3 * SEC)
        return world.scheduler.manager

    manager = virtually(story())

    assert manager.pollers[0].is_free
    assert manager.pollers[0].tasks_completed == 0


def test_saturation_needs_a_full_minute_above_the_line():
    saturation = Saturation()

    for _ in range(SAMPLES - 1):
        saturation.add(100.0)
    early = saturation.is_saturated
    saturation.add(100.0)

    assert not early
    assert saturation.is_saturated


def test_saturation_holds_until_the_load_is_well_below_the_line():
    saturation = Saturation()
    for _ in range(SAMPLES):
        saturation.add(80.0)

    for _ in range(SAMPLES):
        saturation.add(70.0)
    between = saturation.is_saturated
    for _ in range(SAMPLES):
        saturation.add(60.0)

    assert between
    assert not saturation.is_saturated


def test_an_offer_is_seated_at_once_when_a_poller_frees_up(clock, virtually):
    async def story():
        world = World(clock, [], pollers=1)
        manager = world.scheduler.manager
        world.nodes.put(make_node(1, olt_id=1, next_check=T0))
        world.nodes.put(make_node(2, olt_id=2, next_check=T0))
        manager.offer(make_composite(1, olt_id=1))
        manager.offer(make_composite(2, olt_id=2))
        manager.start_due()
        await asyncio.sleep(1.5)
        return world

    world = virtually(story())

    assert [row.started_at for row in world.rows] == [T0, T0 + 1 * SEC]
