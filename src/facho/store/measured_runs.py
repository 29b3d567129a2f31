"""Nodes with their measured durations and failures, as input of plans and forecasts."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from facho.apps.inventory.models import Olt
from facho.apps.jobs import in_effect
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import ExecutionAttempt
from facho.engine import errors
from facho.engine.forecast.failures import Attempt, Ending, RunRecord, learn
from facho.engine.forecast.fleet import Fleet
from facho.engine.model import JobKind, Node, Status
from facho.engine.quota.durations import USUAL, Prediction, expected

# Failures are learned from this time span. A day contains nightly events once.
RECENT = timedelta(days=1)

# Names of errors that a retry would meet again.
LASTING = tuple(
    name for name, error in vars(errors).items() if isinstance(error, type) and not getattr(error, "is_temporary", True)
)

# Read as plain values: thousands of model instances once a minute would be slow.
COLUMNS = (
    "pk",
    "olt_id",
    "olt__name",
    "job__name",
    "job__kind",
    "master_id",
    "next_run_at",
    "job__timeout_seconds",
    "job__retries",
    "job__retry_delay_seconds",
)


def enabled_nodes(olt_ids: Collection[int] | None = None) -> list[Node]:
    """Return every polled node of these OLTs or of all, in one query, without its columns."""
    settings = {"interval": in_effect.interval_seconds(), "priority": in_effect.priority()}
    rows = WorkflowNode.objects.polled()
    if olt_ids is not None:
        rows = rows.filter(olt_id__in=olt_ids)
    return [
        Node(
            id=row["pk"],
            olt_id=row["olt_id"],
            name=row["job__name"],
            kind=JobKind(row["job__kind"]),
            interval=timedelta(seconds=row["interval"]),
            olt_name=row["olt__name"],
            priority=row["priority"],
            master_id=row["master_id"],
            next_check=row["next_run_at"],
            timeout=timedelta(seconds=row["job__timeout_seconds"]),
            retries=row["job__retries"],
            retry_delay=timedelta(seconds=row["job__retry_delay_seconds"]),
        )
        for row in rows.order_by("olt_id", "pk").values(*COLUMNS, **settings)
    ]


def profiles_for(hours: Collection[datetime], olt_ids: Collection[int] | None = None) -> dict[int, Mapping[str, Any]]:
    """Return the parts of the profiles that predictions for these hours need.

    Decoding whole profiles takes six times as long, and plans need them once a minute.
    """
    rows = WorkflowNode.objects.filter(olt__enabled=True)
    if olt_ids is not None:
        rows = rows.filter(olt_id__in=olt_ids)
    names = [str(at.astimezone(UTC).hour) for at in hours]
    of_hours = [f"durations__hours__{name}" for name in names]
    columns = ("pk", "durations__recent", "durations__errors", "durations__strays", *of_hours)
    return {
        id_: {
            "recent": recent,
            "errors": errors,
            "strays": strays or 0,
            "hours": {name: seconds for name, seconds in zip(names, times, strict=True) if seconds},
        }
        for id_, recent, errors, strays, *times in rows.values_list(*columns)
        if recent
    }


def prediction(node: Node, profile: Mapping[str, Any], at: datetime) -> Prediction:
    """Return the expected duration of a node, or the default if it never ran."""
    return expected(profile, at) or USUAL[node.kind]


def fleet(now: datetime) -> Fleet:
    """Return the OLTs of this installation for a forecast, with their recent failures.

    An unreachable OLT without any sign of recovery counts as dead.
    """
    broken = frozenset(Olt.objects.filter(enabled=True, breaker_opened_at__isnull=False).values_list("pk", flat=True))
    known = records(now, broken)
    unknown = broken - known.keys()
    never_back = frozenset(id_ for id_, record in known.items() if record.is_dead)
    learned = dict(WorkflowNode.objects.filter(olt__enabled=True).values_list("pk", "durations"))
    predictions: dict[tuple[int, int], Prediction] = {}

    def durations(node: Node, at: datetime) -> Prediction:
        # A profile is constant for an hour of the day and used thousands of times.
        key = (node.id, at.hour)
        if key not in predictions:
            predictions[key] = prediction(node, learned.get(node.id, {}), at)
        return predictions[key]

    nodes = []
    for node in enabled_nodes():
        measured = durations(node, now)
        # As the engine reads it: with the duration that was measured, or none.
        nodes.append(replace(node, expected=measured.mean) if measured.samples else node)
    return Fleet(tuple(nodes), durations, dead=unknown | never_back, broken=broken, records=known)


def records(now: datetime, broken: Collection[int] = ()) -> dict[int, RunRecord]:
    """Return the failures of OLTs. OLTs without failures are left out, and their runs are not read."""
    recent = ExecutionAttempt.objects.filter(
        execution__slot__gte=now - RECENT, execution__olt__enabled=True, execution__node__isnull=False
    )
    failing = recent.filter(status=Status.FAILED).values("execution__olt")
    ended = recent.filter(
        execution__olt__in=failing,
        ended_at__isnull=False,
        status__in=(Status.SUCCESS, Status.PARTIAL, Status.FAILED),
    )
    columns = ("execution__olt_id", "execution__node_id", "started_at", "ended_at", "status", "error_class")
    by_olt: defaultdict[int, list[Attempt]] = defaultdict(list)
    for olt_id, node_id, began, over, status, error in ended.order_by().values_list(*columns).iterator():
        ending = Ending.ANSWERED
        if status == Status.FAILED:
            ending = Ending.SILENT if error == errors.OltUnreachable.__name__ else Ending.FAILED
        by_olt[olt_id].append(Attempt(node_id, began, over, ending, error not in LASTING))
    return {olt_id: learn(tried, now, is_broken=olt_id in broken) for olt_id, tried in by_olt.items()}
