"""Runs of executions: start, and result, which is stored in one transaction.

A result may be delivered any number of times. The locked row of the execution, with its status and lease token,
decides whether it is new.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any, Protocol

from django.db import IntegrityError, transaction

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.jobs.templates import apply_usual_jobs
from facho.apps.polling.models import Execution
from facho.brands import brand
from facho.engine.chunks import FIELDS
from facho.engine.errors import LeaseLost, OltBusy
from facho.engine.events import Event, tell
from facho.engine.model import Cause, Collected, JobKind, KnownOnu, Lease, Node, Reading, RunResult, Status
from facho.engine.observer import Observer
from facho.engine.presence import USUAL_RULES, Rules
from facho.store import history, leases, outcomes, sql
from facho.store.breakers import USUAL_POLICY, BreakerPolicy, BreakerTurn
from facho.store.compare import Columns, compare
from facho.store.database import DbThread
from facho.store.group_commit import GroupCommit
from facho.store.inventory import Inventories, Inventory
from facho.store.outcomes import OpenExecution
from facho.store.presence import PresenceVerdict, follow_moves, is_settled, take_discovery, tell_census
from facho.store.slots import count_ended
from facho.store.sql import plain


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
        stored.tell(result)

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

    def tell(self, result: RunResult) -> None:
        for turn in self.turns:
            turn.tell()
        if result.node is not None and self.verdict is not None:
            tell_census(result.node, self.verdict)
        if result.node is not None and result.identification is not None and self.jobs is not None:
            tell_identified(result.node, result.identification.brand, self.jobs)


@transaction.atomic(savepoint=False)
def store(
    result: RunResult, inventories: Inventories, rules: Rules = USUAL_RULES, policy: BreakerPolicy = USUAL_POLICY
) -> Stored:
    """Store a result unless it is already stored; `LeaseLost` if it has data and the lease is lost."""
    rows = outcomes.ours(result.execution_ids, result.lease)
    if result.has_data and not any(row.is_running for row in rows):
        if outcomes.is_stored(result):
            return Stored()
        raise LeaseLost(
            f"execution {result.execution_ids[0]} belongs to another process now; its readings were not stored"
        )
    verdict, jobs = None, None
    if result.node is not None and result.collected is not None:
        inventory = inventories.get(result.node.olt_id, rows[0].inventory_version)
        verdict = write_collected(inventory, result.node, result.collected, rules, result.at)
    if result.outcome.retry_at is not None:
        turns = outcomes.put_off(rows, result.outcome, policy, result.at)
    else:
        turns = outcomes.close(rows, result.outcome, policy, result.at, result.collected)
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
                outcomes.interrupt(Execution.objects.filter(pk__in=left, status=Status.RUNNING), Cause.LEASE_LOST, now)
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
    inventory: Inventory, node: Node, collected: Collected, rules: Rules, now: datetime
) -> PresenceVerdict | None:
    """Write the readings of a run in the open transaction. A discovery also decides which ONUs are present."""
    # Not valid while it is changed: a result that fails halfway may be tried again.
    version, inventory.version = inventory.version or 0, None
    verdict = None
    read = Columns.of(collected.readings)
    inventory.ensure(read.columns)
    if not is_settled(inventory, node.kind, read, collected.absent):
        if node.kind is JobKind.DISCOVERY:
            verdict = take_discovery(inventory, collected, rules, now)
        else:
            verdict = follow_moves(inventory, collected)
    if verdict is not None:
        write_readings(inventory, verdict.readings, now, verdict)
    elif collected.readings:
        write_columns(inventory, read, now)
    if collected.scalars:
        merge_scalars(node.olt_id, collected.scalars)
    changed: dict[str, Any] = {"learned": dict(collected.learned)} if collected.learned else {}
    sql.set_columns(Olt, [node.olt_id], inventory_version=version + 1, **changed)
    inventory.version = version + 1
    return verdict


def merge_scalars(olt_id: int, scalars: Mapping[str, Any]) -> None:
    """Merge values of the OLT itself into the stored ones."""
    olt = Olt.objects.select_for_update().only("extra").get(pk=olt_id)
    Olt.objects.filter(pk=olt_id).update(extra={**olt.extra, **plain(scalars)})


def write_readings(
    inventory: Inventory, readings: Sequence[Reading], now: datetime, verdict: PresenceVerdict | None = None
) -> None:
    """Write readings in the open transaction, and update the presence of ONUs."""
    read = Columns.of(readings)
    inventory.ensure(read.columns)
    write_columns(inventory, read, now, verdict)


def write_columns(inventory: Inventory, read: Columns, now: datetime, verdict: PresenceVerdict | None = None) -> None:
    """Write the changed cells, and append the run to the history. The inventory has the columns of `read`."""
    decided = (verdict.census, verdict.known) if verdict else ()
    inventory.apply(compare(inventory, read, now, *decided))
    columns = {name: read.columns[name] for name in FIELDS if name in read.columns}
    if columns and read.indexes:
        history.append(inventory.olt_id, now, inventory.ids_of(read.indexes), columns)


logger = logging.getLogger(__name__)


def put_to_work(olt_id: int, brand_id: str) -> list[str] | None:
    """Set the brand of an OLT, create its usual jobs, and return their names.

    None if a user has set the brand in the meantime.
    """
    olt = Olt.objects.select_for_update().get(pk=olt_id)
    if olt.brand:
        return None
    olt.brand = brand_id
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


def tell_identified(node: Node, brand_id: str, jobs: list[str]) -> None:
    """Log the detected brand and the new jobs. Called after the commit."""
    tell(
        logger,
        Event.OLT_IDENTIFIED,
        olt_id=node.olt_id,
        olt=node.olt_name,
        brand=brand(brand_id).label,
        tasks=", ".join(jobs) or "-",
    )
