"""Executions, pollers and statistics in the admin, read-only."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import (
    ChoicesRadioFilter,
    MultipleChoicesDropdownFilter,
    RadioFilter,
    SingleNumericFilter,
)
from unfold.decorators import display
from unfold.paginator import InfinitePaginator
from unfold.sections import TableSection

from facho.apps.inventory import labels
from facho.apps.inventory.admin_tools import (
    EnginesAdmin,
    EnginesInline,
    JobSearch,
    PeriodFilter,
    ScopedDropdownFilter,
    exactly,
)
from facho.apps.inventory.formats import decimal
from facho.apps.polling.errors import error_type, in_words
from facho.apps.polling.lateness import PART_LABELS
from facho.apps.polling.models import Execution, ExecutionAttempt, Poller, PollerStats
from facho.apps.polling.queries import with_chains, with_names, with_parts

STATUS_COLOURS = {
    "PENDING": "info",
    "RUNNING": "info",
    "SUCCESS": "success",
    "PARTIAL": "warning",
    "FAILED": "danger",
    "INTERRUPTED": "warning",
    "SKIPPED": "default",
}


class ChainFilter(RadioFilter):
    """Masters with their chains folded, unless filtered."""

    title = _("position in the chain")
    parameter_name = "part"
    all_option = ["", _("Masters")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("links", _("Links")), ("all", _("Both"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Execution]) -> QuerySet[Execution]:
        if self.value() == "all":
            return queryset
        return queryset.filter(master_execution__isnull=self.value() != "links")


class RetryFilter(RadioFilter):
    """Executions with more than one attempt, or with a pending retry."""

    title = _("attempts")
    parameter_name = "tried"
    all_option = ["", _("All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("again", _("More than one")), ("waiting", _("Waiting for another"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "again":
            return queryset.filter(attempts_made__gt=1)
        return queryset.filter(retry_at__isnull=False) if self.value() == "waiting" else queryset


class ExactTimes:
    """Start and end of a row, to the second."""

    @display(description=_("started"))
    def started(self, row: Execution | ExecutionAttempt) -> str:
        return exactly(row.started_at) or "-"

    @display(description=_("ended"))
    def ended(self, row: Execution | ExecutionAttempt) -> str:
        return exactly(row.ended_at) or "-"


class RunNames:
    """Job and type of error of a row, as labels."""

    @display(description=_("job"), ordering="node_name")
    def job(self, row: Execution) -> str:
        return labels.job(row.node_name)

    @display(description=_("error type"), empty_value="-")
    def error_label(self, row: Execution | ExecutionAttempt) -> str:
        return error_type(row.error_class)

    @display(description=_("error"), empty_value="-")
    def error_text(self, row: Execution | ExecutionAttempt) -> str:
        return in_words(row.error)


class ChainSection(ExactTimes, RunNames, TableSection):
    """The links of a master, below its line in the list."""

    verbose_name = _("Chain")
    related_name = "links"
    fields = ["job", "status", "cause", "started", "ended", "readings", "pdus", "error_text"]


class LinkInline(ExactTimes, RunNames, EnginesInline):
    """The links of a master."""

    model = Execution
    fk_name = "master_execution"
    verbose_name_plural = _("Chain")
    fields = ["job", "status", "cause", "started", "ended", "readings", "pdus", "error_text"]
    readonly_fields = fields
    ordering = ["id"]
    show_change_link = True
    hide_title = True


class AttemptInline(ExactTimes, RunNames, EnginesInline):
    """The attempts at an execution."""

    model = ExecutionAttempt
    fields = ["number", "status", "error_label", "error_text", "started", "ended", "pdus"]
    readonly_fields = fields
    hide_title = True


@admin.register(Execution)
class ExecutionAdmin(ExactTimes, RunNames, JobSearch, EnginesAdmin):
    """Executions with their results."""

    # Counting millions of rows for a page number takes longer than the page.
    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = [
        "due",
        "olt",
        "job",
        "status_badge",
        "trigger",
        "poller_id",
        "attempt_count",
        "lateness_seconds",
        "duration_seconds",
        "readings",
        "pdus",
        "cause",
    ]
    list_fullwidth = True
    list_select_related = ["olt"]
    list_sections = [ChainSection]
    list_filter = [
        ChainFilter,
        ("olt", ScopedDropdownFilter),
        ("status", MultipleChoicesDropdownFilter),
        ("trigger", ChoicesRadioFilter),
        ("poller_id", SingleNumericFilter),
        RetryFilter,
        ("slot", PeriodFilter),
    ]
    olt_path = "olt"
    search_fields = ["node_name", "olt__name", "error"]
    job_name = "node_name"
    list_per_page = 50
    inlines = [LinkInline, AttemptInline]
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("olt", "node", "job"),
                    ("status", "cause", "completeness"),
                    ("trigger", "poller_id", "master_execution"),
                    ("due", "slots"),
                    ("attempt_count", "tried_again"),
                    "error_label",
                    "sentences",
                ]
            },
        ),
        (
            pgettext_lazy("execution", "Time"),
            {
                "classes": ["tab"],
                "fields": [
                    ("started", "ended"),
                    ("lateness_seconds", "duration_seconds"),
                    "lateness_parts",
                ],
            },
        ),
        (
            _("Traffic"),
            {
                "classes": ["tab"],
                "fields": [
                    ("readings", "varbinds"),
                    ("pdus", "retransmissions"),
                    ("bytes_sent", "bytes_received"),
                    ("rtt_p50", "rtt_p95", "rtt_p99"),
                    ("peak_in_flight", "size_list"),
                ],
            },
        ),
        (_("Coverage"), {"classes": ["tab"], "fields": ["column_list", "failed_ports", "failed_onu_list"]}),
    ]
    readonly_fields = [
        "job",
        "error_label",
        "due",
        "started",
        "ended",
        "sentences",
        "lateness_seconds",
        "duration_seconds",
        "lateness_parts",
        "attempt_count",
        "tried_again",
        "size_list",
        "column_list",
        "failed_ports",
        "failed_onu_list",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        executions: QuerySet[Execution] = super().get_queryset(request)
        return with_chains(with_parts(executions)).defer(
            "olt__community", "olt__v3_auth_key", "olt__v3_priv_key", "olt__extra", "olt__learned"
        )

    @display(description=_("due"), ordering="slot")
    def due(self, execution: Execution) -> str | None:
        return exactly(execution.slot)

    @display(description=_("status"), label=STATUS_COLOURS, ordering="status")
    def status_badge(self, execution: Execution) -> tuple[str, Any]:
        return execution.status, execution.get_status_display()

    @display(description=_("late (s)"), empty_value="-")
    def lateness_seconds(self, execution: Execution) -> str | None:
        return _rounded(execution.lateness)

    @display(description=_("took (s)"), empty_value="-")
    def duration_seconds(self, execution: Execution) -> str | None:
        return _rounded(execution.duration)

    @display(description=_("causes of the delay"))
    def lateness_parts(self, execution: Execution) -> str:
        lines = ((f"{decimal(seconds, 3)} s", PART_LABELS.get(name, name)) for name, seconds in execution.parts.items())
        return format_html_join(mark_safe("<br>"), "{}: {}", lines) or "-"

    @display(description=_("attempts"), ordering="attempts_made")
    def attempt_count(self, execution: Any) -> str:
        if execution.retry_at is None:
            return str(execution.attempts_made)
        return format_html('{} <span title="{}">↻</span>', execution.attempts_made, exactly(execution.retry_at))

    @display(description=_("tried again"), empty_value="-")
    def tried_again(self, execution: Execution) -> str | None:
        return exactly(execution.retry_at)

    @display(description=_("error"))
    def sentences(self, execution: Execution) -> str:
        return (
            format_html_join(mark_safe("<br>"), "{}", ((line,) for line in in_words(execution.error).splitlines()))
            or "-"
        )

    @display(description=_("request sizes"), empty_value="-")
    def size_list(self, execution: Execution) -> str:
        return ", ".join(f"{table}: {size}" for table, size in execution.sizes.items())

    @display(description=_("columns"))
    def column_list(self, execution: Execution) -> str:
        return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in execution.column_lines()))

    @display(description=_("failed ports"))
    def failed_ports(self, execution: Execution) -> str:
        return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in execution.failure_lines()))

    @display(description=_("failed ONUs"), empty_value="-")
    def failed_onu_list(self, execution: Execution) -> str:
        return ", ".join(execution.failed_onus)


@admin.register(Poller)
class PollerAdmin(EnginesAdmin):
    """Pollers as last reported. The dashboard shows them live."""

    list_display = [
        "poller_id",
        "worker",
        "host",
        "status_badge",
        "olt",
        "node",
        "part",
        "busy",
        "tasks_completed",
        "tasks_delayed",
        "started",
        "reported",
    ]
    list_filter = [("status", ChoicesRadioFilter)]
    search_fields = ["worker", "host"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Poller]:
        pollers: QuerySet[Poller] = super().get_queryset(request)
        return with_names(pollers, request.user)

    @display(description=_("status"), label={"FREE": "success", "BUSY": "info"}, ordering="status")
    def status_badge(self, poller: Poller) -> tuple[str, Any]:
        return poller.status, poller.get_status_display()

    @display(description=_("OLT"), ordering="olt_name", empty_value="-")
    def olt(self, poller: Any) -> str | None:
        name: str | None = poller.olt_name
        return gettext("another OLT") if name is None and poller.current_olt_id is not None else name

    @display(description=_("node"), ordering="job_name", empty_value="-")
    def node(self, poller: Any) -> str | None:
        return labels.job(poller.job_name) if poller.job_name else None

    @display(description=_("link"), empty_value="-")
    def part(self, poller: Poller) -> str | None:
        return f"{poller.link} / {poller.links}" if poller.link else None

    @display(description=_("busy since"), ordering="busy_since", empty_value="-")
    def busy(self, poller: Poller) -> str | None:
        return exactly(poller.busy_since)

    @display(description=_("started"), ordering="created_at")
    def started(self, poller: Poller) -> str | None:
        return exactly(poller.created_at)

    @display(description=_("reported"), ordering="updated_at")
    def reported(self, poller: Poller) -> str | None:
        return exactly(poller.updated_at)


@admin.register(PollerStats)
class PollerStatsAdmin(EnginesAdmin):
    """Load of the pool per minute."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = [
        "timestamp",
        "total_pollers",
        "free_pollers",
        "busy_pollers",
        "busy_percentage",
        "queue_size",
        "delayed",
        "is_saturated",
        "total_tasks_completed",
        "total_tasks_delayed",
    ]
    list_filter = [("timestamp", PeriodFilter)]


def _rounded(seconds: float | None) -> str | None:
    return None if seconds is None else decimal(seconds, 2)
