"""Deletion of an OLT with all its rows, in portions: months of history are gigabytes.

A user's deletion disables the OLT and marks it, and its name and address are free for another one. The rows are then
deleted in short transactions, so that no other writer waits long: by the request for a moment, so that a small OLT is
gone at once, and by the engine, until the OLT itself is the last row. Nothing is deleted while an execution is open.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import Max, Min
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from facho.apps.changes.actor import acting
from facho.apps.changes.fields import differences, read_rows, settings_of
from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.inventory.models import Olt

logger = logging.getLogger(__name__)

# By label, because their apps depend on this one. Rows that others refer to come after those. What is not named here is
# little, and goes with the OLT.
PORTIONS = (
    "telemetry.OutboxRun",
    "telemetry.HistoryRun",
    "telemetry.HistoryChunk",
    "telemetry.HistoryDay",
    "telemetry.HistoryMonth",
    "telemetry.OnuEvent",
    "alerts.Alert",
    "problems.Problem",
    "coordinator.CoordinatorLog",
    "coordinator.QuotaViolation",
    "coordinator.QuotaTracker",
    "coordinator.ExecutionPlan",
    "polling.Execution",
    "telemetry.Onu",
)

# Rows of one portion, and seconds that a portion should take: the first is small, and the next ones follow.
FEWEST, MOST, FIRST, SECONDS = 5, 2_000, 100, 0.05

# Seconds that a request deletes rows before the engine goes on.
MOMENT = 1.5


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that go with an OLT."""

    label: Any
    count: int
    note: str = ""


def parts_of(olt: Olt) -> list[Part]:
    """Return what goes with an OLT, without what there is none of."""
    found = [Part(label, _rows(name, olt).filter(**more).count()) for label, name, more in COUNTED]
    if days := _days_of_history(olt):
        found.append(Part(_("days of history"), days))
    return [part for part in found if part.count]


COUNTED: tuple[tuple[Any, str, dict[str, Any]], ...] = (
    (gettext_lazy("ONUs"), "telemetry.Onu", {}),
    (gettext_lazy("PON ports"), "telemetry.PonPort", {}),
    (pgettext_lazy("of an OLT", "applied jobs"), "jobs.WorkflowNode", {}),
    (gettext_lazy("executions"), "polling.Execution", {}),
    (gettext_lazy("events of ONUs"), "telemetry.OnuEvent", {}),
    (gettext_lazy("open problems"), "problems.Problem", {"until": None}),
    (gettext_lazy("past problems"), "problems.Problem", {"until__isnull": False}),
    (gettext_lazy("open alerts"), "alerts.Alert", {"recovered_at": None}),
    (gettext_lazy("past alerts"), "alerts.Alert", {"recovered_at__isnull": False}),
    (gettext_lazy("planned maintenances"), "maintenance.Maintenance", {}),
    (gettext_lazy("notes of users"), "telemetry.OnuNote", {}),
    (gettext_lazy("positions on the map"), "telemetry.OnuPosition", {}),
)


def _rows(label: str, olt: Olt) -> models.QuerySet[Any]:
    path = "onu__olt" if label == "telemetry.OnuNote" else "olt"
    rows: models.QuerySet[Any] = apps.get_model(label)._base_manager.filter(**{path: olt.pk}).order_by()
    return rows


def _days_of_history(olt: Olt) -> int:
    """Return from when to when there is history, in days."""
    spans = [
        _rows(label, olt).aggregate(first=Min(name), last=Max(name))
        for label, name in (
            ("telemetry.HistoryRun", "at"),
            ("telemetry.HistoryChunk", "start"),
            ("telemetry.HistoryDay", "at"),
            ("telemetry.HistoryMonth", "start"),
        )
    ]
    known = [span for span in spans if span["first"] is not None]
    if not known:
        return 0
    span = max(each["last"] for each in known) - min(each["first"] for each in known)
    days: float = span / timedelta(days=1)
    return max(1, round(days))


def check_name(olt: Olt, typed: str) -> None:
    """Refuse a deletion without the name of the OLT."""
    if typed.strip() != olt.name:
        raise ValidationError(
            _("This is not the name of the OLT, so nothing was deleted. Write exactly: %(name)s") % {"name": olt.name}
        )


def delete_olt(olt: Olt, clock: Callable[[], float] = monotonic) -> bool:
    """Delete an OLT for a user. Returns whether it is gone; if not, the engine deletes the rest.

    It is recorded once, with its settings. The name and the device are free at once.
    """
    with transaction.atomic():
        row = Olt.objects.select_for_update().get(pk=olt.pk)
        if row.deleting_since is None:
            values = read_rows(Olt, [olt.pk], settings_of(Olt))[olt.pk]
            record(Change.Action.DELETED, row, differences(Olt, values, None))
            Olt.objects.filter(pk=olt.pk).update(
                deleting_since=timezone.now(),
                enabled=False,
                # A name that no form accepts twice, and no device.
                name=f"{row.name[:80]} (#{olt.pk})",
                device="",
                resolved_name="",
                addresses="",
            )
            Olt.touch([olt.pk])
            logger.info("OLT %d (%s): deletion requested", olt.pk, row.name)
    with acting(None):
        return delete_rows(olt.pk, seconds=MOMENT, clock=clock)


def delete_rows(olt_id: int, *, seconds: float, clock: Callable[[], float] = monotonic) -> bool:
    """Delete rows of a marked OLT for some seconds. Returns whether the OLT is gone.

    An open execution ends first: the engine stops it within a second after the OLT was disabled.
    """
    until = clock() + seconds
    marked = Olt.objects.filter(pk=olt_id, deleting_since__isnull=False)
    executions = apps.get_model("polling", "Execution")
    open_ones = executions.objects.filter(olt=olt_id, status__in=("PENDING", "RUNNING"))
    if not marked.exists():
        return not Olt.objects.filter(pk=olt_id).exists()
    if open_ones.exists():
        return False
    for label in PORTIONS:
        if not _delete_portions(apps.get_model(label), olt_id, until, clock):
            return False
    try:
        with transaction.atomic():
            marked.delete()
    except IntegrityError:
        # A result was stored in between; the next call deletes it.
        return False
    logger.info("OLT %d: deleted", olt_id)
    return True


def _delete_portions(model: Any, olt_id: int, until: float, clock: Callable[[], float]) -> bool:
    """Delete rows of a table in portions. Returns whether none is left."""
    size = FIRST
    rows = model._base_manager.filter(olt=olt_id)
    while True:
        began = clock()
        if began >= until:
            return False
        # In no order: sorting 300,000 events for each portion takes longer than their deletion.
        pks = list(rows.order_by().values_list("pk", flat=True)[:size])
        if not pks:
            return True
        with transaction.atomic():
            _delete(model, pks)
        took = clock() - began
        size = min(MOST, size * 2) if took < SECONDS / 2 else max(FEWEST, size // 2) if took > SECONDS else size


def _delete(model: Any, pks: list[int]) -> None:
    """Delete rows with those that depend on them. What refers to an ONU or execution is set to nothing by Django."""
    model._base_manager.filter(pk__in=pks).delete()


def deleting() -> list[int]:
    """Return the OLTs that are being deleted."""
    return list(
        Olt.objects.filter(deleting_since__isnull=False).order_by("deleting_since").values_list("pk", flat=True)
    )
