"""The plans of the hour as rows: made before it begins, made anew when something changes, and compared with what was.

`make_plans` is a chore: once a minute, and cheap where nothing changed.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from facho.apps.coordinator.models import ExecutionPlan
from facho.apps.inventory.models import Olt
from facho.apps.jobs import in_effect
from facho.apps.polling.models import OPEN_STATUSES, Execution
from facho.engine.changes import fingerprint
from facho.engine.events import Event, tell
from facho.engine.model import CompositeNode, Node, Status
from facho.engine.plan import HourPlan, Work, plan_hour
from facho.engine.quota import GRACE, HOUR, SHARES, Share, hour_of
from facho.engine.schedule import group_chains
from facho.store import learned

logger = logging.getLogger(__name__)

# From this long before an hour on it has a plan, so that what cannot be met is said beforehand.
AHEAD = timedelta(minutes=10)

# OLTs that are planned in one transaction.
BATCH = 100

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setup:
    """What is polled on an OLT, and a digest of it."""

    olt_id: int
    name: str
    nodes: tuple[Node, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Known:
    """A plan that is active, without its slots."""

    id: int
    olt_id: int
    period_start: datetime
    period_end: datetime
    fingerprint: str


def make_plans(now: datetime) -> int:
    """Bring the plans up to date, and return how many were made."""
    setups = _setups()
    known = [Known(*row) for row in _active()]
    hours = [hour_of(now)]
    if hours[0] + HOUR - now <= AHEAD:
        hours.append(hours[0] + HOUR)
    past = [plan for plan in known if plan.period_end <= now]
    present = [plan for plan in known if plan.period_end > now]
    gone = [plan for plan in present if plan.olt_id not in setups]
    off = _disabled(gone)
    stale = [plan for plan in present if plan.olt_id in setups and plan.fingerprint != setups[plan.olt_id].fingerprint]
    _close(_settled(past, now), ExecutionPlan.Status.COMPLETED, now)
    _close([plan for plan in gone if plan.olt_id in off], ExecutionPlan.Status.ABORTED, now)
    # An OLT that is left without a job is not off, and has no plan any more.
    _close([plan for plan in gone if plan.olt_id not in off] + stale, ExecutionPlan.Status.SUPERSEDED, now)
    left = {(plan.olt_id, plan.period_start) for plan in present} - _keys(gone) - _keys(stale)
    wanted = [(setup, hour) for hour in hours for setup in setups.values() if (setup.olt_id, hour) not in left]
    for part in _batches(wanted):
        _make(part, _keys(stale), now)
    return len(wanted)


def _active() -> Iterable[tuple[Any, ...]]:
    active = ExecutionPlan.objects.filter(status=ExecutionPlan.Status.ACTIVE).order_by("pk")
    return active.values_list("pk", "olt_id", "period_start", "period_end", "fingerprint")


def _disabled(plans: Sequence[Known]) -> set[int]:
    olt_ids = {plan.olt_id for plan in plans}
    return olt_ids - set(Olt.objects.filter(pk__in=olt_ids, enabled=True).values_list("pk", flat=True))


def _batches(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _keys(plans: Iterable[Known]) -> set[tuple[int, datetime]]:
    return {(plan.olt_id, plan.period_start) for plan in plans}


def _setups() -> dict[int, Setup]:
    by_olt: dict[int, list[Node]] = {}
    for node in learned.enabled_nodes():
        by_olt.setdefault(node.olt_id, []).append(node)
    have_run = learned.that_have_run()
    return {
        olt_id: Setup(
            olt_id,
            nodes[0].olt_name,
            tuple(nodes),
            fingerprint((*_settings(node), node.id in have_run) for node in nodes),
        )
        for olt_id, nodes in by_olt.items()
    }


def _settings(node: Node) -> tuple[object, ...]:
    """Return what a plan depends on, besides whether anybody knows how long its nodes take.

    When a node is due moves with every run; its grid does not.
    """
    grid = None if node.next_check is None else ((node.next_check - EPOCH) % node.interval).total_seconds()
    return node.id, node.name, node.interval.total_seconds(), node.priority, node.master_id, grid


def _make(wanted: Sequence[tuple[Setup, datetime]], adjusted: Collection[tuple[int, datetime]], now: datetime) -> None:
    """Plan these hours of these OLTs, and tell of those that are too short, each once."""
    olt_ids = {setup.olt_id for setup, _ in wanted}
    profiles = learned.profiles(olt_ids)
    running = _running(olt_ids)
    told = set(
        ExecutionPlan.objects.filter(olt_id__in=olt_ids, period_start__in={hour for _, hour in wanted})
        .filter(is_feasible=False)
        .values_list("olt_id", "period_start")
    )
    made = [(setup, hour, _planned(setup, hour, profiles, running, now)) for setup, hour in wanted]
    ExecutionPlan.objects.bulk_create([_row(setup, hour, plan) for setup, hour, plan in made])
    for setup, hour, plan in made:
        if (setup.olt_id, hour) in adjusted:
            tell(logger, Event.PLAN_ADJUSTED, olt_id=setup.olt_id, olt=setup.name, slots=len(plan.slots))
        if (setup.olt_id, hour) not in told:
            _tell_of_short_hour(setup, plan)


def _tell_of_short_hour(setup: Setup, plan: HourPlan) -> None:
    for params in (each["params"] for each in plan.advice_data(setup.name)):
        tell(
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


def _running(olt_ids: Collection[int]) -> dict[int, tuple[int | None, datetime]]:
    """Return what each OLT is busy with, and since when."""
    rows = Execution.objects.filter(olt_id__in=olt_ids, status=Status.RUNNING)
    values = rows.values_list("olt_id", "node_id", "started_at")
    return {olt_id: (node_id, since) for olt_id, node_id, since in values if since is not None}


def _planned(
    setup: Setup,
    hour: datetime,
    profiles: Mapping[int, Mapping[str, Any]],
    running: Mapping[int, tuple[int | None, datetime]],
    now: datetime,
) -> HourPlan:
    at = max(now, hour)
    predictions = {node.id: learned.prediction(node, profiles.get(node.id, {}), at) for node in setup.nodes}
    works = [
        Work(CompositeNode(master, chain, master.next_check), tuple(predictions[link.id] for link in (master, *chain)))
        for master, chain in group_chains(setup.nodes).values()
        # One that has just been enabled is not on the grid yet; when it is, the plan is made anew.
        if master.next_check is not None
    ]
    free = at
    if setup.olt_id in running:
        node_id, since = running[setup.olt_id]
        takes = predictions[node_id].mean if node_id in predictions else 0.0
        free = max(at, since + timedelta(seconds=takes))
    return plan_hour(works, hour, since=free)


def _row(setup: Setup, hour: datetime, plan: HourPlan) -> ExecutionPlan:
    return ExecutionPlan(
        olt_id=setup.olt_id,
        period_start=hour,
        period_end=hour + HOUR,
        plan_data=plan.data(),
        fingerprint=setup.fingerprint,
        needed_seconds=round(plan.needed, 1),
        utilisation=round(plan.utilisation, 1),
        is_feasible=plan.is_feasible,
        advice=plan.advice_data(setup.name),
        total_tasks=len(plan.slots),
    )


def _settled(past: Sequence[Known], now: datetime) -> list[Known]:
    """Return the plans of hours that are over, and of which nothing is open; after some minutes nobody waits."""
    if not past:
        return []
    still_open = Execution.objects.filter(status__in=OPEN_STATUSES).values_list("olt_id", "slot")
    waiting = {(olt_id, hour_of(slot)) for olt_id, slot in still_open}
    return [plan for plan in past if (plan.olt_id, plan.period_start) not in waiting or plan.period_end + GRACE <= now]


def _close(plans: Sequence[Known], status: str, now: datetime) -> None:
    """End plans, with what really happened beside each of their slots."""
    for part in _batches(plans):
        rows = list(ExecutionPlan.objects.filter(pk__in=[plan.id for plan in part]))
        actual = _actual(rows)
        for row in rows:
            row.status, row.updated_at = status, now
            _compare(row, actual)
        ExecutionPlan.objects.bulk_update(rows, CLOSED_COLUMNS)


CLOSED_COLUMNS = ["status", "plan_data", "completed_tasks", "failed_tasks", "updated_at"]
ACTUAL_COLUMNS = ("slot", "slots", "status", "cause", "started_at", "ended_at")

# What became of a slot: of a node, at a time.
Actual = Mapping[tuple[int, datetime], Mapping[str, Any]]


def _actual(plans: Sequence[ExecutionPlan]) -> Actual:
    """Return how the executions of these hours ended, by node and slot, in one query."""
    start, end = min(plan.period_start for plan in plans), max(plan.period_end for plan in plans)
    rows = Execution.objects.filter(
        olt_id__in={plan.olt_id for plan in plans}, slot__gte=start, slot__lt=end, trigger="schedule"
    ).values("node_id", *ACTUAL_COLUMNS, interval=in_effect.interval_seconds("node__"))
    found = {}
    for row in rows:
        # That of a node that was deleted nobody knows.
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
                link.update(_outcome(row))
        share = SHARES.get(entry.get("status", Status.PENDING))
        completed += share is Share.COMPLETED
        failed += share is Share.FAILED
    plan.completed_tasks, plan.failed_tasks = completed, failed


def _outcome(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "actual_start": row["started_at"] and row["started_at"].isoformat(timespec="milliseconds"),
        "actual_end": row["ended_at"] and row["ended_at"].isoformat(timespec="milliseconds"),
        "status": row["status"],
        "cause": row["cause"] or None,
    }
