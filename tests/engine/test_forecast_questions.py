"""The fleet of today with more OLTs or another interval, and what would make it fit."""

from collections import Counter

import pytest
from builders import HOUR, MIN, SEC, T0, make_node

from facho.engine.forecast.failures import Failure, Habit, RunRecord
from facho.engine.forecast.fleet import Fleet
from facho.engine.forecast.question import FleetQuestion, asked_fleet, with_copies, with_interval
from facho.engine.forecast.remedies import Search, first, simulated_hour, works_of
from facho.engine.forecast.verdict import judge
from facho.engine.quota.durations import Prediction
from facho.engine.scheduling.grid import GOLDEN_RATIO


def fleet_of(seconds, *, interval=5 * MIN, **more):
    """Return OLTs with one node each, whose runs take so many seconds. Measured."""
    nodes = tuple(
        make_node(id_, olt_id=id_, interval=interval, next_check=T0 + round(id_ * GOLDEN_RATIO % 1 * 300) * SEC)
        for id_ in range(1, len(seconds) + 1)
    )
    takes = dict(enumerate(seconds, 1))
    return Fleet(nodes, lambda node, at: Prediction(takes[node.id], takes[node.id], samples=5), **more)


def added(fleet, number):
    """Return how often each OLT was copied."""
    copied = with_copies(fleet, number, T0)
    return Counter(copied.copies.values())


def test_copies_have_the_mix_of_the_fleet():
    fleet = fleet_of([10.0] * 8 + [100.0] * 2)

    assert sum(times for node, times in added(fleet, 5).items() if node > 8) == 1
    assert sum(times for node, times in added(fleet, 100).items() if node > 8) == 20


@pytest.mark.parametrize("number", [1, 3, 10, 25])
def test_copies_are_olts_of_their_own(number):
    fleet = fleet_of([10.0] * 10)
    copied = with_copies(fleet, number, T0).fleet

    assert len({node.id for node in copied.nodes}) == len({node.olt_id for node in copied.nodes}) == 10 + number
    slots = [node.next_check for node in copied.nodes[10:]]
    assert all(T0 <= slot < T0 + 5 * MIN and slot.microsecond == 0 for slot in slots)
    assert len(set(slots)) == number


def test_a_copy_takes_the_time_of_its_original_and_fails_like_it():
    habit = Habit(10, (Failure(3.0, is_silent=False),))
    fleet = fleet_of([42.0], records={1: RunRecord(10, failed=1, habits={1: habit})})

    copied = with_copies(fleet, 1, T0)
    copy = copied.fleet.nodes[-1]

    assert copied.fleet.durations(copy, T0).mean == 42.0
    assert copied.fleet.records[copy.olt_id].habit(copy.id) == habit
    assert copied.copies == {copy.id: 1}


def test_a_copy_has_the_chain_of_its_original():
    nodes = (make_node(1, next_check=T0), make_node(2, master_id=1))
    fleet = Fleet(nodes, lambda node, at: Prediction(1.0, 1.0))

    master, link = with_copies(fleet, 1, T0).fleet.nodes[2:]

    assert (link.master_id, link.next_check) == (master.id, None)


def test_olts_that_never_answer_are_not_copied():
    assert set(added(fleet_of([10.0, 10.0], dead=frozenset({2})), 6)) == {1}


def test_without_an_olt_there_is_nothing_to_copy():
    assert with_copies(Fleet((), lambda node, at: Prediction(1.0, 1.0)), 20, T0).fleet.nodes == ()


def test_only_the_chosen_nodes_get_the_interval():
    changed = with_interval(fleet_of([10.0, 10.0]), {2}, 2 * MIN)

    assert [node.interval for node in changed.nodes] == [5 * MIN, 2 * MIN]


def test_new_olts_have_the_new_interval():
    question = FleetQuestion(more_olts=1, interval=2 * MIN, node_ids=frozenset({1}))

    assert asked_fleet(fleet_of([10.0]), question, T0).fleet.nodes[-1].interval == 2 * MIN


# Simulated hours


def hour_of(fleet, pollers):
    return simulated_hour(works_of(fleet, T0), pollers, T0).figures


def test_an_hour_with_enough_pollers():
    figures = hour_of(fleet_of([30.0] * 10), 10)

    assert (figures.on_time, figures.saturated, figures.missed) == (100.0, 0.0, {})
    # Ten OLTs, twelve times half a minute, of ten pollers.
    assert figures.busy == pytest.approx(10, abs=0.5)


def test_an_hour_with_too_few_pollers():
    figures = hour_of(fleet_of([150.0] * 10), 2)

    assert figures.busy == pytest.approx(100, abs=1)
    assert figures.saturated == 100.0
    assert figures.missed
    assert figures.on_time < 50


def test_an_olt_that_is_too_slow_misses_its_quota_with_any_pool():
    figures = hour_of(fleet_of([10.0, 500.0]), 10)

    assert [(each.olt, each.job) for each in figures.missed.values()] == [("OLT-02", "node 2")]


def test_a_job_that_runs_every_six_hours_is_no_missed_quota():
    assert hour_of(fleet_of([600.0], interval=6 * HOUR), 1).missed == {}


# Remedies


def remedies(fleet, question, pollers, budget=2_000_000):
    return Search(fleet, question, pollers, T0, budget).remedies(max(pollers + question.more_pollers, 1))


def fits(fleet, question, pollers):
    asked = asked_fleet(fleet, question, T0)
    return judge(
        hour_of(fleet, pollers),
        hour_of(asked.fleet, pollers + question.more_pollers),
        changed=question.node_ids,
        copies=asked.copies,
    ).fits


def test_the_number_of_pollers_that_more_olts_need():
    fleet = fleet_of([60.0] * 20)
    question = FleetQuestion(more_olts=40)

    found = remedies(fleet, question, pollers=8)

    # 60 OLTs that are polled for a fifth of the time, and a reserve.
    assert 16 <= found.pollers <= 24
    assert fits(fleet, FleetQuestion(more_olts=40, more_pollers=found.pollers - 8), 8)
    assert not fits(fleet, FleetQuestion(more_olts=40, more_pollers=found.pollers - 9), 8)


def test_the_number_of_olts_that_fit():
    fleet = fleet_of([60.0] * 20)

    found = remedies(fleet, FleetQuestion(more_olts=40), pollers=8)

    assert 0 < found.olts < 40
    assert fits(fleet, FleetQuestion(more_olts=found.olts), 8)
    assert not fits(fleet, FleetQuestion(more_olts=found.olts + 1), 8)


def test_the_shortest_interval_that_fits():
    fleet = fleet_of([100.0] * 4)
    question = FleetQuestion(interval=1 * MIN, node_ids=frozenset(range(1, 5)))

    found = remedies(fleet, question, pollers=20)

    assert found.interval == 2 * MIN
    # An OLT has one run at a time.
    assert found.pollers is None


def test_the_pollers_that_one_fewer_leaves_too_few():
    fleet = fleet_of([60.0] * 20)
    found = remedies(fleet, FleetQuestion(more_pollers=-6), pollers=8)

    assert 2 < found.pollers <= 8
    assert found.olts is None


def test_an_olt_with_more_work_than_an_hour_allows_gets_an_advice():
    nodes = (
        make_node(1, olt_id=1, interval=5 * MIN, next_check=T0),
        make_node(2, olt_id=1, interval=5 * MIN, next_check=T0 + 10 * SEC),
    )
    fleet = Fleet(nodes, lambda node, at: Prediction(100.0, 100.0, samples=5))
    question = FleetQuestion(interval=2 * MIN, node_ids=frozenset({1}))

    [advice] = remedies(fleet, question, pollers=5).advice

    assert advice.minutes >= 3


def test_a_search_stops_at_its_budget():
    found = remedies(fleet_of([60.0] * 20), FleetQuestion(more_olts=40), pollers=8, budget=500)

    assert (found.pollers, found.olts) == (None, None)


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [(0, 0), (1, 1), (6, 6), (9, 9), (10, None)],
    ids=["all", "second", "middle", "last", "none"],
)
def test_the_first_choice_that_holds(threshold, expected):
    assert first(range(10), lambda each: each >= threshold) == expected


def test_no_choice_holds_where_there_is_none():
    assert first([], lambda each: True) is None
