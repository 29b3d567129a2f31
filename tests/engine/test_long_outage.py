"""A fleet that was not polled for a day: what it lost is written in parts, each soon over, and all of it once."""

import pytest
from builders import HOUR, MIN, SEC, T0, World, make_node

from facho.engine.model import Cause, Skipped, Status
from facho.engine.quota.quota import by_hour
from facho.engine.scheduling.grid import Shift

OLTS, DAY = 60, 24 * HOUR


def fleet():
    return [make_node(number, olt_id=number, next_check=T0) for number in range(1, OLTS + 1)]


def quotas_of(skipped):
    return sum(len(list(by_hour(item.slot, item.node.interval, item.slots))) for item in skipped)


def lost_slots(world):
    rows = [row for row in world.rows if row.status is Status.SKIPPED and row.cause is Cause.ENGINE_DOWN]
    assert len({(row.node.id, row.slot) for row in rows}) == len(rows)
    return {row.node.id: row.slots for row in rows}


class Watched:
    """Notes what each write of the grid touches, and fails when it is told to."""

    def __init__(self, slots, fails_at=()):
        self.sizes = []
        self._reschedule, self._fails_at = slots.reschedule, fails_at
        slots.reschedule = self

    async def __call__(self, checks, skipped, *, now):
        self.sizes.append(quotas_of(skipped))
        if len(self.sizes) in self._fails_at:
            raise OSError("the database is away")
        await self._reschedule(checks, skipped, now=now)


@pytest.mark.parametrize(
    "fails_at", [pytest.param((), id="all is well"), pytest.param((2, 4), id="it fails in between")]
)
def test_what_a_day_has_cost_is_written_in_parts(clock, virtually, fails_at):
    async def story():
        world = World(clock, fleet())
        await clock.sleep(DAY.total_seconds())
        watched = Watched(world.slots, fails_at)
        await world.run_for(10 * SEC)
        return world, watched

    world, watched = virtually(story())

    assert max(watched.sizes) < 600
    assert len(watched.sizes) >= OLTS * 24 // 600
    # Each five minutes of the day, and the moment at its end.
    assert lost_slots(world) == dict.fromkeys(range(1, OLTS + 1), 289)


@pytest.mark.slow
def test_what_waited_too_long_is_written_in_parts_and_once(clock, virtually):
    nodes = [make_node(number, olt_id=number, next_check=T0, interval=1 * MIN) for number in range(1, 1201)]

    async def story():
        world = World(clock, nodes, pollers=0)
        await world.run_for(59 * SEC)
        watched = Watched(world.slots, fails_at=(2,))
        await world.run_for(10 * SEC)
        return world, watched

    world, watched = virtually(story())

    assert watched.sizes == [500, 500, 500, 200]
    assert sorted((row.node.id, row.slot) for row in world.rows) == [(node.id, T0) for node in nodes]
    assert len(world.scheduler.manager.queue) == 1200


def test_a_node_is_never_torn_apart():
    master, link = make_node(1), make_node(2, master_id=1)
    shift = Shift(
        checks={1: T0 + HOUR, 3: None},
        skipped=[Skipped(master, T0, 12, Cause.ENGINE_DOWN, (link,)), Skipped(master, T0 + HOUR, 1, Cause.DISABLED)],
    )

    assert list(shift.portions(1)) == [({1: T0 + HOUR}, shift.skipped), ({3: None}, [])]
    assert list(shift.portions(100)) == [(shift.checks, shift.skipped)]
    assert list(Shift().portions(100)) == []
