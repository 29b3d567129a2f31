"""Runs one composite: from the lease of its OLT to the last reading of its last link."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from facho.engine.brand import Brand, Decoder
from facho.engine.collect import collect
from facho.engine.errors import DatabaseAway, FachoError, LeaseLost, OltBusy, OltGone, OltUnreachable
from facho.engine.events import Event, tell
from facho.engine.leased import LeasedSnmp
from facho.engine.model import (
    Cause,
    Claim,
    Collected,
    Completeness,
    JobKind,
    KnownOnu,
    Lease,
    Node,
    Olt,
    Outcome,
    Status,
    Traffic,
)
from facho.engine.ports import Clock, EventBus, Ledger, NodeSource, OltLeases, PollerWatch, ReadingSink, Snmp
from facho.engine.probe import Candidates, Identity, identify
from facho.engine.retry import retry_at

logger = logging.getLogger(__name__)

# How often a database that is away is asked again, in seconds.
AGAIN_EVERY = 2.0
# How long a run that a person asked for waits for it, since it has no slot that would end it.
LONGEST_WAIT = timedelta(minutes=5)

T = TypeVar("T")


class Runner:
    """Holds one lease from the master's start to the last link's end, and closes every execution it was given.

    A master that fails does not stop its chain, unless the OLT is unreachable:
    then the other links would only add silence to silence.

    While the database is away nothing begins: a link waits for it, as long as
    its slot lasts and the OLT is ours. With `patience` that is the first link's
    limit: then the composite is left as it was found, for whoever gave it out.
    """

    def __init__(
        self,
        *,
        name: str,
        nodes: NodeSource,
        ledger: Ledger,
        sink: ReadingSink,
        snmp: Snmp,
        leases: OltLeases,
        bus: EventBus,
        clock: Clock,
        brand: Callable[[str], Brand],
        brands: Callable[[], Iterable[Brand]],
        candidates: Candidates,
        raw_decoders: Mapping[str, Decoder],
        is_away: Callable[[BaseException], bool] = lambda error: False,
        patience: timedelta | None = None,
    ) -> None:
        self._name = name
        self._nodes = nodes
        self._ledger = ledger
        self._sink = sink
        self._snmp = snmp
        self._leases = leases
        self._bus = bus
        self._clock = clock
        self._brand = brand
        self._brands = brands
        self._candidates = candidates
        self._raw_decoders = raw_decoders
        self._is_away = is_away
        self._patience = patience

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]:
        """Run each link and return how they ended."""
        outcomes: list[Outcome] = []
        lease = None
        try:
            if claim.next_check is not None and claim.next_check <= self._clock.now():
                # It was long on its way here, and by now it would only take the place of the next one.
                await self._close_rest(claim, lease, outcomes, Outcome(Status.SKIPPED, Cause.NO_FREE_POLLER))
                return outcomes
            olt = await self._patiently(claim, lambda: self._nodes.olt(claim.composite.olt_id))
            async with AsyncExitStack() as stack:
                holding = partial(self._leases.hold, olt.id, f"{self._name}/{claim.poller_id}")
                lease = await self._patiently(claim, lambda: stack.enter_async_context(holding()))
                await self._run_links(claim, olt, lease, watch, outcomes)
        except OltGone as error:
            await self._close_rest(claim, lease, outcomes, _not_run(error))
        except OltBusy as error:
            # Where composites are given out, who has the OLT may be running this very one: it came twice.
            if self._patience is None or lease is not None:
                await self._close_rest(claim, lease, outcomes, _not_run(error))
        except asyncio.CancelledError:
            await self._close_rest(claim, lease, outcomes, Outcome(Status.INTERRUPTED, Cause.STOPPED))
            raise
        except DatabaseAway as error:
            await self._leave(claim, lease, outcomes, error)
        except Exception as error:
            # A secret that cannot be read, or a database that was away for a moment: nothing may stay open for it.
            logger.exception("%s: %s could not be run", claim.composite.master.olt_name, claim.composite.master.name)
            await self._close_rest(claim, lease, outcomes, _failed(error))
        return outcomes

    async def _run_links(
        self, claim: Claim, olt: Olt, lease: Lease, watch: PollerWatch, outcomes: list[Outcome]
    ) -> None:
        links = zip(claim.composite.links, claim.execution_ids, strict=True)
        for position, (node, execution_id) in enumerate(links, 1):
            watch.link_started(position, node)
            if not await self._start(claim, execution_id, lease, is_first=not outcomes):
                # Somebody ended it meanwhile: it is no longer ours to run.
                outcomes.append(Outcome(Status.INTERRUPTED, Cause.LEASE_LOST))
                continue
            self._tell(claim, node, execution_id, Status.RUNNING)
            outcome, olt = await self._run_link(claim, node, execution_id, olt, lease)
            again = retry_at(node, outcome, claim.attempt, claim.next_check, self._clock.now())
            outcome = replace(outcome, retry_at=again)
            await self._close(claim, [(node, execution_id)], outcome, lease)
            # Not before it is written: a link that is stopped in between must be closed with the rest.
            outcomes.append(outcome)
            _tell_failure(olt, node, outcome)
            if outcome.cause in (Cause.UNREACHABLE, Cause.LEASE_LOST):
                # Where the link is tried again, so are those behind it.
                rest = Outcome(Status.SKIPPED, outcome.cause, retry_at=again)
                await self._close_rest(claim, lease, outcomes, rest)
                return

    async def _start(self, claim: Claim, execution_id: int, lease: Lease, *, is_first: bool) -> bool:
        """Begin a link as soon as the database is there; False if it is no longer ours to run."""

        def start() -> Awaitable[bool]:
            now = self._clock.now()
            return self._ledger.start(execution_id, lease=lease, now=now, poller_id=claim.poller_id)

        return await self._patiently(claim, start, lease, is_first=is_first)

    async def _patiently(
        self, claim: Claim, ask: Callable[[], Awaitable[T]], lease: Lease | None = None, *, is_first: bool = True
    ) -> T:
        """Ask the database until it answers; `DatabaseAway` when it is too late for that."""
        since: datetime | None = None
        while True:
            try:
                return await ask()
            except Exception as error:
                # When the line broke we may have got what we asked for: then it is we who hold the OLT, for a while.
                if not self._is_away(error) and (since is None or not isinstance(error, OltBusy)):
                    raise
                if since is None:
                    since = self._clock.now()
                    logger.warning("%s waits for the database: %s", _called(claim), error)
                if self._is_too_late(claim, since, lease, is_first=is_first):
                    raise DatabaseAway("the database was away until it was too late to begin") from error
            await self._clock.sleep(AGAIN_EVERY)

    def _is_too_late(self, claim: Claim, since: datetime, lease: Lease | None, *, is_first: bool) -> bool:
        until = claim.next_check or since + LONGEST_WAIT
        if is_first and self._patience is not None:
            until = min(until, since + self._patience)
        return until <= self._clock.now() or (lease is not None and not self._leases.is_valid(lease))

    async def _leave(self, claim: Claim, lease: Lease | None, outcomes: list[Outcome], error: DatabaseAway) -> None:
        """Give back what has not begun to who gave it out, and skip it where that is nobody but us."""
        logger.warning("%s: %s", _called(claim), error)
        if self._patience is None or outcomes:
            skipped = Outcome(Status.SKIPPED, Cause.DATABASE_AWAY, str(error), type(error).__name__)
            await self._close_rest(claim, lease, outcomes, skipped)

    async def _run_link(
        self, claim: Claim, node: Node, execution_id: int, olt: Olt, lease: Lease
    ) -> tuple[Outcome, Olt]:
        """Collect, keep, and say how it went; the OLT comes back with what this link learned of its agent.

        Whatever goes wrong here is this link's alone.
        """
        node = _in_its_slot(node, claim, self._clock.now())
        try:
            if node.kind is JobKind.IDENTIFY:
                return await self._identify(node, execution_id, olt, lease), olt
            known = await self._patiently(claim, lambda: self._sink.known(olt.id), lease, is_first=False)
            return await self._collect(node, execution_id, olt, lease, known)
        except DatabaseAway as error:
            return _failed(error, Cause.DATABASE_AWAY), olt
        except OltUnreachable as error:
            return _failed(error, Cause.UNREACHABLE), olt
        except LeaseLost as error:
            return Outcome(Status.INTERRUPTED, Cause.LEASE_LOST, str(error), type(error).__name__), olt
        except FachoError as error:
            return _failed(error), olt
        except Exception as error:
            # A defect of ours, or a database that is away, must not take the rest of the chain with it.
            logger.exception("%s: %s ended in an error", olt.name, node.name)
            return _failed(error), olt

    async def _collect(
        self, node: Node, execution_id: int, olt: Olt, lease: Lease, known: Sequence[KnownOnu]
    ) -> tuple[Outcome, Olt]:
        started = self._clock.now()
        collected = await collect(
            node,
            olt,
            self._brand(olt.brand),
            snmp=self._leased(lease),
            clock=self._clock,
            deadline=started + node.timeout,
            known=known,
            raw_decoders=self._raw_decoders,
        )
        await self._sink.write(node, execution_id, collected, lease=lease, now=self._clock.now())
        if collected.readings or collected.scalars:
            self._bus.publish("readings", {"olt_id": olt.id, "node_id": node.id, "count": len(collected.readings)})
        seconds = (self._clock.now() - started).total_seconds()
        logger.info("%s: %s took %.1f s, %d ONUs", olt.name, node.name, seconds, len(collected.readings))
        # A link that had nothing to ask has learned nothing, and unlearned nothing either.
        return _outcome(collected), replace(olt, learned=collected.learned or olt.learned)

    async def _identify(self, node: Node, execution_id: int, olt: Olt, lease: Lease) -> Outcome:
        """Find out whose make an OLT is. Nobody's that is known is a failure, for a person has to do something."""
        identity = await identify(
            olt.agent,
            snmp=self._leased(lease),
            clock=self._clock,
            deadline=self._clock.now() + node.timeout,
            candidates=self._candidates,
            brands=self._brands(),
        )
        brand = identity.brand.id if identity.brand else ""
        await self._sink.identified(node, execution_id, brand, _seen(identity), lease=lease)
        status = Status.SUCCESS if brand else Status.FAILED
        return Outcome(status, error=identity.remark, traffic=identity.traffic)

    def _leased(self, lease: Lease) -> Snmp:
        return LeasedSnmp(self._snmp, lambda: self._leases.is_valid(lease))

    async def _close_rest(self, claim: Claim, lease: Lease | None, outcomes: list[Outcome], outcome: Outcome) -> None:
        """End the links that have not ended yet, all in the same way."""
        links = list(zip(claim.composite.links, claim.execution_ids, strict=True))[len(outcomes) :]
        if links:
            await self._close(claim, links, outcome, lease)
            outcomes += [outcome] * len(links)

    async def _close(
        self, claim: Claim, links: Sequence[tuple[Node, int]], outcome: Outcome, lease: Lease | None
    ) -> None:
        """End links, or put them off until they are tried again."""
        ids, now = [execution_id for _, execution_id in links], self._clock.now()
        if outcome.retry_at is not None and lease is not None:
            await self._ledger.put_off(ids, outcome, retry_at=outcome.retry_at, lease=lease, now=now)
        else:
            await self._ledger.close(ids, outcome, lease=lease, now=now)
        for node, execution_id in links:
            self._tell(claim, node, execution_id, Status.PENDING if outcome.retry_at else outcome.status)

    def _tell(self, claim: Claim, node: Node, execution_id: int, status: Status) -> None:
        self._bus.publish(
            "execution",
            {"id": execution_id, "olt_id": claim.composite.olt_id, "node_id": node.id, "status": status.value},
        )


def _tell_failure(olt: Olt, node: Node, outcome: Outcome) -> None:
    if outcome.status is not Status.FAILED:
        return
    known: dict[str, Any] = {"olt": olt.name, "task": node.name, "error": outcome.error}
    if outcome.retry_at is not None:
        tell(logger, Event.RETRY_PLANNED, olt_id=olt.id, at=outcome.retry_at.isoformat(timespec="seconds"), **known)
    elif outcome.cause is Cause.UNREACHABLE:
        tell(logger, Event.OLT_UNREACHABLE, olt_id=olt.id, **known)
    else:
        tell(logger, Event.RUN_FAILED, olt_id=olt.id, **known)


def _called(claim: Claim) -> str:
    return f"{claim.composite.master.olt_name}: {claim.composite.master.name}"


def _in_its_slot(node: Node, claim: Claim, now: datetime) -> Node:
    """Return a node that is tried again with no more time than its slot has left."""
    if claim.attempt == 1 or claim.next_check is None:
        return node
    return replace(node, timeout=min(node.timeout, claim.next_check - now))


def _seen(identity: Identity) -> dict[str, Any]:
    """Return what an OLT said of itself, by the names that the system group has for it."""
    seen = {"sysDescr": identity.sys_descr, "sysObjectID": identity.sys_object_id, "sysName": identity.sys_name}
    return {name: value for name, value in seen.items() if value}


def _outcome(collected: Collected) -> Outcome:
    """Return how a link ended by what it brought home. Some rows are PARTIAL; none, with errors, is a failure."""
    status = Status.SUCCESS
    if collected.completeness is Completeness.PARTIAL:
        status = Status.PARTIAL if collected.readings or collected.scalars else Status.FAILED
    return Outcome(
        status,
        error="\n".join(collected.errors),
        readings=len(collected.readings),
        completeness=collected.completeness,
        traffic=collected.traffic,
        coverage=collected.coverage,
        failed_onus=collected.failed_onus,
    )


def _failed(error: Exception, cause: Cause | None = None) -> Outcome:
    traffic = error.traffic if isinstance(error, FachoError) else Traffic()
    is_temporary = not isinstance(error, FachoError) or error.is_temporary
    return Outcome(Status.FAILED, cause, str(error), type(error).__name__, traffic=traffic, is_temporary=is_temporary)


def _not_run(error: FachoError) -> Outcome:
    cause = Cause.OLT_BUSY if isinstance(error, OltBusy) else Cause.DISABLED
    return Outcome(Status.SKIPPED, cause, str(error), type(error).__name__)
