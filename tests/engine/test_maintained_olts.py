"""OLTs in maintenance: what is not polled, what goes on, and how slots are accounted for."""

from collections import Counter
from datetime import timedelta

import pytest
from builders import HOUR, MIN, SEC, T0, World, make_node
from test_breaker import BreakingWorld

from facho.engine.maintenance import Window
from facho.engine.model import Cause, Status


def hour_of(clock, *windows, **more):
    """Return a world with a node every five minutes on two OLTs, the first of which has these windows."""
    world = World(clock, [make_node(1, next_check=T0), make_node(2, olt_id=2, next_check=T0)], **more)
    world.nodes.windows[1] = windows
    return world


def outcomes(world, node_id=1):
    return Counter((row.status, row.cause) for row in world.rows if row.node.id == node_id)


def test_without_polling_no_run_starts_and_each_slot_is_accounted_for(clock, virtually):
    async def story():
        world = hour_of(clock, Window(T0 + 12 * MIN, T0 + 33 * MIN, polls=False))
        await world.run_for(HOUR)
        return world

    world = virtually(story())

    # The slots of 15, 20 and 25 minutes. That of 30 runs when the maintenance is over.
    assert outcomes(world) == {(Status.SUCCESS, None): 9, (Status.SKIPPED, Cause.MAINTENANCE): 3}
    assert outcomes(world, 2) == {(Status.SUCCESS, None): 12}
    started = [row.attempts[0].started_at - T0 for row in world.rows if row.node.id == 1 and row.attempts]
    assert not [at for at in started if 12 * MIN <= at < 33 * MIN]
    assert 33 * MIN in [at - at % SEC for at in started]


def test_with_polling_nothing_changes(clock, virtually):
    async def story():
        world = hour_of(clock, Window(T0 + 12 * MIN, T0 + 33 * MIN))
        await world.run_for(HOUR)
        return world

    assert outcomes(virtually(story())) == {(Status.SUCCESS, None): 12}


def test_a_user_may_run_a_node_of_an_olt_that_is_not_polled(clock, virtually):
    async def story():
        world = hour_of(clock, Window(T0, T0 + HOUR, polls=False))
        await world.run_for(2 * MIN)
        world.nodes.request_run(1, clock.now())
        await world.run_for(10 * SEC)
        return world

    world = virtually(story())

    # It serves the waiting slot too.
    (run,) = [row for row in world.rows if row.node.id == 1]
    assert run.status is Status.SUCCESS
    assert run.attempts[0].started_at >= T0 + 2 * MIN


def test_nothing_is_sent_to_an_olt_that_is_not_polled_and_it_is_probed_again_afterwards(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        world.nodes.windows[1] = (Window(T0 + 10 * MIN, T0 + 30 * MIN, polls=False),)
        await world.run_for(32 * MIN)
        return world

    world = virtually(story())

    asked = [at for at, _, _ in world.agents.asked]
    assert not [at for at in asked if 10 * MIN <= at < 30 * MIN]
    assert [at for at in asked if at >= 30 * MIN]
    assert world.nodes.breakers


def test_an_olt_that_does_not_answer_in_its_maintenance_loses_its_slots_to_that(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        world.nodes.windows[1] = (Window(T0, T0 + 30 * MIN),)
        await world.run_for(HOUR)
        return world

    lost = outcomes(virtually(story()))

    assert lost[Status.SKIPPED, Cause.MAINTENANCE] == 5
    assert lost[Status.SKIPPED, Cause.BREAKER_OPEN] == 5


@pytest.mark.parametrize(
    ("polls", "expected"),
    [
        pytest.param(False, {Cause.MAINTENANCE: 4, Cause.ENGINE_DOWN: 2}, id="not polled"),
        pytest.param(True, {Cause.ENGINE_DOWN: 6}, id="polled"),
    ],
)
def test_slots_that_pass_without_an_engine_are_excused_in_the_maintenance_only(clock, virtually, polls, expected):
    async def story():
        world = hour_of(clock, Window(T0 - HOUR, T0 + 20 * MIN, polls=polls))
        await clock.sleep(27 * MIN / timedelta(seconds=1))
        await world.run_for(1 * SEC)
        return world

    world = virtually(story())

    lost = Counter()
    for row in world.rows:
        if row.node.id == 1 and row.status is Status.SKIPPED:
            lost[row.cause] += row.slots
    assert lost == expected
