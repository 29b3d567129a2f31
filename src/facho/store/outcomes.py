"""Ends and retries of executions: their rows, quotas, durations and breakers."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.engine.model import Cause, Collected, Completeness, Coverage, Lease, Outcome, RunResult, Status, Trigger
from facho.engine.quota.durations import learn
from facho.engine.quota.quota import hour_of
from facho.engine.remarks import count_blank_runs
from facho.store import breakers, leases, plans, quotas, sql
from facho.store.breakers import Breaker, BreakerPolicy, BreakerTurn

# Maximum number of failed ONUs to store per run.
MOST_FAILED = 100
LONGEST_REASON = 300

COMPLETENESS_KEYS = {each: each.value.lower() for each in Completeness}


def summary(coverage: Sequence[Coverage]) -> dict[str, Any]:
    """Return the coverage of a run for `Execution.coverage`; empty if there is none."""
    if not coverage:
        return {}
    columns: dict[str, dict[str, int]] = {}
    for each in coverage:
        counts = columns.setdefault(each.field, {"complete": 0, "partial": 0, "empty": 0, "rows": 0})
        counts[COMPLETENESS_KEYS[each.completeness]] += 1
        counts["rows"] += each.rows
    failed = [each for each in coverage if each.completeness is Completeness.PARTIAL]
    return {
        "columns": columns,
        "failed": [_failed(each) for each in failed[:MOST_FAILED]],
        "more": max(len(failed) - MOST_FAILED, 0),
    }


def _failed(each: Coverage) -> dict[str, Any]:
    reason = each.reason.replace("\0", "")[:LONGEST_REASON]
    return {"field": each.field, "slot": each.slot, "port": each.port, "reason": reason}


def first(names: Iterable[str]) -> list[str]:
    """Return the first names, in a form that the database accepts."""
    return [name.replace("\0", "")[:LONGEST_REASON] for name in list(names)[:MOST_FAILED]]


NEVER = datetime.min.replace(tzinfo=UTC)

# Seconds. An OLT with a longer round trip is shown as slow.
SLOW_RTT = 2.0

# Result of a run without readings.
NOTHING = Collected(Completeness.EMPTY)


@dataclass(frozen=True, slots=True)
class OpenExecution:
    """An open execution, with the columns of its node and OLT that its end needs."""

    id: int
    node_id: int | None
    node_name: str
    slot: datetime
    trigger: str
    is_running: bool
    has_begun: bool
    # Only a master is in a plan; its links are part of its entry.
    is_master: bool
    claimed_at: datetime | None
    durations: Mapping[str, Any]
    blank_runs: Mapping[str, int]
    # Of the OLT: raised by each result with readings.
    inventory_version: int
    breaker: Breaker


@dataclass(frozen=True, slots=True)
class Attempts:
    """Total duration of an execution, and start and duration of its last attempt."""

    total: timedelta = timedelta(0)
    last: timedelta | None = None
    last_started_at: datetime | None = None


def _read(ids: Sequence[int], mine: str = "", *values: Any) -> list[OpenExecution]:
    """Read and lock open executions in one query, so that no other process counts their slots."""
    if not ids:
        return []
    found = sql.fetch(
        "SELECT e.id, e.node_id, e.node_name, e.slot, e.trigger, e.status, e.started_at,"  # noqa: S608 - no values
        " e.master_execution_id, e.claimed_at, n.durations, n.blank_runs, o.inventory_version,"
        " o.id, o.name, o.failures, o.breaker_opened_at, o.breaker_answered_at"
        " FROM snmp_executions e JOIN olts o ON o.id = e.olt_id LEFT JOIN snmp_job_hosts n ON n.id = e.node_id"
        f" WHERE e.id IN {sql.marks(ids)} AND e.status IN ('PENDING', 'RUNNING'){mine}"
        f" ORDER BY e.id{sql.locked('e')}",
        *ids,
        *values,
    )
    return [_open_execution(*row) for row in found]


def _open_execution(
    id_: int,
    node_id: int | None,
    node_name: str,
    slot: Any,
    trigger: str,
    status: str,
    started_at: Any,
    master_id: int | None,
    claimed_at: Any,
    durations: str | None,
    blank_runs: str | None,
    inventory_version: int,
    olt_id: int,
    olt: str,
    failures: int,
    opened_at: Any,
    answered_at: Any,
) -> OpenExecution:
    """Return a row of `_read`."""
    return OpenExecution(
        id_,
        node_id,
        node_name,
        sql.moment(slot) or NEVER,
        trigger,
        is_running=status == Status.RUNNING,
        has_begun=started_at is not None,
        is_master=master_id is None,
        claimed_at=sql.moment(claimed_at),
        durations=json.loads(durations) if durations else {},
        blank_runs=json.loads(blank_runs) if blank_runs else {},
        inventory_version=inventory_version,
        breaker=Breaker(olt_id, olt, failures, sql.moment(opened_at), sql.moment(answered_at)),
    )


def ours(execution_ids: Collection[int], lease: Lease | None) -> list[OpenExecution]:
    """Return and lock the open executions that a holder of this lease may end."""
    if lease is None:
        return _read(list(execution_ids), " AND e.lease_token IS NULL")
    if leases.is_superseded(lease):
        return []
    return _read(list(execution_ids), " AND (e.lease_token IS NULL OR e.lease_token = %s)", lease.token)


def is_stored(result: RunResult) -> bool:
    """Return whether the result of a run is already stored: its execution ended so, or waits for the same retry."""
    lease, outcome = result.lease, result.outcome
    rows = Execution.objects.filter(pk=result.execution_ids[0])
    if outcome.retry_at is not None:
        return rows.filter(status=Status.PENDING, retry_at=outcome.retry_at).exists()
    return lease is not None and rows.filter(status=outcome.status, lease_token=lease.token).exists()


def close(
    rows: Sequence[OpenExecution],
    outcome: Outcome,
    policy: BreakerPolicy,
    now: datetime,
    collected: Collected | None = None,
) -> list[BreakerTurn]:
    """End executions, and return the changes of breakers."""
    outcome = _storable(outcome)
    columns = _columns(outcome, collected or NOTHING)
    attempts = _end_attempts(rows, outcome, now)
    sql.set_columns(Execution, [row.id for row in rows], ended_at=now, retry_at=None, **columns)
    quotas.count(_ended(rows, outcome, attempts))
    plans.count(_planned(rows), outcome.status)
    _learn(rows, outcome, collected or NOTHING, attempts)
    return _hear(rows, outcome, policy, now)


def put_off(rows: Sequence[OpenExecution], outcome: Outcome, policy: BreakerPolicy, now: datetime) -> list[BreakerTurn]:
    """End the running attempt, leave the executions pending for a retry, and return the changes of breakers."""
    retry_at, outcome = outcome.retry_at, _storable(replace(outcome, status=Status.FAILED))
    sql.set_columns(
        Execution,
        [row.id for row in rows],
        status=Status.PENDING,
        retry_at=retry_at,
        lease_token=None,
        device=None,
        cause=outcome.cause or "",
        error=outcome.error,
        error_class=outcome.error_class,
    )
    _end_attempts(rows, outcome, now)
    return _hear(rows, outcome, policy, now)


def interrupt(executions: "QuerySet[Execution]", cause: Cause, now: datetime) -> list[OpenExecution]:
    """End executions that no process runs or that were disabled, and return them."""
    rows = _read(list(executions.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True)))
    if rows:
        outcome = Outcome(Status.INTERRUPTED, cause)
        attempts = _end_attempts(rows, outcome, now)
        ids = [row.id for row in rows]
        sql.set_columns(Execution, ids, status=Status.INTERRUPTED, cause=cause, ended_at=now, retry_at=None)
        quotas.count(_ended(rows, outcome, attempts))
        plans.count(_planned(rows), outcome.status)
    return rows


def _storable(outcome: Outcome) -> Outcome:
    """Return an outcome that any database accepts: an error text must not keep an execution open."""
    return replace(outcome, error=outcome.error.replace("\0", ""), error_class=outcome.error_class[:60])


def _end_attempts(rows: Sequence[OpenExecution], outcome: Outcome, now: datetime) -> dict[int, Attempts]:
    """End the running attempts, and return the duration of each execution."""
    begun = [row.id for row in rows if row.has_begun]
    if not begun:
        return {}
    if outcome.clock_set:
        _move([row.id for row in rows if row.is_running], outcome.clock_set)
    found = sql.fetch(
        "SELECT id, execution_id, started_at, ended_at FROM execution_attempts"  # noqa: S608 - no values
        f" WHERE execution_id IN {sql.marks(begun)} ORDER BY execution_id, number",
        *begun,
    )
    times: dict[int, Attempts] = {}
    running = []
    for id_, execution_id, *span in found:
        started_at, ended_at = sql.moment(span[0]) or now, sql.moment(span[1])
        if ended_at is None:
            running.append(id_)
        before = times.get(execution_id, Attempts())
        took = max((ended_at or now) - started_at, timedelta(0))
        times[execution_id] = Attempts(before.total + took, None if ended_at else took, started_at)
    sql.set_columns(
        ExecutionAttempt,
        running,
        status=outcome.status,
        error=outcome.error,
        error_class=outcome.error_class,
        ended_at=now,
        pdus=outcome.traffic.pdus,
    )
    return times


def move_waiting(execution_ids: Collection[int], by: timedelta) -> None:
    """Shift the times of pending retries after the clock was set."""
    with transaction.atomic():
        waiting = Execution.objects.filter(pk__in=execution_ids, status=Status.PENDING, retry_at__isnull=False)
        ids = list(waiting.select_for_update().values_list("pk", flat=True))
        Execution.objects.filter(pk__in=ids).update(retry_at=F("retry_at") + by)
        _move(ids, by)


def _move(execution_ids: Collection[int], by: timedelta) -> None:
    Execution.objects.filter(pk__in=execution_ids).update(
        claimed_at=F("claimed_at") + by, started_at=F("started_at") + by
    )
    ExecutionAttempt.objects.filter(execution_id__in=execution_ids).update(
        started_at=F("started_at") + by, ended_at=F("ended_at") + by
    )


def _ended(rows: Iterable[OpenExecution], outcome: Outcome, attempts: Mapping[int, Attempts]) -> list[quotas.Ended]:
    """Return the finished slots. A manual run has no slot."""
    return [
        quotas.Ended(
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


def _planned(rows: Iterable[OpenExecution]) -> list[plans.PlannedRun]:
    """Return the executions with an entry in a plan."""
    return [
        plans.PlannedRun(row.breaker.olt_id, row.slot, row.claimed_at)
        for row in rows
        if row.is_master and row.trigger == Trigger.SCHEDULE and row.claimed_at is not None
    ]


def _learn(
    rows: Iterable[OpenExecution], outcome: Outcome, collected: Collected, attempts: Mapping[int, Attempts]
) -> None:
    """Store the durations of nodes, and their columns without a value.

    A run that sent no request or failed has no typical duration.
    """
    if outcome.status not in (Status.SUCCESS, Status.PARTIAL) or not outcome.traffic.pdus:
        return
    for row in rows:
        last = attempts.get(row.id, Attempts())
        if row.node_id is not None and last.last is not None and last.last_started_at is not None:
            durations = learn(row.durations, last.last.total_seconds(), last.last_started_at)
            blank_runs = count_blank_runs(row.blank_runs, collected.had_values)
            changed = {} if blank_runs == row.blank_runs else {"blank_runs": blank_runs}
            sql.set_columns(WorkflowNode, [row.node_id], durations=durations, **changed)


def _hear(rows: Iterable[OpenExecution], outcome: Outcome, policy: BreakerPolicy, now: datetime) -> list[BreakerTurn]:
    """Apply the results of attempts to their OLTs, and return the changes of breakers.

    Executions without a running attempt prove nothing new, so an end that is delivered twice counts once.
    """
    turns = [breakers.turn(row.breaker, outcome, policy, now) for row in rows if row.is_running]
    observed = _observed(outcome, now)
    for each in turns:
        if each.columns or observed:
            sql.set_columns(Olt, [each.breaker.olt_id], **{**each.columns, **observed})
    return turns


def _columns(outcome: Outcome, collected: Collected) -> dict[str, Any]:
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
        "coverage": summary(collected.coverage),
        "failed_onus": first(collected.failed_onus),
    }


def _observed(outcome: Outcome, now: datetime) -> dict[str, Any]:
    """Return the effect of an outcome on the OLT. Only a missing answer counts against it."""
    if outcome.status in (Status.INTERRUPTED, Status.SKIPPED):
        return {}
    if outcome.cause is Cause.UNREACHABLE:
        return {"reachability": Olt.Reachability.UNREACHABLE, "last_error": outcome.error}
    if outcome.status not in (Status.SUCCESS, Status.PARTIAL):
        return {"last_error": outcome.error}
    if not outcome.traffic.pdus:
        # Nothing was sent: no ONU was known, or all are dark.
        return {}
    slow = (outcome.traffic.rtt_p95 or 0.0) > SLOW_RTT
    reachability = Olt.Reachability.SLOW if slow else Olt.Reachability.REACHABLE
    return {"reachability": reachability, "last_error": outcome.error, "last_answer_at": now}
