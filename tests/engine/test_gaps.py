"""Spare time: a late node of low priority goes into a gap that is long enough for it, and is never left out for it."""

from dataclasses import replace

import pytest
from builders import HOUR, MIN, SEC, T0, World, make_node

from facho.engine.model import Status


def starts(world, node_id):
    return [row.started_at - T0 for row in world.rows if row.node.id == node_id and row.started_at]


def lived(clock, virtually, nodes, seconds, span):
    async def story():
        world = World(clock, nodes, seconds=lambda node, slot: seconds[node.id])
        await world.run_for(span)
        return world

    return virtually(story())


# A long run keeps the OLT until 0:40; node 2 is late then, and a discovery is due at 1:00.
LONG = make_node(1, next_check=T0, interval=HOUR, priority=40)
LATE = make_node(2, next_check=T0 + 10 * SEC, interval=10 * MIN, priority=30)
DISCOVERY = make_node(3, next_check=T0 + 60 * SEC, interval=HOUR, priority=90)


@pytest.mark.parametrize(
    ("expected", "late_starts", "discovery_starts"),
    [
        pytest.param(15.0, 40, 60, id="fits before the discovery: goes in at once"),
        pytest.param(30.0, 80, 60, id="does not fit: behind the discovery, which is on time"),
        pytest.param(None, 40, 70, id="nobody knows how long it takes: no reason to wait"),
    ],
)
def test_a_late_node_goes_into_a_gap_that_is_long_enough_for_it(
    clock, virtually, expected, late_starts, discovery_starts
):
    nodes = [LONG, replace(LATE, expected=expected), DISCOVERY]
    world = lived(clock, virtually, nodes, {1: 40.0, 2: expected or 30.0, 3: 20.0}, 3 * MIN)

    assert starts(world, 2) == [late_starts * SEC]
    assert starts(world, 3) == [discovery_starts * SEC]


def test_nobody_waits_for_something_of_the_same_priority(clock, virtually):
    nodes = [LONG, replace(LATE, expected=30.0, priority=90), DISCOVERY]
    world = lived(clock, virtually, nodes, {1: 40.0, 2: 30.0, 3: 20.0}, 3 * MIN)

    assert starts(world, 2) == [40 * SEC]


def test_a_node_in_time_does_not_wait_for_a_gap(clock, virtually):
    nodes = [replace(LATE, next_check=T0 + 50 * SEC, expected=30.0), DISCOVERY]
    world = lived(clock, virtually, nodes, {2: 30.0, 3: 20.0}, 3 * MIN)

    assert starts(world, 2) == [50 * SEC]


def test_where_there_is_never_a_gap_a_node_goes_when_half_its_interval_is_over(clock, virtually):
    busy = make_node(3, next_check=T0, interval=1 * MIN, priority=90)
    long = make_node(2, next_check=T0, interval=10 * MIN, priority=30, expected=55.0)
    world = lived(clock, virtually, [busy, long], {3: 20.0, 2: 55.0}, 11 * MIN)

    (first, *_) = starts(world, 2)
    assert 5 * MIN <= first <= 6 * MIN
    assert [row.status for row in world.rows if row.node.id == 2] == [Status.SUCCESS] * len(starts(world, 2))


def test_what_a_composite_took_last_time_is_known_for_the_next(clock, virtually):
    nodes = [LONG, replace(LATE, interval=2 * MIN), replace(DISCOVERY, interval=2 * MIN)]
    world = lived(clock, virtually, nodes, {1: 40.0, 2: 30.0, 3: 20.0}, 10 * MIN)

    # Late the first time, for nobody knew; from then on the discovery is in time.
    assert starts(world, 3)[1:] == [60 * SEC + n * 2 * MIN for n in range(1, 5)]
