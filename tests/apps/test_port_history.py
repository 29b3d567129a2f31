"""Daily power of a port and its changes, and its traffic."""

from datetime import timedelta

import pytest
from cast import T0, make_olt, make_onu
from django.db import transaction

from facho.apps.telemetry.history import DAYS, start_of_day
from facho.apps.telemetry.models import HistoryDay, HistoryMonth
from facho.apps.telemetry.port_history import POWER, daily_values, power_changes, traffic
from facho.engine.chunks import pack_run
from facho.store import history

TODAY = start_of_day(T0)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@pytest.fixture
def olt(db):
    return make_olt("A")


def add_day(olt, day, means):
    """Store the mean power of ONUs on a day, by id."""
    ids = sorted(means)
    HistoryDay.objects.create(olt=olt, at=day, data=pack_run(ids, {POWER: [means[onu] for onu in ids]}))


def add_counters(olt, at, values):
    ids = sorted(values)
    columns = {"in_octets": [values[onu][0] for onu in ids], "out_octets": [values[onu][1] for onu in ids]}
    with transaction.atomic():
        history.append(olt.pk, at, ids, columns)


def test_daily_values_are_of_the_chosen_onus(olt):
    add_day(olt, TODAY - DAY, {1: -20.0, 2: -21.5, 9: -30.0})
    add_day(olt, TODAY - 2 * DAY, {2: -22.5, 9: -30.0})

    found = daily_values(olt.pk, {1, 2}, POWER, TODAY - 7 * DAY, TODAY)

    assert found == {TODAY - 2 * DAY: {2: -22.5}, TODAY - DAY: {1: -20.0, 2: -21.5}}


def test_days_of_a_closed_month_are_found(olt):
    onus = [make_onu(olt, number) for number in range(3)]
    for number in range(20):
        add_day(olt, TODAY - number * DAY, {onu.pk: -20.0 - number for onu in onus})
    history.close(DAYS, olt.pk, DAYS.start(TODAY - 10 * DAY))
    assert HistoryMonth.objects.exists()

    found = daily_values(olt.pk, {onus[0].pk, onus[2].pk}, POWER, TODAY - 15 * DAY, TODAY)

    assert found == {
        TODAY - number * DAY: {onu.pk: -20.0 - number for onu in (onus[0], onus[2])} for number in range(16)
    }


def test_the_change_of_power_compares_the_same_onus(olt):
    add_day(olt, TODAY - DAY, {1: -20.0, 2: -21.0, 3: -29.0})
    add_day(olt, TODAY - 7 * DAY, {1: -20.0})

    yesterday, week = power_changes(olt.pk, {1: -20.5, 2: -24.0, 4: -18.0}, T0)

    assert (yesterday.day, yesterday.count) == (TODAY - DAY, 2)
    assert (yesterday.mean, yesterday.worst) == (pytest.approx(-1.75), pytest.approx(-3.0))
    assert (yesterday.fallen, yesterday.fall) == (2, pytest.approx(-3.0))
    assert (week.day, week.count, week.mean) == (TODAY - 7 * DAY, 1, pytest.approx(-0.5))


def test_a_day_that_is_not_summarised_yet_is_replaced_by_the_one_before(olt):
    add_day(olt, TODAY - 2 * DAY, {1: -20.0})

    yesterday, week = power_changes(olt.pk, {1: -21.0}, T0)

    assert (yesterday.day, week) == (TODAY - 2 * DAY, None)


@pytest.mark.parametrize(
    ("current", "before"),
    [
        pytest.param({}, {1: -20.0}, id="no power now"),
        pytest.param({1: -20.0}, {2: -20.0}, id="other ONUs"),
        pytest.param({1: -20.0}, {1: None}, id="no power then"),
    ],
)
def test_without_common_onus_there_is_no_change(olt, current, before):
    add_day(olt, TODAY - DAY, before)

    assert power_changes(olt.pk, current, T0) == [None, None]


def test_traffic_is_that_between_the_last_two_readings(olt):
    for number, octets in enumerate((0, 1_000, 301_000)):
        at = T0 - 10 * MINUTE + number * 5 * MINUTE
        add_counters(olt, at, {1: (octets, 2 * octets), 2: (octets, 0), 9: (octets, octets)})
        # Runs of other jobs are in between.
        with transaction.atomic():
            history.append(olt.pk, at + MINUTE, [1, 2], {"state": ["online", "online"]})

    found = traffic(olt.pk, {1, 2}, T0 + 2 * MINUTE)

    assert (found.in_bps, found.out_bps, found.count) == (2 * 300_000 * 8 / 300, 600_000 * 8 / 300, 2)
    assert (found.since, found.until) == (T0 - 5 * MINUTE, T0)


def test_a_counter_that_was_reset_grew_from_zero(olt):
    add_counters(olt, T0 - 5 * MINUTE, {1: (10**12, 10**12)})
    add_counters(olt, T0, {1: (3_000, 6_000)})

    found = traffic(olt.pk, {1}, T0)

    assert (found.in_bps, found.out_bps) == (80, 160)


def test_an_onu_that_the_last_run_did_not_read_has_older_readings(olt):
    for minutes, octets in ((15, 0), (10, 300_000)):
        add_counters(olt, T0 - minutes * MINUTE, {1: (octets, octets), 2: (octets, octets)})
    add_counters(olt, T0 - 5 * MINUTE, {1: (600_000, 600_000), 2: (None, None)})

    found = traffic(olt.pk, {1, 2}, T0)

    assert (found.in_bps, found.count) == (16_000, 2)


def test_runs_of_one_onu_do_not_hide_those_of_the_others(olt):
    for minutes, octets in ((15, 0), (10, 300_000)):
        add_counters(olt, T0 - minutes * MINUTE, dict.fromkeys((1, 2, 3), (octets, octets)))
    for minutes in range(5):
        add_counters(olt, T0 - minutes * MINUTE, {1: (600_000, 600_000)})

    assert traffic(olt.pk, {1, 2, 3}, T0).count == 3


@pytest.mark.parametrize("minutes", [(5,), (4 * 60, 5), ()])
def test_without_two_recent_readings_there_is_no_traffic(olt, minutes):
    for each in minutes:
        add_counters(olt, T0 - each * MINUTE, {1: (1, 1)})

    assert traffic(olt.pk, {1}, T0) is None


def test_many_runs_between_two_readings_are_passed(olt):
    add_counters(olt, T0 - 60 * MINUTE, {1: (0, 0)})
    for number in range(50):
        with transaction.atomic():
            history.append(olt.pk, T0 - number * MINUTE, [1], {"state": ["online"]})
    add_counters(olt, T0, {1: (3_600, 0)})

    assert traffic(olt.pk, {1}, T0).in_bps == 8
