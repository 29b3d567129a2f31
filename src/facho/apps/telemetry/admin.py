"""ONUs in the admin. The engine owns them: they are there to be looked at."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import (
    MultipleChoicesDropdownFilter,
    RadioFilter,
    RangeNumericFilter,
    RelatedDropdownFilter,
    SingleNumericFilter,
)
from unfold.decorators import display

from facho.apps.inventory.admin_tools import EnginesAdmin, EnginesInline, exactly
from facho.apps.telemetry.models import Onu, OnuHistory

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


class PresenceFilter(RadioFilter):
    """All ONUs, those that are there, or those that discoveries do not find any more."""

    title = _("presence")
    parameter_name = "missing"
    all_option = ["", _("All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("no", _("Present")), ("yes", _("Missing"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Onu]) -> QuerySet[Onu]:
        if self.value() not in ("yes", "no"):
            return queryset
        return queryset.filter(missing_since__isnull=self.value() == "no")


class HistoryInline(EnginesInline):
    """The latest readings of an ONU."""

    model = OnuHistory
    fields = ["exact_time", "state", "rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "in_octets", "out_octets"]
    readonly_fields = fields
    ordering = ["-at"]
    per_page = 20
    hide_title = True

    @display(description=_("read"))
    def exact_time(self, reading: OnuHistory) -> str | None:
        return exactly(reading.at)


@admin.register(Onu)
class OnuAdmin(EnginesAdmin):
    """The latest known state of every ONU."""

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
        "read",
    ]
    list_fullwidth = True
    list_select_related = ["olt"]
    list_filter = [
        ("olt", RelatedDropdownFilter),
        ("state", MultipleChoicesDropdownFilter),
        PresenceFilter,
        ("slot", SingleNumericFilter),
        ("port", SingleNumericFilter),
        ("rx_dbm", RangeNumericFilter),
    ]
    search_fields = ["name", "serial", "mac", "description"]
    list_per_page = 50
    inlines = [HistoryInline]
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
        (
            _("State"),
            {
                "classes": ["tab"],
                "fields": [
                    ("state", "admin_state"),
                    "down_cause",
                    ("last_up", "last_down"),
                    "state_at",
                    ("missing_since", "misses"),
                    ("moved_from", "moved_at"),
                ],
            },
        ),
        (
            _("Power and traffic"),
            {
                "classes": ["tab"],
                "fields": [
                    ("rx_dbm", "tx_dbm", "olt_rx_dbm"),
                    "power_at",
                    ("distance_m", "temperature_c", "voltage_v"),
                    ("in_octets", "out_octets"),
                ],
            },
        ),
        (_("More"), {"classes": ["tab"], "fields": ["extra", "first_seen_at", "read_at"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Onu]:
        onus: QuerySet[Onu] = super().get_queryset(request)
        # The list shows the OLT's name: its secrets stay in the database.
        return onus.defer("olt__community", "olt__v3_auth_key", "olt__v3_priv_key", "olt__extra", "olt__learned")

    @display(description=_("name"), ordering="name")
    def name_or_index(self, onu: Onu) -> str:
        return str(onu)

    @display(description=_("slot/port/ONU"), ordering="slot")
    def place(self, onu: Onu) -> str:
        known = [onu.slot, onu.port, onu.onu]
        return "/".join("?" if number is None else str(number) for number in known)

    @display(description=_("rx (dBm)"), ordering="rx_dbm", empty_value="-")
    def rx(self, onu: Onu) -> float | None:
        return onu.rx_dbm

    @display(description=_("tx (dBm)"), ordering="tx_dbm", empty_value="-")
    def tx(self, onu: Onu) -> float | None:
        return onu.tx_dbm

    @display(description=_("OLT rx (dBm)"), ordering="olt_rx_dbm", empty_value="-")
    def olt_rx(self, onu: Onu) -> float | None:
        return onu.olt_rx_dbm

    @display(description=_("distance (m)"), ordering="distance_m", empty_value="-")
    def distance(self, onu: Onu) -> float | None:
        return onu.distance_m

    @display(description=_("last read"), ordering="read_at")
    def read(self, onu: Onu) -> str | None:
        return exactly(onu.read_at)

    @display(description=_("state"), label=STATE_COLOURS, ordering="state")
    def state_badge(self, onu: Onu) -> tuple[str, Any]:
        if onu.missing_since is not None:
            return "missing", gettext("missing since %(time)s") % {"time": exactly(onu.missing_since)}
        return onu.state, onu.get_state_display()
