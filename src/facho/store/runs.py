"""Runs of executions: start, end, and result, which is stored in one transaction.

A result may be delivered any number of times. The locked row of the execution, with its status and lease token,
decides whether it is new.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Protocol

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from facho.apps.changes.actor import acting, engine
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.jobs.templates import apply_usual_jobs
from facho.apps.maintenance.queries import Maintained, maintained_at
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.telemetry.history import OLT_ITSELF
from facho.brands import brand
from facho.engine.batch import UNREAD
from facho.engine.chunks import KINDS, PUSHED_ONLY, RAW_OID
from facho.engine.errors import LeaseLost, OltBusy
from facho.engine.events import Event, log_event
from facho.engine.model import (
    Cause,
    Collected,
    Completeness,
    Coverage,
    JobKind,
    KnownOnu,
    Lease,
    Node,
    Outcome,
    RunResult,
    Status,
    Trigger,
)
from facho.engine.observer import Observer
from facho.engine.presence import USUAL_RULES, Rules
from facho.engine.quota.durations import learn
from facho.engine.quota.quota import hour_of
from facho.engine.remarks import count_blank_runs
from facho.store import breakers, history, leases, outbox, plans, quotas, sql
from facho.store.breakers import USUAL_POLICY, Breaker, BreakerPolicy, BreakerTurn
from facho.store.database import DbThread
from facho.store.group_commit import GroupCommit
from facho.store.inventory import Columns, Inventories, Inventory, compare
from facho.store.presence import PresenceVerdict, follow_moves, take_discovery, tell_census
from facho.store.sql import plain

logger = logging.getLogger(__name__)

# Maximum number of failed ONUs to store per run.
MOST_FAILED = 100
LONGEST_REASON = 300

# Values of raw OIDs that have a history. The others are texts.
NUMBERS = (int, float)

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
    partial = [each for each in coverage if each.completeness is Completeness.PARTIAL]
    failed = [
        {"field": each.field, "slot": each.slot, "port": each.port, "reason": _short(each.reason)}
        for each in partial[:MOST_FAILED]
    ]
    return {"columns": columns, "failed": failed, "more": len(partial) - len(failed)}


def first(names: Iterable[str]) -> list[str]:
    """Return the first names, in a form that the database accepts."""
    return [_short(name) for name in list(names)[:MOST_FAILED]]


def _short(text: str) -> str:
    return text.replace("\0", "")[:LONGEST_REASON]


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
    return [
        OpenExecution(
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
            inventory_version=version,
            breaker=Breaker(olt_id, olt, failures, sql.moment(opened_at), sql.moment(answered_at)),
        )
        for id_, node_id, node_name, slot, trigger, status, started_at, master_id, claimed_at, durations, blank_runs,
            version, olt_id, olt, failures, opened_at, answered_at in found
    ]  # fmt: skip


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
    outcome, collected = _storable(outcome), collected or NOTHING
    traffic = outcome.traffic
    attempts = _end_attempts(rows, outcome, now)
    sql.set_columns(
        Execution,
        [row.id for row in rows],
        ended_at=now,
        retry_at=None,
        status=outcome.status,
        cause=outcome.cause or "",
        error=outcome.error,
        error_class=outcome.error_class,
        readings=outcome.readings,
        completeness=outcome.completeness or "",
        pdus=traffic.pdus,
        retransmissions=traffic.retransmissions,
        varbinds=traffic.varbinds,
        bytes_sent=traffic.bytes_sent,
        bytes_received=traffic.bytes_received,
        rtt_p50=traffic.rtt_p50,
        rtt_p95=traffic.rtt_p95,
        rtt_p99=traffic.rtt_p99,
        peak_in_flight=traffic.peak_in_flight,
        sizes=dict(traffic.sizes),
        coverage=summary(collected.coverage),
        failed_onus=first(collected.failed_onus),
    )
    _count(rows, outcome, attempts, now)
    _learn(rows, outcome, collected, attempts)
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
        _count(rows, outcome, attempts, now)
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


def _count(rows: Iterable[OpenExecution], outcome: Outcome, attempts: Mapping[int, Attempts], now: datetime) -> None:
    """Count the finished slots in quotas and plans. A manual run has no slot."""
    scheduled = [row for row in rows if row.trigger == Trigger.SCHEDULE]
    # Failures in a maintenance are expected.
    maintained = maintained_at(now) if outcome.cause is Cause.UNREACHABLE else Maintained()
    quotas.count(
        [
            quotas.Ended(
                row.breaker.olt_id,
                row.node_id,
                row.node_name,
                hour_of(row.slot),
                outcome.status,
                cause=Cause.MAINTENANCE if maintained.of(row.breaker.olt_id) else outcome.cause or outcome.error_class,
                milliseconds=attempts.get(row.id, Attempts()).total // timedelta(milliseconds=1),
            )
            for row in scheduled
        ]
    )
    planned = [row for row in scheduled if row.is_master and row.claimed_at is not None]
    plans.count([(row.breaker.olt_id, row.slot, row.claimed_at) for row in planned], outcome.status)


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
        each.record()
    return turns


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


def count_ended(observer: Observer, ended: Sequence[OpenExecution], outcome: Outcome) -> None:
    """Report executions that ended to an observer. Called after the commit."""
    manual = sum(row.trigger == Trigger.MANUAL for row in ended)
    if manual:
        observer.manual_runs_ended(outcome.status, manual)
    if len(ended) > manual:
        observer.slots_ended(outcome.status, outcome.cause, len(ended) - manual)


class Results(Protocol):
    """Destination of results: the database, or a spool in front of it."""

    async def finish(self, result: RunResult) -> None: ...

    async def flush(self) -> None:
        """Store pending results; raises the database error if it is still unavailable."""


class DbRuns:
    """Runs of one process. Nothing starts before pending results are stored."""

    def __init__(
        self,
        reader: DbThread,
        writer: DbThread | GroupCommit,
        results: Results,
        inventories: Inventories | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._results = results
        # Shared with the code that stores the results.
        self._inventories = inventories or Inventories()

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        return await self._reader.run(lambda: self._inventories.known(olt_id))

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        await self._results.flush()
        return await self._writer.run(lambda: _start(execution_id, lease, now, poller_id))

    async def finish(self, result: RunResult) -> None:
        await self._results.finish(result)


class DbResults:
    """Stores results in the database, each completely or not at all."""

    def __init__(
        self,
        thread: DbThread | GroupCommit,
        *,
        rules: Rules = USUAL_RULES,
        policy: BreakerPolicy = USUAL_POLICY,
        observer: Observer | None = None,
        inventories: Inventories | None = None,
    ) -> None:
        self._thread = thread
        self._rules = rules
        self._policy = policy
        self._observer = observer or Observer()
        self._inventories = inventories or Inventories()

    async def finish(self, result: RunResult) -> None:
        began = monotonic()
        try:
            stored = await self._thread.run(lambda: store(result, self._inventories, self._rules, self._policy))
        except BaseException as error:
            if result.node is not None:
                self._inventories.drop(result.node.olt_id)
            if result.has_data and isinstance(error, Exception):
                self._observer.result_failed(error)
            raise
        if result.outcome.retry_at is not None:
            self._observer.retries_planned(len(stored.executions))
        else:
            count_ended(self._observer, stored.executions, result.outcome)
        if stored.executions and result.has_data:
            self._observer.result_stored(result, monotonic() - began)
        stored.log(result)

    async def flush(self) -> None:
        """Do nothing: there are no pending results."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Effect of storing a result: ended executions, and events to log after the commit."""

    executions: Sequence[OpenExecution] = ()
    turns: Sequence[BreakerTurn] = ()
    verdict: PresenceVerdict | None = None
    # Jobs that were created with a new brand; None: no new brand.
    jobs: list[str] | None = None

    def log(self, result: RunResult) -> None:
        for turn in self.turns:
            turn.log()
        if result.node is not None and self.verdict is not None:
            tell_census(result.node, self.verdict)
        if result.node is not None and result.identification is not None and self.jobs is not None:
            log_event(
                logger,
                Event.OLT_IDENTIFIED,
                olt_id=result.node.olt_id,
                olt=result.node.olt_name,
                brand=brand(result.identification.brand).label,
                tasks=", ".join(self.jobs) or "-",
            )


@transaction.atomic(savepoint=False)
def store(
    result: RunResult, inventories: Inventories, rules: Rules = USUAL_RULES, policy: BreakerPolicy = USUAL_POLICY
) -> Stored:
    """Store a result unless it is already stored; `LeaseLost` if it has data and the lease is lost."""
    rows = ours(result.execution_ids, result.lease)
    if result.has_data and not any(row.is_running for row in rows):
        if is_stored(result):
            return Stored()
        raise LeaseLost(
            f"execution {result.execution_ids[0]} belongs to another process now; its readings were not stored"
        )
    verdict, jobs = None, None
    if result.node is not None and result.collected is not None:
        inventory = inventories.get(result.node.olt_id, rows[0].inventory_version)
        verdict = write_collected(inventory, result.node, result.collected, rules, result.at)
    if result.outcome.retry_at is not None:
        turns = put_off(rows, result.outcome, policy, result.at)
    else:
        turns = close(rows, result.outcome, policy, result.at, result.collected)
    if result.node is not None and result.identification is not None:
        merge_scalars(result.node.olt_id, result.identification.seen)
        if result.identification.brand:
            # This removes the node of this run from the OLT, so its execution must have ended before.
            jobs = put_to_work(result.node.olt_id, result.identification.brand)
    return Stored(rows, turns, verdict, jobs)


def _start(execution_id: int, lease: Lease, now: datetime, poller_id: int | None) -> bool:
    try:
        with transaction.atomic(savepoint=False):
            if leases.is_superseded(lease):
                # The call was delayed, and another process holds the OLT now.
                return False
            # The result of an earlier holder was never stored: its row must not block the device forever.
            left = [
                id_
                for (id_,) in sql.fetch(
                    "SELECT id FROM snmp_executions"
                    " WHERE status = 'RUNNING' AND lease_token < %s AND (olt_id = %s OR device = %s)",
                    lease.token,
                    lease.olt_id,
                    lease.device or None,
                )
            ]
            if left:
                interrupt(Execution.objects.filter(pk__in=left, status=Status.RUNNING), Cause.LEASE_LOST, now)
            # The first start ends the wait of a slot; later ones are attempts. The scheduler claims a retry again
            # before it is started.
            started = sql.execute(
                "UPDATE snmp_executions SET status = 'RUNNING', started_at = COALESCE(started_at, %s),"
                " lease_token = %s, device = %s, poller_id = COALESCE(%s, poller_id)"
                " WHERE id = %s AND status = 'PENDING' AND retry_at IS NULL",
                now,
                lease.token,
                lease.device or None,
                poller_id,
                execution_id,
            )
            if started:
                sql.execute(
                    "UPDATE snmp_job_hosts SET last_run_at = %s"
                    " WHERE id = (SELECT node_id FROM snmp_executions WHERE id = %s)",
                    now,
                    execution_id,
                )
                sql.execute(
                    "INSERT INTO execution_attempts"
                    " (execution_id, number, status, started_at, error, error_class, pdus)"
                    " SELECT %s, COALESCE(MAX(number), 0) + 1, 'RUNNING', %s, '', '', 0"
                    " FROM execution_attempts WHERE execution_id = %s",
                    execution_id,
                    now,
                    execution_id,
                )
                return True
            # The connection may have broken after the commit of an earlier call.
            ours = Execution.objects.filter(pk=execution_id, status=Status.RUNNING, lease_token=lease.token)
            return ours.exists()
    except IntegrityError as error:
        raise OltBusy(f"{lease.device or lease.olt_id} has another execution running") from error


def write_collected(
    inventory: Inventory, node: Node, collected: Collected, rules: Rules, now: datetime, *, is_single: bool = False
) -> PresenceVerdict | None:
    """Write the readings of a run in the open transaction. A discovery also decides which ONUs are present.

    `is_single`: they are of one ONU and not of its port.
    """
    # Not valid while it is changed: a result that fails halfway may be tried again.
    version, inventory.version = inventory.version or 0, None
    verdict = None
    read = Columns.of(collected.readings)
    inventory.ensure(read.columns)
    is_within = not collected.excess and inventory.has_room(read.indexes, rules.most_onus)
    if not is_within or not inventory.is_settled(node.kind, read, collected.absent):
        if node.kind is JobKind.DISCOVERY:
            verdict = take_discovery(inventory, collected, rules, now)
        else:
            verdict = follow_moves(inventory, collected, rules, now)
    if verdict is not None:
        # Without serials that must not overwrite known ones.
        read = Columns.of(verdict.readings)
    if verdict is not None or collected.readings:
        raw = [each.name for each in node.oids if not each.scalar]
        write_columns(inventory, read, now, verdict, is_single=is_single, raw=raw)
    if collected.scalars:
        merge_scalars(node.olt_id, collected.scalars)
        own = {each.name: [collected.scalars.get(each.name)] for each in node.oids if each.scalar}
        history.append(node.olt_id, now, [OLT_ITSELF], numbers_of(own))
    changed: dict[str, Any] = {"learned": dict(collected.learned)} if collected.learned else {}
    sql.set_columns(Olt, [node.olt_id], inventory_version=version + 1, **changed)
    inventory.version = version + 1
    return verdict


def merge_scalars(olt_id: int, scalars: Mapping[str, Any]) -> None:
    """Merge values of the OLT itself into the stored ones."""
    olt = Olt.objects.select_for_update().only("extra").get(pk=olt_id)
    Olt.objects.filter(pk=olt_id).update(extra={**olt.extra, **plain(scalars)})


def write_columns(
    inventory: Inventory,
    read: Columns,
    now: datetime,
    verdict: PresenceVerdict | None = None,
    *,
    is_single: bool = False,
    raw: Sequence[str] = (),
) -> None:
    """Write the changed cells and the presence of ONUs, and append the run to the history and to the outbox.

    The history gets these raw OIDs too. The inventory has the columns of `read`.
    """
    decided = (verdict.census, verdict.known) if verdict else ()
    changes = compare(inventory, read, now, *decided, is_single=is_single)
    inventory.apply(changes)
    columns = {name: read.columns[name] for name in KINDS if name in read.columns}
    if raw:
        columns |= numbers_of({name: read.columns[name] for name in raw if name in read.columns})
    if columns and read.indexes:
        ids = inventory.ids_of(read.indexes)
        kept = {name: column for name, column in columns.items() if name not in PUSHED_ONLY}
        packed = history.append(inventory.olt_id, now, ids, kept)
        if settings.CONFIG.tsdb_url:
            others = {name: column for name, column in columns.items() if name in PUSHED_ONLY}
            outbox.append(inventory.olt_id, now, packed, ids, others, inventory.counts_of_read_ports(changes))


def numbers_of(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the columns of raw OIDs as in the history: numbers only, without columns that have none."""
    found = {}
    for name, column in columns.items():
        numbers = [cell if cell.__class__ in NUMBERS or cell is UNREAD else None for cell in column]
        if any(cell.__class__ in NUMBERS for cell in numbers):
            found[RAW_OID + name] = numbers
    return found


def put_to_work(olt_id: int, brand_id: str) -> list[str] | None:
    """Set the brand of an OLT, create its usual jobs, and return their names.

    None if a user has set the brand in the meantime.
    """
    olt = Olt.objects.select_for_update().get(pk=olt_id)
    if olt.brand:
        return None
    olt.brand = brand_id
    with acting(engine()):
        # This also removes the identification node.
        olt.save(update_fields=["brand", "updated_at"])
        return apply_usual_jobs(brand_id, [olt])


@transaction.atomic
def repair(now: datetime) -> None:
    """Add missing identification nodes, and delete those that are not needed.

    Saving an OLT does this now. An earlier version that was killed in between could leave an OLT without one.
    """
    left = list(WorkflowNode.unsettled().select_for_update())
    if left:
        WorkflowNode.settle_identification(left)
        logger.warning("repaired the identification of %s", ", ".join(olt.name for olt in left))
