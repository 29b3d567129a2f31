"""24 virtual hours, 50 OLTs, mixed intervals, chains, manual runs and failures."""

import asyncio
import itertools
import random
from collections import defaultdict
from datetime import timedelta

import pytest
from builders import HOUR, MIN, SEC, T0, World, make_node

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.engine.model import Cause, Outcome, Status, Trigger

pytestmark = pytest.mark.slow

OLTS = 50
DAY = timedelta(hours=24)
# Master: interval, priority, seconds it takes; chain: seconds each.
JOBS = [
    (5 * MIN, 40, 4.0, (6.0, 3.0)),
    (15 * MIN, 90, 20.0, ()),
    (HOUR, 40, 90.0, (15.0,)),
]


def fleet():
    nodes, seconds = [], {}
    for olt_id in range(1, OLTS + 1):
        for interval, priority, takes, chain in JOBS:
            master = make_node(len(nodes) + 1, olt_id=olt_id, interval=interval, priority=priority)
            nodes.append(master)
            seconds[master.id] = takes
            for link in chain:
                nodes.append(make_node(len(nodes) + 1, olt_id=olt_id, master_id=master.id))
                seconds[nodes[-1].id] = link
    return nodes, seconds


@pytest.fixture(scope="module")
def day():
    """One day, lived once for all the questions below."""
    dice = random.Random(7)
    nodes, seconds = fleet()
    masters = [node.id for node in nodes if node.master_id is None]

    def outcome(node, slot):
        if node.olt_id == 3:
            return Outcome(Status.FAILED, Cause.UNREACHABLE)
        return Outcome(Status.FAILED if dice.random() < 0.02 else Status.SUCCESS)

    async def story():
        world = World(
            VirtualClock(T0),
            nodes,
            pollers=25,
            seconds=lambda node, slot: seconds[node.id] * dice.uniform(0.5, 1.5) * (4 if node.olt_id == 2 else 1),
            outcome=outcome,
        )
        for _ in range(24):
            for node_id in dice.sample(masters, 5):
                world.nodes.request_run(node_id, world.clock.now())
            await world.run_for(HOUR)
        await world.run_for(5 * MIN)
        return world

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story())


def test_no_olt_ever_has_two_composites_at_once(day):
    spans = defaultdict(list)
    for row in day.rows:
        for attempt in row.attempts:
            spans[row.node.olt_id].append((attempt.started_at, attempt.ended_at or attempt.started_at))

    assert day.runner.overlaps == 0
    for olt in spans.values():
        olt.sort()
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(olt))


def test_every_slot_of_every_grid_has_run_or_is_accounted_for(day):
    accounted = defaultdict(list)
    for row in day.rows:
        if row.master_id is None and row.trigger is Trigger.SCHEDULE:
            interval = row.node.interval
            accounted[row.node.id] += [row.slot + n * interval for n in range(row.slots)]

    assert len(accounted) == OLTS * len(JOBS)
    for node_id, slots in accounted.items():
        interval = day.nodes.rows[node_id].interval
        slots.sort()
        assert slots == [slots[0] + n * interval for n in range(len(slots))]
        # A hundred and fifty masters were enabled together: a second each.
        assert T0 + 1 * MIN <= slots[0] <= T0 + 1 * MIN + OLTS * len(JOBS) * SEC
        assert T0 + DAY - slots[-1] < interval


def test_nothing_starves(day):
    ran = defaultdict(int)
    for row in day.rows:
        ran[row.node.id] += row.status in (Status.SUCCESS, Status.FAILED)

    for node in day.nodes.rows.values():
        # OLT 2 is slow on purpose: its hourly job alone takes longer than the shortest interval.
        if node.olt_id not in (2, 3) and node.master_id is None:
            assert ran[node.id] >= 0.95 * (DAY / node.interval), node
        assert ran[node.id] > 0 or node.master_id is not None, node


def test_the_chain_of_an_unreachable_olt_is_skipped_with_that_cause(day):
    links = [row for row in day.rows if row.node.olt_id == 3 and row.master_id is not None]

    assert links
    assert {(row.status, row.cause) for row in links} == {(Status.SKIPPED, Cause.UNREACHABLE)}


def test_each_wish_for_a_run_was_served(day):
    assert all(node.run_requested_at is None for node in day.nodes.rows.values())
    assert any(row.trigger is Trigger.MANUAL for row in day.rows)


def test_waits_add_up_to_the_time_from_slot_to_claim(day):
    late = [row for row in day.rows if row.claimed_at and row.master_id is None]

    for row in late:
        assert abs(sum(row.waits.values()) - (row.claimed_at - row.slot).total_seconds()) < 0.001
