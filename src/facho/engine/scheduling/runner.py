"""Runs one composite: from the lease of its OLT to the result of its last link."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from facho.engine.brand import Brand, Decoder
from facho.engine.collect import Memories, collect
from facho.engine.detect.detect import Candidates, Identity, identify
from facho.engine.errors import DatabaseUnavailable, FachoError, LeaseLost, OltBusy, OltGone, OltUnreachable
from facho.engine.model import (
    Cause,
    Claim,
    Collected,
    Completeness,
    Identification,
    JobKind,
    KnownOnu,
    Lease,
    Node,
    Olt,
    Outcome,
    RunResult,
    Status,
    Traffic,
)
from facho.engine.observer import Observer
from facho.engine.ports import Clock, EventBus, NodeSource, OltLeases, PollerWatch, Runs, Snmp
from facho.engine.scheduling.leased_snmp import LeasedSnmp, hold
from facho.engine.scheduling.retry import lateness, retry_at, tell_failure

logger = logging.getLogger(__name__)

# How often a database that is unavailable is tried again, in seconds.
AGAIN_EVERY = 2.0
# How long a manual run waits for it, since no slot ends the wait.
LONGEST_WAIT = timedelta(minutes=5)

# A smaller difference between wall clock and monotonic clock is drift.
CLOCK_SET = timedelta(seconds=0.5)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Began:
    """When a link began, by both clocks."""

    at: datetime
    steady: float

    def clock_set(self, now: datetime, steady: float) -> timedelta:
        """Return how far the wall clock was set since then."""
        by = now - self.at - timedelta(seconds=steady - self.steady)
        return by if abs(by) >= CLOCK_SET else timedelta(0)


@dataclass(frozen=True, slots=True)
class LinkRun:
    """What one link brought: its outcome, and what is to be stored with it."""

    outcome: Outcome
    collected: Collected | None = None
    identification: Identification | None = None


class GiveUp:
    """A composite that could not be started is skipped: this process claimed it, and no other one runs it."""

    returns_unstarted = False

    def longest_wait(self, until_slot_end: timedelta) -> timedelta:
        """Return how long the first link waits for the database."""
        return until_slot_end


class ReturnToScheduler(GiveUp):
    """It is left as it was found, and the scheduler sends it again.

    So is one whose OLT is held: its message may have come twice, and the holder be running this very composite.
    """

    returns_unstarted = True

    def __init__(self, after: timedelta) -> None:
        self._after = after

    def longest_wait(self, until_slot_end: timedelta) -> timedelta:
        return min(until_slot_end, self._after)


class Runner:
    """Holds one lease from the master's start to the last link's end, and ends every execution it was given.

    A master that fails does not stop its chain, unless the OLT is unreachable:
    then the other links would only add silence to silence.

    While the database is unavailable nothing starts: a link waits for it, as long
    as its slot lasts and the OLT is ours. `give_up` decides what becomes of a
    composite of which no link could be started.
    """

    def __init__(
        self,
        *,
        name: str,
        nodes: NodeSource,
        runs: Runs,
        snmp: Snmp,
        leases: OltLeases,
        bus: EventBus,
        clock: Clock,
        brand: Callable[[str], Brand],
        brands: Callable[[], Iterable[Brand]],
        candidates: Candidates,
        raw_decoders: Mapping[str, Decoder],
        is_away: Callable[[BaseException], bool] = lambda error: False,
        give_up: GiveUp | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._name = name
        self._nodes = nodes
        self._runs = runs
        self._snmp = snmp
        self._leases = leases
        self._bus = bus
        self._clock = clock
        self._brand = brand
        self._brands = brands
        self._candidates = candidates
        self._raw_decoders = raw_decoders
        self._is_away = is_away
        self._give_up = give_up or GiveUp()
        self._observer = observer or Observer()
        self._memories = Memories()

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]:
        """Run each link and return how they ended."""
        outcomes: list[Outcome] = []
        lease = None
        try:
            if claim.next_check is not None and claim.next_check <= self._clock.now():
                # It took too long to get here, and would only take the place of the next slot.
                await self._finish_rest(claim, lease, outcomes, Outcome(Status.SKIPPED, Cause.NO_FREE_POLLER))
                return outcomes
            olt = await self._patiently(claim, lambda: self._nodes.olt(claim.composite.olt_id))
            async with AsyncExitStack() as stack:
                holder = f"{self._name}/{claim.poller_id}"
                lease = await self._patiently(
                    claim, lambda: stack.enter_async_context(hold(self._leases, olt, holder, self._observer))
                )
                await self._run_links(claim, olt, lease, watch, outcomes)
        except OltGone as error:
            await self._finish_rest(claim, lease, outcomes, _not_run(error))
        except OltBusy as error:
            if lease is not None or not self._give_up.returns_unstarted:
                await self._finish_rest(claim, lease, outcomes, _not_run(error))
        except asyncio.CancelledError:
            await self._finish_rest(claim, lease, outcomes, Outcome(Status.INTERRUPTED, Cause.STOPPED))
            raise
        except DatabaseUnavailable as error:
            await self._leave(claim, lease, outcomes, error)
        except Exception as error:
            # A secret that cannot be read, or a database that failed for a moment: no execution may stay open for it.
            logger.exception("%s could not be run", _called(claim))
            await self._fail_rest(claim, lease, outcomes, error)
        return outcomes

    async def _fail_rest(self, claim: Claim, lease: Lease | None, outcomes: list[Outcome], error: Exception) -> None:
        """End the remaining links as failed. If that fails too, the links that ended before keep their retries."""
        try:
            await self._finish_rest(claim, lease, outcomes, _failed(error))
        except Exception:
            # The reaper ends them, as it ends those of an engine that died.
            logger.exception("%s: the rest of %s could not be ended", _called(claim), claim.execution_ids)

    async def _run_links(
        self, claim: Claim, olt: Olt, lease: Lease, watch: PollerWatch, outcomes: list[Outcome]
    ) -> None:
        links = zip(claim.composite.links, claim.execution_ids, strict=True)
        for position, (node, execution_id) in enumerate(links, 1):
            watch.link_started(position, node)
            began = await self._start(claim, execution_id, lease, is_first=not outcomes)
            if began is None:
                # It was ended meanwhile, and is no longer ours to run.
                outcomes.append(Outcome(Status.INTERRUPTED, Cause.LEASE_LOST))
                watch.link_changed(position, Status.INTERRUPTED)
                continue
            watch.link_changed(position, Status.RUNNING)
            self._publish(claim, node, execution_id, Status.RUNNING)
            outcome = Outcome(Status.INTERRUPTED, Cause.STOPPED)
            try:
                run = await self._run_link(claim, node, olt, lease)
                outcome = await self._finish(claim, node, execution_id, run, lease, began)
            finally:
                self._observer.attempt_ended(replace(outcome, seconds=self._clock.monotonic() - began.steady))
            # Not before it is stored: a link that is stopped in between must be ended with the rest.
            outcomes.append(outcome)
            watch.link_changed(position, Status.PENDING if outcome.retry_at else outcome.status)
            tell_failure(olt.id, olt.name, node, outcome)
            if run.collected is not None and run.collected.learned:
                olt = replace(olt, learned=run.collected.learned)
            if outcome.cause in (Cause.UNREACHABLE, Cause.LEASE_LOST):
                # Where the link is tried again, so are those behind it.
                rest = Outcome(Status.SKIPPED, outcome.cause, retry_at=outcome.retry_at)
                await self._finish_rest(claim, lease, outcomes, rest)
                return

    async def _start(self, claim: Claim, execution_id: int, lease: Lease, *, is_first: bool) -> Began | None:
        """Start a link as soon as the database is available, and return when. None if it is no longer ours to run."""

        async def start() -> Began | None:
            began = Began(self._clock.now(), self._clock.monotonic())
            if not await self._runs.start(execution_id, lease=lease, now=began.at, poller_id=claim.poller_id):
                return None
            self._observer.attempt_started(lateness(claim, execution_id, began.at))
            return began

        return await self._patiently(claim, start, lease, is_first=is_first)

    async def _patiently(
        self, claim: Claim, ask: Callable[[], Awaitable[T]], lease: Lease | None = None, *, is_first: bool = True
    ) -> T:
        """Ask the database until it answers; `DatabaseUnavailable` when it is too late for that."""
        ends: float | None = None
        while True:
            try:
                return await ask()
            except Exception as error:
                # When the connection broke, the request may have succeeded: then we hold the OLT ourselves.
                if not self._is_away(error) and (ends is None or not isinstance(error, OltBusy)):
                    raise
                if ends is None:
                    ends = self._clock.monotonic() + self._longest_wait(claim, is_first=is_first).total_seconds()
                    logger.warning("%s waits for the database: %s", _called(claim), error)
                if ends <= self._clock.monotonic() or (lease is not None and not self._leases.is_valid(lease)):
                    raise DatabaseUnavailable("the database was unavailable until it was too late to start") from error
            await self._clock.sleep(AGAIN_EVERY)

    def _longest_wait(self, claim: Claim, *, is_first: bool) -> timedelta:
        """Return how long to wait for the database: until the slot is over, even if the clock is set."""
        longest = claim.next_check - self._clock.now() if claim.next_check is not None else LONGEST_WAIT
        return self._give_up.longest_wait(longest) if is_first else longest

    async def _leave(
        self, claim: Claim, lease: Lease | None, outcomes: list[Outcome], error: DatabaseUnavailable
    ) -> None:
        """Leave a composite that was not started to its scheduler; otherwise skip the links that were not."""
        logger.warning("%s: %s", _called(claim), error)
        if outcomes or not self._give_up.returns_unstarted:
            skipped = Outcome(Status.SKIPPED, Cause.DATABASE_UNAVAILABLE, str(error), type(error).__name__)
            await self._finish_rest(claim, lease, outcomes, skipped)

    async def _run_link(self, claim: Claim, node: Node, olt: Olt, lease: Lease) -> LinkRun:
        """Collect, and return what came of it. Whatever goes wrong here concerns this link only."""
        node = _in_its_slot(node, claim, self._clock.now())
        try:
            if node.kind is JobKind.IDENTIFY:
                return await self._identify(node, olt, lease)
            known = await self._patiently(claim, lambda: self._runs.known(olt.id), lease, is_first=False)
            return await self._collect(node, olt, lease, known)
        except DatabaseUnavailable as error:
            return LinkRun(_failed(error, Cause.DATABASE_UNAVAILABLE))
        except OltUnreachable as error:
            return LinkRun(_failed(error, Cause.UNREACHABLE))
        except LeaseLost as error:
            return LinkRun(_lease_lost(error))
        except FachoError as error:
            return LinkRun(_failed(error))
        except Exception as error:
            # A defect of ours, or a database that fails, must not stop the rest of the chain.
            logger.exception("%s: %s ended in an error", olt.name, node.name)
            return LinkRun(_failed(error))

    async def _collect(self, node: Node, olt: Olt, lease: Lease, known: Sequence[KnownOnu]) -> LinkRun:
        collected = await collect(
            node,
            olt,
            self._brand(olt.brand),
            snmp=self._leased(lease),
            clock=self._clock,
            deadline=self._clock.now() + node.timeout,
            known=known,
            raw_decoders=self._raw_decoders,
            memory=self._memories.of(node.id),
        )
        return LinkRun(_outcome(collected), collected)

    async def _identify(self, node: Node, olt: Olt, lease: Lease) -> LinkRun:
        """Detect the brand of an OLT. No known brand is a failure: a person has to do something."""
        identity = await identify(
            olt.agent,
            snmp=self._leased(lease),
            clock=self._clock,
            deadline=self._clock.now() + node.timeout,
            candidates=self._candidates,
            brands=self._brands(),
        )
        brand = identity.brand.id if identity.brand else ""
        outcome = Outcome(Status.SUCCESS if brand else Status.FAILED, error=identity.remark, traffic=identity.traffic)
        return LinkRun(outcome, identification=Identification(brand, _seen(identity)))

    def _leased(self, lease: Lease) -> Snmp:
        return LeasedSnmp(self._snmp, lease, self._leases.is_valid)

    async def _finish(
        self, claim: Claim, node: Node, execution_id: int, run: LinkRun, lease: Lease, began: Began
    ) -> Outcome:
        """Store the result of a link. If what it read cannot be stored, the link has failed."""

        def result(outcome: Outcome) -> RunResult:
            now, steady = self._clock.now(), self._clock.monotonic()
            outcome = replace(
                outcome,
                retry_at=retry_at(node, outcome, claim.attempt, claim.next_check, now),
                seconds=steady - began.steady,
                clock_set=began.clock_set(now, steady),
            )
            return RunResult((execution_id,), outcome, lease, now)

        finished = result(run.outcome)
        try:
            await self._runs.finish(
                replace(finished, node=node, collected=run.collected, identification=run.identification)
            )
        except Exception as error:
            if run.collected is None and run.identification is None:
                raise
            if not isinstance(error, FachoError):
                logger.exception("%s: the result of %s could not be stored", node.olt_name, node.name)
            failed = _lease_lost(error) if isinstance(error, LeaseLost) else _failed(error)
            finished = result(replace(failed, traffic=run.outcome.traffic))
            await self._runs.finish(finished)
        else:
            self._report(node, run, finished.outcome)
        outcome = finished.outcome
        self._publish(claim, node, execution_id, Status.PENDING if outcome.retry_at else outcome.status)
        return outcome

    def _report(self, node: Node, run: LinkRun, outcome: Outcome) -> None:
        """Log and publish what a link read."""
        if run.collected is None:
            return
        if outcome.readings or run.collected.scalars:
            self._bus.publish("readings", {"olt_id": node.olt_id, "node_id": node.id, "count": outcome.readings})
        logger.info("%s: %s took %.1f s, %d ONUs", node.olt_name, node.name, outcome.seconds or 0.0, outcome.readings)

    async def _finish_rest(self, claim: Claim, lease: Lease | None, outcomes: list[Outcome], outcome: Outcome) -> None:
        """End the links that have not ended yet, all in the same way."""
        links = list(zip(claim.composite.links, claim.execution_ids, strict=True))[len(outcomes) :]
        if links:
            ids = tuple(execution_id for _, execution_id in links)
            await self._runs.finish(RunResult(ids, outcome, lease, self._clock.now()))
            outcomes += [outcome] * len(links)
            for node, execution_id in links:
                self._publish(claim, node, execution_id, Status.PENDING if outcome.retry_at else outcome.status)

    def _publish(self, claim: Claim, node: Node, execution_id: int, status: Status) -> None:
        self._bus.publish(
            "execution",
            {"id": execution_id, "olt_id": claim.composite.olt_id, "node_id": node.id, "status": status.value},
        )


def _called(claim: Claim) -> str:
    return f"{claim.composite.master.olt_name}: {claim.composite.master.name}"


def _in_its_slot(node: Node, claim: Claim, now: datetime) -> Node:
    """Return a node that is tried again with no more time than its slot has left."""
    if claim.attempt == 1 or claim.next_check is None:
        return node
    return replace(node, timeout=min(node.timeout, claim.next_check - now))


def _seen(identity: Identity) -> dict[str, Any]:
    """Return what an OLT reported about itself, by the names of the system group."""
    seen = {"sysDescr": identity.sys_descr, "sysObjectID": identity.sys_object_id, "sysName": identity.sys_name}
    return {name: value for name, value in seen.items() if value}


def _outcome(collected: Collected) -> Outcome:
    """Return the outcome of a link that read something. Some rows are PARTIAL; none, with errors, is a failure."""
    status = Status.SUCCESS
    if collected.completeness is Completeness.PARTIAL:
        status = Status.PARTIAL if collected.readings or collected.scalars else Status.FAILED
    return Outcome(
        status,
        error="\n".join(collected.errors),
        readings=len(collected.readings),
        completeness=collected.completeness,
        traffic=collected.traffic,
    )


def _failed(error: Exception, cause: Cause | None = None) -> Outcome:
    traffic = error.traffic if isinstance(error, FachoError) else Traffic()
    is_temporary = not isinstance(error, FachoError) or error.is_temporary
    return Outcome(Status.FAILED, cause, str(error), type(error).__name__, traffic=traffic, is_temporary=is_temporary)


def _lease_lost(error: LeaseLost) -> Outcome:
    return Outcome(Status.INTERRUPTED, Cause.LEASE_LOST, str(error), type(error).__name__)


def _not_run(error: FachoError) -> Outcome:
    cause = Cause.OLT_BUSY if isinstance(error, OltBusy) else Cause.DISABLED
    return Outcome(Status.SKIPPED, cause, str(error), type(error).__name__)
