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

# What a mute OLT is asked by a check, until it is given up.
REQUESTS_PER_CHECK = 2


def node(id_, olt_id, interval=5 * MIN, kind=JobKind.TABLE, due=T0, **more):
    columns = ("state", "distance_m") if kind is JobKind.TABLE else ("rx_dbm",) if kind is JobKind.GET else ()
    return Node(id_, olt_id, f"node {id_}", kind, interval, next_check=due, columns=columns, **more)


def test_a_mute_olt_is_asked_twice_an_attempt_and_once_a_minute_when_its_breaker_is_open():
    async def story():
        engine = VirtualEngine([node(1, SUR)], {SUR: VirtualOlt(24, MUTE)})
        await engine.run_for(2 * HOUR)
        return engine

    engine = in_virtual_time(story)

    arrivals = engine.arrivals(SUR)
    opened = (engine.network.breakers[SUR] - T0).total_seconds()
    before = [at for at in arrivals if at <= opened]
    after = [at for at in arrivals if at > opened]
    attempts = [attempt for row in engine.slots.rows for attempt in row.attempts]
    assert len(attempts) == 3
    assert len(before) == 3 * REQUESTS_PER_CHECK
    # The attempts of one execution, 120 seconds apart.
    assert opened < 5 * 60
    assert {round(later - earlier, 3) for earlier, later in pairwise(after)} == {60.0}
    assert len([at for at in after if at >= 3600]) == 60


def test_between_two_attempts_an_olt_is_not_asked_at_all():
    async def story():
        engine = VirtualEngine([node(1, SUR), node(2, SUR, due=None, master_id=1)], {SUR: VirtualOlt(24, MUTE)})
        await engine.run_for(5 * MIN)
        return engine

    engine = in_virtual_time(story)

    spans = [(attempt.started_at, attempt.ended_at) for row in engine.slots.rows for attempt in row.attempts]
    asked = [T0 + timedelta(seconds=at) for at in engine.arrivals(SUR)]
    assert len(spans) == 3
    assert {later - earlier for (_, earlier), (later, _) in pairwise(spans)} == {2 * MIN}
    assert all(any(begun <= at <= ended for begun, ended in spans) for at in asked)
    assert len(asked) == 3 * REQUESTS_PER_CHECK


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.GET], ids=lambda kind: kind.value)
def test_an_olt_that_is_disabled_in_the_middle_of_a_walk_gets_no_request_later_than_the_next_tick(kind):
    async def story():
        engine = VirtualEngine([node(1, NORTE, kind=kind)], {NORTE: VirtualOlt(4096, SLOW, "zte_c300")})
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
    (row,) = engine.slots.rows
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

    (row,) = engine.slots.rows
    assert row.status is Status.SUCCESS
    assert max(engine.arrivals(NORTE)) <= (row.ended_at - T0).total_seconds()


def test_olts_that_are_one_device_are_never_asked_at_once_and_take_turns():
    """Three OLTs lead to one device by different spellings, and one of them by a name; each has its runs."""
    nodes = [node(olt_id, olt_id, retries=0) for olt_id in (CENTRAL, NORTE, SUR)]
    device = VirtualOlt(256, SLOW)

    async def story():
        engine = VirtualEngine(nodes, {CENTRAL: device})
        engine.network.hosts |= {CENTRAL: "127.0.0.1", NORTE: "::ffff:127.0.0.1", SUR: "LocalHost."}
        for _ in range(30):
            engine.network.request_run(SUR, engine.clock.now())
            await engine.run_for(MIN)
        await engine.stop()
        return engine

    engine = in_virtual_time(story)

    tokens = [lease.token for lease in engine.network.holders[CENTRAL]]
    assert [token for token, _ in groupby(tokens)] == sorted(set(tokens))
    by_pdu = dict(zip(device.log.pdus(), tokens, strict=True))
    assert device.log.overlaps(by=by_pdu.__getitem__) == []
    assert device.log.peak_in_flight() <= 8
    # Nobody is turned away for it: each waits for its turn, and says for what.
    rows = [row for row in engine.slots.rows if row.ended_at is not None]
    assert {row.status for row in rows} == {Status.SUCCESS}
    assert {row.node.olt_id for row in rows} == {CENTRAL, NORTE, SUR}
    assert {cause for row in rows for cause in row.waits} <= {Cause.OLT_BUSY, Cause.SCHEDULER_LATE}
    assert any(row.waits.get(Cause.OLT_BUSY) for row in rows)


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
        # A former holder never returns, and requests of two holders never overlap.
        assert [token for token, _ in groupby(tokens)] == sorted(set(tokens))
        by_pdu = dict(zip(olt.log.pdus(), tokens, strict=True))
        assert olt.log.overlaps(by=by_pdu.__getitem__) == []
    sur = {lease.holder for lease in engine.network.holders[SUR]}
    assert "noc/probe" in sur
    assert len(sur) > 1
    asked_for = [row for row in engine.slots.rows if row.trigger is Trigger.MANUAL and row.master_id is None]
    # A person is served, or learns that the OLT is silent; never that a probe was in the way.
    assert {row.status for row in asked_for} == {Status.SUCCESS, Status.FAILED}


class Watched:
    """Pollers, looked at once a second: how much of them OLTs had that answer nothing."""

    def __init__(self, engine, dead):
        self.engine, self.dead = engine, dead
        # Share of all pollers, by minute.
        self.shares = []

    async def run_for(self, minutes):
        pollers = self.engine.scheduler.manager.pollers
        for _ in range(minutes):
            held = 0
            for _ in range(60):
                await self.engine.run_for(1 * SEC)
                held += sum(poller.composite is not None and poller.composite.olt_id in self.dead for poller in pollers)
            self.shares.append(held / 60 / len(pollers))


def on_time(rows, until):
    """Return the share of the slots, until so long before now, that began within 5 seconds."""
    due = [row for row in rows if row.master_id is None and row.slot < until]
    return sum(row.started_at is not None and row.started_at - row.slot <= 5 * SEC for row in due) / len(due)


def fleet_of_200(retry_delay, dead):
    """Three jobs on each of 200 OLTs, of which the dead answer nothing."""
    jobs = [(5 * MIN, JobKind.TABLE), (5 * MIN, JobKind.GET), (15 * MIN, JobKind.TABLE)]
    nodes = [
        node(olt_id * 10 + number, olt_id, interval, kind, due=None, retry_delay=retry_delay)
        for olt_id in range(1, 201)
        for number, (interval, kind) in enumerate(jobs)
    ]
    return nodes, {id_: VirtualOlt(8, MUTE if id_ in dead else SLOW) for id_ in range(1, 201)}


@pytest.mark.parametrize("retry_delay", [120 * SEC, 20 * SEC], ids=lambda delay: f"{delay.seconds} s between retries")
def test_from_a_cold_start_60_dead_of_200_olts_cost_no_poller_and_no_slot_of_the_others(retry_delay):
    dead = set(range(1, 61))
    nodes, olts = fleet_of_200(retry_delay, dead)

    async def story():
        engine = VirtualEngine(nodes, olts, pollers=10)
        watched = Watched(engine, dead)
        await watched.run_for(20)
        return engine, watched

    engine, watched = in_virtual_time(story)

    assert max(watched.shares) < 0.1
    healthy = [row for row in engine.slots.rows if row.node.olt_id not in dead]
    assert len(healthy) > 140 * 3
    assert on_time(healthy, T0 + 19 * MIN) >= 0.99
    assert {row.status for row in healthy if row.slot < T0 + 19 * MIN} == {Status.SUCCESS}
    # Every one of the dead was found out, and was asked little for it.
    assert engine.network.breakers.keys() == dead
    for olt_id in dead:
        opened = (engine.network.breakers[olt_id] - T0).total_seconds()
        assert len([at for at in engine.arrivals(olt_id) if at <= opened]) <= 4 * REQUESTS_PER_CHECK


def test_60_of_200_olts_that_die_together_cost_a_poller_one_time_out_each():
    dead = set(range(1, 61))
    nodes, olts = fleet_of_200(120 * SEC, set())

    async def story():
        engine = VirtualEngine(nodes, olts, pollers=20)
        watched = Watched(engine, dead)
        await watched.run_for(15)
        for olt_id in dead:
            olts[olt_id].agent.faults = MUTE
        await watched.run_for(15)
        return engine

    engine = in_virtual_time(story)

    died = T0 + 15 * MIN
    silent = [(row, attempt) for row in engine.slots.rows for attempt in row.attempts if row.node.olt_id in dead]
    in_pollers = [attempt for row, attempt in silent if attempt.started_at >= died and row.attempts[0] is attempt]
    held = [attempt for attempt in in_pollers if attempt.outcome.traffic.pdus > REQUESTS_PER_CHECK]
    assert len(held) == len(dead)
    # Of the request that was sent first: an optical one may take longer.
    assert {attempt.ended_at - attempt.started_at for attempt in held} <= {5 * SEC, 20 * SEC}
    healthy = [row for row in engine.slots.rows if row.node.olt_id not in dead]
    assert on_time(healthy, T0 + 29 * MIN) >= 0.99


def test_an_olt_that_answers_is_checked_once_and_never_again():
    async def story():
        engine = VirtualEngine([node(1, CENTRAL), node(2, CENTRAL, kind=JobKind.GET)], {CENTRAL: VirtualOlt(24, SLOW)})
        await engine.run_for(2 * HOUR)
        return engine

    engine = in_virtual_time(story)

    holders = [lease.holder for lease in engine.network.holders[CENTRAL]]
    assert holders.count("noc/check") == 1
    assert len({row.slot for row in engine.slots.rows}) == 24
    assert {row.status for row in engine.slots.rows} == {Status.SUCCESS}
