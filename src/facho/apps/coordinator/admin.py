"""Quotas, violations, plans and the log in the admin. The engine owns them: they are there to be looked at."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import FieldTextFilter, RelatedDropdownFilter
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.admin_tools import EnginesAdmin, PeriodFilter, exactly

LEVEL_COLOURS = {"WARNING": "warning", "ERROR": "danger", "CRITICAL": "danger", "INFO": "info"}


@admin.register(CoordinatorLog)
class LogAdmin(EnginesAdmin):
    """What the engine decided, in sentences."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ["time", "level_badge", "event_type", "olt", "message"]
    list_select_related = ["olt"]
    list_filter = [
        ("olt", RelatedDropdownFilter),
        ("level", FieldTextFilter),
        ("event_type", FieldTextFilter),
        ("timestamp", PeriodFilter),
    ]
    search_fields = ["message"]

    @display(description=_("time"), ordering="timestamp")
    def time(self, entry: CoordinatorLog) -> str | None:
        return exactly(entry.timestamp)

    @display(description=_("level"), label=LEVEL_COLOURS, ordering="level")
    def level_badge(self, entry: CoordinatorLog) -> str:
        return entry.level
