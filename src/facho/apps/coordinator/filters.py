"""Filters of quotas, violations, plans and the log."""

import logging

import django_filters
from django.db.models import QuerySet
from django.utils import timezone

from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.apps.inventory.filters import OltRowsFilter
from facho.apps.rest.filters import AnyOfFilter, MomentFilter, YesNoFilter
from facho.engine.events import Event
from facho.engine.quota.quota import hour_of

# In ascending order.
LEVELS = [logging.getLevelName(level) for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)]
LEVELS.append(logging.getLevelName(logging.CRITICAL))


class HourFilter(OltRowsFilter):
    """Filters by hour. An hour is selected by any time in it."""

    hour_after = MomentFilter(field_name="period_start", lookup_expr="gte", label="hour, from")
    hour_before = MomentFilter(field_name="period_start", lookup_expr="lt", label="hour, until before")


class QuotaFilter(HourFilter):
    """Filters by OLT, job, hour and status. `current=true` selects the current hour."""

    task = django_filters.CharFilter(field_name="task_type", lookup_expr="iexact", label="the name of the job")
    status = AnyOfFilter(choices=QuotaTracker.Status.choices, label="status, may be repeated")
    current = YesNoFilter(method="by_current", label="the running hour, or all others")

    class Meta:
        model = QuotaTracker
        fields = ["node"]

    def by_current(self, rows: QuerySet[QuotaTracker], name: str, value: bool) -> QuerySet[QuotaTracker]:
        hour = hour_of(timezone.now())
        return rows.filter(period_start=hour) if value else rows.exclude(period_start=hour)


class ViolationFilter(HourFilter):
    """Filters by OLT, job, hour, severity and notification."""

    task = django_filters.CharFilter(field_name="task_type", lookup_expr="iexact", label="the name of the job")
    severity = AnyOfFilter(choices=QuotaViolation.Severity.choices, label="severity, may be repeated")

    class Meta:
        model = QuotaViolation
        fields = ["node", "notified"]


class PlanFilter(HourFilter):
    """Filters by OLT, hour and status. `current=true` selects the active plans."""

    status = AnyOfFilter(choices=ExecutionPlan.Status.choices, label="status, may be repeated")
    current = YesNoFilter(method="by_current", label="the active plan of the running hour, or others")

    class Meta:
        model = ExecutionPlan
        fields = ["is_feasible"]

    def by_current(self, rows: QuerySet[ExecutionPlan], name: str, value: bool) -> QuerySet[ExecutionPlan]:
        present = {"period_start": hour_of(timezone.now()), "status": ExecutionPlan.Status.ACTIVE}
        return rows.filter(**present) if value else rows.exclude(**present)


class LogFilter(OltRowsFilter):
    """Filters by OLT, event, minimum level and time."""

    event = AnyOfFilter(
        field_name="event_type", choices=[(event.name, event.name) for event in Event], label="event, may be repeated"
    )
    level = django_filters.ChoiceFilter(
        method="by_level", choices=[(level, level) for level in LEVELS], label="at least this level"
    )
    after = MomentFilter(field_name="timestamp", lookup_expr="gte", label="time, from")
    before = MomentFilter(field_name="timestamp", lookup_expr="lt", label="time, until before")

    class Meta:
        model = CoordinatorLog
        fields: tuple[str, ...] = ()

    def by_level(self, rows: QuerySet[CoordinatorLog], name: str, value: str) -> QuerySet[CoordinatorLog]:
        return rows.filter(level__in=LEVELS[LEVELS.index(value) :])
