"""Who ran what, when, and how it ended: each step one transaction of the `store-write` thread."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.engine.errors import OltBusy
from facho.engine.model import Cause, Claim, CompositeNode, Lease, Outcome, Skipped, Status, Trigger
from facho.engine.schedule import missed_slots, next_check
from facho.store import coverage
from facho.store.threads import DbThread

OPEN = (Status.PENDING, Status.RUNNING)

# An OLT whose answers take this long is shown as slow.
SLOW_RTT = 2.0


class DbLedger:
    """Claims by conditional update: whoever changes the row first has it, and everybody can tell who that was."""

    def __init__(self, thread: DbThread) -> None:
        self._thread = thread

    async def schedule(self, checks: Mapping[int, datetime | None]) -> None:
        if checks:
            await self._thread.run(lambda: _schedule(checks))

    async def skip(self, skipped: Sequence[Skipped]) -> None:
        if skipped:
            await self._thread.run(lambda: _skip(skipped))

    async def claim(
        self, composite: CompositeNode, *, poller_id: int, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        return await self._thread.run(lambda: _claim(composite, poller_id, now, waits))

    async def start(self, execution_id: int, *, lease: Lease, now: datetime) -> bool:
        return await self._thread.run(lambda: _start(execution_id, lease, now))

    async def close(
        self, execution_ids: Sequence[int], outcome: Outcome, *, lease: Lease | None, now: datetime
    ) -> None:
        await self._thread.run(lambda: _close(execution_ids, outcome, lease, now))

    async def recover(self, now: datetime) -> int:
        return await self._thread.run(lambda: _recover(now))


@transaction.atomic
def _schedule(checks: Mapping[int, datetime | None]) -> None:
    for node_id, check in checks.items():
        WorkflowNode.objects.filter(pk=node_id, master__isnull=True).update(next_run_at=check)


def _skip(skipped: Sequence[Skipped]) -> None:
    rows = [
        Execution(
            olt_id=item.node.olt_id,
            node_id=item.node.id,
            node_name=item.node.name,
            slot=item.slot,
            slots=item.slots,
            status=Status.SKIPPED,
            cause=item.cause,
        )
        for item in skipped
        if item.slots > 0
    ]
    # A node that was deleted has no slots to account for any more; a slot that has a row is accounted for.
    present = set(WorkflowNode.objects.filter(pk__in={row.node_id for row in rows}).values_list("pk", flat=True))
    Execution.objects.bulk_create([row for row in rows if row.node_id in present], ignore_conflicts=True)


def _claim(composite: CompositeNode, poller_id: int, now: datetime, waits: Mapping[Cause, float]) -> Claim | None:
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
    return Claim(composite, ids, poller_id, check)


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
    return [
        Skipped(master, composite.slot + master.interval, missed_slots(composite.slot, master.interval, now), cause)
    ]


def _open(composite: CompositeNode, poller_id: int, now: datetime, waits: Mapping[Cause, float]) -> tuple[int, ...]:
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


def _start(execution_id: int, lease: Lease, now: datetime) -> bool:
    try:
        with transaction.atomic():
            # The database missed the close of an earlier holder: its row must not block the OLT for ever.
            left = Execution.objects.filter(olt_id=lease.olt_id, status=Status.RUNNING, lease_token__lt=lease.token)
            _interrupt(left, Cause.LEASE_LOST, now)
            begun = Execution.objects.filter(pk=execution_id, status=Status.PENDING).update(
                status=Status.RUNNING, started_at=now, lease_token=lease.token
            )
            if begun:
                WorkflowNode.objects.filter(executions=execution_id).update(last_run_at=now)
                ExecutionAttempt.objects.create(
                    execution_id=execution_id, number=1, status=Status.RUNNING, started_at=now
                )
    except IntegrityError as error:
        raise OltBusy(f"OLT {lease.olt_id} has another execution running") from error
    return bool(begun)


@transaction.atomic
def _close(execution_ids: Sequence[int], outcome: Outcome, lease: Lease | None, now: datetime) -> None:
    # An error may quote anything; what a column cannot hold must not keep an execution open.
    outcome = replace(outcome, error=outcome.error.replace("\0", ""), error_class=outcome.error_class[:60])
    ours = Q(lease_token__isnull=True)
    if lease is not None:
        ours |= Q(lease_token=lease.token)
    rows = Execution.objects.filter(ours, pk__in=execution_ids, status__in=OPEN)
    olt_ids = set(rows.filter(status=Status.RUNNING).values_list("olt_id", flat=True))
    ended = list(rows.values_list("pk", flat=True))
    rows.update(ended_at=now, **_columns(outcome))
    ExecutionAttempt.objects.filter(execution_id__in=ended, status=Status.RUNNING).update(
        status=outcome.status,
        error=outcome.error,
        error_class=outcome.error_class,
        ended_at=now,
        pdus=outcome.traffic.pdus,
    )
    observed = _observed(outcome, now)
    if observed:
        Olt.objects.filter(pk__in=olt_ids).update(**observed)


def _columns(outcome: Outcome) -> dict[str, Any]:
    traffic = outcome.traffic
    return {
        "status": outcome.status,
        "cause": outcome.cause or "",
        "error": outcome.error,
        "error_class": outcome.error_class,
        "readings": outcome.readings,
        "completeness": outcome.completeness or "",
        "pdus": traffic.pdus,
        "retransmissions": traffic.retransmissions,
        "varbinds": traffic.varbinds,
        "bytes_sent": traffic.bytes_sent,
        "bytes_received": traffic.bytes_received,
        "rtt_p50": traffic.rtt_p50,
        "rtt_p95": traffic.rtt_p95,
        "rtt_p99": traffic.rtt_p99,
        "peak_in_flight": traffic.peak_in_flight,
        "sizes": dict(traffic.sizes),
        "coverage": coverage.summary(outcome.coverage),
        "failed_onus": coverage.first(outcome.failed_onus),
    }


def _observed(outcome: Outcome, now: datetime) -> dict[str, Any]:
    """Return what an outcome tells of the OLT itself. Only silence counts against it."""
    if outcome.status is Status.INTERRUPTED:
        return {}
    if outcome.cause is Cause.UNREACHABLE:
        return {"reachability": Olt.Reachability.UNREACHABLE, "last_error": outcome.error}
    if outcome.status not in (Status.SUCCESS, Status.PARTIAL):
        return {"last_error": outcome.error}
    if not outcome.traffic.pdus:
        # Nothing was asked, so nothing was heard: no ONU was known, or all of them are dark.
        return {}
    slow = (outcome.traffic.rtt_p95 or 0.0) > SLOW_RTT
    reachability = Olt.Reachability.SLOW if slow else Olt.Reachability.REACHABLE
    return {"reachability": reachability, "last_error": outcome.error, "last_answer_at": now}


@transaction.atomic
def _recover(now: datetime) -> int:
    return _interrupt(Execution.objects.filter(status__in=OPEN), Cause.ENGINE_DOWN, now)


def _interrupt(rows: "QuerySet[Execution]", cause: Cause, now: datetime) -> int:
    """End executions whose holder is gone, and return how many there were."""
    ids = list(rows.values_list("pk", flat=True))
    if ids:
        attempts = ExecutionAttempt.objects.filter(execution_id__in=ids, status=Status.RUNNING)
        attempts.update(status=Status.INTERRUPTED, ended_at=now)
        Execution.objects.filter(pk__in=ids).update(status=Status.INTERRUPTED, cause=cause, ended_at=now)
    return len(ids)
