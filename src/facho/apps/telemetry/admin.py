"""ONUs and their events in the admin, read-only: the engine owns them."""

from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import (
    MultipleChoicesDropdownFilter,
    RadioFilter,
    RangeNumericFilter,
    SingleNumericFilter,
)
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from facho.apps.inventory.admin_tools import (
    EnginesAdmin,
    PeriodFilter,
    ScopedDropdownFilter,
    exactly,
    moment_column,
    tab,
)
from facho.apps.inventory.formats import decimal
from facho.apps.inventory.queries import OLT_HEAVY
from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import Onu, OnuEvent
from facho.apps.telemetry.search import matching
from facho.engine.chunks import FIELDS

# As many as fit on a screen; the ONU page and the API have the others.
SHOWN_READINGS = 20

STATE_COLOURS = {
    "online": "success",
    "offline": "danger",
    "los": "danger",
    "dying_gasp": "warning",
    "auth_failed": "danger",
    "logging": "info",
    "syncing": "info",
    "degraded": "warning",
    "disabled": "default",
    "unknown": "default",
    "missing": "warning",
}


def number_column(field: str, places: int, description: Any) -> Any:
    """Return a column with a number of an ONU."""

    @display(description=description, ordering=field, empty_value="-")
    def column(_admin: Any, onu: Onu) -> str | None:
        value = getattr(onu, field)
        return None if value is None else decimal(value, places)

    return column


class PresenceFilter(RadioFilter):
    """All ONUs, present ones, or missing ones."""

    title = _("presence")
    parameter_name = "missing"
    all_option = ["", _("All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("no", _("Present")), ("yes", _("Missing"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Onu]) -> QuerySet[Onu]:
        if self.value() not in ("yes", "no"):
            return queryset
        return queryset.filter(missing_since__isnull=self.value() == "no")


@admin.register(Onu)
class OnuAdmin(EnginesAdmin):
    """The latest known state of every ONU."""

    # Counting all would take as long as the page.
    show_full_result_count = False
    list_display = [
        "name_or_index",
        "olt",
        "place",
        "serial",
        "state_badge",
        "rx",
        "tx",
        "olt_rx",
        "distance",
        "read_at",
    ]
    list_fullwidth = True
    list_select_related = ["olt"]
    list_filter = [
        ("olt", ScopedDropdownFilter),
        ("state", MultipleChoicesDropdownFilter),
        PresenceFilter,
        ("slot", SingleNumericFilter),
        ("port", SingleNumericFilter),
        ("rx_dbm", RangeNumericFilter),
    ]
    olt_path = "olt"
    search_fields = ["name"]
    matching = staticmethod(matching)
    list_per_page = 50
    readonly_fields = [
        "admin_state_label",
        "down_cause_label",
        "replaced_onus",
        "read_at",
        "state_at",
        "power_at",
        "readings",
    ]
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("olt", "index"),
                    ("slot", "port", "onu"),
                    ("serial", "mac"),
                    ("name", "description"),
                    ("model", "software"),
                    ("line_profile", "service_profile"),
                ]
            },
        ),
        tab(
            _("State"),
            ("state", "admin_state_label"),
            "down_cause_label",
            ("last_up", "last_down"),
            "state_at",
            ("missing_since", "misses"),
            ("replaced_by", "replaced_onus"),
            ("moved_from", "moved_at"),
        ),
        tab(
            _("Power and traffic"),
            ("rx_dbm", "tx_dbm", "olt_rx_dbm"),
            "power_at",
            ("distance_m", "temperature_c", "voltage_v"),
            ("in_octets", "out_octets"),
        ),
        tab(_("Readings"), "readings"),
        tab(_("More"), "extra", "first_seen_at", "read_at"),
    ]
    rx = number_column("rx_dbm", 2, _("rx (dBm)"))
    tx = number_column("tx_dbm", 2, _("tx (dBm)"))
    olt_rx = number_column("olt_rx_dbm", 2, _("OLT rx (dBm)"))
    distance = number_column("distance_m", 0, _("distance (m)"))
    read_at = moment_column("read_at", _("last read"))
    state_at = moment_column("state_at", _("state read"))
    power_at = moment_column("power_at", _("power read"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Onu]:
        onus: Any = super().get_queryset(request)
        fresh: QuerySet[Onu] = onus.with_freshness().defer(*OLT_HEAVY)
        return fresh

    @display(description=_("name"), ordering="name")
    def name_or_index(self, onu: Onu) -> str:
        return str(onu)

    @display(description=_("slot/port/ONU"), ordering="slot")
    def place(self, onu: Onu) -> str:
        known = [onu.slot, onu.port, onu.onu]
        return "/".join("?" if number is None else str(number) for number in known)

    @display(description=_("administrative state"), empty_value="-")
    def admin_state_label(self, onu: Onu) -> str:
        return onu.admin_state_text

    @display(description=_("down cause"), empty_value="-")
    def down_cause_label(self, onu: Onu) -> str:
        return onu.down_cause_text

    @display(description=_("replaces"), empty_value="-")
    def replaced_onus(self, onu: Onu) -> SafeString:
        links = ((reverse("admin:telemetry_onu_change", args=[each.pk]), str(each)) for each in onu.replaces.all())
        return format_html_join(", ", '<a href="{}">{}</a>', links)

    @display(description=_("latest readings"), empty_value="-")
    def readings(self, onu: Onu) -> str:
        """Return the last readings of the last day as a table."""
        now = timezone.now()
        rows = series(onu.pk, list(FIELDS), now - timedelta(days=1), now)[: -SHOWN_READINGS - 1 : -1]
        names = {field.name: field.verbose_name for field in Onu._meta.concrete_fields}
        states = dict(Onu.State.choices)
        return render_to_string(
            "telemetry/readings.html",
            {
                "headings": [_("read"), *(names[name] for name in FIELDS)],
                "rows": [[exactly(row["at"]), *(states.get(row[name], row[name]) for name in FIELDS)] for row in rows],
            },
        )

    @display(description=_("state"), label=STATE_COLOURS, ordering="state")
    def state_badge(self, onu: Onu) -> tuple[str, Any]:
        if onu.missing_since is not None:
            return "missing", gettext("missing since %(time)s") % {"time": exactly(onu.missing_since)}
        return onu.state, onu.get_state_display()


@admin.register(OnuEvent)
class OnuEventAdmin(EnginesAdmin):
    """Events of ONUs."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ["exact_time", "olt", "onu", "field", "before", "after", "why"]
    list_select_related = ["olt", "onu"]
    list_filter = [
        ("olt", ScopedDropdownFilter),
        ("field", MultipleChoicesDropdownFilter),
        ("at", PeriodFilter),
    ]
    olt_path = "olt"
    search_fields = ["onu__name"]
    matching = staticmethod(partial(matching, path="onu"))
    list_per_page = 50
    fields = [("exact_time", "olt", "onu"), ("field", "before", "after"), "why"]
    readonly_fields = ["exact_time", "before", "after", "why"]
    exact_time = moment_column("at", _("time"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[OnuEvent]:
        events: QuerySet[OnuEvent] = super().get_queryset(request)
        return events.defer(*OLT_HEAVY)

    @display(description=_("before"), empty_value="-")
    def before(self, event: OnuEvent) -> str:
        return event.old_text

    @display(description=_("after"), empty_value="-")
    def after(self, event: OnuEvent) -> str:
        return event.new_text

    @display(description=_("cause"), empty_value="-")
    def why(self, event: OnuEvent) -> str:
        return event.cause_text
