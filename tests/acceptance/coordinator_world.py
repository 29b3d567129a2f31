"""The whole coordinator on a real database and a virtual clock: hours in seconds, with every row to look at."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from builders import ANSWERED, MIN, SILENT, StandInRunner
from django.db import transaction

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.apps.coordinator.models import CoordinatorLog, QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.engine.scheduling.scheduler import Scheduler
from facho.engine.scheduling.snapshot import snapshot
from facho.store.events import EventRows, Journal, Pool
from facho.store.nodes import DbNodeSource
from facho.store.plans import make_plans
from facho.store.quotas import open_hour, settle
from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


class BesideTheLoop:
    """Stands in for a `DbThread`: does the work at once, in the connection of the test.

    Django has another connection for code in a loop, and the test's
    transaction would be closed to it. So the work does not see the loop.
    """

    async def run(self, work):
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        try:
            with transaction.atomic():
                return work()
        finally:
            asyncio._set_running_loop(loop)


class Coordinator:
    """Scheduler, slots, runs, quotas, plans and journal as `facho run` has them; only the OLTs are stand-ins."""

    def __init__(self, *, pollers: int = 5) -> None:
        self.clock = VirtualClock(START)
        self.silent: set[int] = set()
        self.seconds = 2.0
        self.tick = 1.0
        self.chores_every = 1 * MIN
        self._pollers = pollers
        self._thread = BesideTheLoop()
        self._loop = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.events = EventRows()
        self._logger = logging.getLogger("facho")
        self._level = self._logger.level
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self.events)
        self._loop.run(self._start())

    def close(self) -> None:
        self._logger.removeHandler(self.events)
        self._logger.setLevel(self._level)
        self._loop.close()

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self._loop.get_loop().time())

    async def _start(self) -> None:
        self.slots = DbSlots(self._thread)
        self.bus = LocalBus()
        self.runner = StandInRunner(
            self.clock,
            DbRuns(self._thread, self._thread, DbResults(self._thread)),
            seconds=lambda node, slot: 15.0 if node.olt_id in self.silent else self.seconds,
            outcome=lambda node, slot: SILENT if node.olt_id in self.silent else ANSWERED,
        )
        self.scheduler = Scheduler(
            pollers=self._pollers,
            nodes=DbNodeSource(self._thread),
            slots=self.slots,
            runner=self.runner,
            clock=self.clock,
            on_tick=lambda manager: self.bus.publish("snapshot", snapshot(manager, self.clock.now())),
        )
        self.manager = self.scheduler.manager
        self.journal = Journal(bus=self.bus, clock=self.clock, thread=self._thread, events=self.events, pool=Pool())

    def killed_for(self, span: timedelta) -> None:
        """Die without a word, and come back later with nothing but what the database has."""
        self._loop.run(self._killed_for(span))

    async def _killed_for(self, span: timedelta) -> None:
        slots, self.runner._runs = self.slots, Forgetful()
        for task in list(self.manager._tasks.values()):
            task.cancel()
        await self.clock.sleep(span.total_seconds())
        await self._start()
        await slots.recover(self.clock.now())

    def run_for(self, span: timedelta) -> None:
        """Tick for so long, and let the chores be done in between."""
        self._loop.run(self._run_for(span))

    def tick_once(self) -> None:
        """Tick, and leave the chores for later."""
        self._loop.run(self.scheduler.step())

    async def _run_for(self, span: timedelta) -> None:
        end, done = self.clock.now() + span, None
        while self.clock.now() < end:
            await self.scheduler.step()
            beat = (self.clock.now() - START) // self.chores_every
            if beat != done:
                await self._thread.run(self._chores)
                done = beat
            await self.clock.sleep(self.tick)
        await self.journal.step()

    def _chores(self) -> None:
        now = self.now
        open_hour(now)
        settle(now)
        make_plans(now)


class Forgetful:
    """The runs of an engine that was killed: nothing is stored any more."""

    def __getattr__(self, name):
        async def nothing(*args, **kwargs):
            return None

        return nothing


def add_olt(name: str = "OLT-CENTRAL-01") -> Olt:
    return Olt.objects.create(name=name, brand="huawei", host="127.0.0.1", community="public")


def add_node(olt: Olt, name: str, interval: timedelta = 5 * MIN, kind: str = "table", **more) -> WorkflowNode:
    job, _ = SnmpJob.objects.get_or_create(
        name=name,
        brand="huawei",
        defaults={"kind": kind, "columns": ["rx_dbm"], "interval_seconds": interval.total_seconds(), **more},
    )
    job.apply_to([olt])
    return WorkflowNode.objects.get(olt=olt, job=job)


def balance() -> list[QuotaTracker]:
    """Return the rows whose sum does not hold: there must never be any."""
    return [
        row
        for row in QuotaTracker.objects.all()
        if row.quota_required != row.quota_completed + row.quota_failed + row.quota_skipped + row.quota_pending
    ]


def told(event: str) -> list[str]:
    return list(CoordinatorLog.objects.filter(event_type=event).order_by("id").values_list("message", flat=True))


def violations() -> list[tuple[str, str, str]]:
    rows = QuotaViolation.objects.order_by("period_start", "olt__name", "task_type")
    return [(row.olt.name, row.task_type, row.severity) for row in rows.select_related("olt")]
