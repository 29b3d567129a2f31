"""Breakers: when one opens, what it keeps away, and how it closes."""

import asyncio
import itertools
from datetime import timedelta

import pytest
from builders import ANSWERED, HOUR, MIN, SEC, SILENT, T0, World, make_node

from facho.adapters.memory import MemoryLedger
from facho.engine.breaker import Heard, first_probe, heard
from facho.engine.errors import BadAnswer, NoAnswer, Refused
from facho.engine.model import Cause, Outcome, Status, Traffic
from facho.engine.prober import TIMEOUT, Prober

HEARD = Traffic(pdus=4, rtt_p50=0.1)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(ANSWERED, Heard.ANSWER, id="success"),
        pytest.param(Outcome(Status.PARTIAL, traffic=HEARD), Heard.ANSWER, id="some rows"),
        pytest.param(SILENT, Heard.SILENCE, id="silence"),
        pytest.param(Outcome(Status.FAILED, error_class="Refused"), Heard.ANSWER, id="refused"),
        pytest.param(Outcome(Status.FAILED, error_class="BadAnswer"), Heard.ANSWER, id="nonsense"),
        pytest.param(Outcome(Status.FAILED, traffic=HEARD), Heard.ANSWER, id="failed after some answers"),
        pytest.param(Outcome(Status.FAILED, error_class="OperationalError"), Heard.NOTHING, id="our own database"),
        pytest.param(Outcome(Status.SKIPPED, Cause.UNREACHABLE), Heard.NOTHING, id="a link that did not run"),
        pytest.param(Outcome(Status.INTERRUPTED, Cause.STOPPED), Heard.NOTHING, id="stopped"),
        pytest.param(Outcome(Status.SUCCESS), Heard.NOTHING, id="nothing was asked"),
    ],
)
def test_what_an_outcome_tells_about_an_olt(outcome, expected):
    assert heard(outcome) is expected


def test_a_hundred_olts_that_go_dark_together_are_not_probed_together():
    probes = sorted(first_probe(olt_id, T0) for olt_id in range(1, 101))

    assert probes[0] >= T0 + 30 * SEC
    assert probes[-1] <= T0 + 60 * SEC
    assert max(later - earlier for earlier, later in itertools.pairwise(probes)) < 1 * SEC


class Agents:
    """OLTs that answer, or do not, as they are told; counts what each was asked."""

    def __init__(self, clock, answers=()):
        self.clock = clock
        self.answers = dict(answers)
        self.asked = []
        self.most_at_once = 0
        self._now = 0

    async def get(self, agent, oids, *, timeout):
        self.asked.append((self.clock.now() - T0, len(oids), timeout))
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            answer = self.answers.get(agent.host, NoAnswer("no answer"))
            await self.clock.sleep(timeout if isinstance(answer, NoAnswer) else 0.1)
            if isinstance(answer, Exception):
                raise answer
        finally:
            self._now -= 1


class BreakingWorld(World):
    """A world with a prober, in which silent OLTs take as long as real ones."""

    def __init__(self, clock, nodes, *, dead=(), auto_recover=True, **more):
        self.dead = set(dead)
        more.setdefault("seconds", lambda node, slot: 15.0 if node.olt_id in self.dead else 2.0)
        super().__init__(
            clock, nodes, outcome=lambda node, slot: SILENT if node.olt_id in self.dead else ANSWERED, **more
        )
        self.ledger = self.runner._ledger = MemoryLedger(self.nodes, auto_recover=auto_recover)
        self.agents = Agents(clock)
        self.prober = Prober(
            name="noc",
            nodes=self.nodes,
            ledger=self.ledger,
            leases=self.runner._leases,
            snmp=self.agents,
            clock=clock,
        )
        self.scheduler = self._scheduler(more.get("pollers", 10))
        self.scheduler._prober = self.prober

    def wake(self):
        """Let all OLTs answer from now on."""
        self.dead.clear()
        self.agents.answers["127.0.0.1"] = None


def test_three_silent_executions_open_the_breaker_and_then_it_costs_no_poller(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        await world.run_for(HOUR)
        return world

    world = virtually(story())

    failed = [row for row in world.rows if row.status is Status.FAILED]
    skipped = [row for row in world.rows if row.status is Status.SKIPPED]
    assert [row.slot - T0 for row in failed] == [0 * MIN, 5 * MIN, 10 * MIN]
    assert {row.cause for row in skipped} == {Cause.BREAKER_OPEN}
    assert len(failed) + len(skipped) == 11
    assert world.scheduler.manager.pollers[0].busy_time == pytest.approx(9 * 15.0)


def test_an_open_breaker_is_probed_once_a_minute_with_one_request(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        await world.run_for(HOUR)
        return world

    asked = virtually(story()).agents.asked

    times = [at for at, _, _ in asked]
    assert {(oids, timeout) for _, oids, timeout in asked} == {(1, TIMEOUT)}
    assert {later - earlier for earlier, later in itertools.pairwise(times)} == {1 * MIN}
    assert len(asked) > 40


def test_an_olt_that_answers_again_is_polled_at_once_without_a_burst(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0), make_node(2, next_check=T0 + 30 * SEC)]
        world = BreakingWorld(clock, nodes, dead={1})
        await world.run_for(HOUR)
        world.wake()
        await world.run_for(10 * MIN)
        return world

    world = virtually(story())

    ran = [row for row in world.rows if row.status is Status.SUCCESS]
    back = ran[0].claimed_at
    assert world.nodes.breakers == {}
    assert back - (T0 + HOUR) < 65 * SEC
    # The slot that was waiting, late by what it spent in the breaker, and then the grid; nothing is made up for.
    assert ran[0].waits[Cause.BREAKER_OPEN] == pytest.approx((back - ran[0].slot).total_seconds(), abs=2)
    assert len(ran) <= 6


def test_a_breaker_may_be_left_to_a_person(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1}, auto_recover=False)
        await world.run_for(HOUR)
        world.wake()
        await world.run_for(HOUR)
        return world

    world = virtually(story())

    assert 1 in world.nodes.breakers
    assert not [row for row in world.rows if row.status is Status.SUCCESS]


def test_a_person_may_ask_an_olt_whose_breaker_is_open(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        await world.run_for(HOUR)
        world.dead.clear()
        world.nodes.request_run(1, clock.now())
        await world.run_for(10 * SEC)
        return world

    world = virtually(story())

    # The slot that was waiting in the breaker is served by the same run.
    assert world.rows[-1].status is Status.SUCCESS
    assert world.rows[-1].claimed_at == T0 + HOUR
    assert world.nodes.breakers == {}


def test_another_address_closes_the_breaker(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        await world.run_for(HOUR)
        world.nodes.move(1, "10.0.0.8:161")
        await world.scheduler.step()
        return world

    assert virtually(story()).nodes.breakers == {}


@pytest.mark.parametrize("error", [Refused("unknown user"), BadAnswer("nonsense")], ids=["refused", "nonsense"])
def test_an_answer_with_an_error_is_an_answer(clock, virtually, error):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        await world.run_for(HOUR)
        world.agents.answers["127.0.0.1"] = error
        await world.run_for(90 * SEC)
        return world

    assert virtually(story()).nodes.breakers == {}


def test_a_probe_holds_the_lease_and_gives_way_to_whoever_has_it(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1)], dead={1})
        async with world.runner._leases.hold(1, "somebody else"):
            await world.prober._run(1)
        held = list(world.agents.asked)
        probe = asyncio.create_task(world.prober.probe(1))
        await clock.sleep(1)
        holders = [lease.holder for lease in world.runner._leases._held.values()]
        await probe
        return held, holders, world

    held, holders, world = virtually(story())

    assert held == []
    assert holders == ["noc/probe"]
    assert world.runner._leases._held == {}


def test_an_olt_that_is_gone_is_not_probed(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1)], dead={1})
        world.nodes.enable(1, False)
        await world.prober._run(1)
        return world

    assert virtually(story()).agents.asked == []


def test_with_thirty_of_a_hundred_olts_dead_the_others_are_on_time_and_the_dead_cost_next_to_nothing(clock, virtually):
    """Guarantee 8: three jobs an OLT, 20 pollers that are busy a third of the time, three hours."""

    async def story():
        nodes = []
        for olt_id in range(1, 101):
            for interval in (5 * MIN, 15 * MIN, 30 * MIN):
                nodes.append(make_node(len(nodes) + 1, olt_id=olt_id, interval=interval))
        world = BreakingWorld(
            clock,
            nodes,
            dead=range(1, 31),
            pollers=20,
            seconds=lambda node, slot: 15.0 if node.olt_id <= 30 else 3.0 + node.id % 7,
        )
        await world.run_for(3 * HOUR)
        return world

    world = virtually(story())

    # The dead are found out in the first quarter of an hour; a guarantee is for what comes after it.
    rows = [row for row in world.rows if row.slot >= T0 + 20 * MIN and row.slot < T0 + 3 * HOUR - 5 * MIN]
    healthy = [row for row in rows if row.node.olt_id > 30]
    on_time = [row for row in healthy if row.started_at and row.started_at - row.slot <= 5 * SEC]
    assert len(on_time) >= 0.99 * len(healthy)
    assert {row.status for row in healthy} == {Status.SUCCESS}
    dead = [attempt for row in world.rows if row.node.olt_id <= 30 for attempt in row.attempts]
    assert sum((attempt.ended_at - attempt.started_at for attempt in dead), timedelta()) < 0.1 * 20 * 3 * HOUR
    assert max(attempt.ended_at for attempt in dead) < T0 + 20 * MIN
    assert world.runner.overlaps == 0
