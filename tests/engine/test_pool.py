"""How many pollers it takes, found by playing the hour through."""

from datetime import timedelta

import pytest
from builders import HOUR, MIN, T0, make_node
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from facho.engine.model import CompositeNode
from facho.engine.quota.durations import Prediction
from facho.engine.quota.hour_plan import Work
from facho.engine.quota.pollers_needed import pollers_needed


def work(id, olt_id, seconds, *, due=T0, p95=None, interval=5 * MIN, **node):
    composite = CompositeNode(make_node(id, olt_id=olt_id, interval=interval, **node), (), due)
    return Work(composite, (Prediction(seconds, p95 or seconds),))


@pytest.mark.parametrize(
    ("works", "pollers"),
    [
        pytest.param([work(1, 1, 60)], 1, id="one OLT never needs two"),
        pytest.param([work(id, id, 60, due=T0 + id * MIN) for id in range(1, 5)], 1, id="one after the other"),
        pytest.param([work(id, id, 60) for id in range(1, 5)], 4, id="all at once"),
        pytest.param([work(id, id, 4) for id in range(1, 5)], 2, id="the second of each is late by less than 5 s"),
        pytest.param([work(id, id, 150, due=T0 + id % 2 * 150 * MIN / 60) for id in range(1, 9)], 4, id="two waves"),
        pytest.param([work(1, 1, 60, due=T0 + 2 * HOUR)], 1, id="nothing in this hour"),
    ],
)
def test_it_takes_as_many_pollers_as_begin_enough_in_time(works, pollers):
    assert pollers_needed(works, T0).pollers == pollers


def test_olts_that_are_busy_themselves_need_no_larger_pool():
    works = [work(id, id % 3, 60) for id in range(1, 7)]

    need = pollers_needed(works, T0)

    assert need.pollers == 3
    assert need.on_time == need.reachable == 0.5


def test_an_olt_is_never_served_twice_at_once_however_many_pollers_are_free():
    works = [work(1, 1, 60), work(2, 1, 60), work(3, 2, 60, due=T0 + 2 * MIN)]

    need = pollers_needed(works, T0)

    assert (need.pollers, need.reachable) == (1, pytest.approx(2 / 3))


def test_a_slot_that_was_lost_holds_up_nobody():
    # Two slots of the short one are lost behind the long one; made up for, they would push all others back.
    works = [work(1, 1, 700, interval=HOUR, priority=90), work(2, 2, 230, due=T0 + timedelta(seconds=1))]

    assert pollers_needed(works, T0, target=0.5).pollers == 1


def test_a_lower_target_needs_fewer():
    works = [work(id, id, 60) for id in range(1, 11)]

    assert pollers_needed(works, T0, target=0.5).pollers == 5


def test_a_pool_that_is_far_too_small_loses_slots_and_is_not_in_time():
    # Twice as many would never finish: a slot that waits for five minutes is lost.
    works = [work(id, id, 290) for id in range(1, 21)]

    assert pollers_needed(works, T0).pollers == 20


def test_the_higher_priority_goes_first_while_both_are_in_time():
    first = work(1, 1, 3, interval=HOUR)
    long = work(2, 2, 60, interval=HOUR, due=T0 + timedelta(seconds=1), priority=40)
    short = work(3, 3, 1, interval=HOUR, due=T0 + timedelta(seconds=2), priority=90)

    # The other way round, the short one would be late by a minute.
    assert pollers_needed([first, long, short], T0).pollers == 1


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 8), st.floats(0.5, 200), st.integers(0, 299), st.sampled_from([1, 2, 5, 15])),
        min_size=1,
        max_size=20,
    )
)
def test_the_pool_found_does_what_it_promises_and_one_poller_an_olt_does_as_well(jobs):
    works = [
        work(id, olt, seconds, p95=2 * seconds, due=T0 + timedelta(seconds=due), interval=minutes * MIN)
        for id, (olt, seconds, due, minutes) in enumerate(jobs, 1)
    ]

    need = pollers_needed(works, T0)

    assert 1 <= need.pollers <= len({each.composite.olt_id for each in works})
    assert need.on_time >= min(0.95, need.reachable - 0.005)
