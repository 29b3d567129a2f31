"""Slots of the grid as rows: claims, skipped slots, recovery. Each step is one transaction."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Q

from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import OPEN_STATUSES, Execution
from facho.engine.model import Cause, Claim, CompositeNode, Outcome, Recovery, Skipped, Status, Trigger
from facho.engine.observer import Observer
from facho.engine.scheduling.grid import missed_slots, next_check
from facho.store import breakers, leases, quotas, runs, sql
from facho.store.breakers import USUAL_POLICY, BreakerPolicy
from facho.store.database import DbThread
from facho.store.group_commit import GroupCommit
from facho.store.recovery import recover
from facho.store.runs import OpenExecution

# Nodes per statement when a whole fleet is put on the grid.
AT_ONCE = 250

T = TypeVar("T")


async def nothing_to_settle() -> None:
    """Do nothing: this process has no spool."""


class Fence:
    """Allows every write: this process is the only scheduler and runs its own claims."""

    # Whether other processes schedule too, and workers run the claims.
    is_shared = False

    def passed(self) -> AbstractContextManager[None]:
        """Write inside a `with`; `LeaseLost` if another process is the scheduler now."""
        return nullcontext()


class TurnFence(Fence):
    """Allows writes while this process is the active scheduler."""

    is_shared = True

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    @contextmanager
    def passed(self) -> Iterator[None]:
        with transaction.atomic():
            self._check()
            yield


class DbSlots:
    """Claims by conditional update: the first process that changes the row has the slot.

    Each write checks the `fence` in its own transaction. `settle` is awaited before executions are claimed or
    recovered: spooled results of this process must be stored first, or they would count as lost.
    """

    def __init__(
        self,
        thread: DbThread,
        *,
        claims: DbThread | GroupCommit | None = None,
        policy: BreakerPolicy = USUAL_POLICY,
        fence: Fence | None = None,
        settle: Callable[[], Awaitable[None]] = nothing_to_settle,
        observer: Observer | None = None,
    ) -> None:
        self._thread = thread
        # Claims of several composites may share a commit.
        self._claims = claims or thread
        self._policy = policy
        self._fence = fence or Fence()
        self._settle = settle
        self._observer = observer or Observer()

    async def _write(self, work: Callable[[], T], thread: DbThread | GroupCommit | None = None) -> T:
        def fenced() -> T:
            with self._fence.passed():
                return work()

        return await (thread or self._thread).run(fenced)

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        if checks or skipped:
            self._count(await self._write(lambda: _reschedule(checks, skipped, now)))

    def _count(self, skipped: Iterable[Skipped]) -> None:
        for item in skipped:
            self._observer.slots_ended(Status.SKIPPED, item.cause, item.slots * (1 + len(item.chain)))

    async def taken(self, node_ids: Collection[int], *, after: datetime) -> Mapping[int, Collection[datetime]]:
        def read() -> dict[int, set[datetime]]:
            slots: defaultdict[int, set[datetime]] = defaultdict(set)
            # By slot only: there are none unless the clock was set back, and a fleet has too many ids for a query.
            for node_id, slot in Execution.objects.filter(slot__gt=after).order_by().values_list("node_id", "slot"):
                if node_id in node_ids:
                    slots[node_id].add(slot)
            return slots

        return await self._thread.run(read)

    async def move(self, execution_ids: Collection[int], by: timedelta) -> None:
        await self._write(lambda: runs.move_waiting(execution_ids, by))

    async def claim(
        self, composite: CompositeNode, *, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        await self._settle()
        claimed = await self._write(lambda: _claim(composite, self._runs_it(poller_id), now, waits), self._claims)
        if claimed is None:
            return None
        execution_ids, check, skipped = claimed
        self._count(skipped)
        return Claim(composite, execution_ids, poller_id, check)

    async def reclaim(self, claim: Claim, *, poller_id: int | None, now: datetime) -> bool:
        await self._settle()
        ids = claim.execution_ids

        @transaction.atomic
        def reclaim() -> bool:
            waiting = Execution.objects.filter(pk__in=ids, status=Status.PENDING, retry_at__isnull=False)
            if len(waiting.select_for_update().values_list("pk")) < len(ids):
                return False
            Execution.objects.filter(pk__in=ids).update(poller_id=self._runs_it(poller_id), retry_at=None)
            return True

        return await self._write(reclaim)

    def _runs_it(self, poller_id: int | None) -> int | None:
        """Return the poller of a claim. With workers it is unknown until one has started it."""
        return None if self._fence.is_shared else poller_id

    async def close(self, execution_ids: Sequence[int], outcome: Outcome, *, now: datetime) -> None:
        ended = await self._write(lambda: _close(execution_ids, outcome, self._policy, now))
        runs.count_ended(self._observer, ended, outcome)

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        ended = await self._write(lambda: _abort(olt_ids, node_ids, now))
        runs.count_ended(self._observer, ended, Outcome(Status.INTERRUPTED, Cause.DISABLED))
        return len(ended)

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        return await self._write(lambda: breakers.answered(olt_id, self._policy, now))

    async def probed(self, olt_id: int, *, now: datetime) -> None:
        await self._write(lambda: breakers.probed(olt_id, now))

    async def reset_breakers(self, olt_ids: Collection[int], *, now: datetime) -> None:
        await self._write(lambda: breakers.reset(olt_ids))

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        def read() -> dict[int, Outcome]:
            ids, values = sql.among(execution_ids)
            question = f"SELECT id, status, cause, error, error_class, retry_at FROM snmp_executions WHERE id {ids}"  # noqa: S608 - no values
            return {
                id_: Outcome(
                    Status(status), Cause(cause) if cause else None, error, kind, retry_at=sql.moment(retry_at)
                )
                for id_, status, cause, error, kind, retry_at in sql.fetch(question, *values)
            }

        return await self._thread.run(read)

    async def recover(self, now: datetime) -> Recovery:
        await self._settle()
        recovery = await self._write(lambda: recover(now, is_shared=self._fence.is_shared))
        self._observer.slots_ended(Status.INTERRUPTED, Cause.ENGINE_DOWN, recovery.interrupted)
        return recovery


def _reschedule(checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], now: datetime) -> Sequence[Skipped]:
    with transaction.atomic():
        recorded = _skip(skipped)
        rows = [WorkflowNode(pk=node_id, next_run_at=check) for node_id, check in checks.items()]
        WorkflowNode.objects.filter(master__isnull=True).bulk_update(rows, ["next_run_at"], batch_size=AT_ONCE)
        olt_ids = set(WorkflowNode.objects.filter(pk__in=checks).values_list("olt_id", flat=True))
        interrupted = quotas.owe(olt_ids | {item.node.olt_id for item in skipped}, now)
    quotas.tell_interrupted(interrupted)
    return recorded


def _skip(skipped: Sequence[Skipped]) -> list[Skipped]:
    """Record skipped slots, and return the new ones.

    A deleted node has none, and a slot with a row is already recorded.
    """
    lost = [item for item in skipped if item.slots > 0]
    if not lost:
        return []
    ids = {link.id for item in lost for link in (item.node, *item.chain)}
    present = set(WorkflowNode.objects.filter(pk__in=ids).values_list("pk", flat=True))
    taken = set(
        Execution.objects.filter(
            node_id__in={item.node.id for item in lost}, slot__in={item.slot for item in lost}
        ).values_list("node_id", "slot")
    )
    new = [item for item in lost if item.node.id in present and (item.node.id, item.slot) not in taken]
    Execution.objects.bulk_create(
        Execution(
            olt_id=item.node.olt_id,
            node_id=item.node.id,
            node_name=item.node.name,
            slot=item.slot,
            slots=item.slots,
            status=Status.SKIPPED,
            cause=item.cause,
        )
        for item in new
    )
    quotas.count([each for each in quotas.skipped_slots(new) if each.node_id in present])
    return new


def _claim(
    composite: CompositeNode, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
) -> tuple[tuple[int, ...], datetime | None, Sequence[Skipped]] | None:
    """Claim a slot, and return its executions, the next slot, and the slots that passed; None if it is not free."""
    master, slot = composite.master, composite.slot
    try:
        with transaction.atomic(savepoint=False):
            if not _take(composite, now):
                return None
            check, skipped = None, []
            if composite.trigger is Trigger.SCHEDULE:
                check = next_check(slot, master.interval, now)
                # The main cause of the wait.
                cause = max(waits, key=lambda key: waits[key], default=Cause.SCHEDULER_LATE)
                missed = missed_slots(slot, master.interval, now)
                skipped = _skip([Skipped(master, slot + master.interval, missed, cause, composite.chain)])
            return _open(composite, poller_id, now, waits), check, skipped
    except IntegrityError:
        # The slot already has an execution, or the node was deleted.
        return None


def _take(composite: CompositeNode, now: datetime) -> bool:
    """Take the slot or the manual request, if it is still there. One run serves both."""
    master = composite.master
    if composite.trigger is Trigger.MANUAL:
        rows = WorkflowNode.objects.filter(pk=master.id, olt__enabled=True)
        return bool(rows.filter(run_requested_at=composite.slot).update(run_requested_at=None))
    taken = sql.execute(
        "UPDATE snmp_job_hosts SET next_run_at = %s, run_requested_at = NULL WHERE id = %s AND next_run_at = %s"
        " AND EXISTS (SELECT 1 FROM olts o WHERE o.id = snmp_job_hosts.olt_id AND o.enabled)",
        next_check(composite.slot, master.interval, now),
        master.id,
        composite.slot,
    )
    return bool(taken)


def _open(
    composite: CompositeNode, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
) -> tuple[int, ...]:
    """Create one pending execution per link, the master's first."""
    ids: list[int] = []
    for node in composite.links:
        execution_id = sql.insert(
            Execution,
            olt_id=node.olt_id,
            node_id=node.id,
            node_name=node.name,
            master_execution_id=ids[0] if ids else None,
            poller_id=poller_id,
            trigger=composite.trigger,
            slot=composite.slot,
            waits={} if ids else {cause.value: round(seconds, 3) for cause, seconds in waits.items()},
            claimed_at=now,
        )
        ids.append(execution_id)
    return tuple(ids)


def _close(execution_ids: Sequence[int], outcome: Outcome, policy: BreakerPolicy, now: datetime) -> list[OpenExecution]:
    with transaction.atomic():
        rows = runs.ours(execution_ids, None)
        turns = runs.close(rows, outcome, policy, now)
    for turn in turns:
        turn.log()
    return rows


def _abort(olt_ids: Collection[int], node_ids: Collection[int], now: datetime) -> list[OpenExecution]:
    # Executions outlive their node: pending ones of a deleted node would be pending forever.
    nodes = Q(node__in=node_ids) | Q(master_execution__node__in=node_ids) | Q(node__isnull=True)
    unwanted = Q(olt__in=olt_ids)
    if node_ids:
        unwanted |= nodes & Q(status=Status.PENDING)
    with transaction.atomic():
        running = Execution.objects.filter(olt__in=olt_ids, status=Status.RUNNING)
        held = running.exclude(device=None).exclude(lease_token=None).values_list("device", "lease_token")
        leases.revoke((device or "", token or 0) for device, token in held)
        ended = runs.interrupt(Execution.objects.filter(unwanted, status__in=OPEN_STATUSES), Cause.DISABLED, now)
        concerned = {*olt_ids, *(row.breaker.olt_id for row in ended)}
        concerned |= set(WorkflowNode.objects.filter(pk__in=node_ids).values_list("olt_id", flat=True))
        concerned |= quotas.orphaned(now)
        interrupted = quotas.owe(concerned, now)
    quotas.tell_interrupted(interrupted)
    return ended
