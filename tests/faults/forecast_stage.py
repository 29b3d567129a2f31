"""Fleets for the proof of forecasts: simulated OLTs with their troubles, lived through in virtual time."""

import asyncio
import math
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta

from virtual_olt import T0, VirtualOlt, in_virtual_time

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import VirtualClock
from facho.adapters.leases.local import LocalLeases
from facho.brands import BRANDS, brand, candidates
from facho.brands.decode import RAW_DECODERS
from facho.engine.errors import NoAnswer
from facho.engine.forecast.failures import Attempt, ending_of
from facho.engine.forecast.failures import learn as learn_failures
from facho.engine.forecast.fleet import Fleet
from facho.engine.forecast.report import Score
from facho.engine.model import JobKind, Node
from facho.engine.quota.durations import USUAL, expected, learn
from facho.engine.scheduling.prober import Prober
from facho.engine.scheduling.runner import Runner
from facho.engine.scheduling.scheduler import Scheduler
from facho.engine.snmp import SendByTask
from facho.runtime.forecasting import Wish, forecast
from facho.simulator.faults import Faults
from in_memory import MemoryNodes, MemoryRuns, MemorySlots

MIN, HOUR = timedelta(minutes=1), timedelta(hours=1)

# Every ONU costs its OLT a lot, so that few of them, and few requests of ours, make a run as long as a real one.
SLOW = Faults(latency=0.02, jitter=0.05, loss=0.01, per_varbind=0.08, per_optical_row=0.6)

# Hours that are collected and learned from, and hours that are forecast and then collected.
LEARNED_FROM, FORECAST_FOR = 4, 4


@dataclass(frozen=True, slots=True)
class Job:
    """A job that every OLT of a fleet has."""

    name: str
    kind: JobKind
    interval: timedelta
    priority: int
    columns: tuple[str, ...] = ()
    follows: str | None = None
    timeout: timedelta = 5 * MIN
    retries: int = 2
    retry_delay: timedelta = timedelta(seconds=120)


USUAL_JOBS = (
    Job("State", JobKind.TABLE, 5 * MIN, 60, ("state", "distance_m", "down_cause", "last_up")),
    Job("Traffic", JobKind.TABLE, 5 * MIN, 50, ("in_octets", "out_octets"), follows="State"),
    Job("Optical power", JobKind.GET, 10 * MIN, 40, ("rx_dbm", "tx_dbm")),
    Job("Discovery", JobKind.DISCOVERY, 15 * MIN, 90),
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with an OLT."""

    mute: bool = False
    # The share of runs to which it says nothing, whatever became of the run before.
    deaf: float = 0.0
    # Mean minutes of each outage, and of each time between outages.
    away: float = 0.0
    there: float = 0.0


@dataclass(frozen=True, slots=True)
class Plant:
    """An OLT of a fleet."""

    onus: int = 40
    faults: Faults = SLOW
    trouble: Trouble = Trouble()


@dataclass(frozen=True, slots=True)
class World:
    """A whole fleet, and the pool that polls it."""

    plants: tuple[Plant, ...]
    pollers: int
    jobs: tuple[Job, ...] = USUAL_JOBS
    seed: int = 1

    def nodes(self):
        """Return the jobs on every OLT, spread at random as those of a grown fleet are."""
        dice, nodes = random.Random(self.seed), []
        for olt_id in range(1, len(self.plants) + 1):
            ids = {}
            for job in self.jobs:
                ids[job.name] = len(nodes) + 1
                nodes.append(_node(ids, olt_id, job, dice))
        return nodes


def _node(ids, olt_id, job, dice):
    due = None if job.follows else T0 + timedelta(seconds=dice.randrange(int(job.interval.total_seconds())))
    return Node(
        ids[job.name],
        olt_id,
        job.name,
        job.kind,
        job.interval,
        f"OLT-{olt_id:02}",
        job.priority,
        columns=job.columns,
        master_id=ids.get(job.follows),
        next_check=due,
        timeout=job.timeout,
        retries=job.retries,
        retry_delay=job.retry_delay,
    )


class Moods:
    """When an OLT answers nobody."""

    def __init__(self, trouble, seed):
        self._trouble = trouble
        # Separate generators: outages must not depend on the number of requests.
        self._dice, self._ears = random.Random(seed), random.Random(seed + 1)
        self._changes_at = self._draw(trouble.there) if trouble.away else None
        self._is_away = False
        self._is_deaf = False
        self._asked_at = -math.inf

    def _draw(self, mean):
        return self._dice.expovariate(1 / mean) * 60

    def asked_again(self, second):
        """A run, or a probe, begins. A check and the run behind it are one."""
        if second - self._asked_at > 1:
            self._is_deaf = self._ears.random() < self._trouble.deaf
        self._asked_at = second

    def is_silent(self, second):
        while self._changes_at is not None and self._changes_at <= second:
            self._is_away = not self._is_away
            self._changes_at += self._draw(self._trouble.away if self._is_away else self._trouble.there)
        return self._trouble.mute or self._is_away or self._is_deaf


class Network(SendByTask, MemoryNodes):
    """The OLTs behind their addresses, and what is known of each."""

    def __init__(self, world):
        super().__init__(world.nodes())
        self.olts = {
            f"127.0.0.{id_}": VirtualOlt(plant.onus, plant.faults, seed=1000 * world.seed + id_)
            for id_, plant in enumerate(world.plants, 1)
        }
        self.moods = {
            f"127.0.0.{id_}": Moods(plant.trouble, 1000 * world.seed + id_) for id_, plant in enumerate(world.plants, 1)
        }
        self.learned = {}

    async def olt(self, olt_id):
        plain = await super().olt(olt_id)
        agent = replace(plain.agent, host=f"127.0.0.{olt_id}")
        self.moods[agent.host].asked_again(asyncio.get_running_loop().time())
        return replace(plain, agent=agent, learned=self.learned.get(olt_id, {}))

    def known(self, olt_id):
        return self.olts[f"127.0.0.{olt_id}"].known()

    def learn(self, result):
        if result.collected is not None and result.collected.learned:
            self.learned[result.node.olt_id] = result.collected.learned

    async def _reach(self, agent, timeout):
        if self.moods[agent.host].is_silent(asyncio.get_running_loop().time()):
            await asyncio.sleep(timeout)
            raise NoAnswer("no answer")
        return self.olts[agent.host]

    async def get(self, agent, oids, *, timeout):
        return await (await self._reach(agent, timeout)).get(agent, oids, timeout=timeout)

    async def get_next(self, agent, oids, *, timeout):
        return await (await self._reach(agent, timeout)).get_next(agent, oids, timeout=timeout)

    async def get_bulk(self, agent, oids, *, timeout, **how):
        return await (await self._reach(agent, timeout)).get_bulk(agent, oids, timeout=timeout, **how)


class LearningRuns(MemoryRuns):
    """Runs in memory whose network remembers what they learned."""

    def __init__(self, slots, network):
        super().__init__(slots, network.known)
        self._network = network

    async def finish(self, result):
        await super().finish(result)
        self._network.learn(result)


class Reality:
    """The engine with its real runner and prober, collecting."""

    def __init__(self, world):
        self.clock = VirtualClock(T0)
        self.network = Network(world)
        self.slots = MemorySlots(self.network)
        shared = {
            "name": "noc",
            "nodes": self.network,
            "runs": LearningRuns(self.slots, self.network),
            "snmp": self.network,
            "leases": LocalLeases(first_token=1),
            "bus": LocalBus(),
            "clock": self.clock,
        }
        runner = Runner(
            brand=brand,
            brands=BRANDS.values,
            candidates=candidates,
            raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
            **shared,
        )
        self.prober = Prober(slots=self.slots, **shared)
        self.scheduler = Scheduler(
            pollers=world.pollers,
            nodes=self.network,
            slots=self.slots,
            runner=runner,
            clock=self.clock,
            prober=self.prober,
        )

    async def run_until(self, end):
        while self.clock.now() < end:
            await self.scheduler.step()
            await self.clock.sleep(1)

    async def stop(self):
        await self.prober.stop()
        await self.scheduler.manager.stop()

    def fleet(self):
        """Return what is known after a while: when nodes are due, how they fared, and whose breaker is open."""
        profiles, attempts = {}, defaultdict(list)
        for row in self.slots.rows:
            for tried in row.attempts:
                ending = ending_of(tried.outcome) if tried.outcome else None
                if ending is None:
                    continue
                node = row.node
                attempts[node.olt_id].append(Attempt(node.id, tried.started_at, tried.ended_at, ending))
                if ending.name == "ANSWERED" and tried.outcome.traffic.pdus:
                    seconds = (tried.ended_at - tried.started_at).total_seconds()
                    profiles[node.id] = learn(profiles.get(node.id, {}), seconds, tried.started_at)
        broken = frozenset(self.network.breakers)
        records = {
            olt_id: learn_failures(tried, self.clock.now(), is_broken=olt_id in broken)
            for olt_id, tried in attempts.items()
        }
        return Fleet(
            tuple(self.network.rows.values()),
            lambda node, at: expected(profiles.get(node.id, {}), at) or USUAL[node.kind],
            dead=frozenset(olt_id for olt_id, record in records.items() if record.is_dead),
            broken=broken,
            records=records,
        )

    def report(self, start, end, dead):
        """Return what became of the slots between these times, counted as a forecast counts."""
        score = Score(start, end, self.network.rows, dead)
        links = defaultdict(list)
        for node in self.network.rows.values():
            links[node.master_id].append(node)
        for row in self.slots.rows:
            if row.claimed_at and row.master_id is None:
                score.began(row.node, row.slot, row.claimed_at)
            for number in range(row.slots):
                slot = row.slot + number * row.node.interval
                score.ended(row.node.id, slot, row.status, row.cause)
                if row.claimed_at is None:
                    # A slot that never began was lost for the chain as well.
                    for link in links[row.node.id]:
                        score.ended(link.id, slot, row.status, row.cause)
        return score.report()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What happened, and what was told before."""

    truth: dict
    told: dict
    fleet: Fleet

    def off(self, name: str) -> float:
        return abs(self.truth[name] - self.told[name])


def truth_and_forecast(world: World, *, learned_from: float = LEARNED_FROM, hours: float = FORECAST_FOR) -> Comparison:
    """Live through a fleet, and forecast its second part from the first one."""
    start = T0 + learned_from * HOUR
    end = start + hours * HOUR

    async def story():
        reality = Reality(world)
        await reality.run_until(start)
        fleet = reality.fleet()
        await reality.run_until(end + 35 * MIN)
        await reality.stop()
        return fleet, reality.report(start, end, fleet.dead)

    fleet, truth = in_virtual_time(story)
    return Comparison(truth, forecast(Wish(fleet, world.pollers, hours, start)), fleet)


def unlearned(lived: Comparison, world: World) -> dict:
    """Return what would have been told without knowing of failures: only whose breaker is open, and so is dead."""
    fleet = replace(lived.fleet, records={}, dead=lived.fleet.broken)
    return forecast(Wish(fleet, world.pollers, FORECAST_FOR, T0 + LEARNED_FROM * HOUR))


def drawn(seed: int) -> World:
    """Return a fleet that chance has made: sizes, speeds, jobs, limits, pool and troubles."""
    dice = random.Random(f"fleet {seed}")
    plants = tuple(_plant(dice) for _ in range(dice.randint(6, 14)))
    pollers = max(1, round(len(plants) * dice.uniform(0.2, 1.0)))
    jobs = {job.name: _job(job, dice) for job in USUAL_JOBS}
    followed = {name: jobs[job.follows or name].interval for name, job in jobs.items()}
    return World(plants, pollers, tuple(replace(job, interval=followed[name]) for name, job in jobs.items()), seed)


def _plant(dice: random.Random) -> Plant:
    faults = replace(SLOW, slow_by=dice.lognormvariate(0, 0.5), loss=dice.choice([0.0, 0.01, 0.05]))
    return Plant(min(max(round(dice.lognormvariate(3.5, 0.7)), 6), 200), faults, _trouble(dice))


def _trouble(dice: random.Random) -> Trouble:
    """Two of three are well; of the others some are mute, some deaf to a share of runs, some away at times."""
    kind = dice.choices(["well", "mute", "deaf", "away"], [6, 1, 1, 1])[0]
    if kind == "deaf":
        return Trouble(deaf=dice.uniform(0.1, 0.6))
    if kind == "away":
        return Trouble(away=dice.uniform(2, 20), there=dice.uniform(10, 60))
    return Trouble(mute=kind == "mute")


def _job(job: Job, dice: random.Random) -> Job:
    return replace(
        job,
        interval=dice.choice([5, 10, 15, 30]) * MIN,
        timeout=dice.choice([1, 2, 5]) * MIN,
        retries=dice.randint(0, 3),
        retry_delay=timedelta(seconds=dice.choice([30, 60, 120])),
    )
