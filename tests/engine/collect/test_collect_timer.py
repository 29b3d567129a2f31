"""How long an answer is waited for: by the round trips so far, within the maker's bounds."""

import pytest

from facho.engine.collect.flow import Timer


def timer_after(*round_trips, shortest=1.0, longest=20.0):
    timer = Timer(shortest, longest)
    for round_trip in round_trips:
        timer.measured(round_trip)
    return timer


@pytest.mark.parametrize(
    ("round_trips", "timeout"),
    [
        pytest.param([], 20.0, id="nothing measured: as long as the maker says"),
        pytest.param([0.01] * 50, 1.0, id="a fast agent still gets the shortest wait"),
        pytest.param([2.0], 6.0, id="one measurement: three times as long"),
        pytest.param([2.0] * 50, 6.0, id="a steady agent: three times as long, for a request that is larger"),
        pytest.param([15.0] * 50, 20.0, id="never longer than the maker says"),
    ],
)
def test_a_wait_follows_the_round_trips_within_the_makers_bounds(round_trips, timeout):
    assert timer_after(*round_trips).timeout == pytest.approx(timeout)


def test_an_agent_of_changing_moods_is_waited_for_longer_than_a_steady_one():
    moody = timer_after(*[0.1, 3.9] * 25, longest=60.0)

    assert moody.timeout > timer_after(*[2.0] * 50, longest=60.0).timeout


def test_a_wait_follows_an_agent_that_has_become_slow_and_one_that_has_become_fast():
    timer = timer_after(*[1.0] * 20)

    before = timer.timeout
    for _ in range(20):
        timer.measured(3.0)
    slow = timer.timeout
    for _ in range(40):
        timer.measured(0.5)

    assert before == pytest.approx(3.0)
    assert 8.0 < slow < 20.0
    assert timer.timeout < 2.0


def test_each_silence_doubles_the_wait_up_to_the_longest_and_an_answer_ends_that():
    timer = timer_after(*[1.0] * 50)
    waits = []

    for _ in range(4):
        timer.expired()
        waits.append(timer.timeout)
    timer.measured(1.0)

    assert waits == pytest.approx([6.0, 12.0, 20.0, 20.0])
    assert timer.timeout == pytest.approx(3.0)


def test_a_hundred_silences_are_survived():
    timer = timer_after(1e-6, shortest=1e-6, longest=5.0)

    for _ in range(100):
        timer.expired()

    assert timer.timeout <= 5.0


def test_bounds_that_cross_leave_the_longest():
    assert timer_after(0.1, shortest=30.0, longest=5.0).timeout == 5.0


@pytest.mark.parametrize(
    ("round_trip", "may_grow"),
    [
        pytest.param(0.1, True, id="far from the longest wait"),
        pytest.param(4.9, True, id="below a quarter of it"),
        pytest.param(5.0, False, id="twice as much could be half of it"),
        pytest.param(19.0, False, id="close to it"),
    ],
)
def test_requests_may_grow_only_while_answers_come_well_within_the_longest_wait(round_trip, may_grow):
    assert timer_after(longest=20.0).has_room(round_trip) is may_grow
