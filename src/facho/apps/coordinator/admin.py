"""Quotas, violations, plans and the log in the admin, read-only."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from unfold.contrib.filters.admin import (
    BooleanRadioFilter,
    ChoicesDropdownFilter,
    FieldTextFilter,
    MultipleChoicesDropdownFilter,
    MultipleDropdownFilter,
    RadioFilter,
)
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from facho.apps.coordinator.advice import plan_advice, violation_advice
from facho.apps.coordinator.event_labels import EVENT_LABELS, LEVEL_LABELS, event_label, level_label
from facho.apps.coordinator.filters import LEVELS
from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.apps.coordinator.progress import RISKS, QuotaProgress, risk_of
from facho.apps.coordinator.queries import EVERY, OLT_HEAVY
from facho.apps.coordinator.text import sentence
from facho.apps.coordinator.timeline import runs_of, timeline
from facho.apps.inventory import formats, labels
from facho.apps.inventory.admin_tools import EnginesAdmin, JobSearch, PeriodFilter, ScopedDropdownFilter, exactly
from facho.engine.events import Event
from facho.engine.quota.quota import hour_of

LEVEL_COLOURS = {"DEBUG": "default", "INFO": "info", "WARNING": "warning", "ERROR": "danger", "CRITICAL": "danger"}
QUOTA_COLOURS = {
    "IN_PROGRESS": "info",
    "COMPLETED": "success",
    "PARTIAL": "success",
    "QUOTA_NOT_MET": "warning",
    "FAILED": "danger",
    "INTERRUPTED": "default",
}
SEVERITY_COLOURS = {"LOW": "info", "MEDIUM": "warning", "HIGH": "danger", "CRITICAL": "danger"}
PLAN_COLOURS = {"ACTIVE": "info", "COMPLETED": "success", "SUPERSEDED": "default", "ABORTED": "warning"}
RISK_COLOURS = {"on_course": "success", "behind": "warning", "at_risk": "warning", "lost": "danger"}


class HourAdmin(EnginesAdmin):
    """Rows of an OLT and an hour."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_select_related = ["olt"]
    list_per_page = 50
    olt_path = "olt"

    class Media:
        css = {"all": ["coordinator/parts.css", "coordinator/admin.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer(*OLT_HEAVY)

    @display(description=_("hour"), ordering="period_start")
    def hour(self, row: Any) -> str:
        return formats.hour(row.period_start)


class JobHourAdmin(JobSearch, HourAdmin):
    """Rows of a job on an OLT and an hour."""

    search_fields = ["task_type", "olt__name"]
    job_name = "task_type"

    @display(description=_("job"), ordering="task_type")
    def job(self, row: QuotaTracker | QuotaViolation) -> str:
        return labels.job(row.task_type)


class RunningHourFilter(RadioFilter):
    """Filter: the current hour, or finished ones."""

    title = _("hour")
    parameter_name = "hour"
    all_option = ["", _("All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("running", _("Running")), ("over", _("Over"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        hour = hour_of(timezone.now())
        if self.value() == "running":
            return queryset.filter(period_start=hour)
        return queryset.filter(period_start__lt=hour) if self.value() == "over" else queryset


@admin.register(QuotaTracker)
class QuotaAdmin(JobHourAdmin):
    """Quota of each job on each OLT, per hour."""

    list_display = ["hour", "olt", "job", "bar", "status_badge", "risk_badge", "mean_seconds"]
    list_filter = [
        RunningHourFilter,
        ("olt", ScopedDropdownFilter),
        ("status", MultipleChoicesDropdownFilter),
        ("task_type", FieldTextFilter),
        ("period_start", PeriodFilter),
    ]
    change_form_before_template = "coordinator/quota.html"
    fields = [("olt", "node", "job"), ("hour", "status"), ("mean_seconds", "updated_at")]
    readonly_fields = ["hour", "job", "mean_seconds"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        quotas: QuerySet[Any] = super().get_queryset(request).annotate(every=EVERY)
        return quotas

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        quota = context["original"]
        context["progress"] = QuotaProgress.of(quota)
        context["risk"] = RISKS.get(risk_of(quota, timezone.now()) or "")
        page: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return page

    @display(description=pgettext_lazy("runs", "completed"), ordering="quota_completed")
    def bar(self, quota: QuotaTracker) -> str:
        return render_to_string("coordinator/_quota_cell.html", {"progress": QuotaProgress.of(quota)})

    @display(description=_("status"), label=QUOTA_COLOURS, ordering="status")
    def status_badge(self, quota: QuotaTracker) -> tuple[str, Any]:
        return quota.status, quota.get_status_display()

    @display(description=_("outlook"), label=RISK_COLOURS)
    def risk_badge(self, quota: QuotaTracker) -> tuple[str, Any] | None:
        word = risk_of(quota, timezone.now())
        return (word, RISKS[word]) if word else None

    @display(description=_("mean duration (s)"), empty_value="-", ordering="avg_duration_ms")
    def mean_seconds(self, quota: QuotaTracker) -> str | None:
        return None if quota.avg_duration_ms is None else formats.decimal(quota.avg_duration_ms / 1000, 2)


@admin.register(QuotaViolation)
class ViolationAdmin(JobHourAdmin):
    """Violations, as a readable page."""

    list_display = ["hour", "olt", "job", "severity_badge", "numbers", "first_advice", "notified"]
    list_filter = [
        ("olt", ScopedDropdownFilter),
        ("severity", MultipleChoicesDropdownFilter),
        ("notified", BooleanRadioFilter),
        ("period_start", PeriodFilter),
    ]
    change_form_before_template = "coordinator/violation.html"
    fields = [("olt", "node", "job"), ("hour", "severity"), ("notified", "notified_at")]
    readonly_fields = ["hour", "job"]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        violation = context["original"]
        context["hour"] = formats.hour(violation.period_start)
        context["progress"] = _reported(violation.report)
        context["advice"] = violation_advice(violation.report)
        context["raw_report"] = json.dumps(violation.report, indent=2, ensure_ascii=False)
        page: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return page

    @display(description=_("severity"), label=SEVERITY_COLOURS, ordering="severity")
    def severity_badge(self, violation: QuotaViolation) -> tuple[str, Any]:
        return violation.severity, violation.get_severity_display()

    @display(description=pgettext_lazy("runs", "completed"))
    def numbers(self, violation: QuotaViolation) -> str:
        return render_to_string("coordinator/_quota_cell.html", {"progress": _reported(violation.report)})

    @display(description=_("what to do"), empty_value="-")
    def first_advice(self, violation: QuotaViolation) -> str | None:
        return next(iter(violation_advice(violation.report)), None)


def _reported(report: dict[str, Any]) -> QuotaProgress:
    names = ("required", "completed", "failed", "skipped", "pending")
    return QuotaProgress(*(int(report.get(name) or 0) for name in names))


@admin.register(ExecutionPlan)
class PlanAdmin(HourAdmin):
    """Plan of each OLT's hour, beside the actual result."""

    list_display = [
        "hour",
        "olt",
        "status_badge",
        "fits_badge",
        "used",
        "reason",
        "total_tasks",
        "completed_tasks",
        "failed_tasks",
    ]
    list_filter = [
        RunningHourFilter,
        ("olt", ScopedDropdownFilter),
        ("status", ChoicesDropdownFilter),
        ("reason", ChoicesDropdownFilter),
        ("is_feasible", BooleanRadioFilter),
        ("period_start", PeriodFilter),
    ]
    search_fields = ["olt__name"]
    change_form_before_template = "coordinator/plan.html"
    fields = [
        ("olt", "hour"),
        ("status", "reason"),
        ("total_tasks", "failures_in_row"),
        ("completed_tasks", "failed_tasks"),
        ("created_at", "updated_at"),
    ]
    readonly_fields = ["hour"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # The list does not need the slots.
        return super().get_queryset(request).defer("plan_data")

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        plan = context["original"]
        context["line"] = timeline(plan, runs_of(plan), timezone.now())
        context["advice"] = plan_advice(plan.advice)
        context["needed_minutes"] = plan.needed_seconds / 60
        page: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return page

    @display(description=_("status"), label=PLAN_COLOURS, ordering="status")
    def status_badge(self, plan: ExecutionPlan) -> tuple[str, Any]:
        return plan.status, plan.get_status_display()

    @display(description=_("fits"), label={"yes": "success", "no": "danger"}, ordering="is_feasible")
    def fits_badge(self, plan: ExecutionPlan) -> tuple[str, Any]:
        return ("yes", _("fits")) if plan.is_feasible else ("no", _("does not fit"))

    @display(description=_("utilisation"), ordering="utilisation")
    def used(self, plan: ExecutionPlan) -> str:
        return f"{formats.whole(plan.utilisation)} %"


class LevelFilter(RadioFilter):
    """Entries of at least this level."""

    title = _("minimum level")
    parameter_name = "least"
    all_option = ["", _("All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(level, LEVEL_LABELS[level]) for level in LEVELS[1:]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[CoordinatorLog]) -> QuerySet[CoordinatorLog]:
        level = self.value()
        return queryset.filter(level__in=LEVELS[LEVELS.index(level) :]) if level in LEVELS else queryset


class EventFilter(MultipleDropdownFilter):
    """Entries of some kinds of events."""

    title = _("event")
    parameter_name = "event"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(event.name, EVENT_LABELS[event]) for event in Event]

    def queryset(self, request: HttpRequest, queryset: QuerySet[CoordinatorLog]) -> QuerySet[CoordinatorLog]:
        chosen = [name for name in self.value() or () if name in Event.__members__]
        return queryset.filter(event_type__in=chosen) if chosen else queryset


@admin.register(CoordinatorLog)
class LogAdmin(EnginesAdmin):
    """Log of the engine."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ["time", "level_badge", "event", "olt", "said"]
    list_fullwidth = True
    list_select_related = ["olt"]
    list_filter = [("olt", ScopedDropdownFilter), LevelFilter, EventFilter, ("timestamp", PeriodFilter)]
    olt_path = "olt"
    search_fields = ["message"]
    fields = [("time", "level_name", "event"), "olt", "said", "logged", "details"]
    readonly_fields = ["time", "level_name", "event", "said", "logged"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[CoordinatorLog]:
        rows: QuerySet[CoordinatorLog] = super().get_queryset(request)
        return rows.defer(*OLT_HEAVY)

    @display(description=_("time"), ordering="timestamp")
    def time(self, entry: CoordinatorLog) -> str | None:
        return exactly(entry.timestamp)

    @display(description=_("level"), label=LEVEL_COLOURS, ordering="level")
    def level_badge(self, entry: CoordinatorLog) -> tuple[str, str]:
        return entry.level, level_label(entry.level)

    @display(description=_("level"))
    def level_name(self, entry: CoordinatorLog) -> str:
        return level_label(entry.level)

    @display(description=_("event"), ordering="event_type")
    def event(self, entry: CoordinatorLog) -> str:
        return event_label(entry.event_type)

    @display(description=_("in the log file"))
    def logged(self, entry: CoordinatorLog) -> str:
        return entry.message

    @display(description=_("what happened"))
    def said(self, entry: CoordinatorLog) -> str:
        return sentence(entry)
