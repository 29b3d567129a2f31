"""Breakers: when one opens, what it keeps away, and how it closes."""

import asyncio
import itertools
from datetime import timedelta
from ipaddress import IPv4Address

import pytest
from builders import ANSWERED, HOUR, MIN, SEC, SILENT, T0, World, make_node

from facho.adapters.bus.local import LocalBus
from facho.engine.errors import BadAnswer, NoAnswer, Refused
from facho.engine.model import Cause, Outcome, Status, Traffic
from facho.engine.scheduling.breaker import Heard, first_probe, heard
from facho.engine.scheduling.prober import TIMEOUT, Prober
from in_memory import MemoryRuns, MemorySlots

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
    """OLTs that answer, or do not, as they are told; counts what they were asked."""

    def __init__(self, clock, dead):
        self.clock = clock
        self.dead = dead
        # What an OLT that is not dead answers, unless it is its uptime.
        self.error = None
        self.asked = []
        self.most_at_once = 0
        self._now = 0

    async def get(self, agent, oids, *, timeout):
        self.asked.append((self.clock.now() - T0, len(oids), timeout))
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            is_dead = int(IPv4Address(agent.host)) - int(IPv4Address("127.0.0.0")) in self.dead
            await self.clock.sleep(timeout if is_dead else 0.1)
            if is_dead:
                raise NoAnswer("no answer")
            if self.error is not None:
                raise self.error
        finally:
            self._now -= 1


class BreakingWorld(World):
    """A world with a prober, in which silent OLTs take as long as real ones."""

    def __init__(self, clock, nodes, *, dead=(), auto_recover=True, **more):
        self.dead = set(dead)
        more.setdefault("seconds", lambda node, slot: TIMEOUT if node.olt_id in self.dead else 2.0)
        super().__init__(
            clock, nodes, outcome=lambda node, slot: SILENT if node.olt_id in self.dead else ANSWERED, **more
        )
        self.slots = MemorySlots(self.nodes, auto_recover=auto_recover)
        self.runs = self.runner._runs = MemoryRuns(self.slots)
        self.agents = Agents(clock, self.dead)
        self.prober = Prober(
            name="noc",
            nodes=self.nodes,
            slots=self.slots,
            runs=self.runs,
            leases=self.runner._leases,
            snmp=self.agents,
            bus=LocalBus(),
            clock=clock,
        )
        self.scheduler = self._scheduler(more.get("pollers", 10), prober=self.prober)

    def wake(self):
        """Let all OLTs answer from now on."""
        self.dead.clear()


def test_the_attempts_of_one_execution_open_the_breaker_and_cost_no_poller(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        await world.run_for(HOUR)
        return world

    world = virtually(story())

    (failed,) = [row for row in world.rows if row.status is Status.FAILED]
    skipped = [row for row in world.rows if row.status is Status.SKIPPED]
    assert (failed.slot, len(failed.attempts)) == (T0, 3)
    assert {row.cause for row in skipped} == {Cause.BREAKER_OPEN}
    assert len(skipped) == 10
    assert world.scheduler.manager.pollers[0].busy_time == 0


@pytest.mark.parametrize(
    ("job", "opened", "executions"),
    [
        pytest.param({"interval": HOUR}, 4 * MIN + 15 * SEC, 1, id="every hour"),
        pytest.param({"interval": 5 * MIN}, 4 * MIN + 15 * SEC, 1, id="every 5 minutes"),
        pytest.param({"interval": 2 * MIN}, 4 * MIN + 5 * SEC, 3, id="a retry does not fit into the slot"),
        pytest.param({"interval": 1 * MIN}, 2 * MIN + 5 * SEC, 3, id="every minute"),
        pytest.param({"interval": 5 * MIN, "retries": 0}, 10 * MIN + 5 * SEC, 3, id="one attempt only"),
        pytest.param({"interval": 5 * MIN, "retries": 1}, 5 * MIN + 5 * SEC, 2, id="two attempts"),
        pytest.param({"interval": HOUR, "retry_delay": 20 * SEC}, 55 * SEC, 1, id="impatient"),
    ],
)
def test_the_breaker_opens_at_the_third_silent_attempt_in_a_row(clock, virtually, job, opened, executions):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0, **job)], dead={1})
        await world.run_for(opened + 5 * SEC)
        return world

    world = virtually(story())

    assert world.nodes.breakers == {1: T0 + opened}
    assert len([row for row in world.rows if row.attempts]) == executions


def test_runs_by_hand_count_as_well(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, interval=HOUR, next_check=T0 + HOUR)], dead={1})
        for _ in range(3):
            world.nodes.request_run(1, clock.now())
            await world.run_for(20 * SEC)
        return world

    assert virtually(story()).nodes.breakers == {1: T0 + 45 * SEC}


def test_an_answer_between_two_attempts_resets_the_count(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0), make_node(2, interval=2 * MIN, next_check=T0 + 1 * MIN)]
        world = BreakingWorld(clock, nodes)
        world.runner._outcome = lambda node, slot: SILENT if node.id == 1 else ANSWERED
        await world.run_for(14 * MIN)
        return world

    assert virtually(story()).nodes.breakers == {}


def test_a_retry_that_the_breaker_held_up_is_made_when_the_olt_is_back(clock, virtually):
    async def story():
        nodes = [make_node(1, interval=HOUR, next_check=T0), make_node(2, interval=1 * MIN, next_check=T0 + 10 * SEC)]
        world = BreakingWorld(clock, nodes, dead={1})
        await world.run_for(10 * MIN)
        world.wake()
        await world.run_for(2 * MIN)
        return world

    world = virtually(story())

    hourly = next(row for row in world.rows if row.node.id == 1)
    assert [attempt.outcome.status for attempt in hourly.attempts] == [Status.FAILED, Status.SUCCESS]


def test_an_open_breaker_is_probed_once_a_minute_with_one_request(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1, next_check=T0)], dead={1})
        await world.run_for(HOUR)
        return world

    world = virtually(story())
    asked = [each for each in world.agents.asked if T0 + each[0] > world.nodes.breakers[1]]

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
    # A probe may have held the OLT when it became due.
    assert ran[0].waits[Cause.BREAKER_OPEN] == pytest.approx((back - ran[0].slot).total_seconds(), abs=TIMEOUT)
    assert len(ran) <= 6


@pytest.mark.slow
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
    # A check came before it.
    assert world.rows[-1].claimed_at == T0 + HOUR + timedelta(seconds=0.1)
    assert world.nodes.breakers == {}


@pytest.mark.slow
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
        world.agents.error = error
        world.dead.clear()
        await world.run_for(90 * SEC)
        return world

    assert virtually(story()).nodes.breakers == {}


def test_a_probe_holds_the_lease_and_gives_way_to_its_holder(clock, virtually):
    async def story():
        world = BreakingWorld(clock, [make_node(1)], dead={1})
        async with world.runner._leases.hold(1, "somebody else", device="127.0.0.1:161"):
            await world.prober._run(1, world.scheduler.manager)
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
        await world.prober._run(1, world.scheduler.manager)
        return world

    assert virtually(story()).agents.asked == []


@pytest.mark.slow
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
