"""Plans of the hour as rows: made in advance, made again after changes, and compared with the result.

The fingerprint of a plan has three parts: the jobs and their grid, which of them have ever run, and whether the
breaker is open. A plan is also made again when measured durations changed its utilisation (`is_material`), and after
several failed runs of the OLT in a row.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.db import transaction

from facho.apps.coordinator.models import ExecutionPlan
from facho.apps.inventory.models import Olt
from facho.apps.jobs import in_effect
from facho.apps.polling.models import OPEN_STATUSES, Execution
from facho.engine.events import Event, log_event
from facho.engine.model import Cause, CompositeNode, Node, Status
from facho.engine.quota.durations import Prediction
from facho.engine.quota.hour_plan import SEVERAL_FAILURES, HourPlan, Work, is_material, needed_seconds, plan_hour
from facho.engine.quota.quota import GRACE, HOUR, SHARES, Share, hour_of
from facho.engine.scheduling.changes import fingerprint
from facho.engine.scheduling.grid import group_chains
from facho.store import measured_runs, sql
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# An hour gets its plan this long before it starts, so that problems are reported in advance.
AHEAD = timedelta(minutes=10)

# Interval between checks of all OLTs. OLTs that changed or fail are checked in every step.
SWEEP_EVERY = timedelta(minutes=1)

# OLTs per transaction.
BATCH = 100

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Reason = ExecutionPlan.Reason

# Parts of a fingerprint, and the reason for a new plan if one differs.
PARTS = (Reason.CHANGED, Reason.DURATIONS, Reason.REACHABILITY)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setup:
    """Nodes of an OLT, their durations, and a digest of everything that a plan depends on."""

    olt_id: int
    name: str
    nodes: tuple[Node, ...]
    durations: Mapping[int, Mapping[str, Any]]
    is_broken: bool

    @property
    def fingerprint(self) -> str:
        settings: list[tuple[object, ...]] = []
        for node in self.nodes:
            # The due time of a node moves with every run; its grid does not.
            grid = None if node.next_check is None else ((node.next_check - EPOCH) % node.interval).total_seconds()
            interval = node.interval.total_seconds()
            settings.append((node.id, node.name, interval, node.priority, node.master_id, grid))
        jobs = fingerprint(settings)
        known = fingerprint(node.id for node in self.nodes if self.durations.get(node.id))
        return f"{jobs[:40]}.{known[:16]}.{'open' if self.is_broken else ''}"

    def predictions(self, at: datetime) -> dict[int, Prediction]:
        return {node.id: measured_runs.prediction(node, self.durations.get(node.id, {}), at) for node in self.nodes}

    def works(self, predictions: Mapping[int, Prediction]) -> list[Work]:
        return [
            Work(
                CompositeNode(master, chain, master.next_check),
                tuple(predictions[link.id] for link in (master, *chain)),
            )
            for master, chain in group_chains(self.nodes).values()
            # A new node is not on the grid yet; the plan is made again when it is.
            if master.next_check is not None
        ]


@dataclass(frozen=True, slots=True)
class ActivePlan:
    """An active plan, without its slots."""

    id: int
    olt_id: int
    period_start: datetime
    period_end: datetime
    fingerprint: str
    utilisation: float
    failures_in_row: int
    reason: str

    @property
    def key(self) -> tuple[int, datetime]:
        return self.olt_id, self.period_start


class Planner:
    """Keeps plans up to date: within seconds for OLTs that changed or fail, once a minute for all."""

    def __init__(self, thread: DbThread) -> None:
        self._thread = thread
        self._changed: set[int] = set()
        self._sweep_at: datetime | None = None

    def changed(self, olt_ids: Iterable[int]) -> None:
        """Record OLTs whose plans may be outdated."""
        self._changed.update(olt_ids)

    async def step(self, now: datetime) -> None:
        if self._sweep_at is None or self._sweep_at <= now or now < self._sweep_at - SWEEP_EVERY:
            # Later changes are handled in the next step.
            self._changed.clear()
            await self._thread.run(lambda: make_plans(now))
            self._sweep_at = now + SWEEP_EVERY
            return
        changed, self._changed = self._changed, set()
        active = ExecutionPlan.objects.filter(status=ExecutionPlan.Status.ACTIVE)
        failing = active.filter(failures_in_row__gte=SEVERAL_FAILURES).exclude(reason=Reason.FAILURES).order_by()

        def make_some() -> None:
            wanted = {*changed, *failing.values_list("olt_id", flat=True)}
            if wanted:
                make_plans(now, wanted)

        try:
            await self._thread.run(make_some)
        except BaseException:
            self._changed |= changed
            raise


def make_plans(now: datetime, olt_ids: Collection[int] | None = None) -> int:
    """Update the plans of these OLTs, or of all, and return the number of new plans."""
    hours = [hour_of(now)]
    if hours[0] + HOUR - now <= AHEAD:
        hours.append(hours[0] + HOUR)
    setups = _setups(hours, olt_ids)
    active = ExecutionPlan.objects.filter(status=ExecutionPlan.Status.ACTIVE).order_by("pk")
    if olt_ids is not None:
        active = active.filter(olt_id__in=olt_ids)
    columns = ("pk", "olt_id", "period_start", "period_end", "fingerprint", "utilisation", "failures_in_row", "reason")
    known = [ActivePlan(*row) for row in active.values_list(*columns)]
    past = [plan for plan in known if plan.period_end <= now]
    if past:
        # Some minutes after their hour, open executions are ignored.
        still_open = Execution.objects.filter(status__in=OPEN_STATUSES).values_list("olt_id", "slot")
        waiting = {(olt_id, hour_of(slot)) for olt_id, slot in still_open}
        past = [plan for plan in past if plan.key not in waiting or plan.period_end + GRACE <= now]
    present = [plan for plan in known if plan.period_end > now]
    gone = [plan for plan in present if plan.olt_id not in setups]
    without_setup = {plan.olt_id for plan in gone}
    off = without_setup - set(Olt.objects.filter(pk__in=without_setup, enabled=True).values_list("pk", flat=True))
    stale = {}
    for plan in present:
        reason = _reason(plan, setups[plan.olt_id], now) if plan.olt_id in setups else None
        if reason is not None:
            stale[plan.key] = plan, reason
    _close(past, ExecutionPlan.Status.COMPLETED, now)
    _close([plan for plan in gone if plan.olt_id in off], ExecutionPlan.Status.ABORTED, now)
    # An enabled OLT without jobs has no plan.
    superseded = [plan for plan in gone if plan.olt_id not in off] + [plan for plan, _ in stale.values()]
    _close(superseded, ExecutionPlan.Status.SUPERSEDED, now)
    left = {plan.key for plan in present} - {plan.key for plan in gone} - stale.keys()
    wanted = [(setup, hour) for hour in hours for setup in setups.values() if (setup.olt_id, hour) not in left]
    for part in _batches(wanted):
        _make(part, stale, now)
    return len(wanted)


# Outdated plans with the reason, by OLT and hour.
Stale = Mapping[tuple[int, datetime], tuple[ActivePlan, Reason]]


def _reason(plan: ActivePlan, setup: Setup, now: datetime) -> Reason | None:
    """Return why a plan is outdated; None if it is not."""
    before, after = plan.fingerprint.split("."), setup.fingerprint.split(".")
    if len(before) != len(after):
        # From an earlier version.
        return Reason.CHANGED
    for reason, was, part in zip(PARTS, before, after, strict=True):
        if was != part:
            return reason
    if plan.failures_in_row >= SEVERAL_FAILURES and plan.reason != Reason.FAILURES:
        return Reason.FAILURES
    works = setup.works(setup.predictions(max(now, plan.period_start)))
    utilisation = 100 * needed_seconds(works, plan.period_start) / HOUR.total_seconds()
    return Reason.DURATIONS if is_material(plan.utilisation, utilisation) else None


def _batches(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _setups(hours: Collection[datetime], olt_ids: Collection[int] | None) -> dict[int, Setup]:
    by_olt: dict[int, list[Node]] = {}
    for node in measured_runs.enabled_nodes(olt_ids):
        by_olt.setdefault(node.olt_id, []).append(node)
    broken = Olt.objects.filter(enabled=True, breaker_opened_at__isnull=False)
    if olt_ids is not None:
        broken = broken.filter(pk__in=olt_ids)
    is_broken = set(broken.order_by().values_list("pk", flat=True))
    durations = measured_runs.profiles_for(hours, olt_ids)
    return {
        olt_id: Setup(olt_id, nodes[0].olt_name, tuple(nodes), durations, olt_id in is_broken)
        for olt_id, nodes in by_olt.items()
    }


def _make(wanted: Sequence[tuple[Setup, datetime]], stale: Stale, now: datetime) -> None:
    """Plan these hours of these OLTs, and log those that are too short, each once."""
    olt_ids = {setup.olt_id for setup, _ in wanted}
    rows = Execution.objects.filter(olt_id__in=olt_ids, status=Status.RUNNING)
    values = rows.values_list("olt_id", "node_id", "started_at")
    running = {olt_id: (node_id, since) for olt_id, node_id, since in values if since is not None}
    told = set(
        ExecutionPlan.objects.filter(olt_id__in=olt_ids, period_start__in={hour for _, hour in wanted})
        .filter(is_feasible=False)
        .values_list("olt_id", "period_start")
    )
    made = [(setup, hour, _planned(setup, hour, running, now)) for setup, hour in wanted]
    reasons = {key: reason for key, (_, reason) in stale.items()}
    ExecutionPlan.objects.bulk_create(
        ExecutionPlan(
            olt_id=setup.olt_id,
            period_start=hour,
            period_end=hour + HOUR,
            plan_data=plan.data(),
            reason=reasons.get((setup.olt_id, hour), Reason.HOUR),
            fingerprint=setup.fingerprint,
            needed_seconds=round(plan.needed, 1),
            utilisation=round(plan.utilisation, 1),
            is_feasible=plan.is_feasible,
            advice=plan.advice_data(setup.name),
            total_tasks=len(plan.slots),
            created_at=now,
        )
        for setup, hour, plan in made
    )
    for setup, hour, plan in made:
        if (setup.olt_id, hour) in stale:
            before, reason = stale[setup.olt_id, hour]
            if reason is Reason.FAILURES:
                failures = before.failures_in_row
                log_event(logger, Event.EMERGENCY_REPLAN, olt_id=setup.olt_id, olt=setup.name, failures=failures)
            else:
                slots, why = len(plan.slots), reason.value
                log_event(logger, Event.PLAN_ADJUSTED, olt_id=setup.olt_id, olt=setup.name, slots=slots, reason=why)
        if (setup.olt_id, hour) not in told:
            for params in (each["params"] for each in plan.advice_data(setup.name)):
                log_event(
                    logger,
                    Event.HOUR_INFEASIBLE,
                    olt_id=setup.olt_id,
                    olt=setup.name,
                    needed=params["needed"],
                    task=params["task"],
                    minutes=params["minutes"],
                    jobs=params["jobs"],
                    others=params["others"],
                )


def _planned(
    setup: Setup, hour: datetime, running: Mapping[int, tuple[int | None, datetime]], now: datetime
) -> HourPlan:
    at = max(now, hour)
    predictions = setup.predictions(at)
    busy_until = None
    if setup.olt_id in running:
        node_id, since = running[setup.olt_id]
        takes = predictions[node_id].mean if node_id in predictions else 0.0
        busy_until = since + timedelta(seconds=takes)
    blocked = Cause.BREAKER_OPEN if setup.is_broken else None
    return plan_hour(setup.works(predictions), hour, now=now, busy_until=busy_until, blocked=blocked)


def _close(plans: Sequence[ActivePlan], status: str, now: datetime) -> None:
    """End plans, and add the actual result to each of their slots."""
    for part in _batches(plans):
        with transaction.atomic():
            # In the lock order of `count`. Runs that end from here on find no active plan.
            active = ExecutionPlan.objects.filter(pk__in=[plan.id for plan in part]).select_for_update()
            ids = list(active.order_by("olt_id", "period_start").values_list("pk", flat=True))
            ExecutionPlan.objects.filter(pk__in=ids).update(status=status, updated_at=now)
        rows = list(ExecutionPlan.objects.filter(pk__in=ids))
        actual = _actual(rows)
        for row in rows:
            _compare(row, actual)
        ExecutionPlan.objects.bulk_update(rows, ["plan_data", "completed_tasks", "failed_tasks"])


def count(runs: Iterable[tuple[int, datetime, datetime | None]], status: Status) -> None:
    """Count finished runs in the active plan of their hour, in the transaction that ends them.

    Each run has an OLT, its slot and the time of its claim. A run that was claimed before the plan was made is not in
    it.
    """
    share = SHARES[status]
    if share is Share.COMPLETED:
        counted = "completed_tasks = completed_tasks + 1, failures_in_row = 0"
    elif share is Share.FAILED:
        # An interrupted run failed, but not because of the OLT.
        more = int(status is Status.FAILED)
        counted = f"failed_tasks = failed_tasks + 1, failures_in_row = failures_in_row + {more}"
    else:
        return
    for olt_id, slot, claimed_at in sorted(runs, key=lambda run: run[:2]):
        sql.execute(
            f"UPDATE execution_plans SET {counted}"  # noqa: S608 - no values
            " WHERE olt_id = %s AND period_start = %s AND status = %s AND created_at <= %s",
            olt_id,
            hour_of(slot),
            ExecutionPlan.Status.ACTIVE,
            claimed_at,
        )


# Result of a slot, by node and time.
Actual = Mapping[tuple[int, datetime], Mapping[str, Any]]


def _actual(plans: Sequence[ExecutionPlan]) -> Actual:
    """Return the results of the executions of these hours, by node and slot, in one query."""
    if not plans:
        return {}
    start, end = min(plan.period_start for plan in plans), max(plan.period_end for plan in plans)
    rows = Execution.objects.filter(
        olt_id__in={plan.olt_id for plan in plans}, slot__gte=start, slot__lt=end, trigger="schedule"
    )
    columns = ("node_id", "slot", "slots", "status", "cause", "started_at", "ended_at")
    found = {}
    for row in rows.values(*columns, interval=in_effect.interval_seconds("node__")):
        # The interval of a deleted node is unknown.
        every = timedelta(seconds=row["interval"] or 0)
        for number in range(row["slots"]):
            found[row["node_id"], row["slot"] + number * every] = row
    return found


def _compare(plan: ExecutionPlan, actual: Actual) -> None:
    completed = failed = 0
    for entry in plan.plan_data:
        slot = datetime.fromisoformat(entry["slot"])
        for link in (entry, *entry["chain"]):
            row = actual.get((link["node_id"], slot))
            if row is not None:
                for name, at in (("actual_start", row["started_at"]), ("actual_end", row["ended_at"])):
                    link[name] = at and at.isoformat(timespec="milliseconds")
                link |= {"status": row["status"], "cause": row["cause"] or None}
        share = SHARES.get(entry.get("status", Status.PENDING))
        completed += share is Share.COMPLETED
        failed += share is Share.FAILED
    plan.completed_tasks, plan.failed_tasks = completed, failed
