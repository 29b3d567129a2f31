"""What a runner needs around it, in memory, and collections that go as a test says."""

from dataclasses import replace

from builders import MIN, T0, make_node

import facho.engine.scheduling.runner
from facho.adapters.bus.local import LocalBus
from facho.adapters.leases.local import LocalLeases
from facho.brands import BRANDS, brand
from facho.engine.errors import NoAnswer, OltUnreachable
from facho.engine.model import Collected, Completeness, CompositeNode, JobKind, KnownOnu, Reading
from facho.engine.scheduling.runner import GiveUp, ReturnToScheduler, Runner
from in_memory import MemoryNodes, MemoryRuns, MemorySlots

COMPLETE = Collected(Completeness.COMPLETE, (Reading("1.7", 0, 1, 7, {"rx_dbm": -21.53}),))
SILENCE = OltUnreachable("OLT-01 did not answer 4 requests in 20.0 s")


class FailingRuns(MemoryRuns):
    """Runs in memory that keep their results. `errors` are raised first, one for each result that has data."""

    def __init__(self, slots):
        super().__init__(slots, known=lambda olt_id: (KnownOnu("1.7", "online"),))
        self.results = []
        self.errors = []

    async def finish(self, result):
        if self.errors and result.has_data:
            raise self.errors.pop(0)
        await super().finish(result)
        self.results.append(result)

    @property
    def written(self):
        """Return which node's readings were stored, for which execution and under which token."""
        stored = [each for each in self.results if each.collected is not None]
        return [(each.node.id, each.execution_ids[0], each.lease.token) for each in stored]

    @property
    def named(self):
        """Return which brands were stored, and what the OLT reported about itself."""
        return [
            (each.node.id, each.execution_ids[0], each.lease.token, each.identification.brand, each.identification.seen)
            for each in self.results
            if each.identification is not None
        ]


class Away(Exception):
    """What a database says that is not there."""


class Database:
    """Unavailable from a step on, for some seconds of a virtual clock."""

    def __init__(self, clock, step, seconds, *, times=1, answer_is_lost=False):
        self._clock = clock
        # Away when it is asked for this for the how-manieth time.
        self._step, self._times = step, times
        self._seconds = seconds
        # It has done what it was asked for when the line breaks.
        self._answer_is_lost = answer_is_lost
        self._until = None

    def asked_for(self, step, real):
        async def ask(*args, **kwargs):
            self._times -= step == self._step
            if self._until is None and step == self._step and self._times == 0:
                self._until = self._clock.monotonic() + self._seconds
                if self._answer_is_lost:
                    await real(*args, **kwargs)
            if self._until is not None and self._clock.monotonic() < self._until:
                raise Away("could not connect to 10.1.2.3 as facho")
            return await real(*args, **kwargs)

        return ask


class Stage:
    """A master with two links on OLT-01, and collections that go as the test says, one second each."""

    def __init__(self, clock, monkeypatch, results=None, kinds=None, retries=0):
        self.clock = clock
        self.results = results or {}
        self.asked = []
        self.learned = []
        self.seated = []
        self.heard = []
        master = make_node(1, next_check=T0)
        chain = (make_node(2, master_id=1, timeout=2 * MIN), make_node(3, master_id=1))
        kinds = kinds or {}
        links = [replace(node, kind=kinds.get(node.id, JobKind.TABLE), retries=retries) for node in (master, *chain)]
        self.composite = CompositeNode(links[0], tuple(links[1:]), T0)
        self.nodes = MemoryNodes(links)
        self.slots = MemorySlots(self.nodes)
        self.leases = LocalLeases(first_token=1)
        self.runs = FailingRuns(self.slots)
        self.bus = LocalBus()
        self.bus.publish = lambda topic, payload: self.heard.append((topic, payload))
        self.runner = self._runner(snmp=None)
        monkeypatch.setattr(facho.engine.scheduling.runner, "collect", self.collect)

    def _runner(self, snmp, **more):
        return Runner(
            name="noc",
            nodes=self.nodes,
            runs=self.runs,
            snmp=snmp,
            leases=self.leases,
            bus=self.bus,
            clock=self.clock,
            brand=brand,
            brands=BRANDS.values,
            candidates=lambda object_id, descr: [each for each in BRANDS.values() if each.label in descr],
            raw_decoders={},
            **more,
        )

    def with_database(self, database, patience=None):
        """Let the runner ask for everything by way of a database that may be away."""
        self.nodes.olt = database.asked_for("olt", self.nodes.olt)
        self.runs.known = database.asked_for("known", self.runs.known)
        self.runs.start = database.asked_for("start", self.runs.start)
        give_up = GiveUp() if patience is None else ReturnToScheduler(patience)
        self.runner = self._runner(None, is_away=lambda error: isinstance(error, Away), give_up=give_up)

    async def collect(self, node, olt, brand, *, deadline, known, **_):
        self.learned.append(olt.learned)
        self.asked.append((node.id, deadline - self.clock.now(), len(known)))
        await self.clock.sleep(1)
        result = self.results.get(node.id, COMPLETE)
        if isinstance(result, BaseException):
            raise result
        return result

    def link_started(self, position, node):
        self.seated.append((position, node.id))

    def link_changed(self, position, status):
        """Nobody looks at it here."""

    def database_error(self):
        return Away("server closed the connection unexpectedly")

    async def claim(self):
        return await self.slots.claim(self.composite, poller_id=3, now=T0, waits={})

    async def run(self):
        return await self.runner.run(await self.claim(), self)

    @property
    def ended(self):
        return [(row.status, row.cause) for row in self.slots.rows]


class Mute:
    """An OLT that never answers."""

    def __init__(self, clock):
        self.pdus = 0
        self._clock = clock

    async def _wait(self, agent, oids, *, timeout, **_):
        self.pdus += 1
        await self._clock.sleep(timeout)
        raise NoAnswer("no answer")

    get = get_next = get_bulk = _wait
