"""One scheduler after another: what the first one left is taken up, in its slot, and never beside somebody else."""

import asyncio
import itertools

import pytest
from builders import ANSWERED, MIN, SEC, SILENT, T0, World, make_node

from facho.engine.model import Cause, Status
from facho.engine.scheduling.scheduler import Scheduler

CHAIN = [make_node(1, next_check=T0), make_node(2, master_id=1)]


async def hand_over(world: World, after=0 * SEC) -> None:
    """Stop the scheduler; another one begins so much later."""
    await world.scheduler.manager.stop()
    await world.clock.sleep(after.total_seconds())
    await succeed(world)


async def succeed(world: World) -> None:
    """Let another scheduler begin, whatever goes on."""
    world.scheduler = world._scheduler(4)
    await world.scheduler.recover()


def attempts_of(world: World):
    return [(row.status, row.cause, len(row.attempts)) for row in world.rows]


def test_a_retry_is_made_by_the_one_who_takes_over_when_its_time_has_come(clock, virtually):
    answers = itertools.chain([SILENT], itertools.repeat(ANSWERED))

    async def story():
        world = World(clock, CHAIN, outcome=lambda node, slot: next(answers))
        await world.run_for(30 * SEC)
        await hand_over(world, after=10 * SEC)
        await world.run_for(4 * MIN)
        return world

    world = virtually(story())

    assert attempts_of(world) == [(Status.SUCCESS, None, 2), (Status.SUCCESS, None, 1)]
    first, second = world.rows[0].attempts
    assert 120 * SEC <= second.started_at - first.ended_at <= 122 * SEC


def test_attempts_are_counted_on(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0, interval=60 * MIN)], outcome=lambda node, slot: SILENT)
        for _ in range(4):
            await world.run_for(100 * SEC)
            await hand_over(world)
        await world.run_for(10 * MIN)
        return world

    assert attempts_of(virtually(story())) == [(Status.FAILED, Cause.UNREACHABLE, 3)]


def test_a_retry_whose_slot_is_over_meanwhile_ends_as_its_last_attempt_did(clock, virtually):
    async def story():
        world = World(clock, CHAIN, outcome=lambda node, slot: SILENT if slot == T0 else ANSWERED)
        await world.run_for(30 * SEC)
        await hand_over(world, after=5 * MIN)
        await world.run_for(30 * SEC)
        return world

    world = virtually(story())

    assert attempts_of(world)[:2] == [(Status.FAILED, Cause.UNREACHABLE, 1), (Status.SKIPPED, Cause.UNREACHABLE, 0)]


DISABLED = (Status.INTERRUPTED, Cause.DISABLED)


@pytest.mark.parametrize(
    ("disabled", "ends"),
    [
        pytest.param(1, [(*DISABLED, 1), (*DISABLED, 0)], id="a master takes its chain with it"),
        pytest.param(2, [(Status.SUCCESS, None, 2), (*DISABLED, 0)], id="a link goes alone"),
    ],
)
def test_what_is_not_polled_any_more_is_not_tried_again(clock, virtually, disabled, ends):
    answers = itertools.chain([SILENT], itertools.repeat(ANSWERED))

    async def story():
        world = World(clock, CHAIN, outcome=lambda node, slot: next(answers))
        await world.run_for(30 * SEC)
        await world.scheduler.manager.stop()
        world.nodes.disable_node(disabled)
        await succeed(world)
        await world.run_for(4 * MIN)
        return world

    assert attempts_of(virtually(story())) == ends


@pytest.mark.parametrize(
    ("late", "grace", "ends"),
    [
        pytest.param(40 * SEC, 60 * SEC, (Status.SUCCESS, None), id="it waits on with the next one"),
        pytest.param(40 * SEC, 10 * SEC, (Status.SKIPPED, Cause.ENGINE_DOWN), id="where nobody was there it is lost"),
        pytest.param(90 * SEC, 60 * SEC, (Status.SKIPPED, Cause.ENGINE_DOWN), id="and so is what is older"),
    ],
)
def test_what_waited_in_the_queue_of_the_one_before(clock, virtually, late, grace, ends):
    async def story():
        # Without a poller it waits until it is another's turn.
        world = World(clock, [make_node(1, next_check=T0)], pollers=0)
        await world.run_for(late)
        world.scheduler = Scheduler(
            pollers=1,
            nodes=world.nodes,
            slots=world.slots,
            runner=world.runner,
            clock=clock,
            restart_grace=grace,
        )
        await world.run_for(30 * SEC)
        return world

    (row,) = virtually(story()).rows

    assert (row.slot, (row.status, row.cause)) == (T0, ends)


def test_what_was_claimed_and_not_begun_is_begun_by_the_one_who_takes_over(clock, virtually):
    async def story():
        world = World(clock, CHAIN)
        await world.scheduler.sync()
        world.scheduler.tick(clock.now())
        waiting = world.scheduler.manager.queue.take(clock.now(), lambda item: None)
        await world.slots.claim(waiting.composite, poller_id=1, now=clock.now(), waits={})
        await succeed(world)
        await world.run_for(30 * SEC)
        return world

    world = virtually(story())

    assert attempts_of(world) == [(Status.SUCCESS, None, 1), (Status.SUCCESS, None, 1)]
    assert {row.slot for row in world.rows} == {T0}


def test_an_olt_on_which_something_goes_on_is_left_alone_until_it_is_over(clock, virtually):
    """A scheduler that takes over finds executions that workers still run."""

    async def story():
        nodes = [make_node(1, next_check=T0), make_node(2, next_check=T0 + 30 * SEC)]
        world = World(clock, nodes, seconds=lambda node, slot: 120.0 if node.id == 1 else 1.0)
        await world.run_for(5 * SEC)
        world.slots.held.add(1)
        await succeed(world)
        await world.run_for(60 * SEC)
        meanwhile = list(world.runner.ran)
        await world.run_for(90 * SEC)
        return world, meanwhile

    world, meanwhile = virtually(story())

    assert meanwhile == [1]
    assert world.runner.ran == [1, 2]
    assert [row.status for row in world.rows] == [Status.SUCCESS, Status.SUCCESS]


def test_what_goes_on_and_fails_is_tried_again_by_the_one_who_took_over(clock, virtually):
    async def story():
        world = World(clock, CHAIN, seconds=lambda node, slot: 20.0, outcome=lambda node, slot: SILENT)
        await world.run_for(5 * SEC)
        world.slots.held.add(1)
        await succeed(world)
        await world.run_for(20 * SEC)
        is_busy = world.scheduler.manager.is_busy(1)
        waiting = world.scheduler.waiting_executions
        await world.run_for(4 * MIN)
        return world, is_busy, waiting

    world, is_busy, waiting = virtually(story())

    assert not is_busy
    # The scheduler before waits for it as well, and would find it taken; in this test both are alive.
    assert waiting == {0, 1}
    assert world.runner.overlaps == 0
    assert len(world.rows[0].attempts) == 2


def test_it_answers_for_what_it_has_not_looked_at_yet(clock, virtually):
    async def story():
        world = World(clock, CHAIN, outcome=lambda node, slot: SILENT)
        await world.run_for(30 * SEC)
        await hand_over(world)
        return world.scheduler.waiting_executions

    assert virtually(story()) == {0, 1}


def test_a_database_that_is_unavailable_when_it_takes_over_delays_it_and_no_more(clock, virtually):
    answers = itertools.chain([SILENT], itertools.repeat(ANSWERED))

    async def story():
        world = World(clock, CHAIN, outcome=lambda node, slot: next(answers))
        await world.run_for(30 * SEC)
        await hand_over(world)
        progress, world.slots.progress = world.slots.progress, away
        await world.run_for(60 * SEC)
        world.slots.progress = progress
        await world.run_for(3 * MIN)
        return world

    assert attempts_of(virtually(story())) == [(Status.SUCCESS, None, 2), (Status.SUCCESS, None, 1)]


def test_it_begins_when_the_database_can_tell_it_what_is_left(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0 + 10 * SEC)])
        recover, world.slots.recover = world.slots.recover, away
        running = asyncio.ensure_future(world.scheduler.run())
        await clock.sleep(15)
        meanwhile = list(world.runner.ran)
        world.slots.recover = recover
        await clock.sleep(15)
        running.cancel()
        return meanwhile, world

    meanwhile, world = virtually(story())

    assert (meanwhile, world.runner.ran) == ([], [1])


async def away(*args):
    raise OSError("the database is away")
