"""What every clock promises: UTC, time that only grows, and sleep that ends."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from facho.adapters.clock import SystemClock, VirtualClock, VirtualTimeLoop

EPOCH = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def really(coroutine):
    return asyncio.run(coroutine)


def virtually(coroutine):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


@pytest.fixture(params=["system", "virtual"])
def run(request):
    """Run a story that takes a clock, with each of them."""
    clock, runner = (SystemClock(), really) if request.param == "system" else (VirtualClock(EPOCH), virtually)
    return lambda story: runner(story(clock))


def test_the_time_is_in_utc(run):
    async def story(clock):
        return clock.now()

    assert run(story).utcoffset() == timedelta(0)


def test_sleeping_takes_the_time_it_says_on_both_scales(run):
    async def story(clock):
        before = clock.now(), clock.monotonic()
        await clock.sleep(0.02)
        return clock.now() - before[0], clock.monotonic() - before[1]

    by_date, by_seconds = run(story)

    assert by_date >= timedelta(seconds=0.0199)
    assert by_seconds >= 0.0199


def test_no_time_at_all_is_a_sleep_too(run):
    async def story(clock):
        await clock.sleep(0)
        await clock.sleep(-1)
        return True

    assert run(story)


class Machine:
    """The clocks of a machine, as far as a SystemClock reads them."""

    def __init__(self):
        self.wall = EPOCH.timestamp()
        self.steady = 100.0

    def passes(self, seconds, *, slewed=0.0):
        self.steady += seconds
        self.wall += seconds + slewed

    def clock(self):
        return SystemClock(wall=lambda: self.wall, steady=lambda: self.steady)


@pytest.mark.parametrize("by", [3600.0, -3600.0, 0.6, -0.6])
def test_a_step_of_the_machines_clock_takes_effect_when_it_is_followed(by):
    machine = Machine()
    clock = machine.clock()

    machine.wall += by
    machine.passes(1.0)
    before = clock.now(), clock.monotonic()
    step = clock.follow()

    assert before == (EPOCH + timedelta(seconds=1), 101.0)
    assert step.total_seconds() == pytest.approx(by)
    assert clock.now() - EPOCH == pytest.approx(timedelta(seconds=1 + by), abs=timedelta(milliseconds=1))
    assert (clock.monotonic(), clock.follow()) == (101.0, timedelta(0))


def test_a_slew_is_followed_and_is_no_step():
    machine = Machine()
    clock = machine.clock()
    steps = []
    for _ in range(3600):
        machine.passes(1.0, slewed=0.0005)
        steps.append(clock.follow())

    assert set(steps) == {timedelta(0)}
    assert (clock.now() - EPOCH).total_seconds() == pytest.approx(3601.8, abs=0.01)


def test_a_virtual_day_is_over_at_once_and_in_order():
    clock = VirtualClock(EPOCH)
    rung = []

    async def alarm(hours):
        await clock.sleep(hours * 3600)
        rung.append((hours, clock.now()))

    async def story():
        await asyncio.gather(*(alarm(hours) for hours in (24, 1, 7)))

    virtually(story())

    assert rung == [(hours, EPOCH + timedelta(hours=hours)) for hours in (1, 7, 24)]


def test_virtual_time_waits_for_work_in_another_thread():
    clock = VirtualClock(EPOCH)

    async def story():
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(None, lambda: 7)
        return result, clock.now()

    assert virtually(story()) == (7, EPOCH)
