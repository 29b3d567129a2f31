"""Attempts: how many, how far apart, and never beyond the slot."""

from datetime import timedelta

import pytest
from builders import ANSWERED, HOUR, MIN, SEC, SILENT, T0, World, make_composite, make_node

from facho.engine.errors import OltUnreachable
from facho.engine.model import Cause, Claim, Outcome, Status
from facho.engine.scheduling.queue import NodeQueue
from facho.engine.scheduling.retry import Retries, Retry, retry_at, retry_of

FAILED = Outcome(Status.FAILED, error="genErr", error_class="BadAnswer")


@pytest.mark.parametrize(
    ("outcome", "attempts", "slot_end", "expected"),
    [
        pytest.param(SILENT, 1, T0 + 5 * MIN, T0 + 2 * MIN, id="silence is tried again"),
        pytest.param(FAILED, 1, T0 + 5 * MIN, T0 + 2 * MIN, id="so is an answer that was no use"),
        pytest.param(SILENT, 2, T0 + 5 * MIN, T0 + 2 * MIN, id="twice"),
        pytest.param(SILENT, 3, T0 + 5 * MIN, None, id="three attempts are all"),
        pytest.param(SILENT, 1, T0 + 2 * MIN, None, id="the next slot comes first"),
        pytest.param(SILENT, 1, T0 + 2 * MIN + SEC, T0 + 2 * MIN, id="just before the next slot"),
        pytest.param(SILENT, 1, None, None, id="a run by hand has no slot"),
        pytest.param(ANSWERED, 1, T0 + 5 * MIN, None, id="a success is not repeated"),
        pytest.param(Outcome(Status.PARTIAL), 1, T0 + 5 * MIN, None, id="nor is what was read in part"),
        pytest.param(
            Outcome(Status.FAILED, error_class="Refused", is_temporary=False), 1, HOUR + T0, None, id="a wrong password"
        ),
        pytest.param(Outcome(Status.INTERRUPTED, Cause.STOPPED), 1, T0 + 5 * MIN, None, id="nor what was stopped"),
    ],
)
def test_whether_and_when_a_run_is_tried_again(outcome, attempts, slot_end, expected):
    node = make_node(1, retries=2, retry_delay=2 * MIN)

    assert retry_at(node, outcome, attempts, slot_end, T0) == expected


def test_only_the_links_that_failed_are_tried_again():
    composite = make_composite(1, chain=[make_node(2, master_id=1), make_node(3, master_id=1)])
    claim = Claim(composite, (10, 11, 12), 4, T0 + 5 * MIN)
    failed = Outcome(Status.FAILED, retry_at=T0 + 2 * MIN)

    retry = retry_of(claim, [failed, ANSWERED, failed])

    assert [link.id for link in retry.claim.composite.links] == [1, 3]
    assert (retry.claim.execution_ids, retry.claim.attempt, retry.at) == ((10, 12), 2, T0 + 2 * MIN)
    assert [outcome.retry_at for outcome in retry.outcomes] == [None, None]


def test_a_claim_that_ended_is_not_tried_again():
    assert retry_of(Claim(make_composite(1), (10,), 4, T0 + 5 * MIN), [ANSWERED]) is None


def test_retries_come_out_when_their_time_has_come_earliest_first():
    retries = Retries()
    for id_, at in ((1, T0 + 3 * SEC), (2, T0 + 1 * SEC), (3, T0 + 9 * SEC)):
        retries.add(Retry(Claim(make_composite(id_), (id_,), 1, T0 + HOUR), (FAILED,), at), T0)

    due = [retry.claim.composite.id for retry in retries.due(T0 + 3 * SEC)]

    assert due == [2, 1]
    assert len(retries) == 1


def test_a_retry_is_no_older_than_the_time_it_was_planned_for():
    queue = NodeQueue()
    retry = Retry(Claim(make_composite(1, slot=T0), (1,), 1, T0 + 5 * MIN), (FAILED,), T0 + 2 * MIN)
    queue.offer(make_composite(2, olt_id=2, slot=T0 + 110 * SEC), T0 + 2 * MIN)

    queue.offer_retry(retry, T0 + 2 * MIN)

    taken = queue.take(T0 + 2 * MIN)
    assert taken.composite.id == 2


def attempts_of(row):
    return [(attempt.started_at - T0, attempt.outcome.status) for attempt in row.attempts]


def lived(clock, virtually, nodes, span, **more):
    async def story():
        world = World(clock, nodes, **more)
        await world.run_for(span)
        return world

    return virtually(story())


def test_a_silent_five_minute_node_is_tried_three_times_within_its_slot(clock, virtually):
    world = lived(
        clock,
        virtually,
        [make_node(1, next_check=T0)],
        5 * MIN,
        seconds=lambda node, slot: 15.0,
        outcome=lambda node, slot: SILENT,
    )

    (row,) = world.rows
    assert [at for at, _ in attempts_of(row)] == [timedelta(seconds=s) for s in (0, 135, 270)]
    assert (row.status, row.cause) == (Status.FAILED, Cause.UNREACHABLE)
    assert row.started_at == T0


def test_a_retry_that_succeeds_ends_the_execution_well(clock, virtually):
    seen = []

    def outcome(node, slot):
        seen.append(slot)
        return SILENT if len(seen) == 1 else ANSWERED

    world = lived(clock, virtually, [make_node(1, next_check=T0)], 4 * MIN, outcome=outcome)

    (row,) = world.rows
    assert [status for _, status in attempts_of(row)] == [Status.FAILED, Status.SUCCESS]
    assert row.status is Status.SUCCESS


def test_between_attempts_neither_poller_nor_olt_is_held(clock, virtually):
    nodes = [make_node(1, next_check=T0), make_node(2, next_check=T0 + 30 * SEC)]
    world = lived(
        clock,
        virtually,
        nodes,
        110 * SEC,
        pollers=1,
        outcome=lambda node, slot: SILENT if node.id == 1 else ANSWERED,
    )

    ran = [row for row in world.rows if row.node.id == 2]
    assert [(row.started_at - T0, row.status) for row in ran] == [(30 * SEC, Status.SUCCESS)]
    assert world.rows[0].status is Status.PENDING


def test_a_retry_whose_turn_does_not_come_ends_as_its_last_attempt_when_the_next_slot_is_due(clock, virtually):
    nodes = [make_node(1, next_check=T0), make_node(2, next_check=T0 + 100 * SEC, interval=HOUR)]
    world = lived(
        clock,
        virtually,
        nodes,
        301 * SEC,
        seconds=lambda node, slot: 1000.0 if node.id == 2 else 1.0,
        outcome=lambda node, slot: SILENT,
    )

    row = world.rows[0]
    assert (row.status, row.cause, len(row.attempts)) == (Status.FAILED, Cause.UNREACHABLE, 1)
    assert row.ended_at == T0 + 5 * MIN


def test_the_chain_of_a_silent_master_is_tried_again_with_it(clock, virtually):
    answers = iter([SILENT, ANSWERED, ANSWERED])
    world = lived(
        clock,
        virtually,
        [make_node(1, next_check=T0), make_node(2, master_id=1)],
        4 * MIN,
        outcome=lambda node, slot: next(answers),
    )

    assert [(row.status, len(row.attempts)) for row in world.rows] == [(Status.SUCCESS, 2), (Status.SUCCESS, 1)]


def test_a_retry_of_a_node_that_was_disabled_is_not_begun(clock, virtually):
    async def story():
        world = World(clock, [make_node(1, next_check=T0)], outcome=lambda node, slot: SILENT)
        await world.run_for(30 * SEC)
        world.nodes.disable_node(1)
        await world.run_for(4 * MIN)
        return world

    (row,) = virtually(story()).rows

    assert (row.status, row.cause, len(row.attempts)) == (Status.INTERRUPTED, Cause.DISABLED, 1)


def test_a_runner_puts_off_what_failed_and_gives_it_no_more_time_than_its_slot(stage, clock, virtually):
    play = stage({1: OltUnreachable("no answer")}, retries=1)

    async def story():
        claim = await play.claim()
        outcomes = await play.runner.run(claim, play)
        retry = retry_of(claim, outcomes)
        await clock.sleep((T0 + 5 * MIN - 20 * SEC - clock.now()).total_seconds())
        await play.slots.reclaim(retry.claim, poller_id=5, now=clock.now())
        return outcomes, await play.runner.run(retry.claim, play)

    first, second = virtually(story())

    assert [outcome.retry_at is not None for outcome in first] == [True] * 3
    assert [outcome.retry_at for outcome in second] == [None] * 3
    assert play.asked[1][1] == 20 * SEC
    assert play.ended == [(Status.FAILED, Cause.UNREACHABLE)] + [(Status.SKIPPED, Cause.UNREACHABLE)] * 2
