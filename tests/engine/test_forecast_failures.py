"""Failures of an OLT, learned from recent attempts: outages, and error rates of its nodes."""

import math
import random

import pytest
from builders import HOUR, MIN, SEC, T0

from facho.engine.forecast.failures import Attempt, Ending, Failure, ending_of, learn
from facho.engine.model import Cause, Outcome, Status

STATE, TRAFFIC, POWER = 1, 2, 3
A, S, F = Ending.ANSWERED, Ending.SILENT, Ending.FAILED


def tried(endings, *, nodes=(STATE, POWER), begin=T0, every=1 * MIN, seconds=15, **more):
    """Return attempts, one a minute, of these nodes in turn."""
    return [
        Attempt(node_id, begin + n * every, begin + n * every + seconds * SEC, ending, **more)
        for n, ending in enumerate(endings)
        for node_id in [nodes[n % len(nodes)]]
    ]


def spans(record):
    """Return the outages of an OLT, in minutes since the first attempt."""
    return [((begin - T0) / MIN, (end - T0) / MIN) for begin, end in record.outages.spans]


@pytest.mark.parametrize(
    ("outcome", "ending"),
    [
        pytest.param(Outcome(Status.SUCCESS), A, id="all was read"),
        pytest.param(Outcome(Status.PARTIAL), A, id="some was read"),
        pytest.param(Outcome(Status.FAILED, Cause.UNREACHABLE), S, id="nothing came back"),
        pytest.param(Outcome(Status.FAILED, error_class="BadAnswer"), F, id="an error came back"),
        pytest.param(Outcome(Status.INTERRUPTED, Cause.STOPPED), None, id="stopped by us"),
        pytest.param(Outcome(Status.SKIPPED, Cause.UNREACHABLE), None, id="not even begun"),
    ],
)
def test_how_an_attempt_ended_is_told_from_its_outcome(outcome, ending):
    assert ending_of(outcome) is ending


def test_an_olt_that_was_never_tried_has_no_habits():
    record = learn([], T0)

    assert (record.runs, record.outages, record.habits, record.usual.failures) == (0, None, {}, ())


def test_runs_are_counted_by_how_they_ended():
    record = learn(tried([A, F, A, A, S, A]), T0 + HOUR)

    assert (record.runs, record.silent, record.failed) == (6, 1, 1)
    assert record.silences == (15.0,)


def test_silence_in_a_burst_is_an_outage_from_between_the_answers_around_it():
    record = learn(tried([A] * 30 + [S] * 5 + [A] * 30), T0 + 65 * MIN)

    # It left between 29:15 and 30:00, and was back between 34:15 and 35:00.
    assert spans(record) == [(pytest.approx(29.625), pytest.approx(34.625))]
    assert record.outages.left == 0
    # What was silent only then is no habit of the nodes.
    assert record.usual.failures == ()


def test_an_outage_behind_an_open_breaker_ends_a_minute_before_the_next_answer_at_most():
    before, away, after = tried([A] * 30), tried([S] * 4, begin=T0 + 30 * MIN), tried([A] * 9, begin=T0 + 90 * MIN)

    record = learn(before + away + after, T0 + 99 * MIN)

    assert spans(record) == [(pytest.approx(29.625), pytest.approx(89.5))]


def test_silence_that_follows_no_pattern_is_a_habit_and_no_outage():
    dice = random.Random(7)
    record = learn(tried([S if dice.random() < 1 / 3 else A for _ in range(300)]), T0 + 5 * HOUR)

    assert record.outages is None
    assert len(record.usual.failures) / record.usual.attempts == pytest.approx(1 / 3, abs=0.06)


def test_a_node_that_is_never_answered_is_not_its_olt_that_is_unavailable():
    # It is tried three times in a row, and then the other one nine times.
    record = learn(tried(([S] * 3 + [A] * 9) * 20, nodes=(POWER,) * 3 + (STATE,) * 9), T0 + 4 * HOUR)

    assert record.outages is None
    assert (len(record.habits[POWER].failures), record.habits[STATE].failures) == (60, ())


def test_each_node_has_the_failures_that_it_had_and_what_they_took():
    state = tried([A] * 10, nodes=(STATE,))
    power = tried([F, A, A, F], nodes=(POWER,), begin=T0 + 20 * SEC, seconds=300)

    record = learn(state + power, T0 + HOUR)

    assert (record.habits[STATE].attempts, record.habits[STATE].failures) == (10, ())
    assert record.habits[POWER].failures == (Failure(300.0, is_silent=False),) * 2
    assert record.habit(POWER) is record.habits[POWER]


def test_a_node_that_was_hardly_tried_fares_like_its_olt():
    record = learn(tried([F, A] * 5, nodes=(STATE,)) + tried([F], nodes=(TRAFFIC,), begin=T0 + HOUR), T0 + 2 * HOUR)

    assert record.habit(TRAFFIC) is record.usual
    assert (record.usual.attempts, len(record.usual.failures)) == (11, 6)


def test_an_error_that_lasts_is_remembered_as_one():
    [failure] = learn(tried([F], is_temporary=False), T0 + HOUR).usual.failures

    assert not failure.is_temporary


@pytest.mark.parametrize(
    ("endings", "is_broken", "left"),
    [
        pytest.param([S] * 3, True, math.inf, id="never answered"),
        pytest.param([S], False, math.inf, id="never answered yet: once is all there is"),
        pytest.param([A] * 20 + [S] * 5, True, math.inf, id="answered until now, and nothing like it before"),
        pytest.param([A] * 20 + [S], True, math.inf, id="a breaker that opens at once"),
        pytest.param([A] * 20 + [S], False, None, id="one silence is no outage, as long as the breaker is closed"),
        pytest.param([A] * 10 + [S] * 8 + [A] * 10 + [S] * 3, True, 4.75, id="the last one took eight minutes"),
        pytest.param([A] * 10 + [S] * 3 + [A] * 10 + [S] * 8, True, 8.25, id="longer than ever: as long again"),
        pytest.param([A, A, S, A] * 10 + [S], True, 1.25, id="often silent: it may be back at once"),
        pytest.param([A] * 10 + [S] * 8 + [A] * 10, False, 0, id="it is back"),
    ],
)
def test_how_long_an_olt_stays_away_is_told_from_the_times_before(endings, is_broken, left):
    record = learn(tried(endings), T0 + len(endings) * MIN - 7.5 * SEC, is_broken=is_broken)

    told = None if record.outages is None else record.outages.left / 60
    assert told == (left if left is None else pytest.approx(left))
    assert record.is_dead is (left == math.inf)


def test_a_clock_that_is_ahead_makes_no_difference():
    record = learn(tried([A] * 30 + [S] * 5), T0 + 20 * MIN, is_broken=True)

    assert record.outages.until == T0 + 34 * MIN + 15 * SEC
    assert record.is_dead


def test_an_attempt_that_took_no_time_is_long_enough_to_learn_from():
    outages = learn(tried([S], seconds=0), T0).outages

    assert outages.back_at(T0 + HOUR) >= T0 + HOUR


@pytest.mark.parametrize(
    ("at", "back"),
    [
        pytest.param(100, 100, id="there, as it was then"),
        pytest.param(131, 135, id="away, as it was 100 minutes before"),
        pytest.param(135, 135, id="back again"),
        pytest.param(231, 235, id="and so it goes on"),
    ],
)
def test_the_time_that_was_learned_from_is_lived_through_again(at, back):
    outages = learn(tried([A] * 30 + [S] * 5 + [A] * 65), T0 + 100 * MIN).outages

    assert (outages.back_at(T0 + at * MIN) - T0) / MIN == pytest.approx(back, abs=0.5)
