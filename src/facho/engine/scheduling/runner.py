"""Runner of one composite: from the lease of its OLT to the result of its last link."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from facho.engine.brand import Brand, Decoder
from facho.engine.collect import Memories, collect
from facho.engine.detect.detect import Candidates, identify
from facho.engine.errors import DatabaseUnavailable, FachoError, LeaseLost, OltBusy, OltGone, OltUnreachable
from facho.engine.limits import MOST_ONUS
from facho.engine.model import (
    Cause,
    Claim,
    Collected,
    Completeness,
    Identification,
    JobKind,
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

# Seconds between attempts to reach an unavailable database.
AGAIN_EVERY = 2.0
# Maximum time that a manual run waits for the database. It has no slot that ends the wait.
LONGEST_WAIT = timedelta(minutes=5)

# Smaller differences between wall clock and monotonic clock are drift.
CLOCK_SET = timedelta(seconds=0.5)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Began:
    """Start of a link, by both clocks."""

    at: datetime
    steady: float

    def clock_set(self, now: datetime, steady: float) -> timedelta:
        """Return the step of the wall clock since then."""
        by = now - self.at - timedelta(seconds=steady - self.steady)
        return by if abs(by) >= CLOCK_SET else timedelta(0)


@dataclass(frozen=True, slots=True)
class LinkRun:
    """Result of one link: its outcome and the data to store."""

    outcome: Outcome
    collected: Collected | None = None
    identification: Identification | None = None


class GiveUp:
    """Skip a composite that could not be started: this process claimed it, and no other one runs it."""

    returns_unstarted = False

    def longest_wait(self, until_slot_end: timedelta) -> timedelta:
        """Return the maximum wait of the first link for the database."""
        return until_slot_end


class ReturnToScheduler(GiveUp):
    """Leave a composite that could not be started; the scheduler sends it again.

    The same applies if its OLT is held: the message may have come twice, and the holder may run this composite.
    """

    returns_unstarted = True

    def __init__(self, after: timedelta) -> None:
        self._after = after

    def longest_wait(self, until_slot_end: timedelta) -> timedelta:
        return min(until_slot_end, self._after)


class Runner:
    """Holds one lease from the start of the master to the end of the last link, and ends all its executions.

    A failed master does not stop its chain, unless the OLT is unreachable.

    While the database is unavailable nothing starts: a link waits as long as its slot and the lease last. `give_up`
    decides about a composite with no started link.
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
        most_onus: int = MOST_ONUS,
    ) -> None:
        self._name = name
        self._most_onus = most_onus
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
        """Run each link and return the outcomes."""
        outcomes: list[Outcome] = []
        lease = None
        try:
            if claim.next_check is not None and claim.next_check <= self._clock.now():
                # Too late: it would take the place of the next slot.
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
            logger.warning("%s: %s", _called(claim), error)
            if outcomes or not self._give_up.returns_unstarted:
                skipped = Outcome(Status.SKIPPED, Cause.DATABASE_UNAVAILABLE, str(error), type(error).__name__)
                await self._finish_rest(claim, lease, outcomes, skipped)
        except Exception as error:
            # An unreadable secret or a database error: no execution may stay open.
            called, ids = _called(claim), claim.execution_ids
            logger.exception("%s could not be run", called)
            try:
                await self._finish_rest(claim, lease, outcomes, _failed(error))
            except Exception:
                # Recovery ends them, as those of a dead engine. The earlier links keep their retries.
                logger.exception("%s: the other executions of %s could not be closed", called, ids)
        return outcomes

    async def _run_links(
        self, claim: Claim, olt: Olt, lease: Lease, watch: PollerWatch, outcomes: list[Outcome]
    ) -> None:
        links = zip(claim.composite.links, claim.execution_ids, strict=True)
        for position, (node, execution_id) in enumerate(links, 1):
            watch.link_started(position, node)
            began = await self._start(claim, execution_id, lease, is_first=not outcomes)
            if began is None:
                # It has ended in the meantime.
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
            # Only after it is stored: a link that is stopped in between must be ended with the rest.
            outcomes.append(outcome)
            watch.link_changed(position, Status.PENDING if outcome.retry_at else outcome.status)
            tell_failure(olt.id, olt.name, node, outcome)
            if run.collected is not None and run.collected.learned:
                olt = replace(olt, learned=run.collected.learned)
            if outcome.cause in (Cause.UNREACHABLE, Cause.LEASE_LOST):
                # If the link is retried, the following links are too.
                rest = Outcome(Status.SKIPPED, outcome.cause, retry_at=outcome.retry_at)
                await self._finish_rest(claim, lease, outcomes, rest)
                return

    async def _start(self, claim: Claim, execution_id: int, lease: Lease, *, is_first: bool) -> Began | None:
        """Start a link when the database is available, and return the start time. None if it has ended already."""

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
        """Repeat a database call until it succeeds. Raises `DatabaseUnavailable` when time is up."""
        ends: float | None = None
        while True:
            try:
                return await ask()
            except Exception as error:
                # When the connection broke, the call may have succeeded: then the lease is ours.
                if not self._is_away(error) and (ends is None or not isinstance(error, OltBusy)):
                    raise
                if ends is None:
                    # Until the end of the slot, even if the clock is set.
                    longest = claim.next_check - self._clock.now() if claim.next_check is not None else LONGEST_WAIT
                    if is_first:
                        longest = self._give_up.longest_wait(longest)
                    ends = self._clock.monotonic() + longest.total_seconds()
                    logger.warning("%s is waiting for the database: %s", _called(claim), error)
                if ends <= self._clock.monotonic() or (lease is not None and not self._leases.is_valid(lease)):
                    raise DatabaseUnavailable(
                        "the database was unavailable until the run was too late to start"
                    ) from error
            await self._clock.sleep(AGAIN_EVERY)

    async def _run_link(self, claim: Claim, node: Node, olt: Olt, lease: Lease) -> LinkRun:
        """Collect, and return the result. Any error concerns this link only."""
        if claim.attempt > 1 and claim.next_check is not None:
            # A retry ends with its slot.
            node = replace(node, timeout=min(node.timeout, claim.next_check - self._clock.now()))
        try:
            if node.kind is JobKind.IDENTIFY:
                return await self._identify(node, olt, lease)
            known = await self._patiently(claim, lambda: self._runs.known(olt.id), lease, is_first=False)
            collected = await collect(
                node,
                olt,
                self._brand(olt.brand),
                snmp=LeasedSnmp(self._snmp, lease, self._leases.is_valid),
                clock=self._clock,
                deadline=self._clock.now() + node.timeout,
                known=known,
                raw_decoders=self._raw_decoders,
                memory=self._memories.of(node.id),
                most_onus=self._most_onus,
            )
            return LinkRun(_outcome(collected), collected)
        except DatabaseUnavailable as error:
            return LinkRun(_failed(error, Cause.DATABASE_UNAVAILABLE))
        except OltUnreachable as error:
            return LinkRun(_failed(error, Cause.UNREACHABLE))
        except LeaseLost as error:
            return LinkRun(_lease_lost(error))
        except FachoError as error:
            return LinkRun(_failed(error))
        except Exception as error:
            # A bug or a database error must not stop the rest of the chain.
            logger.exception("%s: %s ended in an error", olt.name, node.name)
            return LinkRun(_failed(error))

    async def _identify(self, node: Node, olt: Olt, lease: Lease) -> LinkRun:
        """Detect the brand of an OLT. An unknown brand is a failure, because the admin must act."""
        identity = await identify(
            olt.agent,
            snmp=LeasedSnmp(self._snmp, lease, self._leases.is_valid),
            clock=self._clock,
            deadline=self._clock.now() + node.timeout,
            candidates=self._candidates,
            brands=self._brands(),
        )
        brand = identity.brand.id if identity.brand else ""
        outcome = Outcome(Status.SUCCESS if brand else Status.FAILED, error=identity.remark, traffic=identity.traffic)
        seen = {"sysDescr": identity.sys_descr, "sysObjectID": identity.sys_object_id, "sysName": identity.sys_name}
        seen = {name: value for name, value in seen.items() if value}
        return LinkRun(outcome, identification=Identification(brand, seen))

    async def _finish(
        self, claim: Claim, node: Node, execution_id: int, run: LinkRun, lease: Lease, began: Began
    ) -> Outcome:
        """Store the result of a link. If the readings cannot be stored, the link has failed."""

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
            if run.collected is not None:
                seconds, count = finished.outcome.seconds or 0.0, finished.outcome.readings
                if count or run.collected.scalars:
                    self._bus.publish("readings", {"olt_id": node.olt_id, "node_id": node.id, "count": count})
                logger.info("%s: %s took %.1f s, %d ONUs", node.olt_name, node.name, seconds, count)
        outcome = finished.outcome
        self._publish(claim, node, execution_id, Status.PENDING if outcome.retry_at else outcome.status)
        return outcome

    async def _finish_rest(self, claim: Claim, lease: Lease | None, outcomes: list[Outcome], outcome: Outcome) -> None:
        """End the remaining links with the same outcome."""
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


def _outcome(collected: Collected) -> Outcome:
    """Return the outcome of a link with readings. Some rows: PARTIAL; none, with errors: FAILED."""
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
