"""Chores: each on its own beat, none in the way of another."""

import asyncio
import logging
from datetime import timedelta

import pytest
from builders import HOUR, MIN, SEC, T0

from facho.engine.events import Event
from facho.engine.scheduling.chores import Chore, Chores


async def nothing(now):
    """Do nothing."""


class Diary:
    """Chores that write down when they were begun, and take as long as they are told to."""

    def __init__(self, clock):
        self.clock = clock
        self.begun = []
        self.ended = []
        self.failing = set()

    def chore(self, name, every, *, seconds=0.0, offset=timedelta(0)):
        async def work(now):
            self.begun.append((name, now - T0))
            await self.clock.sleep(seconds)
            if name in self.failing:
                raise OSError(f"{name} found the database away")
            self.ended.append((name, self.clock.now() - T0))

        return Chore(name, every, work, offset)

    def beats(self, name):
        return [at for each, at in self.begun if each == name]


async def run_for(chores, clock, span):
    """Let chores be done for so long, and stop them."""
    task = asyncio.ensure_future(chores.run())
    await clock.sleep(span.total_seconds())
    task.cancel()
    await chores.stop()


@pytest.mark.parametrize(
    ("every", "offset", "now", "expected"),
    [
        pytest.param(HOUR, 0 * SEC, T0 + 20 * MIN, T0 + HOUR, id="within the hour: at its turn"),
        pytest.param(HOUR, 0 * SEC, T0, T0 + HOUR, id="at the turn itself: at the next one"),
        pytest.param(HOUR, 5 * SEC, T0 + 20 * MIN, T0 + HOUR + 5 * SEC, id="a little behind the turn"),
        pytest.param(HOUR, 5 * SEC, T0 + 2 * SEC, T0 + 5 * SEC, id="between the turn and the offset"),
        pytest.param(MIN, 2 * SEC, T0 + 59 * MIN + 58 * SEC, T0 + HOUR + 2 * SEC, id="every minute, over the hour"),
        pytest.param(10 * MIN, 30 * SEC, T0 + 7 * MIN, T0 + 10 * MIN + 30 * SEC, id="every ten minutes"),
        pytest.param(24 * HOUR, 3 * HOUR, T0, T0 + 17 * HOUR, id="once a day, at three"),
    ],
)
def test_beats_are_counted_from_the_turn_of_the_hour(every, offset, now, expected):
    assert Chore("settle", every, nothing, offset).next_beat(now) == expected


def test_each_chore_has_its_own_beat_and_begins_at_the_start(virtually, clock):
    async def story():
        await clock.sleep(90)
        diary = Diary(clock)
        chores = Chores(clock, [diary.chore("settle", MIN, offset=2 * SEC), diary.chore("sweep", 5 * MIN)])
        await run_for(chores, clock, 4 * MIN)
        return diary

    diary = virtually(story())

    assert diary.beats("settle") == [90 * SEC, 122 * SEC, 182 * SEC, 242 * SEC, 302 * SEC]
    assert diary.beats("sweep") == [90 * SEC, 5 * MIN]


def test_a_slow_chore_never_overlaps_itself_nor_delays_another(virtually, clock, caplog):
    async def story():
        diary = Diary(clock)
        chores = Chores(clock, [diary.chore("sweep", MIN, seconds=150), diary.chore("settle", MIN)])
        await run_for(chores, clock, 6 * MIN - SEC)
        return diary

    diary = virtually(story())

    assert diary.beats("sweep") == [0 * MIN, 3 * MIN]
    assert diary.beats("settle") == [0 * MIN, 1 * MIN, 2 * MIN, 3 * MIN, 4 * MIN, 5 * MIN]
    assert caplog.messages == []


def test_a_chore_that_does_not_come_to_an_end_is_named_once(virtually, clock, caplog):
    async def story():
        chores = Chores(clock, [Diary(clock).chore("sweep", MIN, seconds=1490)])
        await run_for(chores, clock, 40 * MIN)

    virtually(story())

    assert caplog.messages == ["maintenance task sweep has been running for 600 s"] * 2


def test_a_chore_that_fails_stops_no_other_and_is_tried_again(virtually, clock, caplog):
    async def story():
        diary = Diary(clock)
        diary.failing = {"settle"}
        chores = Chores(clock, [diary.chore("settle", MIN), diary.chore("plans", MIN)])
        await run_for(chores, clock, 2 * MIN + SEC)
        return diary

    diary = virtually(story())

    assert diary.beats("settle") == diary.beats("plans") == [0 * MIN, 1 * MIN, 2 * MIN]
    failures = [record for record in caplog.records if getattr(record, "event", None) is Event.CHORE_FAILED]
    assert len(failures) == 3
    assert failures[0].getMessage() == "maintenance task settle failed: settle found the database away"
    assert failures[0].levelno == logging.ERROR
    assert failures[0].exc_info[0] is OSError


def test_an_error_without_a_text_is_logged_by_its_type(virtually, clock, caplog):
    async def work(now):
        raise TimeoutError

    async def story():
        await run_for(Chores(clock, [Chore("settle", HOUR, work)]), clock, MIN)

    virtually(story())

    assert caplog.messages == ["maintenance task settle failed: TimeoutError"]


def test_stopping_ends_what_is_at_work_and_begins_nothing_more(virtually, clock):
    stopped = []

    async def story():
        async def work(now):
            try:
                await clock.sleep(3600)
            finally:
                # What has to be written down first is waited for.
                await clock.sleep(2)
                stopped.append(clock.now() - T0)

        chores = Chores(clock, [Chore("sweep", MIN, work)])
        task = asyncio.ensure_future(chores.run())
        await clock.sleep(30)
        await chores.stop()
        chores.step(clock.now() + HOUR)
        left = len(asyncio.all_tasks()) - 1
        await task
        return left

    left = virtually(story())

    assert stopped == [32 * SEC]
    assert left == 1


def test_stopping_in_the_moment_of_a_start_is_no_error(virtually, clock):
    async def story():
        diary = Diary(clock)
        chores = Chores(clock, [diary.chore("sweep", MIN)])
        chores.step(clock.now())
        await chores.stop()
        return diary

    assert virtually(story()).begun == []


def test_two_chores_of_one_name_are_refused(clock):
    with pytest.raises(ValueError, match="same name"):
        Chores(clock, [Chore("sweep", MIN, nothing), Chore("sweep", HOUR, nothing)])


def test_without_any_chore_there_is_nothing_to_do(virtually, clock):
    async def story():
        await run_for(Chores(clock, []), clock, 3 * HOUR)
        return True

    assert virtually(story())
