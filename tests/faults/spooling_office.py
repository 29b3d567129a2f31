"""An engine as `facho run` has it, on a database that goes away and a real spool: OLTs and time are virtual."""

import asyncio
import logging
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

from coordinator_world import START
from django.db import OperationalError
from mortal import Machine, Process
from virtual_olt import VirtualOlt

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.adapters.leases.local import LocalLeases
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu
from facho.brands import BRANDS, brand, candidates
from facho.brands.decode import RAW_DECODERS
from facho.engine.scheduling.runner import Runner
from facho.engine.scheduling.scheduler import Scheduler
from facho.engine.snmp import SendByTask
from facho.simulator.faults import Faults
from facho.simulator.fleet import MUTE
from facho.store.database import is_away
from facho.store.nodes import DbNodeSource
from facho.store.quotas import open_hour, settle
from facho.store.recovery import reap
from history_rows import stored

MIN = timedelta(minutes=1)
ONUS = 24

# No two harvests of an OLT are of the same time: even the fastest takes a while for one.
QUICK = Faults(latency=0.02)
# Its walks take most of a minute, so that whatever happens happens in the middle of one.
SLOW = Faults(latency=0.6, per_pdu=0.6)

# Ticks of so many seconds, for all of them are on a real database; chores are in every so many ticks.
TICK = 2
LAND_EVERY, CHORES_EVERY = 3, 30


class Network(SendByTask):
    """OLTs behind their addresses."""

    def __init__(self) -> None:
        self.olts = {
            "127.0.0.1": VirtualOlt(ONUS, QUICK),
            "127.0.0.2": VirtualOlt(ONUS, SLOW, "zte_c300"),
            "127.0.0.3": VirtualOlt(ONUS, MUTE),
        }

    async def get(self, agent, oids, **how):
        return await self.olts[agent.host].get(agent, oids, **how)

    async def get_next(self, agent, oids, **how):
        return await self.olts[agent.host].get_next(agent, oids, **how)

    async def get_bulk(self, agent, oids, **how):
        return await self.olts[agent.host].get_bulk(agent, oids, **how)

    async def close(self):
        return None

    def asked(self) -> int:
        return sum(olt.log.count() for olt in self.olts.values())


class Office:
    """One engine after the other on the same database, disk and OLTs."""

    def __init__(self, folder: Path, start: datetime = START) -> None:
        self.network = Network()
        self.clock = VirtualClock(start)
        self._begun = start
        self._folder = folder
        self._tokens = 0
        self._loop = asyncio.Runner(loop_factory=VirtualTimeLoop)
        make_olts(self.network)
        self._loop.run(self._start())

    def close(self) -> None:
        self._loop.run(self._end())
        self._loop.close()

    @property
    def now(self):
        return self._begun + timedelta(seconds=self._loop.get_loop().time())

    async def _start(self) -> None:
        self.machine = Machine()
        self.process = Process(self.machine, self._folder)
        self._tokens += 1_000_000
        nodes = DbNodeSource(self.process.thread)
        runner = Runner(
            name="noc",
            nodes=nodes,
            runs=self.process.runs,
            snmp=self.network,
            leases=LocalLeases(first_token=self._tokens),
            bus=LocalBus(),
            clock=self.clock,
            brand=brand,
            brands=BRANDS.values,
            candidates=candidates,
            raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
            is_away=is_away,
        )
        self.scheduler = Scheduler(pollers=3, nodes=nodes, slots=self.process.slots, runner=runner, clock=self.clock)
        await self.scheduler.recover()

    async def _end(self) -> None:
        """Be dead: whatever still runs has no effect any more."""
        self.process.die()
        tasks = list(self.scheduler.manager._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def killed_for(self, span: timedelta) -> None:
        """Die without a word, and come back later with what database and disk have."""

        async def story():
            await self._end()
            await self.clock.sleep(span.total_seconds())
            await self._start()

        self._loop.run(story())

    def run_for(self, span: timedelta) -> None:
        self._loop.run(self._run_for(span))

    async def _run_for(self, span: timedelta) -> None:
        end = self.clock.now() + span
        while self.clock.now() < end:
            await self.scheduler.step()
            tick = round(self.clock.monotonic()) // TICK
            if tick % LAND_EVERY == 0:
                await self.process.delivery.step(self.clock.now())
            if tick % CHORES_EVERY == 2:
                await self._do_chores()
            await self.clock.sleep(TICK)

    async def _do_chores(self) -> None:
        now = self.clock.now()
        for chore in (open_hour, settle, reap):
            try:
                await self.process.thread.run(lambda chore=chore: chore(now))
            except OperationalError as error:
                logging.getLogger(__name__).info("a chore is left out: %s", error)


def make_olts(network: Network) -> None:
    """Make the three OLTs of the cast, with two chains each, of which one is a discovery."""
    names = ("OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03")
    for name, (host, olt) in zip(names, network.olts.items(), strict=True):
        row = Olt.objects.create(name=name, brand=olt.maker, host=host, community="public")
        for job in jobs_of(olt.maker):
            job.apply_to([row])


def jobs_of(maker: str) -> list[SnmpJob]:
    def job(name, **more):
        return SnmpJob.objects.get_or_create(name=name, brand=maker, defaults=more)[0]

    power = job("Optical power", kind="table", columns=["state", "rx_dbm"], interval_seconds=300)
    job("Distances", kind="table", columns=["state", "distance_m"], follows=power)
    return [power, job("Discovery", kind="discovery", columns=["state"], interval_seconds=900, priority=90)]


def doubled() -> list[tuple[int, object]]:
    """Return readings that are there more than once."""
    return sorted(row for row, times in Counter(stored()).items() if times > 1)


def unread() -> list[Execution]:
    """Return the runs that say they have brought readings which are not all there."""
    olts = dict(Onu.objects.values_list("pk", "olt_id"))
    kept = Counter((olts[onu], at) for onu, at in stored())
    runs = Execution.objects.filter(status__in=["SUCCESS", "PARTIAL"])
    return [run for run in runs if kept[run.olt_id, run.ended_at] != run.readings]


def gaps() -> list[tuple[str, object]]:
    """Return the slots of masters that no row accounts for, or that two do."""
    found = []
    masters = Execution.objects.filter(master_execution=None, trigger="schedule")
    for olt_id, name in masters.order_by().values_list("olt_id", "node_name").distinct():
        interval = timedelta(seconds=SnmpJob.objects.filter(name=name).values_list("interval_seconds", flat=True)[0])
        expected = None
        for row in masters.filter(olt_id=olt_id, node_name=name).order_by("slot"):
            if expected not in (None, row.slot):
                found.append((f"{name} on {olt_id}", row.slot))
            expected = row.slot + row.slots * interval
    return found
