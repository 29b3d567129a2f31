"""Slots lost while the database or the broker is unavailable have that cause, not missing pollers."""

import pytest
from builders import HOUR, MIN, SEC, T0, World, make_node
from histories import Behind, Database

from facho.engine.model import Cause, Status
from facho.engine.scheduling.outages import Outages
from facho.engine.scheduling.scheduler import Scheduler

DATABASE, BROKER = Cause.DATABASE_UNAVAILABLE, Cause.BROKER_UNAVAILABLE


class Shaky(World):
    """A world whose writes go through a database that can be locked or unavailable. Reads are answered."""

    def _scheduler(self, pollers):
        self.database = Database(self.clock)
        return Scheduler(
            pollers=pollers,
            nodes=self.nodes,
            slots=Behind(self.slots, self.database),
            runner=self.runner,
            clock=self.clock,
        )


def lost(world, node_id):
    return [(row.slots, row.cause) for row in world.rows if row.node.id == node_id and row.status is Status.SKIPPED]


def fleet():
    return [make_node(id, olt_id=id, interval=2 * MIN, next_check=T0 + 1 * MIN) for id in (1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "trouble",
    [pytest.param({"is_away": True}, id="writes fail"), pytest.param({"delay": 400.0}, id="writes hang")],
)
def test_slots_lost_to_the_database_are_not_put_down_to_missing_pollers(clock, virtually, trouble):
    async def story():
        world = Shaky(clock, fleet())
        await world.run_for(30 * SEC)
        for name, value in trouble.items():
            setattr(world.database, name, value)
        await world.run_for(6 * MIN)
        world.database.is_away, world.database.delay = False, 0.0
        await world.run_for(5 * MIN)
        return world

    world = virtually(story())

    causes = {cause for node_id in (1, 2) for _, cause in lost(world, node_id)}
    assert causes == {DATABASE}


def test_a_run_that_starts_late_because_of_the_database_reports_it(clock, virtually):
    async def story():
        world = Shaky(clock, fleet())
        await world.run_for(30 * SEC)
        world.database.is_away = True
        await world.run_for(60 * SEC)
        world.database.is_away = False
        await world.run_for(60 * SEC)
        return world

    first, second = [row for row in virtually(story()).rows if row.claimed_at]

    assert first.waits[DATABASE] == pytest.approx((first.claimed_at - first.slot).total_seconds(), abs=1)
    assert second.waits[DATABASE] == pytest.approx((second.claimed_at - second.slot).total_seconds(), abs=1)


def test_too_few_pollers_are_still_too_few(clock, virtually):
    async def story():
        world = Shaky(clock, fleet(), pollers=1, seconds=lambda node, slot: 150.0)
        await world.run_for(10 * MIN)
        return world

    world = virtually(story())

    assert {cause for node_id in (1, 2) for _, cause in lost(world, node_id)} <= {
        Cause.NO_FREE_POLLER,
        Cause.OLT_BUSY,
    }


def test_a_node_in_the_queue_shows_that_it_waits_for_the_database(clock, virtually):
    async def story():
        world = Shaky(clock, fleet())
        await world.run_for(30 * SEC)
        world.database.is_away = True
        await world.run_for(40 * SEC)
        return [waiting.waits_for(clock.now()) for waiting in world.scheduler.manager.queue]

    assert virtually(story()) == [DATABASE, DATABASE]


def test_slots_lost_while_nobody_could_schedule_are_not_put_down_to_the_engine(clock, virtually):
    """As when an outage of the database ended the turn of a scheduler, and a turn begins when it is over."""
    outages = Outages()

    async def story():
        outages.note("scheduler", DATABASE, T0)
        await clock.sleep(20 * 60)
        outages.note("scheduler", None, clock.now())
        world = World(clock, [make_node(1, interval=5 * MIN, next_check=T0 + 1 * MIN)], outages=outages)
        await world.run_for(10 * SEC)
        return world

    assert lost(virtually(story()), 1) == [(4, DATABASE)]


def test_an_engine_that_was_down_before_the_outage_was_down(clock, virtually):
    outages = Outages()

    async def story():
        await clock.sleep(50 * 60)
        outages.note("scheduler", DATABASE, clock.now())
        await clock.sleep(60)
        outages.note("scheduler", None, clock.now())
        world = World(clock, [make_node(1, interval=5 * MIN, next_check=T0 + 1 * MIN)], outages=outages)
        await world.run_for(10 * SEC)
        return world

    assert lost(virtually(story()), 1) == [(11, Cause.ENGINE_DOWN)]


class Defect(Exception):
    """An error that another try would meet again."""


def test_a_defect_is_no_outage(clock, virtually):
    outages = Outages(lambda error: not isinstance(error, Defect))

    async def story():
        with pytest.raises(Defect), outages.watch("write", clock):
            raise Defect
        return outages.present(clock.now())

    assert virtually(story()) is None


def test_an_answer_to_a_read_does_not_end_an_outage_of_writes(clock, virtually):
    outages = Outages()

    async def story():
        with pytest.raises(ConnectionError), outages.watch("write", clock):
            raise ConnectionError
        with outages.watch("read", clock):
            pass
        during = outages.present(clock.now())
        with outages.watch("write", clock):
            pass
        return during, outages.present(clock.now())

    assert virtually(story()) == (DATABASE, None)


def test_a_call_that_takes_long_is_an_outage_from_its_beginning(clock, virtually):
    outages = Outages()

    async def story():
        with outages.watch("write", clock):
            await clock.sleep(4)
            early = outages.present(clock.now())
            await clock.sleep(4)
            late = outages.present(clock.now())
        return early, late, outages.within(T0, clock.now() + 10 * SEC)

    assert virtually(story()) == (None, DATABASE, {DATABASE: 8.0})


def test_outages_that_overlap_count_once():
    outages = Outages()
    outages.note("broker", BROKER, T0)
    outages.note("write", DATABASE, T0 + 10 * SEC)
    outages.note("broker", None, T0 + 30 * SEC)
    outages.note("write", None, T0 + 40 * SEC)

    assert outages.within(T0 - 5 * SEC, T0 + HOUR) == {BROKER: 30.0, DATABASE: 10.0}
    assert outages.within(T0 + 35 * SEC, T0 + 37 * SEC) == {DATABASE: 2.0}


@pytest.mark.parametrize(
    ("until", "expected"),
    [pytest.param(T0 + 40 * SEC, BROKER, id="most of the time"), pytest.param(T0 + HOUR, None, id="a moment of it")],
)
def test_an_outage_is_the_main_cause_of_what_it_lasted_through(until, expected):
    outages = Outages()
    outages.note("broker", BROKER, T0)
    outages.note("broker", None, T0 + 30 * SEC)

    assert outages.main_cause(T0, until) is expected
