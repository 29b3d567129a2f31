"""Checks and probes: one small request to an OLT under its lease, outside the pollers.

An OLT with an open breaker is probed once a minute. An OLT in doubt (not polled yet by this engine, or no answer at
its last attempt) is checked before one of its composites gets a poller.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from facho.engine import oid
from facho.engine.errors import LeaseLost, NoAnswer, OltBusy, OltGone, OltUnreachable, SnmpError
from facho.engine.model import Cause, Claim, Lease, Olt, Outcome, RunResult, Status, Traffic
from facho.engine.observer import Observer
from facho.engine.ports import Clock, EventBus, NodeSource, OltLeases, Runs, Slots, Snmp
from facho.engine.scheduling.breaker import PROBE_EVERY, first_probe
from facho.engine.scheduling.grid import next_check, regrid
from facho.engine.scheduling.leased_snmp import LeasedSnmp, hold
from facho.engine.scheduling.pollers import PollerManager, TakeClaim
from facho.engine.scheduling.retry import lateness, retry_at, tell_failure

logger = logging.getLogger(__name__)

# Uptime. Every agent has it.
SYS_UP_TIME = oid.parse("1.3.6.1.2.1.1.3.0")

# Seconds. A reachable OLT answers a single scalar much faster.
TIMEOUT = 5.0

# A check repeats its request after this time, within the same time-out, because a packet can get lost.
REPEAT_AFTER = TIMEOUT / 2


class Prober:
    """Holds the lease of an OLT for one request. Any answer counts, including an error."""

    def __init__(
        self,
        *,
        name: str,
        nodes: NodeSource,
        slots: Slots,
        runs: Runs,
        leases: OltLeases,
        snmp: Snmp,
        bus: EventBus,
        clock: Clock,
        observer: Observer | None = None,
    ) -> None:
        self._name = name
        self._nodes = nodes
        self._slots = slots
        self._runs = runs
        self._observer = observer or Observer()
        self._leases = leases
        self._snmp = snmp
        self._bus = bus
        self._clock = clock
        self._next: dict[int, datetime] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def follow(self, broken: Mapping[int, datetime]) -> None:
        """Update the set of open breakers and their start times."""
        self._next = {olt_id: self._next.get(olt_id) or first_probe(olt_id, since) for olt_id, since in broken.items()}

    def tick(self, now: datetime, manager: PollerManager) -> None:
        """Start the due probes. A probe in progress is not repeated."""
        for olt_id, due in self._next.items():
            if due > now + PROBE_EVERY:
                # The clock was set back.
                due = self._next[olt_id] = regrid(due, PROBE_EVERY, now)
            if due <= now and not manager.is_busy(olt_id):
                self._next[olt_id] = next_check(due, PROBE_EVERY, now)
                # After a restart or a stall all would be due at once. Each waits for its own second.
                if now - due < PROBE_EVERY:
                    manager.hold(olt_id)
                    task = self._tasks[olt_id] = asyncio.create_task(self._run(olt_id, manager), name=f"probe-{olt_id}")
                    # A callback, because a task that is cancelled before its first step runs no `finally`.
                    task.add_done_callback(partial(self._ended, olt_id, manager))

    def _ended(self, olt_id: int, manager: PollerManager, _: "asyncio.Task[None]") -> None:
        del self._tasks[olt_id]
        manager.release(olt_id)

    async def _run(self, olt_id: int, manager: PollerManager) -> None:
        try:
            is_there = await self.probe(olt_id)
        except (OltBusy, OltGone, LeaseLost):
            # The OLT is held by another process, or was disabled.
            logger.debug("OLT %d was not probed: it is locked or deleted", olt_id)
        except Exception:
            # Any error: the next minute tries again.
            logger.exception("OLT %d could not be probed", olt_id)
        else:
            (manager.mark_reachable if is_there else manager.mark_silent)(olt_id)

    async def probe(self, olt_id: int) -> bool:
        """Send one request to an OLT, record and return whether it answered."""
        olt = await self._nodes.olt(olt_id)
        async with hold(self._leases, olt, f"{self._name}/probe", self._observer) as lease:
            answered = await self._answers(olt, lease, TIMEOUT)
        if answered:
            await self._slots.answered(olt_id, now=self._clock.now())
        else:
            await self._slots.probed(olt_id, now=self._clock.now())
        return answered

    async def check(self, olt_id: int, claim: TakeClaim) -> Sequence[Outcome] | None:
        """Check whether an OLT in doubt is reachable. Returns None if it answers.

        No answer counts as the attempt of the composite that `claim` takes: its executions fail or wait for a retry,
        as after a run. Returns their outcomes, or an empty list if no composite was claimed.
        """
        olt = await self._nodes.olt(olt_id)
        async with hold(self._leases, olt, f"{self._name}/check", self._observer) as lease:
            began = self._clock.monotonic()
            if await self._is_there(olt, lease):
                return None
            taken = await claim()
            return [] if taken is None else await self._fail(taken, olt, lease, self._clock.monotonic() - began)

    async def _is_there(self, olt: Olt, lease: Lease) -> bool:
        """Send a request, and repeat it once if needed. An answer to either counts until the time-out."""
        if olt.agent.obstacle:
            return False

        async def again() -> bool:
            await self._clock.sleep(REPEAT_AFTER)
            return await self._answers(olt, lease, TIMEOUT - REPEAT_AFTER)

        tasks = [asyncio.ensure_future(each) for each in (self._answers(olt, lease, TIMEOUT), again())]
        try:
            for answered in asyncio.as_completed(tasks):
                if await answered:
                    return True
            return False
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answers(self, olt: Olt, lease: Lease, timeout: float) -> bool:
        snmp = LeasedSnmp(self._snmp, lease, self._leases.is_valid)
        try:
            await snmp.get(olt.agent, [SYS_UP_TIME], timeout=timeout)
        except (NoAnswer, OltUnreachable):
            return False
        except SnmpError as error:
            logger.info("%s answered a probe with an error: %s", olt.name, error)
        return True

    async def _fail(self, claim: Claim, olt: Olt, lease: Lease, seconds: float) -> list[Outcome]:
        """Store the failed attempt of the first link. The following links are skipped or wait with it."""
        (node, *_), (first, *rest) = claim.composite.links, claim.execution_ids
        began = self._clock.now() - timedelta(seconds=seconds)
        try:
            is_started = await self._runs.start(first, lease=lease, now=began)
        except Exception as error:
            # The database failed after the claim, and no other component ends these executions.
            lost = Outcome(Status.SKIPPED, Cause.DATABASE_UNAVAILABLE, str(error), type(error).__name__)
            await self._runs.finish(RunResult(claim.execution_ids, lost, lease, self._clock.now()))
            raise
        if not is_started:
            # It has ended in the meantime.
            return [Outcome(Status.INTERRUPTED, Cause.LEASE_LOST)] * len(claim.execution_ids)
        now = self._clock.now()
        silence, traffic = OltUnreachable(olt.agent.obstacle), Traffic()
        if not olt.agent.obstacle:
            silence = OltUnreachable.after(olt.name, 2, seconds)
            traffic = Traffic(pdus=2, retransmissions=1, peak_in_flight=2)
        failed = Outcome(
            Status.FAILED,
            Cause.UNREACHABLE,
            str(silence),
            type(silence).__name__,
            traffic=traffic,
            retry_at=retry_at(node, Outcome(Status.FAILED), claim.attempt, claim.next_check, now),
        )
        skipped = Outcome(Status.SKIPPED, Cause.UNREACHABLE, retry_at=failed.retry_at)
        self._observer.attempt_started(lateness(claim, first, began))
        try:
            await self._runs.finish(RunResult((first,), failed, lease, now))
            if rest:
                await self._runs.finish(RunResult(tuple(rest), skipped, lease, now))
        finally:
            self._observer.attempt_ended(replace(failed, seconds=seconds))
        tell_failure(olt.id, olt.name, node, failed)
        outcomes = [failed, *[skipped] * len(rest)]
        for link, execution_id, outcome in zip(claim.composite.links, claim.execution_ids, outcomes, strict=True):
            status = Status.PENDING if outcome.retry_at else outcome.status
            news = {"id": execution_id, "olt_id": link.olt_id, "node_id": link.id, "status": status.value}
            self._bus.publish("execution", news)
        return outcomes

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
