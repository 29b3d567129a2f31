"""Runs of executions: how one starts, and its result, which is stored in one transaction.

A result may be delivered any number of times. The row of the execution, locked
and guarded by its status and the token of the lease, decides whether it is new.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any, Protocol, TypeVar

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
from facho.store.database import DbThread, is_away, is_conflict
from facho.store.inventory import Inventories, Inventory
from facho.store.outcomes import OpenExecution
from facho.store.presence import PresenceVerdict, follow_moves, is_settled, take_discovery, tell_census
from facho.store.slots import count_ended
from facho.store.sql import plain

# Results that share a commit, at most: more would hold the write lock for too long.
LARGEST_GROUP = 16

T = TypeVar("T")


class Results(Protocol):
    """Where results go: into the database, or into a spool in front of it."""

    async def finish(self, result: RunResult) -> None: ...

    async def flush(self) -> None:
        """Store results that wait; the error of the database if it is still unavailable."""


class DbRuns:
    """The runs of one process. Nothing starts before results that wait for the database are stored."""

    def __init__(
        self, reader: DbThread, writer: DbThread, results: Results, inventories: Inventories | None = None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._results = results
        # Those of the process that also stores the results.
        self._inventories = inventories or Inventories()

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        return await self._reader.run(lambda: self._inventories.known(olt_id))

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        await self._results.flush()
        return await self._writer.run(lambda: _start(execution_id, lease, now, poller_id))

    async def finish(self, result: RunResult) -> None:
        await self._results.finish(result)


class DbResults:
    """Stores results in the database, each whole or not at all."""

    def __init__(
        self,
        thread: "DbThread | GroupCommit",
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
        """Do nothing: no result waits here."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What storing a result changed: the executions it ended, and what there is to log after the commit."""

    executions: Sequence[OpenExecution] = ()
    turns: Sequence[BreakerTurn] = ()
    verdict: PresenceVerdict | None = None
    # The jobs that an OLT got with its brand; None: it has no new brand.
    jobs: list[str] | None = None

    def tell(self, result: RunResult) -> None:
        for turn in self.turns:
            turn.tell()
        if result.node is not None and self.verdict is not None:
            tell_census(result.node, self.verdict)
        if result.node is not None and result.identification is not None and self.jobs is not None:
            tell_identified(result.node, result.identification.brand, self.jobs)


@transaction.atomic
def store(
    result: RunResult, inventories: Inventories, rules: Rules = USUAL_RULES, policy: BreakerPolicy = USUAL_POLICY
) -> Stored:
    """Store a result unless it is stored already; `LeaseLost` if it has data and the run is not ours any more."""
    rows = outcomes.ours(result.execution_ids, result.lease)
    if result.has_data and not any(row.is_running for row in rows):
        if outcomes.is_stored(result):
            return Stored()
        raise LeaseLost(f"execution {result.execution_ids[0]} is no longer ours; its readings were not stored")
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
            # Takes the node of this run off the OLT, so its execution must have ended before.
            jobs = put_to_work(result.node.olt_id, result.identification.brand)
    return Stored(rows, turns, verdict, jobs)


def _start(execution_id: int, lease: Lease, now: datetime, poller_id: int | None) -> bool:
    try:
        with transaction.atomic():
            if leases.is_superseded(lease):
                # The request was delayed, and another process holds the OLT now: it may start the execution.
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
            # The first start is what a slot had to wait for; later ones are attempts. One that waits for a retry is
            # claimed by the scheduler again before it is started.
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


@dataclass(eq=False, slots=True)
class _Job:
    """Work that is ready to be committed, and who awaits it."""

    work: Callable[[], Any]
    done: "asyncio.Future[Any]"


class GroupCommit:
    """Runs work in a `DbThread`; work that is ready together shares one commit.

    While a commit is under way, work gathers for the next one, so that none waits
    longer for it. Each piece has a savepoint: one that fails does not undo the
    others. If the commit itself fails, all of them have failed. If the group met
    a deadlock with another process, its pieces are tried again one by one.
    """

    def __init__(self, thread: DbThread) -> None:
        self._thread = thread
        self._ready: list[_Job] = []
        self._task: asyncio.Task[None] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        job = _Job(work, asyncio.get_running_loop().create_future())
        self._ready.append(job)
        if self._task is None:
            self._task = asyncio.create_task(self._commit_all(), name="group-commit")
        # Work that was handed over is done, even if its caller is stopped.
        done: T = await asyncio.shield(job.done)
        return done

    async def _commit_all(self) -> None:
        try:
            while self._ready:
                jobs, self._ready = self._ready[:LARGEST_GROUP], self._ready[LARGEST_GROUP:]
                await self._commit(jobs)
        finally:
            self._task = None

    async def _commit(self, jobs: Sequence[_Job]) -> None:
        try:
            outcomes = await self._thread.run(lambda: _together([job.work for job in jobs]))
        except BaseException as error:
            if len(jobs) > 1 and is_conflict(error):
                for job in jobs:
                    await self._commit([job])
                return
            for job in jobs:
                _resolve(job.done, error)
            if not isinstance(error, Exception):
                raise
        else:
            for job, outcome in zip(jobs, outcomes, strict=True):
                _resolve(job.done, outcome)


def _resolve(future: "asyncio.Future[Any]", outcome: Any) -> None:
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
        # Its caller may have been stopped.
        future.exception()
    else:
        future.set_result(outcome)


def _together(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Do several pieces of work in one transaction, and return what each returned or raised."""
    if len(works) == 1:
        return [works[0]()]
    outcomes: list[Any] = []
    with transaction.atomic():
        for work in works:
            try:
                with transaction.atomic():
                    outcomes.append(work())
            except Exception as error:
                if is_away(error):
                    raise
                # It is undone by its savepoint, and its caller gets the error.
                outcomes.append(error)
    return outcomes


def write_collected(
    inventory: Inventory, node: Node, collected: Collected, rules: Rules, now: datetime
) -> PresenceVerdict | None:
    """Write what a run read, in the transaction that is open. A discovery also decides which ONUs are present."""
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
    inventory.version = (inventory.version or 0) + 1
    sql.set_columns(Olt, [node.olt_id], inventory_version=inventory.version, **changed)
    return verdict


def merge_scalars(olt_id: int, scalars: Mapping[str, Any]) -> None:
    """Write values of the OLT itself over those that are there."""
    olt = Olt.objects.select_for_update().only("extra").get(pk=olt_id)
    Olt.objects.filter(pk=olt_id).update(extra={**olt.extra, **plain(scalars)})


def write_readings(
    inventory: Inventory, readings: Sequence[Reading], now: datetime, verdict: PresenceVerdict | None = None
) -> None:
    """Write readings in the transaction that is open, together with what they mean for the presence of ONUs."""
    read = Columns.of(readings)
    inventory.ensure(read.columns)
    write_columns(inventory, read, now, verdict)


def write_columns(inventory: Inventory, read: Columns, now: datetime, verdict: PresenceVerdict | None = None) -> None:
    """Write the cells that changed, and append the run to the history. The inventory has the columns of `read`."""
    decided = (verdict.census, verdict.known) if verdict else ()
    inventory.apply(compare(inventory, read, now, *decided))
    columns = {name: read.columns[name] for name in FIELDS if name in read.columns}
    if columns and read.indexes:
        ids = [inventory.ids[inventory.positions[index]] for index in read.indexes]
        history.append(inventory.olt_id, now, ids, columns)


logger = logging.getLogger(__name__)


def put_to_work(olt_id: int, brand_id: str) -> list[str] | None:
    """Give the OLT its brand and the usual jobs of it, and return their names.

    None where a person was faster: the brand that somebody chose meanwhile stands.
    """
    olt = Olt.objects.select_for_update().get(pk=olt_id)
    if olt.brand:
        return None
    olt.brand = brand_id
    # Takes the identification off, too.
    olt.save(update_fields=["brand", "updated_at"])
    return apply_usual_jobs(brand_id, [olt])


@transaction.atomic
def repair(now: datetime) -> None:
    """Add identification nodes that are missing, and delete those that are not needed.

    Saving an OLT does this now. An earlier version that was killed in between could leave an OLT that was never asked.
    """
    left = list(WorkflowNode.unsettled().select_for_update())
    if left:
        WorkflowNode.settle_identification(left)
        logger.warning("repaired the identification of %s", ", ".join(olt.name for olt in left))


def tell_identified(node: Node, brand_id: str, jobs: list[str]) -> None:
    """Tell what was found, and what follows from it. Called when it is committed."""
    tell(
        logger,
        Event.OLT_IDENTIFIED,
        olt_id=node.olt_id,
        olt=node.olt_name,
        brand=brand(brand_id).label,
        tasks=", ".join(jobs) or "-",
    )
