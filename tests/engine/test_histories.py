"""Whatever happens to a fleet, the books are right: every slot once, every OLT asked by one at a time."""

import itertools
from collections import defaultdict
from datetime import timedelta

import pytest
from builders import HOUR, SEC, T0
from histories import Life, Plot, Step, lived
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from examples import examples
from facho.engine.model import Cause, Status, Trigger
from facho.engine.scheduling.grid import next_check

WHAT = ("olt", "node", "interval", "wish", "wish", "dark", "dark", "move", "away", "slow", "asleep", "handover")

steps = st.builds(
    Step,
    at=st.integers(0, 35 * 60),
    what=st.sampled_from(WHAT),
    whom=st.integers(0, 8),
    seconds=st.integers(1, 200),
)
plots = st.builds(
    Plot,
    seed=st.integers(0, 999),
    olts=st.integers(1, 4),
    masters=st.integers(1, 3),
    steps=st.lists(steps, max_size=14),
)


# A life takes half a second, so looking for the shortest one that fails would take minutes.
PHASES = [phase for phase in Phase if phase is not Phase.shrink]


@pytest.mark.slow
@given(plot=plots)
@settings(max_examples=examples(15), deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_the_books_are_right(plot):
    the_books_are_right(plot)


# Plots that random seeds found.
FOUND = [
    pytest.param(
        Plot(
            seed=440,
            olts=2,
            masters=3,
            steps=[
                Step(39, "dark", 2, 149),
                Step(100, "away", 1, 129),
                Step(144, "olt", 6, 1),
                Step(212, "asleep", 8, 148),
            ],
        ),
        id="OLT disabled while the database is lost, and the engine stalls right after",
    ),
    pytest.param(
        Plot(seed=286, olts=4, masters=1, steps=[Step(154, "away", 3, 181)]),
        id="database lost while a chain runs behind a master that is tried again",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("plot", FOUND)
def test_the_books_are_right_in_plots_that_were_found(plot):
    the_books_are_right(plot)


def the_books_are_right(plot):
    with pytest.MonkeyPatch.context() as monkeypatch:
        life = lived(plot, monkeypatch)

    every_slot_is_accounted_for_once(life)
    what_a_slot_waited_for_adds_up(life)
    nobody_asks_an_olt_beside_another(life)
    retries_keep_to_their_slot_and_their_number(life)
    an_open_breaker_lets_only_people_through(life)
    an_olt_that_was_disabled_is_left_alone(life)
    no_poller_is_assigned_needlessly(life)
    nothing_is_left_when_the_engine_has_stopped(life)


def slots_of(life: Life):
    """Return each slot that has a row, by master, with the interval that it was counted with."""
    slots = defaultdict(list)
    for row in life.slots.rows:
        if row.master_id is None and row.trigger is Trigger.SCHEDULE and row.node.master_id is None:
            slots[row.node.id] += [(row.slot + n * row.node.interval, row.node.interval) for n in range(row.slots)]
    return {node_id: sorted(each) for node_id, each in slots.items()}


def is_changed(life: Life, node_id, since, until):
    """Return whether the grid of a node may have changed in between. Troubles, one after the other, delay a change."""
    return any(at <= until and since <= life.followed(at) + 10 * SEC for at in life.broke[node_id])


def every_slot_is_accounted_for_once(life: Life):
    for node_id, slots in slots_of(life).items():
        for (slot, interval), (following, _) in itertools.pairwise(slots):
            assert slot < following, (node_id, slot - T0)
            # What happened when it was over already is no excuse.
            if not is_changed(life, node_id, slot, slot + interval + 2 * SEC):
                assert following - slot == interval, (node_id, slot - T0, following - T0)
        last, interval = slots[-1]
        end = life.ended_at
        if not is_changed(life, node_id, last, end):
            waiting = life.scheduler.manager.queue.find(node_id)
            assert end - last <= interval + 2 * SEC or (waiting and waiting.composite.slot == last + interval), (
                node_id,
                last - T0,
            )


def what_a_slot_waited_for_adds_up(life: Life):
    for row in life.slots.rows:
        if row.claimed_at is not None and row.master_id is None:
            waited = (row.claimed_at - row.slot).total_seconds()
            assert sum(row.waits.values()) == pytest.approx(waited, abs=0.001), (row.node.id, row.slot - T0, row.waits)


def nobody_asks_an_olt_beside_another(life: Life):
    spans = defaultdict(list)
    for seen in life.seen:
        spans[seen.olt_id].append((seen.since, seen.until, seen.who))
    for olt_id, asked in spans.items():
        asked.sort()
        for (_, until, who), (since, _, other) in itertools.pairwise(asked):
            if who == other and who != "run":
                continue
            assert until is not None, (olt_id, who)
            assert until <= since, (olt_id, who, other)


def retries_keep_to_their_slot_and_their_number(life: Life):
    rows = life.slots.rows
    for row in rows:
        assert len(row.attempts) <= row.node.retries + 1
        for before, after in itertools.pairwise(row.attempts):
            assert after.started_at - before.ended_at >= row.node.retry_delay - timedelta(milliseconds=1)
    for begun, claim in life.begun:
        if claim.attempt > 1:
            master = rows[claim.execution_ids[0]]
            first = master if master.master_id is None else rows[master.master_id]
            assert begun < slot_end(first), (first.node.id, begun - T0)
            assert claim.composite.trigger is Trigger.SCHEDULE
    # They were ended, by any scheduler.
    if not life.is_troubled(life.ended_at - 10 * SEC, life.ended_at):
        forgotten = [row for row in rows if row.retry_at and slot_end(row) < life.ended_at - 2 * SEC]
        assert [(row.id, row.node.id, row.slot - T0) for row in forgotten if row.master_id is None] == []


def slot_end(row):
    return next_check(row.slot, row.node.interval, row.claimed_at)


def an_open_breaker_lets_only_people_through(life: Life):
    for begun, claim in life.begun:
        second = begun.replace(microsecond=0)
        earlier = [life.breakers.get(second - n * SEC) or frozenset() for n in range(8)]
        is_open = all(claim.composite.olt_id in each for each in earlier)
        if is_open and not life.is_troubled(begun - 10 * SEC, begun):
            assert claim.composite.urgent, (claim.composite.id, begun - T0)


def an_olt_that_was_disabled_is_left_alone(life: Life):
    for number, (at, olt_id, enabled) in enumerate(life.switched):
        again = min((t for t, each, _ in life.switched[number + 1 :] if each == olt_id), default=life.ended_at)
        # What was off for less than a tick was never seen to be.
        if enabled or again - at <= 2 * SEC or life.is_troubled(at, at + 10 * SEC):
            continue
        asked = [seen for seen in life.seen if seen.olt_id == olt_id and at + 2 * SEC < (seen.until or again)]
        assert not [seen for seen in asked if seen.since < again and seen.who == "run"], (olt_id, at - T0)


def no_poller_is_assigned_needlessly(life: Life):
    """Who was given a poller finds its OLT free: neither another run nor a probe stands in its way."""
    assert not [row for row in life.slots.rows if row.claimed_at and row.cause is Cause.OLT_BUSY]


def nothing_is_left_when_the_engine_has_stopped(life: Life):
    # Runs that ended while the database was unavailable are left to the reaper.
    lost = max(life.back_at, default=T0 - HOUR) + 5 * SEC
    left = [row for row in life.slots.rows if row.status in (Status.PENDING, Status.RUNNING)]
    # Pending retries are left to the next engine.
    assert [row for row in left if row.claimed_at > lost and row.retry_at is None] == []
    assert all(attempt.ended_at for row in life.slots.rows if row not in left for attempt in row.attempts)
    assert all(poller.is_free for poller in life.scheduler.manager.pollers)
    assert life.leases._held == {}
