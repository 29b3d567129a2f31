"""Who ran what, when, and how it ended: each step one transaction of the `store-write` thread."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Q
from django.db.models.functions import Coalesce

from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import OPEN_STATUSES, Execution, ExecutionAttempt
from facho.engine.breaker import OPENS_AFTER
from facho.engine.errors import OltBusy
from facho.engine.model import Cause, Claim, CompositeNode, Lease, Outcome, Recovery, Skipped, Status, Trigger
from facho.engine.schedule import missed_slots, next_check
from facho.store import breakers, endings, leases, tally
from facho.store.breakers import Policy
from facho.store.recovery import recover
from facho.store.threads import DbThread

# Nodes that one statement puts on the grid: a whole fleet, when an engine starts for the first time.
AT_ONCE = 250

T = TypeVar("T")


class DbLedger:
    """Claims by conditional update: whoever changes the row first has it, and everybody can tell who that was.

    Where several schedulers take turns, each write of one passes its `fence` in
    the same transaction: it raises `LeaseLost` for one whose turn is over.
    """

    def __init__(
        self,
        thread: DbThread,
        *,
        breaker_after: int = OPENS_AFTER,
        auto_recover: bool = True,
        fence: Callable[[], None] | None = None,
    ) -> None:
        self._thread = thread
        self._policy = Policy(breaker_after, auto_recover)
        self._fence = fence

    async def _write(self, work: Callable[[], T]) -> T:
        return await self._thread.run(lambda: self._fenced(work))

    def _fenced(self, work: Callable[[], T]) -> T:
        if self._fence is None:
            return work()
        with transaction.atomic():
            self._fence()
            return work()

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        if checks or skipped:
            await self._write(lambda: _reschedule(checks, skipped, now))

    async def claim(
        self, composite: CompositeNode, *, poller_id: int, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        taken = await self._write(lambda: _claim(composite, self._runs_it(poller_id), now, waits))
        return Claim(composite, taken[0], poller_id, taken[1]) if taken is not None else None

    async def reclaim(self, claim: Claim, *, poller_id: int, now: datetime) -> bool:
        return await self._write(lambda: _reclaim(claim, self._runs_it(poller_id)))

    def _runs_it(self, poller_id: int) -> int | None:
        """Return who will run what a seat claims. Where workers do, nobody knows until one begins it."""
        return poller_id if self._fence is None else None

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        return await self._thread.run(lambda: _start(execution_id, lease, now, poller_id))

    async def put_off(
        self, execution_ids: Sequence[int], outcome: Outcome, *, retry_at: datetime, lease: Lease, now: datetime
    ) -> None:
        await self._thread.run(lambda: _put_off(execution_ids, outcome, retry_at, lease, now))

    async def close(
        self, execution_ids: Sequence[int], outcome: Outcome, *, lease: Lease | None, now: datetime
    ) -> None:
        await self._write(lambda: _close(execution_ids, outcome, lease, self._policy, now))

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        return await self._write(lambda: _abort(olt_ids, node_ids, now))

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        return await self._write(lambda: breakers.answered(olt_id, self._policy, now))

    async def probed(self, olt_id: int, *, now: datetime) -> None:
        await self._write(lambda: breakers.probed(olt_id, now))

    async def forgive(self, olt_ids: Collection[int], *, now: datetime) -> None:
        await self._write(lambda: breakers.forgive(olt_ids))

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        return await self._thread.run(lambda: _progress(execution_ids))

    async def recover(self, now: datetime) -> Recovery:
        return await self._write(lambda: recover(now, is_shared=self._fence is not None))


def _reschedule(checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], now: datetime) -> None:
    with transaction.atomic():
        _skip(skipped)
        _set_checks(checks)
        olt_ids = set(WorkflowNode.objects.filter(pk__in=checks).values_list("olt_id", flat=True))
        interrupted = tally.owe(olt_ids | {item.node.olt_id for item in skipped}, now)
    tally.tell_interrupted(interrupted)


def _set_checks(checks: Mapping[int, datetime | None]) -> None:
    rows = [WorkflowNode(pk=node_id, next_run_at=check) for node_id, check in checks.items()]
    WorkflowNode.objects.filter(master__isnull=True).bulk_update(rows, ["next_run_at"], batch_size=AT_ONCE)


def _skip(skipped: Sequence[Skipped]) -> None:
    """Account for slots that will not run. A deleted node has none any more; a slot that has a row has been."""
    lost = [item for item in skipped if item.slots > 0]
    if not lost:
        return
    ids = {link.id for item in lost for link in (item.node, *item.chain)}
    present = set(WorkflowNode.objects.filter(pk__in=ids).values_list("pk", flat=True))
    taken = set(
        Execution.objects.filter(
            node_id__in={item.node.id for item in lost}, slot__in={item.slot for item in lost}
        ).values_list("node_id", "slot")
    )
    new = [item for item in lost if item.node.id in present and (item.node.id, item.slot) not in taken]
    Execution.objects.bulk_create([_skipped_row(item) for item in new])
    tally.count([each for each in tally.skipped_slots(new) if each.node_id in present])


def _skipped_row(item: Skipped) -> Execution:
    return Execution(
        olt_id=item.node.olt_id,
        node_id=item.node.id,
        node_name=item.node.name,
        slot=item.slot,
        slots=item.slots,
        status=Status.SKIPPED,
        cause=item.cause,
    )


def _claim(
    composite: CompositeNode, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
) -> tuple[tuple[int, ...], datetime | None] | None:
    """Take a slot, and return its executions and the slot that comes next; None if it is not there to be taken."""
    try:
        with transaction.atomic():
            if not _take(composite, now):
                return None
            check = None
            if composite.trigger is Trigger.SCHEDULE:
                check = next_check(composite.slot, composite.master.interval, now)
                _skip(_slept_through(composite, now, waits))
            ids = _open(composite, poller_id, now, waits)
    except IntegrityError:
        # The slot has its execution already, or the node was deleted while it waited.
        return None
    return ids, check


def _take(composite: CompositeNode, now: datetime) -> bool:
    """Take the slot, or the wish of a person, if it is still there. A run that begins now serves both."""
    master = composite.master
    rows = WorkflowNode.objects.filter(pk=master.id, olt__enabled=True)
    if composite.trigger is Trigger.MANUAL:
        return bool(rows.filter(run_requested_at=composite.slot).update(run_requested_at=None))
    check = next_check(composite.slot, master.interval, now)
    return bool(rows.filter(next_run_at=composite.slot).update(next_run_at=check, run_requested_at=None))


def _slept_through(composite: CompositeNode, now: datetime, waits: Mapping[Cause, float]) -> list[Skipped]:
    """Return the slots that passed while the composite waited, put down to what it waited for longest."""
    master = composite.master
    cause = max(waits, key=lambda key: waits[key], default=Cause.SCHEDULER_LATE)
    slots = missed_slots(composite.slot, master.interval, now)
    return [Skipped(master, composite.slot + master.interval, slots, cause, composite.chain)]


def _open(
    composite: CompositeNode, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
) -> tuple[int, ...]:
    """Write one pending execution for each link; the first one is the master's."""
    ids: list[int] = []
    for node in composite.links:
        row = Execution.objects.create(
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
        ids.append(row.pk)
    return tuple(ids)


@transaction.atomic
def _reclaim(claim: Claim, poller_id: int | None) -> bool:
    waiting = Execution.objects.filter(
        pk__in=claim.execution_ids, status=Status.PENDING, retry_at__isnull=False
    ).select_for_update()
    if len(waiting.values_list("pk")) < len(claim.execution_ids):
        return False
    Execution.objects.filter(pk__in=claim.execution_ids).update(poller_id=poller_id, retry_at=None)
    return True


def _start(execution_id: int, lease: Lease, now: datetime, poller_id: int | None) -> bool:
    try:
        with transaction.atomic():
            if leases.is_superseded(lease):
                # Said long ago, and it comes only now. Whoever holds the OLT may begin it, or is given it again.
                return False
            # The database missed the close of an earlier holder: its row must not block the OLT for ever.
            left = Execution.objects.filter(olt_id=lease.olt_id, status=Status.RUNNING, lease_token__lt=lease.token)
            endings.interrupt(left, Cause.LEASE_LOST, now)
            # One that waits for its next attempt is taken up by the scheduler before it is begun.
            due = Execution.objects.filter(pk=execution_id, status=Status.PENDING, retry_at__isnull=True)
            begun = due.update(
                status=Status.RUNNING,
                # The first start is what a slot had to wait for; later ones are attempts.
                started_at=Coalesce(F("started_at"), now),
                lease_token=lease.token,
                **({} if poller_id is None else {"poller_id": poller_id}),
            )
            if begun:
                WorkflowNode.objects.filter(executions=execution_id).update(last_run_at=now)
                _begin_attempt(execution_id, now)
                return True
            # A connection that breaks behind the commit leaves whoever has begun it without the answer.
            ours = Execution.objects.filter(pk=execution_id, status=Status.RUNNING, lease_token=lease.token)
            return ours.exists()
    except IntegrityError as error:
        raise OltBusy(f"OLT {lease.olt_id} has another execution running") from error


def _begin_attempt(execution_id: int, now: datetime) -> None:
    made = ExecutionAttempt.objects.filter(execution_id=execution_id).aggregate(last=Max("number"))["last"] or 0
    ExecutionAttempt.objects.create(execution_id=execution_id, number=made + 1, status=Status.RUNNING, started_at=now)


@transaction.atomic
def _put_off(execution_ids: Sequence[int], outcome: Outcome, retry_at: datetime, lease: Lease, now: datetime) -> None:
    endings.put_off(execution_ids, outcome, retry_at, lease, now)


def _close(execution_ids: Sequence[int], outcome: Outcome, lease: Lease | None, policy: Policy, now: datetime) -> None:
    with transaction.atomic():
        turns = endings.close(execution_ids, outcome, lease, policy, now)
    for turn in turns:
        turn.tell()


def _abort(olt_ids: Collection[int], node_ids: Collection[int], now: datetime) -> int:
    # History outlives its node: what waits for one that was deleted would wait for ever.
    nodes = Q(node__in=node_ids) | Q(master_execution__node__in=node_ids) | Q(node__isnull=True)
    unwanted = Q(olt__in=olt_ids)
    if node_ids:
        unwanted |= nodes & Q(status=Status.PENDING)
    with transaction.atomic():
        ended = endings.interrupt(Execution.objects.filter(unwanted, status__in=OPEN_STATUSES), Cause.DISABLED, now)
        concerned = {*olt_ids, *(row.breaker.olt_id for row in ended)}
        concerned |= set(WorkflowNode.objects.filter(pk__in=node_ids).values_list("olt_id", flat=True))
        concerned |= tally.orphaned(now)
        interrupted = tally.owe(concerned, now)
        leases.revoke(olt_ids)
    tally.tell_interrupted(interrupted)
    return len(ended)


def _progress(execution_ids: Collection[int]) -> dict[int, Outcome]:
    rows = Execution.objects.filter(pk__in=execution_ids)
    columns = ("pk", "status", "cause", "error", "error_class", "retry_at")
    return {
        id_: Outcome(Status(status), Cause(cause) if cause else None, error, error_class, retry_at=retry_at)
        for id_, status, cause, error, error_class, retry_at in rows.values_list(*columns)
    }
