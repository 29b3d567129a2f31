"""Maintenance as rows: logs its start, its end and a reminder once each, and creates the next window."""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from facho.apps.maintenance.models import Maintenance, MaintenanceWindow
from facho.apps.maintenance.queries import windows_between
from facho.engine.events import Event, log_event

logger = logging.getLogger(__name__)


def step(now: datetime) -> None:
    """Log what is due. Each mark is a conditional update, so no event is logged twice."""
    for window in windows_between(now, now):
        if window.started_at is None and _mark(window, "started_at", now):
            _tell(Event.MAINTENANCE_STARTED, window)
        is_due = window.reminded_at is None and (window.span.reminder_at or window.ends_at) <= now
        if is_due and _mark(window, "reminded_at", now):
            _tell(Event.MAINTENANCE_ENDS_SOON, window)
    over = MaintenanceWindow.objects.filter(ends_at__lte=now, started_at__isnull=False, ended_at__isnull=True)
    for window in over.select_related("maintenance__olt", "maintenance__site", "maintenance__tag"):
        if _mark(window, "ended_at", now):
            _tell(Event.MAINTENANCE_ENDED, window)
    _create_next(now)


def _mark(window: MaintenanceWindow, name: str, now: datetime) -> bool:
    # A user may have moved the end in the meantime.
    same = MaintenanceWindow.objects.filter(pk=window.pk, ends_at=window.ends_at, **{f"{name}__isnull": True})
    return bool(same.update(**{name: now}))


def _tell(event: Event, window: MaintenanceWindow) -> None:
    plan = window.maintenance
    end = {} if event is Event.MAINTENANCE_ENDED else {"at": window.ends_at.isoformat(timespec="seconds")}
    log_event(logger, event, olt_id=plan.olt_id, target=plan.target, **end)


def _create_next(now: datetime) -> None:
    """Create the next window of each repeated maintenance that has none."""
    repeated = Maintenance.objects.filter(cancelled_at__isnull=True).exclude(recurrence=Maintenance.Recurrence.NONE)
    going_on = repeated.filter(Q(repeats_until__isnull=True) | Q(repeats_until__gt=now))
    for plan in going_on.exclude(windows__ends_at__gt=now):
        with transaction.atomic():
            plan.settle(now)
