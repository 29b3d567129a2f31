"""A process follows its machine's clock, and logs when it was set."""

import logging
from datetime import timedelta

import pytest

from facho.adapters.clock import SystemClock
from facho.runtime.clocks import ClockWatch


@pytest.mark.parametrize(
    ("by", "event"), [(3600.0, "CLOCK_SET_FORWARD"), (-3.0, "CLOCK_SET_BACK")], ids=["forward", "back"]
)
def test_a_step_is_logged_and_everybody_hears_of_it_at_once(caplog, by, event):
    caplog.set_level(logging.INFO)
    wall, heard = [1_000_000.0], []
    clock = SystemClock(wall=lambda: wall[0], steady=lambda: 0.0)
    watch = ClockWatch(clock, "noc-1 (run)", lambda step: heard.append((step, clock.now().timestamp())))

    watch.step()
    wall[0] += by
    watch.step()
    watch.step()

    assert heard == [(timedelta(seconds=by), wall[0])]
    assert [record.event.name for record in caplog.records] == [event]
    assert f"by {abs(by):.1f} s" in caplog.text


def test_a_slew_is_followed_in_silence(caplog):
    caplog.set_level(logging.INFO)
    wall = [1_000_000.0]
    clock = SystemClock(wall=lambda: wall[0], steady=lambda: 0.0)
    watch = ClockWatch(clock, "noc-1 (run)", lambda step: pytest.fail("no step"))

    wall[0] += 0.05
    watch.step()

    assert clock.now().timestamp() == pytest.approx(wall[0])
    assert not caplog.records
