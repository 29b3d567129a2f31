"""How long a run will take: robust against a hung one, quick to believe a change, by hour of day where that helps."""

import json
import math
import random
from datetime import timedelta

import pytest
from builders import HOUR, MIN, T0
from hypothesis import given, settings
from hypothesis import strategies as st

from facho.engine.model import JobKind
from facho.engine.quota.durations import USUAL, Prediction, expected, learn

DAY = 24 * HOUR


def after(times, *, every=30 * MIN, profile=None, start=T0):
    """Return the profile after runs that took these times, and the time of the next one."""
    profile, at = profile or {}, start
    for seconds in times:
        profile, at = learn(profile, seconds, at), at + every
    return profile, at


def days(takes, *, count, every=30 * MIN):
    """Return the profile of a node that takes so long at each time of day."""
    dice = random.Random(7)
    profile, at = {}, T0
    while at < T0 + count * DAY:
        profile = learn(profile, takes(at) * dice.uniform(0.9, 1.1), at)
        at += every
    return profile, at


def busy_by_day(at):
    return 40.0 if 8 <= at.hour < 20 else 10.0


def test_nothing_is_expected_of_a_node_that_never_ran():
    assert expected({}, T0) is None


@pytest.mark.parametrize(
    ("times", "mean"),
    [
        pytest.param([10], 10, id="one run is all there is"),
        pytest.param([10, 300], 10, id="of two the shorter: the other may have hung"),
        pytest.param([300, 10], 10, id="also where the first one hung"),
        pytest.param([10, 12, 300], 12, id="of three the middle one"),
        pytest.param([10, 10, 10, 10, 300], 10, id="of five without the extremes"),
        pytest.param([10] * 19 + [300], 10, id="of twenty as well"),
        pytest.param([0, 0, 0], 0, id="a run that took no time"),
    ],
)
def test_one_hung_run_does_not_move_the_mean(times, mean):
    profile, at = after(times)

    assert expected(profile, at).mean == pytest.approx(mean)


def test_one_hung_run_is_not_the_95th_percentile():
    profile, at = after([10, 11, 12, 13, 14] * 4)
    hung, later = after([300], profile=profile, start=at)

    assert expected(profile, at).p95 == 14
    assert expected(hung, later).p95 == 14


def test_of_a_few_runs_the_longest_is_not_the_95th_percentile_either():
    profile, at = after([10, 11, 12, 13, 300])

    assert expected(profile, at).p95 == 13


def test_runs_that_are_slow_now_and_then_are_the_95th_percentile():
    profile, at = after(([10] * 9 + [40]) * 2)

    prediction = expected(profile, at)
    assert prediction.mean == pytest.approx(10)
    assert prediction.p95 == 40


@pytest.mark.parametrize(
    ("before", "now"), [pytest.param(10, 20, id="twice as slow"), pytest.param(20, 10, id="twice as fast")]
)
def test_a_change_for_good_is_believed_within_a_handful_of_runs(before, now):
    dice = random.Random(3)
    profile, at = after([before * dice.uniform(0.9, 1.1) for _ in range(40)])

    changed, at = after([now * dice.uniform(0.9, 1.1) for _ in range(5)], profile=profile, start=at)

    assert expected(changed, at).mean == pytest.approx(now, rel=0.1)


def test_two_hung_runs_are_no_change_for_good():
    profile, at = after([10] * 20)

    changed, at = after([300, 10, 300], profile=profile, start=at)

    assert expected(changed, at).mean == pytest.approx(10)


def test_the_hour_of_day_tells_more_where_a_node_is_slow_by_day():
    profile, _ = days(busy_by_day, count=4)

    noon, midnight = T0.replace(hour=12) + 4 * DAY, T0.replace(hour=0) + 5 * DAY
    assert expected(profile, noon).mean == pytest.approx(40, rel=0.1)
    assert expected(profile, midnight).mean == pytest.approx(10, rel=0.1)


def test_the_hour_of_day_is_left_alone_where_it_tells_nothing():
    profile, at = days(lambda at: 10.0, count=4)
    # The only hour with a strange past, on a day that is long gone.
    profile["hours"]["3"] = [99.0] * 5

    assert expected(profile, at.replace(hour=3)).mean == pytest.approx(10, rel=0.1)


def test_a_change_for_good_is_believed_over_the_hour_of_day():
    profile, at = days(busy_by_day, count=4)

    changed, at = after([4 * busy_by_day(at)] * 5, profile=profile, start=at)

    assert expected(changed, at).mean == pytest.approx(4 * busy_by_day(T0), rel=0.15)


@settings(deadline=None)
@given(st.lists(st.floats(0, 86400, allow_nan=False), max_size=200), st.integers(1, 10_000))
def test_a_profile_is_small_plain_json_and_a_prediction_lies_among_its_runs(times, every):
    profile, at = after(times, every=timedelta(seconds=every))

    prediction = expected(profile, at)
    assert json.loads(json.dumps(profile)) == profile
    assert len(json.dumps(profile)) < 2000
    assert (prediction is None) == (not times)
    if prediction is not None:
        assert 0 <= prediction.mean <= prediction.p95
        # Times are kept with four digits.
        assert min(times) * 0.999 <= prediction.mean <= max(times) * 1.001


@settings(deadline=None)
@given(st.lists(st.floats(1, 1000), min_size=3, max_size=60), st.floats(1000, 1e6))
def test_a_hung_run_never_leads_beyond_the_runs_before_it(times, hung):
    profile, at = after(times)

    worse, later = after([hung], profile=profile, start=at)

    assert expected(worse, later).mean <= max(times) * 1.001


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -1.0], ids=["no number", "endless", "before it began"])
def test_what_is_no_duration_is_not_learned(nonsense):
    profile, at = after([10])

    assert learn(profile, nonsense, at) == profile


def test_half_of_the_runs_stay_below_the_mean_and_one_in_twenty_above_the_95th_percentile():
    prediction = Prediction(10.0, 25.0)

    assert prediction.at(0.5) == pytest.approx(10)
    assert prediction.at(0.95) == pytest.approx(25)
    assert Prediction(0.0, 0.0).at(0.9) == 0


def test_every_kind_of_job_has_a_time_that_is_usual():
    assert set(USUAL) == set(JobKind)
