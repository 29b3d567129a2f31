"""The hour of an OLT before it begins: who runs when, what is lost, and what to do where it does not fit."""

import itertools
import json
from datetime import timedelta

import pytest
from builders import HOUR, MIN, SEC, T0, make_node
from hypothesis import given, settings
from hypothesis import strategies as st

from facho.engine.events import Event
from facho.engine.model import Cause, CompositeNode
from facho.engine.quota.durations import Prediction
from facho.engine.quota.hour_plan import FULL, Work, is_material, plan_hour

HALF_PAST = T0 + 30 * MIN


def work(id=1, seconds=10.0, *, due=T0, chain=(), p95=None, samples=20, **node):
    """Return a composite that takes so long; `chain` is how long each link behind it takes."""
    master = make_node(id, **node)
    links = tuple(make_node(id * 100 + place, master_id=id) for place, _ in enumerate(chain, 1))
    times = [Prediction(each, p95 or each, samples) for each in (seconds, *chain)]
    return Work(CompositeNode(master, links, due), tuple(times))


def starts(plan, node_id):
    """Return the minutes at which a node is expected to start; None where its slot is lost."""
    return [each.start and (each.start - T0) / MIN for each in plan.slots if each.work.composite.id == node_id]


def test_each_slot_of_the_hour_has_its_time():
    plan = plan_hour([work(1, interval=15 * MIN, due=T0 + 5 * MIN)], T0)

    assert starts(plan, 1) == [5, 20, 35, 50]
    assert plan.slots[0].end == T0 + 5 * MIN + 10 * SEC
    assert plan.lost == ()


@pytest.mark.parametrize(
    ("due", "expected"),
    [
        pytest.param(T0 - 100 * MIN, [5, 20, 35, 50], id="due long ago: its grid goes on"),
        pytest.param(T0 + 35 * MIN, [35, 50], id="due within the hour: nothing before"),
        pytest.param(T0 + HOUR, [], id="due at the end of the hour: the next one's"),
    ],
)
def test_a_slot_is_planned_on_the_grid_of_its_node(due, expected):
    assert starts(plan_hour([work(1, interval=15 * MIN, due=due)], T0), 1) == expected


def test_one_at_a_time_the_higher_priority_first():
    low = work(1, 60, priority=40, interval=HOUR)
    high = work(2, 120, priority=90, interval=HOUR)

    plan = plan_hour([low, high], T0)

    assert starts(plan, 2) == [0]
    assert starts(plan, 1) == [2]


def test_what_has_been_late_for_half_its_interval_goes_before_what_is_important():
    long = work(1, 300, priority=90, interval=HOUR)
    late = work(2, 60, priority=10, interval=6 * MIN, due=T0 + 1 * MIN)
    important = work(3, 60, priority=90, interval=HOUR, due=T0 + 5 * MIN)

    plan = plan_hour([long, late, important], T0)

    assert starts(plan, 2)[0] == 5
    assert starts(plan, 3) == [6]


def test_a_late_node_of_low_priority_waits_for_a_gap_that_is_long_enough():
    long = work(1, 120, priority=90, interval=HOUR)
    late = work(2, 120, priority=10, interval=30 * MIN, due=T0 + 30 * SEC)
    important = work(3, 60, priority=90, interval=HOUR, due=T0 + 3 * MIN)

    plan = plan_hour([long, late, important], T0)

    assert starts(plan, 3) == [3]
    assert starts(plan, 2)[0] == 4


def test_a_late_node_waits_for_what_is_important_in_the_next_hour_as_well():
    long = work(1, 300, priority=90, interval=2 * HOUR, due=T0 + 54 * MIN)
    late = work(2, 120, priority=10, interval=30 * MIN, due=T0 + 55 * MIN)
    important = work(3, 60, priority=90, interval=2 * HOUR, due=T0 + HOUR)

    assert starts(plan_hour([long, late, important], T0), 2)[-1] == 61


def test_a_late_node_of_unknown_duration_does_not_wait_for_a_gap():
    long = work(1, 120, priority=90, interval=HOUR)
    late = work(2, 120, priority=10, interval=30 * MIN, due=T0 + 30 * SEC, samples=0)
    important = work(3, 60, priority=90, interval=HOUR, due=T0 + 3 * MIN)

    plan = plan_hour([long, late, important], T0)

    assert starts(plan, 2)[0] == 2
    assert starts(plan, 3) == [4]


def test_a_slot_between_two_seconds_begins_at_the_next_tick():
    plan = plan_hour([work(1, interval=HOUR, due=T0 + timedelta(seconds=90.5))], T0)

    assert plan.slots[0].start == T0 + 91 * SEC


def test_a_slot_that_waits_until_the_next_one_comes_is_lost():
    long = work(1, 12 * 60, priority=90, interval=HOUR)
    short = work(2, 10, interval=5 * MIN, due=T0 + 1 * MIN)

    plan = plan_hour([long, short], T0)

    assert starts(plan, 2) == [None, None, 12, 16, 21, 26, 31, 36, 41, 46, 51, 56]
    assert {each.cause for each in plan.lost} == {Cause.OLT_BUSY}


def test_the_rest_of_an_hour_begins_when_the_olt_is_free():
    plan = plan_hour([work(1, interval=10 * MIN, due=HALF_PAST - 2 * MIN)], T0, now=HALF_PAST)

    assert starts(plan, 1) == [30, 38, 48, 58]
    assert plan.needed == 60


def test_slots_that_come_while_a_long_run_is_under_way_are_lost_but_the_last():
    plan = plan_hour([work(1, interval=5 * MIN, due=T0 + 5 * MIN)], T0, now=T0 + 1 * MIN, busy_until=T0 + 22 * MIN)

    assert starts(plan, 1) == [None, None, None, 22, 25, 30, 35, 40, 45, 50, 55]


def test_what_is_needed_counts_chains_and_every_slot_of_an_hour():
    state = work(1, 10, chain=(5, 5), interval=5 * MIN)
    power = work(2, 120, interval=30 * MIN)

    plan = plan_hour([state, power], T0)

    assert plan.needed == 12 * 20 + 2 * 120
    assert plan.utilisation == pytest.approx(100 * 480 / 3600)
    assert plan.is_feasible
    assert plan.advice == ()


@pytest.mark.parametrize(
    ("due", "needed"),
    [pytest.param(T0 + 5 * MIN, 600, id="it runs in this hour"), pytest.param(T0 + 2 * HOUR, 0, id="in another one")],
)
def test_a_job_that_is_rarer_than_hourly_takes_all_of_its_time_or_none(due, needed):
    assert plan_hour([work(1, 600, interval=6 * HOUR, due=due)], T0).needed == needed


def test_a_job_that_never_ran_makes_no_hour_too_short():
    plan = plan_hour([work(1, 4000, interval=HOUR, samples=0)], T0)

    assert plan.needed == 0
    assert plan.is_feasible
    assert starts(plan, 1) == [0]


@pytest.mark.parametrize(
    ("works", "advice"),
    [
        pytest.param(
            [work(1, 5, interval=5 * MIN, priority=90), work(2, 1050, interval=15 * MIN, priority=40)],
            [(2, 20)],
            id="the low priority to the next round interval",
        ),
        pytest.param(
            [work(1, 100, interval=5 * MIN, priority=40), work(2, 210, interval=5 * MIN, priority=40)],
            [(2, 10)],
            id="of two the dearer",
        ),
        pytest.param(
            [work(1, 300, interval=5 * MIN, priority=90), work(2, 100, interval=6 * HOUR, priority=10)],
            [(1, 6)],
            id="not one that would have to become far too rare",
        ),
        pytest.param(
            [work(id, 250, interval=5 * MIN, priority=40) for id in range(1, 5)],
            [(1, 20), (2, 20), (3, 20), (4, 20)],
            id="several where one is not enough",
        ),
        pytest.param(
            [work(1, 232, interval=1 * MIN)],
            [(1, 5)],
            id="far too rare where nothing else is left",
        ),
    ],
)
def test_the_advice_is_the_least_that_makes_the_hour_fit(works, advice):
    plan = plan_hour(works, T0)

    assert not plan.is_feasible
    assert [(each.node.id, each.minutes) for each in plan.advice] == advice


def test_the_advice_is_told_as_a_sentence():
    plan = plan_hour([work(1, 5, interval=5 * MIN, priority=90), work(2, 1050, interval=15 * MIN)], T0)

    (advice,) = plan.advice_data("OLT-NORTE-02")

    assert said(advice) == "OLT-NORTE-02 needs 71 of 60 minutes: increase the interval of node 2 to 20 min"


def test_advice_that_takes_several_jobs_names_them_all_in_one_sentence():
    plan = plan_hour([work(id, 250, interval=5 * MIN, priority=40) for id in (1, 2, 3, 4)], T0)

    (advice,) = plan.advice_data("OLT-NORTE-02")

    assert said(advice) == (
        "OLT-NORTE-02 needs 200 of 60 minutes: increase the interval of node 1 to 20 min, and also node 2 "
        "(20 min), node 3 (20 min), node 4 (20 min)"
    )


def said(advice):
    return Event[advice["event"]].form(advice["params"]) % advice["params"]


def test_a_plan_is_kept_as_plain_json():
    state = work(1, 10, chain=(20,), p95=30, interval=HOUR, due=T0 + 1 * MIN)

    (entry,) = json.loads(json.dumps(plan_hour([state], T0).data()))

    assert (entry["node_id"], entry["task"], entry["cause"]) == (1, "node 1", None)
    assert entry["slot"] == "2026-03-01T10:01:00+00:00"
    assert (entry["start"][14:23], entry["end"][14:23]) == ("01:00.000", "01:30.000")
    # One of two links may be slow; that both are is rarer than one in twenty.
    assert entry["p95_end"][14:23] == "01:52.360"
    (link,) = entry["chain"]
    assert (link["node_id"], link["start"][14:19], link["end"][14:19]) == (101, "01:10", "01:30")


def test_a_lost_slot_is_kept_without_times():
    plan = plan_hour([work(1, 700, priority=90, interval=HOUR), work(2, 10, interval=5 * MIN)], T0)

    lost = next(entry for entry in plan.data() if entry["node_id"] == 2)
    assert (lost["start"], lost["end"], lost["p95_end"], lost["cause"]) == (None, None, None, "olt_busy")


@st.composite
def fleets_of_one(draw):
    return [
        work(
            id,
            draw(st.floats(0.1, 900)),
            interval=timedelta(minutes=draw(st.sampled_from([1, 5, 10, 30, 60, 90]))),
            due=T0 + timedelta(seconds=draw(st.integers(-3600, 3600))),
            priority=draw(st.sampled_from([20, 40, 90])),
        )
        for id in range(1, draw(st.integers(1, 5)) + 1)
    ]


@settings(deadline=None)
@given(fleets_of_one())
def test_every_slot_is_planned_once_and_no_two_at_a_time(works):
    plan = plan_hour(works, T0)

    due = sorted((slot, each.composite.id) for each in works for slot in each.slots(T0, T0 + HOUR))
    ran = sorted((each.start, each.end) for each in plan.slots if each.start)
    assert [(each.slot, each.work.composite.id) for each in plan.slots] == due
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ran))
    assert all(each.slot <= each.start < each.slot + each.work.interval for each in plan.slots if each.start)


@settings(deadline=None)
@given(fleets_of_one())
def test_who_follows_the_advice_has_an_hour_that_fits(works):
    works = [each for each in works if each.interval <= HOUR]
    plan = plan_hour(works, T0)

    minutes = {each.node.id: timedelta(minutes=each.minutes) for each in plan.advice}
    assert bool(plan.advice) == (not plan.is_feasible)
    assert all(minutes[each.node.id] > each.node.interval for each in plan.advice)
    if plan.advice:
        needed = sum(each.mean * (HOUR / minutes.get(each.composite.id, each.interval)) for each in works)
        assert needed <= FULL * 3600


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(13.5, 118.0, True, id="grown beyond the hour"),
        pytest.param(13.5, 20.0, False, id="a little more"),
        pytest.param(50.0, 40.0, True, id="ten points less"),
        pytest.param(99.0, 101.5, True, id="no longer feasible"),
        pytest.param(101.5, 99.0, True, id="feasible again"),
        pytest.param(99.9, 100.1, False, id="to and fro at the limit"),
    ],
)
def test_a_utilisation_that_moves_materially(before, after, expected):
    assert is_material(before, after) is expected


def test_nothing_runs_in_an_hour_that_is_blocked():
    plan = plan_hour([work(1, interval=20 * MIN)], T0, now=T0 + 25 * MIN, blocked=Cause.BREAKER_OPEN)

    assert {(each.start, each.cause) for each in plan.slots} == {(None, Cause.BREAKER_OPEN)}
    assert plan.slots == plan.lost
