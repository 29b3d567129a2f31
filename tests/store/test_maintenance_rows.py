"""The engine's part of maintenance: each event once, and the next window of a repeated one."""

import logging
from datetime import timedelta

import pytest
from alert_rows import make_olt
from builders import HOUR, MIN, T0

from facho.apps.inventory.models import Site
from facho.apps.maintenance.models import Maintenance
from facho.store.maintenance import step

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _events_are_logged(caplog):
    caplog.set_level(logging.INFO, "facho")


def plan(length=2 * HOUR, **more):
    olt = None if "site" in more else make_olt()
    made = Maintenance.objects.create(**{"olt": olt, "starts_at": T0, "ends_at": T0 + length} | more)
    made.settle(T0)
    return made


def follow(start, end, *, every=5 * MIN):
    now = start
    while now <= end:
        step(now)
        now += every


def told(caplog):
    return [each.getMessage() for each in caplog.records if getattr(each, "event", None)]


def test_start_and_end_are_logged_once(caplog):
    plan()

    follow(T0 - 10 * MIN, T0 + 3 * HOUR)

    assert told(caplog) == [
        "maintenance of OLT-SUR-03 started; it ends at 2026-03-01T12:00:00+00:00",
        "maintenance of OLT-SUR-03 ended",
    ]


def test_a_long_one_has_a_reminder_half_an_hour_before_its_end(caplog):
    plan(5 * HOUR, site=Site.objects.create(name="Lima"))

    follow(T0, T0 + 4 * HOUR + 25 * MIN)
    assert len(told(caplog)) == 1
    step(T0 + 4 * HOUR + 30 * MIN)
    step(T0 + 4 * HOUR + 35 * MIN)

    assert told(caplog)[1:] == [
        "maintenance of Lima ends at 2026-03-01T15:00:00+00:00: extend it if the work takes longer"
    ]


def test_a_daily_one_has_a_window_for_each_day_and_one_ahead():
    daily = plan(recurrence="daily", repeats_until=T0 + 2 * DAY)

    follow(T0, T0 + 5 * DAY, every=HOUR)

    starts = list(daily.windows.values_list("starts_at", flat=True))
    assert starts == [T0, T0 + DAY, T0 + 2 * DAY]


def test_days_without_an_engine_are_left_out_and_not_made_up():
    daily = plan(recurrence="daily")

    step(T0 + 3 * DAY + HOUR)

    assert list(daily.windows.values_list("starts_at", flat=True)) == [T0, T0 + 3 * DAY]


def test_a_window_that_passed_without_an_engine_is_not_logged(caplog):
    plan()

    step(T0 + 3 * HOUR)

    assert told(caplog) == []
