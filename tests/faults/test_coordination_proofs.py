"""What coordination promises an OLT, counted by its own log of PDUs, in virtual time."""

from datetime import timedelta
from itertools import groupby, pairwise

import pytest
from virtual_engine import VirtualEngine
from virtual_olt import T0, VirtualOlt, in_virtual_time

from facho.engine.model import Cause, JobKind, Node, Status, Trigger
from facho.simulator.faults import WELL, Faults
from facho.simulator.fleet import MUTE

SEC, MIN, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)

CENTRAL, NORTE, SUR = 1, 2, 3
SLOW = Faults(latency=0.4, per_pdu=0.05)

# What a mute OLT is asked in one attempt, until it is given up.
REQUESTS_PER_ATTEMPT = 3


def node(id_, olt_id, interval=5 * MIN, kind=JobKind.TABLE, due=T0, **more):
    columns = ("state", "distance_m") if kind is JobKind.TABLE else ("rx_dbm",) if kind is JobKind.GET else ()
    return Node(id_, olt_id, f"node {id_}", kind, interval, next_check=due, columns=columns, **more)


def test_a_mute_olt_is_asked_three_times_an_attempt_and_once_a_minute_when_its_breaker_is_open():
    async def story():
        engine = VirtualEngine([node(1, SUR)], {SUR: VirtualOlt(24, MUTE)})
        await engine.run_for(2 * HOUR)
        return engine

    engine = in_virtual_time(story)

    arrivals = engine.arrivals(SUR)
    opened = (engine.network.breakers[SUR] - T0).total_seconds()
    before = [at for at in arrivals if at <= opened]
    after = [at for at in arrivals if at > opened]
    attempts = [attempt for row in engine.ledger.rows for attempt in row.attempts]
    assert len(attempts) == 9
    assert len(before) == 9 * REQUESTS_PER_ATTEMPT
    # Three executions of a node every five minutes.
    assert opened < 15 * 60
    assert {round(later - earlier, 3) for earlier, later in pairwise(after)} == {60.0}
    assert len([at for at in after if at >= 3600]) == 60


def test_between_two_attempts_an_olt_is_not_asked_at_all():
    async def story():
        engine = VirtualEngine([node(1, SUR), node(2, SUR, due=None, master_id=1)], {SUR: VirtualOlt(24, MUTE)})
        await engine.run_for(5 * MIN)
        return engine

    engine = in_virtual_time(story)

    spans = [(attempt.started_at, attempt.ended_at) for row in engine.ledger.rows for attempt in row.attempts]
    asked = [T0 + timedelta(seconds=at) for at in engine.arrivals(SUR)]
    assert len(spans) == 3
    assert {later - earlier for (_, earlier), (later, _) in pairwise(spans)} == {2 * MIN}
    assert all(any(begun <= at <= ended for begun, ended in spans) for at in asked)
    assert len(asked) == 3 * REQUESTS_PER_ATTEMPT


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.GET], ids=lambda kind: kind.value)
def test_an_olt_that_is_disabled_in_the_middle_of_a_walk_gets_no_request_later_than_the_next_tick(kind):
    async def story():
        engine = VirtualEngine([node(1, NORTE, kind=kind)], {NORTE: VirtualOlt(512, SLOW, "zte_c300")})
        await engine.run_for(5.5 * SEC)
        engine.network.enable(NORTE, False)
        disabled = engine.clock.now()
        await engine.run_for(10 * MIN)
        return engine, (disabled - T0).total_seconds()

    engine, disabled = in_virtual_time(story)

    arrivals = engine.arrivals(NORTE)
    # It was in the middle of it.
    assert len(arrivals) > 5
    assert max(arrivals) > disabled - 1
    assert max(arrivals) <= disabled + 1
    (row,) = engine.ledger.rows
    assert (row.status, row.cause) == (Status.INTERRUPTED, Cause.DISABLED)
    assert engine.network.leases._held == {}


def test_a_node_that_is_disabled_in_the_middle_of_a_walk_ends_it_and_is_not_asked_again():
    async def story():
        engine = VirtualEngine([node(1, NORTE)], {NORTE: VirtualOlt(256, SLOW, "zte_c300")})
        await engine.run_for(2 * SEC)
        engine.network.disable_node(1)
        await engine.run_for(15 * MIN)
        return engine

    engine = in_virtual_time(story)

    (row,) = engine.ledger.rows
    assert row.status is Status.SUCCESS
    assert max(engine.arrivals(NORTE)) <= (row.ended_at - T0).total_seconds()


def test_no_olt_is_asked_by_two_at_once_whatever_runs_probes_and_people_do():
    """Three nodes and a chain on each of three OLTs, one of which goes and comes; a person asks all the time."""
    jobs = [(5 * MIN, JobKind.TABLE), (7 * MIN, JobKind.GET), (15 * MIN, JobKind.DISCOVERY)]
    nodes = []
    for olt_id in (CENTRAL, NORTE, SUR):
        for interval, kind in jobs:
            nodes.append(node(len(nodes) + 1, olt_id, interval, kind))
        nodes.append(node(len(nodes) + 1, olt_id, due=None, master_id=nodes[-3].id))
    olts = {CENTRAL: VirtualOlt(128), NORTE: VirtualOlt(128, SLOW, "zte_c300"), SUR: VirtualOlt(64, MUTE)}

    async def story():
        engine = VirtualEngine(nodes, olts)
        for minute in range(90):
            olts[SUR].agent.faults = WELL if 40 <= minute < 55 else MUTE
            # In the second in which a probe may be under way, too.
            engine.network.request_run(9 + minute % 3, engine.clock.now())
            await engine.run_for(MIN)
        await engine.stop()
        return engine

    engine = in_virtual_time(story)

    for olt_id, olt in olts.items():
        holders = engine.network.holders[olt_id]
        assert None not in holders
        tokens = [lease.token for lease in holders]
        # Whoever has given the OLT away never comes back, and nobody asks before the other's last answer has come.
        assert [token for token, _ in groupby(tokens)] == sorted(set(tokens))
        by_pdu = dict(zip(olt.log.pdus(), tokens, strict=True))
        assert olt.log.overlaps(by=by_pdu.__getitem__) == []
    sur = {lease.holder for lease in engine.network.holders[SUR]}
    assert "noc/probe" in sur
    assert len(sur) > 1
    asked_for = [row for row in engine.ledger.rows if row.trigger is Trigger.MANUAL and row.master_id is None]
    # A person is served, or learns that the OLT is silent; never that a probe was in the way.
    assert {row.status for row in asked_for} == {Status.SUCCESS, Status.FAILED}
