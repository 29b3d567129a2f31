"""Windows of maintenance: when they are, through the changes of the clock as well, and which slots they excuse."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from builders import HOUR, MIN, T0, make_node
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.maintenance import STEPS, Recurrence, Schedule, Window
from facho.engine.model import Cause, Skipped
from facho.engine.scheduling.grid import excused

MADRID = ZoneInfo("Europe/Madrid")


def utc(day, hour, minute=0, *, month=6, year=2025):
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def local(*when):
    return datetime(*when, tzinfo=MADRID).astimezone(UTC)


def shown(window):
    """Return a window in local time."""
    return window and tuple(f"{each.astimezone(MADRID):%d %H:%M}" for each in window)


@pytest.mark.parametrize(
    ("recurrence", "now", "after", "expected"),
    [
        pytest.param("none", utc(1, 9), None, utc(1, 10), id="not begun"),
        pytest.param("none", utc(1, 11), None, utc(1, 10), id="running"),
        pytest.param("none", utc(1, 12), None, None, id="over"),
        pytest.param("none", utc(1, 11), utc(1, 10), None, id="ended early"),
        pytest.param("daily", utc(1, 12), None, utc(2, 10), id="daily: tomorrow"),
        pytest.param("daily", utc(1, 11), utc(1, 10), utc(2, 10), id="daily, ended early: not again today"),
        pytest.param("daily", utc(20, 11, 59), None, utc(20, 10), id="daily: long after, running"),
        pytest.param("daily", utc(20, 12), None, utc(21, 10), id="daily: long after, over"),
        pytest.param("weekly", utc(1, 12), None, utc(8, 10), id="weekly"),
        pytest.param("daily", utc(22, 12), None, None, id="no longer repeated"),
    ],
)
def test_the_next_window(recurrence, now, after, expected):
    schedule = Schedule(utc(1, 10), utc(1, 12), Recurrence(recurrence), until=utc(22, 11))

    found = schedule.next_window(now, after)

    assert found == (expected and (expected, expected + 2 * HOUR))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        pytest.param((2025, 3, 29, 1), (2025, 3, 29, 5), ("30 01:00", "30 05:00"), id="spring: same local times"),
        pytest.param((2025, 3, 29, 2), (2025, 3, 29, 2, 45), ("30 03:00", "30 03:45"), id="spring: inside the gap"),
        pytest.param((2025, 3, 29, 2, 30), (2025, 3, 29, 3, 15), ("30 03:30", "30 04:15"), id="spring: begins in it"),
        pytest.param((2025, 10, 25, 1), (2025, 10, 25, 5), ("26 01:00", "26 05:00"), id="autumn: same local times"),
        pytest.param((2025, 10, 25, 1), (2025, 10, 25, 2, 30), ("26 01:00", "26 02:30"), id="autumn: ends in it"),
    ],
)
def test_a_daily_window_keeps_its_local_times_when_the_clocks_change(start, end, expected):
    schedule = Schedule(local(*start), local(*end), Recurrence.DAILY, MADRID)

    assert shown(schedule.next_window(local(*end))) == expected


def test_a_window_that_ends_in_the_hour_that_occurs_twice_lasts_through_both():
    schedule = Schedule(local(2025, 10, 25, 1), local(2025, 10, 25, 2, 30), Recurrence.DAILY, MADRID)

    start, end = schedule.next_window(local(2025, 10, 25, 12))

    assert end - start == 2 * HOUR + 30 * MIN


@given(
    start=st.integers(0, 365 * 24 * 60).map(lambda minutes: utc(1, 0, month=1) + minutes * MIN),
    minutes=st.integers(1, 23 * 60),
    recurrence=st.sampled_from(list(STEPS)),
    zone=st.sampled_from(["Europe/Madrid", "America/New_York", "Australia/Lord_Howe", "America/Lima"]),
    hours=st.integers(0, 24 * 400),
)
def test_windows_follow_each_other_and_none_is_left_out(start, minutes, recurrence, zone, hours):
    schedule = Schedule(start, start + minutes * MIN, recurrence, ZoneInfo(zone))
    now = start + hours * HOUR

    found = [schedule.next_window(now)]
    while len(found) < 4:
        found.append(schedule.next_window(now, found[-1][0]))

    assert all(now < end and begin < end for begin, end in found)
    assert found[0][0] <= now + STEPS[recurrence] + HOUR
    for (earlier, _), (later, _) in pairwise(found):
        assert abs(later - earlier - STEPS[recurrence]) <= HOUR


@pytest.mark.parametrize(
    ("length", "expected"),
    [pytest.param(4 * HOUR, T0 + 210 * MIN, id="long"), pytest.param(4 * HOUR - MIN, None, id="short")],
)
def test_a_long_window_has_a_reminder_half_an_hour_before_its_end(length, expected):
    assert Window(T0, T0 + length).reminder_at == expected


def test_a_window_covers_its_start_and_not_its_end():
    window = Window(T0, T0 + HOUR)

    assert [window.covers(T0 + minutes * MIN) for minutes in (-1, 0, 59, 60)] == [False, True, True, False]


def test_alerts_wait_for_readings_after_a_window_without_polling():
    assert Window(T0, T0 + HOUR).held_until == T0 + HOUR
    assert Window(T0, T0 + HOUR, polls=False).held_until == T0 + HOUR + 5 * MIN


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        pytest.param([], [(0, 6, "engine_down")], id="none"),
        pytest.param([(0, 60, False)], [(0, 6, "maintenance")], id="all"),
        pytest.param([(0, 60, True)], [(0, 6, "engine_down")], id="polled all the time"),
        pytest.param([(-60, 20, False)], [(0, 2, "maintenance"), (20, 4, "engine_down")], id="the first two"),
        pytest.param(
            [(10, 30, False)],
            [(0, 1, "engine_down"), (10, 2, "maintenance"), (30, 3, "engine_down")],
            id="in the middle",
        ),
    ],
)
def test_slots_without_an_engine_are_excused_inside_of_windows_without_polling(windows, expected):
    lost = Skipped(make_node(1, interval=10 * MIN), T0, 6, Cause.ENGINE_DOWN)
    spans = [Window(T0 + start * MIN, T0 + end * MIN, polls) for start, end, polls in windows]

    parts = list(excused(lost, spans))

    assert [((each.slot - T0) // MIN, each.slots, each.cause) for each in parts] == expected
