"""The pollers of one worker: each runs one composite, and a person can stop what runs."""

import asyncio

import pytest
from builders import MIN, T0, make_composite

from facho.adapters.clock import SystemClock
from facho.engine.model import Claim, Outcome, Status
from facho.runtime.roles.worker import WorkerPollers


class Runner:
    """Runs until it is let go, and notes what it was given."""

    def __init__(self):
        self.claims = []
        self.may_end = asyncio.Event()
        self.error = None
        self.outcomes = [Outcome(Status.SUCCESS)]

    async def run(self, claim, watch):
        self.claims.append(claim)
        await self.may_end.wait()
        if self.error:
            raise self.error
        return self.outcomes


@pytest.fixture
async def runner():
    return Runner()


@pytest.fixture
async def pool(runner):
    return WorkerPollers(name="noc-1/77", host="noc-1", numbers=[4, 9], runner=runner, clock=SystemClock())


def claim(number=1):
    return Claim(make_composite(number, olt_id=number), (number,), 1, T0 + 5 * MIN)


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_composite_runs_in_a_poller_of_ours_and_carries_its_number(pool, runner):
    running = asyncio.ensure_future(pool.run(claim()))
    await settled()
    busy = [(poller["id"], poller["status"], poller["olt_id"]) for poller in pool.describe()]
    runner.may_end.set()
    await running

    assert busy == [(4, "BUSY", 1), (9, "FREE", None)]
    assert runner.claims[0].poller_id == 4
    assert [poller["status"] for poller in pool.describe()] == ["FREE", "FREE"]
    assert sum(poller["tasks_completed"] for poller in pool.describe()) == 1


async def test_what_was_given_back_does_not_count_as_done(pool, runner):
    runner.outcomes = []
    runner.may_end.set()

    await pool.run(claim())

    assert sum(poller["tasks_completed"] for poller in pool.describe()) == 0


async def test_what_comes_while_all_are_busy_waits_for_one(pool, runner):
    tasks = [asyncio.ensure_future(pool.run(claim(number))) for number in (1, 2, 3)]
    await settled()
    begun = len(runner.claims)
    runner.may_end.set()
    await asyncio.gather(*tasks)

    assert (begun, len(runner.claims)) == (2, 3)


async def test_what_runs_on_an_olt_can_be_stopped_and_nothing_else_is(pool, runner):
    tasks = [asyncio.ensure_future(pool.run(claim(number))) for number in (1, 2)]
    await settled()

    pool.interrupt(1)
    pool.interrupt(99)
    await asyncio.wait_for(tasks[0], 5)

    assert not tasks[1].done()
    assert [poller["status"] for poller in pool.describe()].count("BUSY") == 1
    runner.may_end.set()
    await tasks[1]


async def test_a_run_that_ends_in_an_error_leaves_its_poller_free(pool, runner):
    runner.error = RuntimeError("a defect")
    runner.may_end.set()

    with pytest.raises(RuntimeError):
        await pool.run(claim())

    assert [poller["status"] for poller in pool.describe()] == ["FREE", "FREE"]


async def test_pollers_can_get_other_numbers_while_they_run(pool, runner):
    running = asyncio.ensure_future(pool.run(claim()))
    await settled()

    pool.renumber([21, 22])
    busy = [(poller["id"], poller["status"]) for poller in pool.describe()]
    runner.may_end.set()
    await running

    assert busy == [(21, "BUSY"), (22, "FREE")]
    assert [(poller["id"], poller["status"]) for poller in pool.describe()] == [(21, "FREE"), (22, "FREE")]


async def test_the_report_says_who_where_and_whether_it_takes_more(pool):
    report = pool.report()

    assert (report["worker"], report["host"], report["draining"]) == ("noc-1/77", "noc-1", False)
    assert {(poller["worker"], poller["host"]) for poller in report["pollers"]} == {("noc-1/77", "noc-1")}
    pool.is_draining = True
    assert pool.report()["draining"] is True
