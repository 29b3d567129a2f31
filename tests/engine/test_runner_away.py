"""A database that goes away when a composite is about to begin: it waits, is given back, or says what kept it."""

import asyncio
from datetime import timedelta

import pytest
from builders import MIN, SEC, T0
from runner_stage import Database

from facho.engine.errors import OltBusy
from facho.engine.model import Cause, Claim, Status

PATIENCE = timedelta(seconds=10)
DONE = [(Status.SUCCESS, None)] * 3
UNTOUCHED = [(Status.PENDING, None)] * 3
SKIPPED = (Status.SKIPPED, Cause.DATABASE_UNAVAILABLE)


@pytest.fixture
def away(stage, clock):
    """Set up a composite whose slot lasts five minutes, on a database that goes away."""

    def make(step, seconds, patience=None, **how):
        play = stage()
        play.with_database(Database(clock, step, seconds, **how), patience)
        return play

    return make


async def timed(play, running):
    """Return what comes of a run, and how long that took."""
    outcomes = await running
    return list(outcomes), play.clock.now() - T0


@pytest.mark.parametrize("patience", [None, PATIENCE], ids=["one process", "a worker"])
@pytest.mark.parametrize("step", ["olt", "start", "known"])
def test_a_composite_waits_for_a_database_that_is_back_in_some_seconds(away, virtually, step, patience):
    play = away(step, 7, patience)

    virtually(play.run())

    assert play.ended == DONE
    assert [node_id for node_id, *_ in play.asked] == [1, 2, 3]


@pytest.mark.parametrize("step", ["olt", "start"])
def test_a_worker_gives_back_what_it_could_not_begin_and_writes_nothing(away, virtually, step):
    play = away(step, 60, PATIENCE)

    outcomes, took = virtually(timed(play, play.run()))

    assert (outcomes, play.ended, play.asked) == ([], UNTOUCHED, [])
    assert play.heard == []
    assert PATIENCE <= took <= PATIENCE + 2 * SEC


@pytest.mark.parametrize("step", ["olt", "start"])
def test_one_process_waits_as_long_as_the_slot_lasts_and_says_what_for(away, virtually, step):
    play = away(step, 3600)

    _, took = virtually(timed(play, play.run()))

    assert play.ended == [SKIPPED] * 3
    assert play.asked == []
    assert 5 * MIN <= took <= 5 * MIN + 2 * SEC


def test_what_a_person_asked_for_waits_for_some_minutes(away, virtually):
    play = away("olt", 3600)

    async def story():
        claim = await play.claim()
        by_hand = Claim(claim.composite, claim.execution_ids, claim.poller_id, None)
        return await timed(play, play.runner.run(by_hand, play))

    _, took = virtually(story())

    assert play.ended == [SKIPPED] * 3
    assert 5 * MIN <= took <= 5 * MIN + 2 * SEC


@pytest.mark.parametrize("patience", [None, PATIENCE], ids=["one process", "a worker"])
def test_a_link_waits_in_the_middle_of_its_chain_for_longer_than_one_that_could_be_given_back(
    away, virtually, patience
):
    play = away("start", 60, patience, times=2)

    virtually(play.run())

    assert play.ended == DONE


def test_a_link_that_cannot_begin_before_the_lease_is_over_is_skipped_with_those_behind_it(away, virtually):
    play = away("start", 60, PATIENCE, times=2)
    play.leases.is_valid = lambda lease: play.clock.now() < T0 + 20 * SEC

    virtually(play.run())

    assert play.ended == [(Status.SUCCESS, None), SKIPPED, SKIPPED]
    assert [node_id for node_id, *_ in play.asked] == [1]


def test_a_link_that_began_and_could_not_find_out_whom_to_ask_names_the_database(away, virtually):
    play = away("known", 60, PATIENCE)
    play.leases.is_valid = lambda lease: play.clock.now() < T0 + 20 * SEC

    outcomes = virtually(play.run())

    assert play.ended == [(Status.FAILED, Cause.DATABASE_UNAVAILABLE), SKIPPED, SKIPPED]
    # Hosts and users that a driver names are for the log.
    assert "10.1.2.3" not in outcomes[0].error


def test_a_start_whose_answer_was_lost_is_a_start(away, virtually):
    play = away("start", 3, answer_is_lost=True)

    virtually(play.run())

    assert play.ended == DONE
    assert [len(row.attempts) for row in play.slots.rows] == [1, 1, 1]


def test_a_lease_that_we_may_have_got_when_the_line_broke_is_waited_for(away, virtually):
    play = away("olt", 0)
    hold, answers = play.leases.hold, [play.database_error(), OltBusy("held by noc/3"), None]

    def holding(olt_id, holder, *, device):
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return hold(olt_id, holder, device=device)

    play.leases.hold = holding

    virtually(play.run())

    assert (play.ended, answers) == (DONE, [])


def test_an_olt_that_another_holds_is_not_waited_for(away, virtually):
    play = away("olt", 7)

    async def story():
        async with play.leases.hold(1, "noc-2/1", device="127.0.0.1:161"):
            await play.run()

    virtually(story())

    assert play.ended == [(Status.SKIPPED, Cause.OLT_BUSY)] * 3


def test_what_is_no_outage_is_a_failure_as_ever(stage, virtually, clock):
    play = stage()
    play.with_database(Database(clock, "start", 0))

    async def defect(*args, **kwargs):
        raise ValueError("a defect")

    play.runs.start = defect

    virtually(play.run())

    assert play.ended == [(Status.FAILED, None)] * 3


def test_a_worker_leaves_alone_what_comes_twice(away, virtually):
    play = away("olt", 0, PATIENCE)

    async def story():
        claim = await play.claim()
        first = asyncio.ensure_future(play.runner.run(claim, play))
        await play.clock.sleep(0.5)
        second = await play.runner.run(claim, play)
        return second, await first

    second, first = virtually(story())

    assert (list(second), [outcome.status for outcome in first]) == ([], [Status.SUCCESS] * 3)
    assert play.ended == DONE


def test_a_worker_that_holds_the_olt_answers_for_what_it_cannot_begin(away, virtually):
    play = away("olt", 0, PATIENCE)

    async def busy(*args, **kwargs):
        raise OltBusy("OLT 1 has another execution running")

    play.runs.start = busy

    virtually(play.run())

    assert play.ended == [(Status.SKIPPED, Cause.OLT_BUSY)] * 3
