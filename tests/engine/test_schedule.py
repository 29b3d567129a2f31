"""The arithmetic of the grid."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
from builders import HOUR, MIN, SEC, T0, make_composite, make_node
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.model import JobKind
from facho.engine.scheduling.grid import first_check, group_chains, missed_slots, next_check, regrid, urgency


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(T0 + 1 * MIN, T0 + 5 * MIN, id="in time: the next slot"),
        pytest.param(T0 + 5 * MIN, T0 + 10 * MIN, id="on the slot: the one after"),
        pytest.param(T0 + 63 * MIN, T0 + 65 * MIN, id="an hour late: no catch-up"),
        pytest.param(T0 - 2 * MIN, T0 + 5 * MIN, id="a clock behind the slot: still after the slot"),
    ],
)
def test_next_check_stays_on_the_grid_of_the_node(now, expected):
    assert next_check(T0, 5 * MIN, now) == expected


@given(
    interval=st.integers(10, 7 * 86400).map(lambda seconds: timedelta(seconds=seconds)),
    late=st.integers(0, 10**6).map(lambda seconds: timedelta(seconds=seconds)),
)
def test_no_slot_is_lost_between_one_run_and_the_next(interval, late):
    now = T0 + late

    following = next_check(T0, interval, now)

    assert following > now
    assert following - now <= interval
    assert following == T0 + (missed_slots(T0, interval, now) + 1) * interval


def test_a_hundred_nodes_enabled_at_once_are_spread_over_a_minute():
    firsts = sorted(first_check(make_node(id), T0) for id in range(1, 101))

    gaps = [after - before for before, after in itertools.pairwise(firsts)]

    assert firsts[0] >= T0 + 1 * MIN
    assert firsts[-1] <= T0 + 2 * MIN
    assert max(gaps) <= 2 * SEC


def test_a_discovery_runs_before_the_other_nodes_of_a_new_olt():
    firsts = {
        kind: [first_check(replace(make_node(id), kind=kind), T0) for id in range(1, 101)]
        for kind in (JobKind.DISCOVERY, JobKind.GET)
    }

    assert max(firsts[JobKind.DISCOVERY]) <= min(firsts[JobKind.GET])


@pytest.mark.parametrize(
    ("due", "interval", "expected"),
    [
        pytest.param(T0 + 50 * MIN, 5 * MIN, T0 + 5 * MIN, id="shorter: at once, on the old phase"),
        pytest.param(T0 + 3 * MIN, 5 * MIN, T0 + 3 * MIN, id="due sooner than the new interval: unchanged"),
        pytest.param(T0 + 3 * MIN, HOUR, T0 + 3 * MIN, id="longer: from the next slot on"),
        pytest.param(T0 - 1 * MIN, HOUR, T0 - 1 * MIN, id="already due: stays due"),
    ],
)
def test_a_new_interval_goes_through_the_old_due_time(due, interval, expected):
    assert regrid(due, interval, T0) == expected


def test_a_chain_runs_by_priority_then_id_behind_its_master():
    nodes = [
        make_node(4, master_id=1, priority=40),
        make_node(3, master_id=1, priority=40),
        make_node(1),
        make_node(2, master_id=1, priority=10),
        make_node(5, master_id=1, priority=90),
    ]

    (master, chain) = group_chains(nodes)[1]

    assert master.id == 1
    assert [link.id for link in chain] == [5, 3, 4, 2]


def test_a_chained_node_without_its_master_does_not_run():
    assert group_chains([make_node(2, master_id=1)]) == {}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            make_composite(2, slot=T0 - 6 * SEC, priority=10),
            make_composite(1, slot=T0, priority=90),
            id="delayed before in time, whatever the priority",
        ),
        pytest.param(
            make_composite(2, slot=T0 - 60 * SEC, priority=10),
            make_composite(1, slot=T0 - 30 * SEC, priority=90),
            id="the longer delay first",
        ),
        pytest.param(
            make_composite(2, slot=T0 - 60 * SEC, priority=90),
            make_composite(1, slot=T0 - 60 * SEC, priority=40),
            id="equal delay: the higher priority",
        ),
        pytest.param(
            make_composite(2, slot=T0, priority=90),
            make_composite(1, slot=T0 - 3 * SEC, priority=40),
            id="in time: discovery before get",
        ),
        pytest.param(
            make_composite(2, slot=T0, urgent=True, priority=1),
            make_composite(1, slot=T0 - HOUR, priority=90),
            id="a person is waiting",
        ),
    ],
)
def test_urgency_puts_the_first_before_the_second(first, second):
    assert urgency(first, first.slot, T0) < urgency(second, second.slot, T0)
