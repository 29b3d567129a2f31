"""The machine's clock is set while the engine runs: the grid is kept, no storm, no slot runs twice, polling goes on."""

import asyncio
import itertools
import random
from collections import Counter
from datetime import timedelta

import pytest
from builders import ANSWERED, HOUR, MIN, SEC, SILENT, T0, World, make_node
from hypothesis import given, settings
from hypothesis import strategies as st
from runner_stage import Stage

from examples import examples
from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.engine.model import Cause, Status
from facho.engine.scheduling.chores import Chore, Chores
from facho.engine.scheduling.grid import free_slot
from facho.engine.scheduling.pollers import Poller
from facho.engine.scheduling.snapshot import snapshot


class SetClock(VirtualClock):
    """A virtual clock that can be set."""

    by = timedelta(0)

    def now(self):
        return super().now() + self.by


class Story(World):
    """A world in which time passes by the monotonic clock, and the wall clock can be set."""

    def __init__(self, nodes, **more):
        super().__init__(SetClock(T0), nodes, **more)
        # When each run began, by a clock that nobody sets.
        self.begun = []
        run = self.runner.run

        async def noted(claim, watch):
            self.begun.append((claim.composite.id, self.clock.monotonic()))
            return await run(claim, watch)

        self.scheduler.manager._runner.run = noted

    async def live(self, span):
        end = self.clock.monotonic() + span.total_seconds()
        while self.clock.monotonic() < end:
            await self.scheduler.step()
            await self.clock.sleep(1)

    def set(self, by):
        self.clock.by += by
        self.scheduler.clock_set(by)

    def gaps(self, node_id):
        """Return the seconds between two runs of a node."""
        times = [at for id_, at in self.begun if id_ == node_id]
        return [later - earlier for earlier, later in itertools.pairwise(times)]


def told(story):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story)


def fleet(count=60, interval=5 * MIN):
    """Return nodes spread over their interval, an OLT each."""
    return [
        make_node(n, olt_id=n, interval=interval, next_check=T0 + n * interval / count) for n in range(1, count + 1)
    ]


async def stepped(by, nodes=None, *, after=32 * MIN, then=90 * MIN, **more):
    world = Story(fleet() if nodes is None else nodes, **more)
    await world.live(after)
    world.set(by)
    world.set_at = world.clock.monotonic()
    await world.live(then)
    return world


@pytest.mark.slow
@pytest.mark.parametrize("by", [HOUR, -HOUR, 3 * SEC, -3 * SEC, 20 * MIN, -20 * MIN, -7 * MIN, -90 * SEC], ids=str)
def test_polling_goes_on_within_an_interval_and_no_slot_runs_twice(by):
    world = told(stepped(by))

    slots = Counter((row.node.id, row.slot) for row in world.rows)
    assert max(slots.values()) == 1
    for node_id in range(1, 61):
        assert max(world.gaps(node_id)) <= 2 * 300 + 15
        first = min(at for id_, at in world.begun if id_ == node_id and at >= world.set_at)
        assert first - world.set_at <= 300 + 15


@pytest.mark.slow
@pytest.mark.parametrize("by", [HOUR, -HOUR, 3 * SEC, -3 * SEC, 20 * MIN, -20 * MIN], ids=str)
def test_a_step_causes_no_storm(by):
    world = told(stepped(by))

    seconds = Counter(int(at) for _, at in world.begun if at > world.set_at)
    # Sixty nodes in five minutes: one in five seconds. Within 10 s of a step a few more may be late together.
    assert max(seconds.values()) <= 4
    in_minutes = Counter(int(at) // 300 for _, at in world.begun if at > world.set_at)
    assert max(in_minutes.values()) <= 60 + 4


def test_slots_that_the_clock_was_set_past_are_skipped_with_that_cause_and_the_grid_is_kept():
    world = told(stepped(HOUR, [make_node(1, next_check=T0)], after=7 * MIN, then=20 * MIN))

    rows = [(row.slot - T0, row.slots, row.status, row.cause) for row in world.rows]
    assert rows[:4] == [
        (0 * MIN, 1, Status.SUCCESS, None),
        (5 * MIN, 1, Status.SUCCESS, None),
        (10 * MIN, 12, Status.SKIPPED, Cause.CLOCK_SET),
        (70 * MIN, 1, Status.SUCCESS, None),
    ]
    assert world.gaps(1)[1] == pytest.approx(300, abs=2)


def test_a_year_forward_leaves_no_year_of_rows():
    world = told(stepped(timedelta(days=365), fleet(10), after=7 * MIN, then=20 * MIN))

    assert not [row for row in world.rows if row.status is Status.SKIPPED]
    assert max(max(world.gaps(node_id)) for node_id in range(1, 11)) <= 600


@pytest.mark.slow
def test_after_a_step_back_the_grid_moves_by_a_second_and_stays_there():
    world = told(stepped(-HOUR, [make_node(1, next_check=T0)], after=67 * MIN, then=70 * MIN))

    later = [row.slot - T0 for row in world.rows][14:]
    assert later == [n * 5 * MIN + SEC for n in range(2, 2 + len(later))]


def test_a_chain_moves_with_its_master():
    nodes = [make_node(1, next_check=T0), make_node(2, master_id=1)]
    world = told(stepped(-HOUR, nodes, after=67 * MIN, then=20 * MIN))

    assert max(Counter((row.node.id, row.slot) for row in world.rows).values()) == 1
    assert [row.slot for row in world.rows if row.node.id == 1] == [row.slot for row in world.rows if row.node.id == 2]


@pytest.mark.parametrize("by", [HOUR, -HOUR, 3 * SEC, -3 * SEC], ids=str)
def test_a_run_under_way_keeps_its_duration_in_the_pool(by):
    async def story():
        world = Story([make_node(1, next_check=T0)], seconds=lambda node, slot: 60.0)
        await world.live(30 * SEC)
        world.set(by)
        await world.live(10 * SEC)
        seen = snapshot(world.scheduler.manager, world.clock.now())["pollers"][0]
        await world.live(60 * SEC)
        after = snapshot(world.scheduler.manager, world.clock.now())["pollers"][0]
        return seen, after, world.scheduler.manager.dispatcher.took[1]

    seen, after, took = told(story())

    assert (seen["seconds"], seen["total_time"]) == (pytest.approx(40, abs=1), pytest.approx(40, abs=1))
    assert (after["busy_time"], took) == (pytest.approx(60, abs=1), pytest.approx(60, abs=1))


@pytest.mark.parametrize("by", [HOUR, -HOUR, 3 * SEC, -3 * SEC], ids=str)
def test_a_runner_measures_what_it_runs_by_a_clock_that_nobody_sets(by, monkeypatch):
    async def story():
        stage = Stage(SetClock(T0), monkeypatch)
        claim = await stage.slots.claim(stage.composite, poller_id=1, now=T0, waits={})
        poller = Poller(1)
        poller.assign(stage.composite, T0)
        poller.take(claim)
        running = asyncio.create_task(stage.runner.run(claim, poller))
        await stage.clock.sleep(1.5)
        stage.clock.by += by
        await running
        return stage.slots.rows

    rows = told(story())

    assert [(row.ended_at - row.started_at).total_seconds() for row in rows] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("by", [HOUR, -HOUR, 3 * SEC, -3 * SEC], ids=str)
def test_a_retry_that_waits_comes_when_it_should_or_ends_with_its_slot(by):
    async def story():
        node = make_node(1, next_check=T0, retries=1, retry_delay=120 * SEC)
        world = Story([node], outcome=lambda node, slot: SILENT if slot == T0 else ANSWERED)
        await world.live(60 * SEC)
        world.set(by)
        await world.live(3 * MIN)
        return world

    world = told(story())

    first = world.rows[0]
    assert first.status is Status.FAILED
    assert len(first.attempts) == (1 if by == HOUR else 2)
    assert 0 <= (first.ended_at - first.started_at).total_seconds() <= 140
    if by < timedelta(0):
        again, before = first.attempts[1], first.attempts[0]
        assert (again.started_at - before.ended_at).total_seconds() == pytest.approx(120, abs=5)


def test_a_slot_that_waits_is_explained_by_the_clock():
    async def story():
        busy, waiting = make_node(1, next_check=T0, priority=90), make_node(2, next_check=T0, interval=2 * HOUR)
        world = Story([busy, waiting], seconds=lambda node, slot: 40.0)
        await world.live(20 * SEC)
        world.set(HOUR)
        await world.live(60 * SEC)
        return next(row for row in world.rows if row.node.id == 2)

    row = told(story())

    assert (row.slot, row.waits[Cause.CLOCK_SET]) == (T0, 3600.0)
    assert row.waits[Cause.OLT_BUSY] == pytest.approx(40, abs=2)


def test_what_a_person_asked_for_runs_at_once_after_a_step_back():
    async def story():
        busy = make_node(1, next_check=T0, priority=90)
        world = Story([busy, make_node(2, next_check=T0)], seconds=lambda node, slot: 40.0)
        await world.live(10 * SEC)
        world.nodes.request_run(2, world.clock.now())
        await world.live(2 * SEC)
        world.set(-HOUR)
        await world.live(40 * SEC)
        return [id_ for id_, _ in world.begun]

    assert told(story())[:2] == [1, 2]


def test_nothing_is_offered_while_the_slots_cannot_be_moved():
    async def story():
        world = Story(fleet(20))
        await world.live(6 * MIN)
        reschedule = world.slots.reschedule

        async def away(*args, **kwargs):
            raise OSError("the database is away")

        world.slots.reschedule = away
        world.set(HOUR)
        await world.live(30 * SEC)
        behind, begun = world.scheduler.follows_clock, len(world.begun)
        world.slots.reschedule = reschedule
        await world.live(10 * MIN)
        return behind, begun, world

    behind, begun, world = told(story())

    assert behind
    assert not world.scheduler.follows_clock
    assert len(world.begun) - begun >= 38
    assert {row.cause for row in world.rows if row.status is Status.SKIPPED} == {Cause.CLOCK_SET}


def test_an_engine_that_starts_with_a_clock_behind_its_rows_uses_other_slots():
    async def story():
        world = Story([make_node(1, next_check=T0)])
        await world.live(61 * MIN)
        world.clock.by -= HOUR
        world.scheduler = world._scheduler(10)
        await world.live(20 * MIN)
        return world

    world = told(story())

    assert [row.slot - T0 for row in world.rows][13:] == [n * 5 * MIN + SEC for n in range(1, 5)]


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        pytest.param([], T0, id="free"),
        pytest.param([T0 + 10 * MIN], T0 + 1 * SEC, id="taken later on the same grid"),
        pytest.param([T0 - 5 * MIN], T0, id="taken before"),
        pytest.param([T0, T0 + 5 * MIN + SEC], T0 + 2 * SEC, id="two grids are taken"),
        pytest.param([T0 + n * SEC for n in range(300)], T0 + 5 * MIN, id="all of them are"),
    ],
)
def test_the_grid_moves_by_as_few_seconds_as_possible(taken, expected):
    assert free_slot(T0, 5 * MIN, taken) == expected


@pytest.mark.parametrize("by", [-HOUR, HOUR], ids=str)
def test_chores_go_on_at_their_beat(by):
    async def story():
        clock, done = SetClock(T0), []

        async def work(now):
            done.append(clock.monotonic())

        chores = Chores(clock, [Chore("often", 5 * SEC, work), Chore("rare", HOUR, work)])
        task = asyncio.create_task(chores.run())
        await clock.sleep(60)
        clock.by += by
        await clock.sleep(60)
        task.cancel()
        return done

    assert len([at for at in told(story()) if at > 60]) >= 11


steps = st.lists(
    st.tuples(st.integers(1, 3000), st.sampled_from([-4000, -3600, -1200, -61, -11, -3, 3, 11, 61, 1200, 3600, 4000])),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@settings(max_examples=examples(6), deadline=None)
@given(steps, st.integers(0, 1000))
def test_whatever_the_clock_does_slots_are_taken_once_and_polling_goes_on(plan, seed):
    async def story():
        dice = random.Random(seed)
        nodes = [
            make_node(n, olt_id=n % 4, interval=dice.choice([1, 2, 5, 10]) * MIN, next_check=T0 + n * SEC, retries=1)
            for n in range(1, 9)
        ]
        outcomes = [ANSWERED, ANSWERED, SILENT]
        world = Story(
            nodes,
            pollers=4,
            seconds=lambda node, slot: dice.choice([0.5, 2.0, 6.0]),
            outcome=lambda node, slot: dice.choice(outcomes),
        )
        world.slots._breaker_after = 1000
        for after, by in sorted(plan):
            while world.clock.monotonic() < after:
                await world.scheduler.step()
                await world.clock.sleep(1)
            world.set(by * SEC)
        await world.live(30 * MIN)
        return world, world.clock.monotonic()

    world, end = told(story())

    assert max(Counter((row.node.id, row.slot) for row in world.rows).values()) == 1
    assert world.runner.overlaps == 0
    assert not world.scheduler.follows_clock
    for node in world.nodes.rows.values():
        longest = 3 * node.interval.total_seconds() + 60
        times = [0.0, *(at for id_, at in world.begun if id_ == node.id), end]
        assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= longest
    assert sum(row.status in (Status.PENDING, Status.RUNNING) for row in world.rows) <= 8


def test_a_call_under_way_when_the_clock_is_set_is_no_outage():
    async def story():
        world = Story([make_node(1, next_check=T0)])
        with world.scheduler.outages.watch("write", world.clock):
            world.set(HOUR)
        return world.scheduler.outages.within(T0, world.clock.now())

    assert told(story()) == {}
