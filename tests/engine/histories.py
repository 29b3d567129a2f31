"""Random lives of a fleet, in virtual time: the engine as it is, on a database that is slow, or away, when told so."""

import asyncio
import random
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from builders import MIN, SEC, T0, make_node

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.adapters.leases.local import LocalLeases
from facho.brands import BRANDS, brand
from facho.engine.errors import NoAnswer, OltUnreachable
from facho.engine.model import Collected, Completeness, Reading, Traffic
from facho.engine.scheduling.prober import Prober
from facho.engine.scheduling.runner import Runner
from facho.engine.scheduling.scheduler import Scheduler
from in_memory import MemoryNodes, MemoryRuns, MemorySlots

HEARD = Traffic(pdus=10, rtt_p50=0.02)
FOUND = (Reading("1.7", 0, 1, 7, {"rx_dbm": -21.53}),)
INTERVALS = (1 * MIN, 2 * MIN, 5 * MIN, 10 * MIN)
POLLERS = 2


@dataclass(frozen=True)
class Step:
    """Something that somebody does, or that happens, so many seconds into a life."""

    at: int
    what: str
    whom: int
    seconds: int


@dataclass
class Plot:
    """A fleet, and what happens to it."""

    seed: int
    olts: int
    masters: int
    steps: list[Step]
    minutes: int = 40


class Database:
    """One thread that does one task after the other, even if the caller has stopped waiting."""

    def __init__(self, clock):
        self.clock = clock
        self.is_away = False
        self.delay = 0.0
        self._turn = asyncio.Lock()

    async def run(self, work):
        return await asyncio.shield(asyncio.ensure_future(self._run(work)))

    async def _run(self, work):
        async with self._turn:
            if self.delay:
                await self.clock.sleep(self.delay)
            if self.is_away:
                raise OSError("the database is away")
            return await work()


class Fleet(MemoryNodes):
    """OLTs that can be told apart by their address."""

    async def olt(self, olt_id):
        olt = await super().olt(olt_id)
        return replace(olt, agent=replace(olt.agent, host=f"10.0.0.{olt_id}"))


class Behind:
    """Something whose methods are calls of a database."""

    def __init__(self, real, database):
        self._real = real
        self._database = database

    def __getattr__(self, name):
        method = getattr(self._real, name)

        async def call(*args, **kwargs):
            return await self._database.run(lambda: method(*args, **kwargs))

        return call


@dataclass
class Seen:
    """A request to an OLT: start, end and sender."""

    olt_id: int
    since: datetime
    who: str
    until: datetime | None = None


@dataclass
class Life:
    """A plot as it went."""

    plot: Plot
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(T0))
    dark: set[int] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    # When the set-up of each node changed, or could not be followed: its slots may be elsewhere from then on.
    broke: dict[int, list] = field(default_factory=lambda: defaultdict(list))
    # When the database or the engine was unavailable or slow: from, to.
    troubles: list = field(default_factory=list)
    # When the database was back.
    back_at: list = field(default_factory=list)
    # What was run, and when.
    begun: list = field(default_factory=list)
    # Each second: the breakers that are open.
    breakers: dict = field(default_factory=dict)
    # When each OLT was disabled or enabled.
    switched: list = field(default_factory=list)

    def __post_init__(self):
        self.dice = random.Random(self.plot.seed)
        self.nodes = Fleet(self._fleet())
        self.slots = MemorySlots(self.nodes)
        self.runs = MemoryRuns(self.slots)
        self.leases = LocalLeases(first_token=1)

    def _fleet(self):
        nodes = []
        for olt_id in range(1, self.plot.olts + 1):
            for _ in range(self.plot.masters):
                more = {"retries": self.dice.choice((0, 1, 2)), "retry_delay": self.dice.choice((20, 61.5, 120)) * SEC}
                more["timeout"] = self.dice.choice((30, 300)) * SEC
                master = make_node(
                    len(nodes) + 1,
                    olt_id=olt_id,
                    interval=self.dice.choice(INTERVALS),
                    priority=self.dice.choice((10, 40, 90)),
                    **more,
                )
                nodes.append(master)
                for _ in range(self.dice.choice((0, 0, 1, 2))):
                    nodes.append(make_node(len(nodes) + 1, olt_id=olt_id, master_id=master.id, **more))
        return nodes

    @property
    def masters(self):
        return [node for node in self.nodes.rows.values() if node.master_id is None]

    async def live(self):
        """Live to the end, and stop."""
        self.database = Database(self.clock)
        self._start()
        steps = sorted(self.plot.steps, key=lambda step: step.at)
        end = T0 + self.plot.minutes * MIN
        while self.clock.now() < end:
            if self.clock.now() > end - 3 * MIN:
                # So that something waits for another attempt when it stops.
                self.dark |= self.nodes.enabled.keys()
            while steps and T0 + steps[0].at * SEC <= self.clock.now():
                await self._do(steps.pop(0))
            await self.scheduler.step()
            self._watch()
            now = self.clock.now()
            await self.clock.sleep(1 - now.microsecond / 1e6)
        self.database.is_away, self.database.delay = False, 0.0
        self.ended_at = self.clock.now()
        await self._stop()
        return self

    def _start(self):
        nodes, slots = Behind(self.nodes, self.database), Behind(self.slots, self.database)
        runs = Behind(self.runs, self.database)
        bus, clock, snmp = LocalBus(), self.clock, self
        self.prober = Prober(
            name="noc", nodes=nodes, slots=slots, runs=runs, leases=self.leases, snmp=snmp, bus=bus, clock=clock
        )
        runner = Runner(
            name="noc",
            nodes=nodes,
            runs=runs,
            snmp=snmp,
            leases=self.leases,
            bus=bus,
            clock=clock,
            brand=brand,
            brands=BRANDS.values,
            candidates=lambda *_: (),
            raw_decoders={},
        )
        self.runner = runner
        self.scheduler = Scheduler(
            pollers=POLLERS, nodes=nodes, slots=slots, runner=self, clock=clock, prober=self.prober
        )

    async def _hand_over(self, now):
        """Let another engine take over from this one, as soon as the database can tell it what is left."""
        while self.database.is_away or self.database.delay:
            await self.clock.sleep(1)
        await self._stop()
        self._start()
        await self.scheduler.recover()
        self.troubles.append((now, self.clock.now()))

    async def _stop(self):
        await self.prober.stop()
        await self.scheduler.manager.stop()

    async def run(self, claim, watch):
        """Stand between manager and runner, to see what is let through."""
        self.begun.append((self.clock.now(), claim))
        return await self.runner.run(claim, watch)

    # What an OLT does.
    @asynccontextmanager
    async def _asked(self, olt_id, who):
        seen = Seen(olt_id, self.clock.now(), who)
        self.seen.append(seen)
        try:
            yield
        finally:
            seen.until = self.clock.now()

    async def get(self, agent, oids, *, timeout):
        olt_id = int(agent.host.rpartition(".")[2])
        # A check repeats its request, under the same lease.
        async with self._asked(olt_id, f"probe {self.leases._held[agent.device].token}"):
            await self.clock.sleep(timeout if olt_id in self.dark else 0.1)
            if olt_id in self.dark:
                raise NoAnswer("no answer")

    async def collect(self, node, olt, brand, *, deadline, **_):
        """Stand in for a collection, as long as it may take."""
        left = (deadline - self.clock.now()).total_seconds()
        async with self._asked(olt.id, "run"):
            if olt.id in self.dark:
                await self.clock.sleep(max(min(15.0, left), 0.0))
                raise OltUnreachable(f"{olt.name} gave no answer")
            await self.clock.sleep(max(min(self.dice.choice((0.5, 2.25, 8, 50)), left), 0.0))
            if self.dice.random() < 0.1:
                return Collected(Completeness.PARTIAL, traffic=HEARD, errors=("genErr",))
            return Collected(Completeness.COMPLETE, FOUND, traffic=HEARD)

    # What people and the world do.
    async def _do(self, step):
        now = self.clock.now()
        master = self.masters[step.whom % len(self.masters)]
        olt_id = master.olt_id
        of_olt = [node.id for node in self.masters if node.olt_id == olt_id]
        if step.what == "olt":
            enabled = not self.nodes.enabled[olt_id]
            self.nodes.enable(olt_id, enabled)
            self.switched.append((now, olt_id, enabled))
            self._note(of_olt, now)
        elif step.what == "node":
            off = master.id in self.nodes._disabled_nodes
            (self.nodes.enable_node if off else self.nodes.disable_node)(master.id)
            self._note([master.id], now)
        elif step.what == "interval":
            self.nodes.put(replace(master, interval=INTERVALS[step.seconds % len(INTERVALS)]))
            self._note([master.id], now)
        elif step.what == "wish":
            self.nodes.request_run(master.id, now)
        elif step.what == "move":
            self.nodes.move(olt_id, f"10.0.0.{step.seconds}:161")
        else:
            await self._suffer(step, olt_id, now)

    async def _suffer(self, step, olt_id, now):
        """Let something happen that nobody wants."""
        if step.what == "dark":
            (self.dark.discard if olt_id in self.dark else self.dark.add)(olt_id)
        elif step.what == "away":
            self.back_at.append(now + step.seconds * SEC)
            self._trouble(now, step.seconds, "is_away", True, False)
        elif step.what == "slow":
            self._trouble(now, step.seconds, "delay", 0.7 + step.seconds % 3, 0.0)
        elif step.what == "handover":
            await self._hand_over(now)
        elif step.what == "asleep":
            self.troubles.append((now, now + step.seconds * SEC))
            await self.clock.sleep(step.seconds)

    def _note(self, node_ids, now):
        for node_id in node_ids:
            self.broke[node_id].append(now)

    def _trouble(self, now, seconds, name, value, after):
        setattr(self.database, name, value)
        self.troubles.append((now, now + seconds * SEC))
        asyncio.get_running_loop().call_later(seconds, setattr, self.database, name, after)

    def _watch(self):
        self.breakers[self.clock.now().replace(microsecond=0)] = frozenset(self.nodes.breakers)

    def followed(self, at):
        """Return when the engine can have followed a change: when the troubles are over that it came into."""
        for begun, ended in sorted(self.troubles):
            if begun <= at + 10 * SEC:
                at = max(at, ended)
        return at

    def is_troubled(self, since, until, slack=10 * SEC):
        """Return whether the database, or the engine, was not itself at some time in between."""
        return any(begun <= until and since <= ended + slack for begun, ended in self.troubles)


def lived(plot, monkeypatch):
    life = Life(plot)
    monkeypatch.setattr("facho.engine.scheduling.runner.collect", life.collect)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(life.live())
