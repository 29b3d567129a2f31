"""How executions end, or are put off: the rows, the quotas of their hours, and what it tells of node and OLT."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import OPEN_STATUSES, Execution, ExecutionAttempt
from facho.engine.model import Cause, Lease, Outcome, Status, Trigger
from facho.engine.predict import learn
from facho.engine.quota import hour_of
from facho.store import breakers, coverage, leases, tally
from facho.store.breakers import Breaker, Policy, Turn

# An OLT whose answers take this long is shown as slow.
SLOW_RTT = 2.0


@dataclass(frozen=True, slots=True)
class OpenExecution:
    """An execution that is not over, with what its end needs of its node and its OLT."""

    id: int
    node_id: int | None
    node_name: str
    slot: datetime
    trigger: str
    is_running: bool
    has_begun: bool
    durations: Mapping[str, Any]
    breaker: Breaker


@dataclass(frozen=True, slots=True)
class Attempts:
    """How long an execution ran in all, and in its last attempt, which began then."""

    total: timedelta = timedelta(0)
    last: timedelta | None = None
    last_started_at: datetime | None = None


def _read(rows: "QuerySet[Execution]") -> list[OpenExecution]:
    """Read executions in one query, and lock them, so that nobody else counts their slots."""
    columns = ("pk", "node_id", "node_name", "slot", "trigger", "status", "started_at", "node__durations")
    of_olt = (f"olt__{column}" for column in breakers.COLUMNS)
    found = rows.order_by("pk").select_for_update(of=("self",)).values_list(*columns, *of_olt)
    return [_open_execution(*row) for row in found]


def _open_execution(
    id_: int,
    node_id: int | None,
    node_name: str,
    slot: datetime,
    trigger: str,
    status: str,
    started_at: datetime | None,
    durations: Mapping[str, Any] | None,
    *olt: Any,
) -> OpenExecution:
    is_running, has_begun = status == Status.RUNNING, started_at is not None
    return OpenExecution(id_, node_id, node_name, slot, trigger, is_running, has_begun, durations or {}, Breaker(*olt))


def _ours(execution_ids: Collection[int], lease: Lease | None) -> list[OpenExecution]:
    """Return those that are open, and that a holder of this lease may end."""
    ours = Q(lease_token__isnull=True)
    if lease is not None:
        if leases.is_superseded(lease):
            return []
        ours |= Q(lease_token=lease.token)
    return _read(Execution.objects.filter(ours, pk__in=execution_ids, status__in=OPEN_STATUSES))


def close(
    execution_ids: Sequence[int], outcome: Outcome, lease: Lease | None, policy: Policy, now: datetime
) -> list[Turn]:
    """End executions, and return what that means for breakers."""
    outcome = _storable(outcome)
    rows = _ours(execution_ids, lease)
    Execution.objects.filter(pk__in=[row.id for row in rows]).update(ended_at=now, retry_at=None, **_columns(outcome))
    attempts = _end_attempts(rows, outcome, now)
    tally.count(_ended(rows, outcome, attempts))
    _learn(rows, outcome, attempts)
    # What never began says nothing of its OLT; what waited in vain for another attempt says nothing new.
    turns = [breakers.turn(row.breaker, outcome, policy, now) for row in rows if row.has_begun]
    _observe(turns, outcome if any(row.is_running for row in rows) else None, now)
    return turns


def put_off(execution_ids: Sequence[int], outcome: Outcome, retry_at: datetime, lease: Lease, now: datetime) -> None:
    """End the attempt that runs, and leave the executions pending. Only their last end counts for a breaker."""
    outcome = _storable(replace(outcome, status=Status.FAILED))
    rows = _ours(execution_ids, lease)
    Execution.objects.filter(pk__in=[row.id for row in rows]).update(
        status=Status.PENDING,
        retry_at=retry_at,
        lease_token=None,
        cause=outcome.cause or "",
        error=outcome.error,
        error_class=outcome.error_class,
    )
    _end_attempts(rows, outcome, now)
    _observe([Turn(row.breaker, {}) for row in rows if row.is_running], outcome, now)


def interrupt(executions: "QuerySet[Execution]", cause: Cause, now: datetime) -> list[OpenExecution]:
    """End executions that nobody runs any more, or that nobody wants, and return them."""
    rows = _read(executions)
    if rows:
        outcome = Outcome(Status.INTERRUPTED, cause)
        attempts = _end_attempts(rows, outcome, now)
        Execution.objects.filter(pk__in=[row.id for row in rows]).update(
            status=Status.INTERRUPTED, cause=cause, ended_at=now, retry_at=None
        )
        tally.count(_ended(rows, outcome, attempts))
    return rows


def _storable(outcome: Outcome) -> Outcome:
    """Return an outcome that any database holds: an error may quote anything, and must not keep an execution open."""
    return replace(outcome, error=outcome.error.replace("\0", ""), error_class=outcome.error_class[:60])


def _end_attempts(rows: Sequence[OpenExecution], outcome: Outcome, now: datetime) -> dict[int, Attempts]:
    """End the attempts that run, and return how long each execution ran."""
    begun = [row.id for row in rows if row.has_begun]
    if not begun:
        return {}
    found = ExecutionAttempt.objects.filter(execution_id__in=begun).order_by("execution", "number")
    times: dict[int, Attempts] = {}
    running = []
    for id_, execution_id, started_at, ended_at in found.values_list("pk", "execution_id", "started_at", "ended_at"):
        if ended_at is None:
            running.append(id_)
        before = times.get(execution_id, Attempts())
        took = max((ended_at or now) - started_at, timedelta(0))
        times[execution_id] = Attempts(before.total + took, None if ended_at else took, started_at)
    ExecutionAttempt.objects.filter(pk__in=running).update(
        status=outcome.status,
        error=outcome.error,
        error_class=outcome.error_class,
        ended_at=now,
        pdus=outcome.traffic.pdus,
    )
    return times


def _ended(rows: Iterable[OpenExecution], outcome: Outcome, attempts: Mapping[int, Attempts]) -> list[tally.Ended]:
    """Return the slots that are over by it. What a person asked for is no slot."""
    return [
        tally.Ended(
            row.breaker.olt_id,
            row.node_id,
            row.node_name,
            hour_of(row.slot),
            outcome.status,
            cause=outcome.cause or outcome.error_class,
            milliseconds=attempts.get(row.id, Attempts()).total // timedelta(milliseconds=1),
        )
        for row in rows
        if row.trigger == Trigger.SCHEDULE
    ]


def _learn(rows: Iterable[OpenExecution], outcome: Outcome, attempts: Mapping[int, Attempts]) -> None:
    """Let nodes know how long they took; a run that asked for nothing, or brought nothing, took no typical time."""
    if outcome.status not in (Status.SUCCESS, Status.PARTIAL) or not outcome.traffic.pdus:
        return
    for row in rows:
        last = attempts.get(row.id, Attempts())
        if row.node_id is not None and last.last is not None and last.last_started_at is not None:
            durations = learn(row.durations, last.last.total_seconds(), last.last_started_at)
            WorkflowNode.objects.filter(pk=row.node_id).update(durations=durations)


def _observe(turns: Iterable[Turn], outcome: Outcome | None, now: datetime) -> None:
    """Write what is known of the OLTs themselves."""
    observed = _observed(outcome, now) if outcome else {}
    for each in turns:
        if each.columns or observed:
            Olt.objects.filter(pk=each.breaker.olt_id).update(**{**each.columns, **observed})


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
    if outcome.status in (Status.INTERRUPTED, Status.SKIPPED):
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
