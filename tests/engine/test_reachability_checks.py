"""Checks: an OLT that is in doubt is asked one small thing outside the pollers before a composite gets one."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from builders import HOUR, MIN, SEC, T0, make_node
from test_breaker import BreakingWorld

from facho.engine.errors import NoAnswer
from facho.engine.model import Cause, Status, Trigger
from facho.engine.scheduling import pollers as manager_module
from facho.engine.scheduling.prober import REPEAT_AFTER, TIMEOUT


@pytest.fixture
def live(clock, virtually):
    """Live a story with a world of these nodes."""

    def live(nodes, story, **more):
        async def told():
            world = BreakingWorld(clock, nodes, **more)
            await story(world)
            return world

        return virtually(told())

    return live


def seconds(world):
    """Return when OLTs were asked by a check or a probe, in seconds."""
    return [at.total_seconds() for at, _, _ in world.agents.asked]


def test_an_olt_that_nobody_has_asked_yet_is_checked_once_and_then_polled(live):
    world = live([make_node(1, next_check=T0)], lambda world: world.run_for(HOUR))

    assert seconds(world) == [0]
    assert {row.status for row in world.rows} == {Status.SUCCESS}
    # By the round trip of the check.
    assert world.rows[0].claimed_at - T0 == timedelta(seconds=0.1)
    assert sum(world.rows[0].waits.values()) == pytest.approx(0.1)


def test_an_olt_that_answered_shortly_before_the_engine_started_is_not_checked(live):
    async def story(world):
        world.nodes.answers |= {1: T0 - 9 * MIN, 2: T0 - 11 * MIN}
        await world.run_for(10 * SEC)

    world = live([make_node(1, olt_id=1, next_check=T0), make_node(2, olt_id=2, next_check=T0)], story)

    assert [row.claimed_at - T0 for row in world.rows] == [0 * SEC, timedelta(seconds=0.1)]
    assert len(world.agents.asked) == 1


def test_silence_is_the_attempt_of_the_composite_and_holds_no_poller(live):
    nodes = [make_node(1, next_check=T0), make_node(2, master_id=1)]
    world = live(nodes, lambda world: world.run_for(10 * SEC), dead={1})

    master, link = world.rows
    (attempt,) = master.attempts
    assert (attempt.started_at, attempt.ended_at) == (T0, T0 + 5 * SEC)
    assert (attempt.outcome.status, attempt.outcome.cause) == (Status.FAILED, Cause.UNREACHABLE)
    assert attempt.outcome.error == (
        "OLT-1 did not answer 2 requests in 5.0 s. Check the address, the community and the OLT's SNMP access list."
    )
    assert (master.status, master.retry_at, master.poller_id) == (Status.PENDING, T0 + 125 * SEC, None)
    assert (link.status, link.retry_at, link.attempts) == (Status.PENDING, T0 + 125 * SEC, [])
    assert (master.claimed_at, sum(master.waits.values())) == (T0, 0)
    assert world.nodes.rows[1].next_check == T0 + 5 * MIN
    assert world.scheduler.manager.pollers[0].busy_time == 0
    assert world.runner.ran == []
    assert world.runner._leases._held == {}


def test_the_last_silent_attempt_ends_the_executions(live):
    nodes = [make_node(1, next_check=T0), make_node(2, master_id=1)]
    world = live(nodes, lambda world: world.run_for(5 * MIN), dead={1})

    master, link = world.rows[:2]
    assert (master.status, master.cause, len(master.attempts)) == (Status.FAILED, Cause.UNREACHABLE, 3)
    assert (link.status, link.cause) == (Status.SKIPPED, Cause.UNREACHABLE)


@pytest.mark.slow
def test_an_olt_that_dies_costs_a_poller_one_time_out_and_then_none(live):
    async def story(world):
        await world.run_for(4 * MIN)
        world.dead.add(1)
        await world.run_for(HOUR)

    world = live([make_node(1, next_check=T0)], story)

    assert world.scheduler.manager.pollers[0].busy_time == pytest.approx(2.0 + TIMEOUT)
    died = next(row for row in world.rows if row.status is Status.FAILED)
    assert len(died.attempts) == 3


def test_an_olt_that_is_back_before_its_retry_is_checked_and_polled_and_its_silence_is_forgotten(live):
    async def story(world):
        await world.run_for(150 * SEC)
        world.dead.clear()
        await world.run_for(3 * MIN)
        assert world.slots._failures == {}
        world.dead.add(1)
        await world.run_for(130 * SEC)

    world = live([make_node(1, next_check=T0)], story, dead={1})

    assert [attempt.outcome.status for attempt in world.rows[0].attempts] == [
        Status.FAILED,
        Status.FAILED,
        Status.SUCCESS,
    ]
    assert world.nodes.breakers == {}


def test_a_lost_packet_is_not_silence(live):
    async def story(world):
        answers = world.agents.get

        async def lossy(agent, oids, *, timeout):
            if len(world.agents.asked) % 2 == 0:
                world.agents.asked.append((world.clock.now() - T0, len(oids), timeout))
                await world.clock.sleep(timeout)
                raise NoAnswer("lost")
            return await answers(agent, oids, timeout=timeout)

        world.agents.get = lossy
        await world.run_for(10 * SEC)

    world = live([make_node(1, next_check=T0)], story)

    assert seconds(world) == [0, REPEAT_AFTER]
    assert [row.status for row in world.rows] == [Status.SUCCESS]


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda world: world.nodes.move(1, "10.0.0.8:161"), id="another address"),
        pytest.param(lambda world: world.nodes.breakers.update({1: world.clock.now()}), id="breaker open and closed"),
        pytest.param(lambda world: world.nodes.enable(1, False), id="disabled for a while"),
    ],
)
def test_an_olt_that_may_have_become_another_is_checked_again(live, happens):
    async def story(world):
        await world.run_for(30 * SEC)
        happens(world)
        await world.run_for(2 * SEC)
        world.nodes.enable(1)
        world.nodes.answers.clear()
        # As a person closes it.
        world.nodes.breakers.clear()
        world.nodes.request_run(1, world.clock.now())
        await world.run_for(30 * SEC)

    world = live([make_node(1, next_check=T0, interval=HOUR)], story)

    assert len(world.agents.asked) == 2
    assert world.rows[-1].trigger is Trigger.MANUAL


def test_a_person_who_asks_learns_within_a_time_out_that_the_olt_is_silent(live):
    async def story(world):
        await world.run_for(30 * MIN)
        world.nodes.request_run(1, world.clock.now())
        await world.run_for(10 * SEC)

    world = live([make_node(1, next_check=T0)], story, dead={1})

    (attempt,) = world.rows[-1].attempts
    assert (attempt.started_at, attempt.ended_at) == (T0 + 30 * MIN, T0 + 30 * MIN + 5 * SEC)
    assert attempt.outcome.cause is Cause.UNREACHABLE


@pytest.mark.slow
def test_a_whole_fleet_in_doubt_is_checked_within_seconds(live):
    nodes = [make_node(id, olt_id=id, next_check=T0) for id in range(1, 1001)]

    world = live(nodes, lambda world: world.run_for(30 * SEC), dead=range(1, 301), pollers=1000)

    assert world.agents.most_at_once <= 2 * manager_module.MAX_CHECKS
    assert max(seconds(world)) < 15
    begun = [row.claimed_at - T0 for row in world.rows if row.node.olt_id > 300]
    assert len(begun) == 700
    assert world.runner.overlaps == 0


def test_an_olt_that_is_disabled_during_its_check_leaves_nothing_behind(live):
    async def story(world):
        await world.run_for(2 * SEC)
        world.nodes.enable(1, False)
        await world.run_for(1 * MIN)
        assert world.scheduler.manager.waiting == []
        world.nodes.enable(1)
        await world.run_for(10 * MIN)

    world = live([make_node(1, next_check=T0)], story, dead={1})

    first = world.rows[0]
    assert (first.slot, first.status, first.cause) == (T0, Status.SKIPPED, Cause.DISABLED)
    assert world.runner._leases._held == {}
    slots = Counter((row.node.id, row.slot) for row in world.rows)
    assert set(slots.values()) == {1}


def test_an_engine_that_is_stopped_during_a_check_has_claimed_nothing(live):
    async def story(world):
        await world.run_for(2 * SEC)
        await world.scheduler.manager.stop()

    world = live([make_node(1, next_check=T0)], story, dead={1})

    assert world.rows == []
    assert world.nodes.rows[1].next_check == T0
    assert world.runner._leases._held == {}


def test_an_olt_that_somebody_else_holds_is_checked_when_it_is_free(live):
    async def story(world):
        async with world.runner._leases.hold(1, "somebody else", device="127.0.0.1:161"):
            await world.run_for(10 * SEC)
        await world.run_for(5 * SEC)

    world = live([make_node(1, next_check=T0)], story)

    assert seconds(world) == [10]
    assert [row.status for row in world.rows] == [Status.SUCCESS]


def test_a_database_that_fails_behind_the_check_loses_no_slot(live):
    async def story(world):
        claim = world.slots.claim

        async def away(*args, **kwargs):
            raise OSError("the database is unavailable")

        world.slots.claim = away
        await world.run_for(8 * SEC)
        world.slots.claim = claim
        await world.run_for(20 * SEC)

    world = live([make_node(1, next_check=T0)], story, dead={1})

    (row,) = world.rows
    assert (row.slot, len(row.attempts)) == (T0, 1)


def test_a_check_that_outlasts_its_slot_serves_it_and_the_next_one_comes_at_once(live):
    node = make_node(1, next_check=T0, interval=4 * SEC, retries=0)
    world = live([node], lambda world: world.run_for(13 * SEC), dead={1})

    accounted = [row.slot + n * 4 * SEC for row in world.rows for n in range(row.slots)]
    assert sorted(accounted) == sorted(set(accounted))
    assert [row.slot - T0 for row in world.rows if row.attempts][:2] == [0 * SEC, 4 * SEC]


def test_what_is_being_checked_shows_in_the_queue(live):
    shown = []

    async def story(world):
        await world.run_for(2 * SEC)
        shown.extend(world.scheduler.manager.waiting)
        await asyncio.sleep(10)

    live([make_node(1, next_check=T0)], story, dead={1})

    assert [(waiting.composite.id, waiting.cause) for waiting in shown] == [(1, Cause.OLT_BUSY)]
