"""Alerts and deliveries in the admin: read, acknowledge, send again."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import (
    ChoicesDropdownFilter,
    RadioFilter,
    RelatedDropdownFilter,
)
from unfold.decorators import action, display
from unfold.paginator import InfinitePaginator

from facho.alerts import text
from facho.alerts.models import Alert, Delivery
from facho.alerts.scopes import restrict_deliveries
from facho.apps.inventory.admin_tools import (
    EnginesAdmin,
    EnginesInline,
    PeriodFilter,
    ScopedDropdownFilter,
    moment_column,
)
from facho.apps.inventory.queries import OLT_HEAVY

SEVERITY_COLOURS = {"info": "info", "warning": "warning", "critical": "danger"}
STATE_COLOURS = {"open": "danger", "acknowledged": "warning", "recovered": "success", "closed": "info"}
STATUS_COLOURS = {"PENDING": "info", "SENT": "success", "FAILED": "danger", "SUPPRESSED": "default"}


class OpenFilter(RadioFilter):
    """All alerts, open ones first, unless filtered."""

    title = _("state")
    parameter_name = "state"
    all_option = ["", _("All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("open", _("Open")), ("unseen", _("Open, not acknowledged")), ("recovered", _("Recovered"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Alert]) -> QuerySet[Alert]:
        if self.value() == "unseen":
            queryset = queryset.filter(acknowledged_at__isnull=True)
        return queryset.filter(recovered_at__isnull=self.value() != "recovered") if self.value() else queryset


class DeliveryInline(EnginesInline):
    """The messages about an alert."""

    model = Delivery
    fields = ["news", "channel_name", "status", "reason", "attempts", "due", "sent", "error"]
    readonly_fields = fields
    ordering = ["id"]
    show_change_link = True
    due = moment_column("due_at", pgettext_lazy("delivery", "due"))
    sent = moment_column("sent_at", _("sent at"))


@admin.register(Alert)
class AlertAdmin(EnginesAdmin):
    """Current and past alerts."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ["opened", "state_badge", "severity_badge", "subject", "olt", "rule_name", "count", "recovered"]
    list_display_links = ["opened", "subject"]
    list_select_related = ["olt"]
    list_filter = [
        OpenFilter,
        ("severity", ChoicesDropdownFilter),
        ("kind", ChoicesDropdownFilter),
        ("olt", ScopedDropdownFilter),
        ("opened_at", PeriodFilter),
    ]
    olt_path = "olt"
    search_fields = ["rule_name", "olt__name"]
    actions: Any = ["acknowledge_chosen"]
    inlines = [DeliveryInline]
    fields = [
        "subject",
        "said",
        ("state_name", "severity"),
        ("olt", "count"),
        ("rule_name", "kind"),
        ("opened", "recovered"),
        ("acknowledged", "acknowledged_by"),
        ("held", "is_unstable", "escalated"),
    ]
    readonly_fields = ["subject", "said", "state_name", "opened", "recovered", "acknowledged", "escalated"]
    opened = moment_column("opened_at", _("opened"))
    recovered = moment_column("recovered_at", _("recovered"))
    acknowledged = moment_column("acknowledged_at", _("acknowledged"))
    escalated = moment_column("escalated_at", _("escalated"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Alert]:
        alerts: QuerySet[Alert] = super().get_queryset(request)
        return alerts.defer(*OLT_HEAVY)

    def get_ordering(self, request: HttpRequest) -> tuple[Any, ...]:
        return (F("recovered_at").desc(nulls_first=True), "-opened_at", "-id")

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("alerts.change_alert"))

    @action(description=_("Acknowledge"), icon="done_all", permissions=["acknowledge"])
    def acknowledge_chosen(self, request: HttpRequest, alerts: QuerySet[Alert]) -> None:
        count = sum(alert.acknowledge(by=request.user) for alert in alerts)
        said = ngettext("%(count)d alert was acknowledged.", "%(count)d alerts were acknowledged.", count)
        messages.success(request, said % {"count": count})

    @display(description=_("alert"))
    def subject(self, alert: Alert) -> str:
        return alert.subject

    @display(description=_("details"))
    def said(self, alert: Alert) -> str:
        lines = text.lines(alert.kind, alert.params)
        return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in lines)) or "-"

    @staticmethod
    def _state(alert: Alert) -> tuple[str, str]:
        if alert.is_unknown:
            return "closed", gettext("closed, state unknown")
        if not alert.is_open:
            return "recovered", gettext("recovered")
        return ("acknowledged", gettext("acknowledged")) if alert.acknowledged_at else ("open", gettext("open"))

    @display(description=_("state"), label=STATE_COLOURS)
    def state_badge(self, alert: Alert) -> tuple[str, str]:
        return self._state(alert)

    @display(description=_("state"))
    def state_name(self, alert: Alert) -> str:
        return self._state(alert)[1]

    @display(description=_("severity"), label=SEVERITY_COLOURS, ordering="severity")
    def severity_badge(self, alert: Alert) -> tuple[str, str]:
        return alert.severity, alert.get_severity_display()


@admin.register(Delivery)
class DeliveryAdmin(EnginesAdmin):
    """Every message and its result."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ["created", "news", "channel_name", "status_badge", "reason", "subject", "attempts", "sent", "error"]
    list_select_related = ["alert"]
    list_filter = [
        ("status", ChoicesDropdownFilter),
        ("news", ChoicesDropdownFilter),
        ("channel", RelatedDropdownFilter),
        ("created_at", PeriodFilter),
    ]
    search_fields = ["channel_name", "error"]
    actions: Any = ["retry_chosen"]
    fields = [
        ("channel_name", "news"),
        ("status", "reason"),
        "alert",
        ("attempts", "response_code"),
        "error",
        ("created", "due"),
        ("next_try", "sent"),
    ]
    readonly_fields = ["created", "due", "next_try", "sent"]
    created = moment_column("created_at", _("created"))
    due = moment_column("due_at", pgettext_lazy("delivery", "due"))
    next_try = moment_column("next_try_at", _("next try"))
    sent = moment_column("sent_at", _("sent at"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        return restrict_deliveries(super().get_queryset(request), request.user)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().change_view(request, object_id, *args, **kwargs)
        delivery = self.get_object(request, object_id)
        is_waiting = delivery is not None and delivery.attempts <= 1 and delivery.status == Delivery.Status.PENDING
        if is_waiting and delivery.news == "test":
            # The user has just pressed the button and waits for the result.
            response["Refresh"] = "2"
        return response

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("alerts.change_delivery"))

    @action(description=_("Send again"), icon="replay", permissions=["retry"])
    def retry_chosen(self, request: HttpRequest, deliveries: QuerySet[Delivery]) -> None:
        # The same time for all: those of one rule are one message again.
        now = timezone.now()
        count = sum(delivery.retry(now) for delivery in deliveries)
        said = ngettext("%(count)d message will be sent again.", "%(count)d messages will be sent again.", count)
        messages.success(request, said % {"count": count})

    @display(description=_("alert"), empty_value="-")
    def subject(self, delivery: Delivery) -> str | None:
        return delivery.alert.subject if delivery.alert else None

    @display(description=_("status"), label=STATUS_COLOURS, ordering="status")
    def status_badge(self, delivery: Delivery) -> tuple[str, str]:
        return delivery.status, delivery.get_status_display()
