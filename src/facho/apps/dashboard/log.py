"""The log of the engine, and its files."""

from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.apps.coordinator.columns import LOG_COLUMNS
from facho.apps.coordinator.event_labels import EVENT_LABELS, LEVEL_LABELS, event_label, level_label
from facho.apps.coordinator.filters import LEVELS, LogFilter
from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.coordinator.queries import OLT_HEAVY
from facho.apps.dashboard import queries
from facho.apps.dashboard.field_times import time_words
from facho.apps.dashboard.files import file_of
from facho.apps.dashboard.list_pages import ListColumn, ListQuery, ListSpec, page_number, uncounted_page
from facho.apps.dashboard.onu_list import olt_name
from facho.apps.dashboard.views import page, show
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.rest.filters import MomentFilter


class LogListFilter(LogFilter):
    """Filters of the API. `before` means older rows in the address of a page, so both times have other names."""

    after = before = None  # type: ignore[assignment]  # removes them
    time_after = MomentFilter(field_name="timestamp", lookup_expr="gte", label="time, from")
    time_before = MomentFilter(field_name="timestamp", lookup_expr="lt", label="time, until before")


LOG = ListSpec(
    name="log",
    filters=LogListFilter,
    columns=(
        ListColumn("time", _("Time"), in_files=("id", "timestamp")),
        ListColumn("level", _("Level")),
        ListColumn("event", _("Event")),
        ListColumn("olt", _("OLT"), in_files=("olt", "olt_name")),
        ListColumn("text", _("What happened"), in_files=("sentence", "message")),
    ),
    sentences={
        "q": _("Search: %(value)s"),
        "olt": _("OLT: %(value)s"),
        "site": _("Site: %(value)s"),
        "tag": _("Tag: %(value)s"),
        "event": _("Event: %(value)s"),
        "level": _("Level: at least %(value)s"),
        "time_after": _("Time: from %(value)s"),
        "time_before": _("Time: before %(value)s"),
    },
    words={
        "olt": olt_name,
        "event": lambda value, _request: event_label(value),
        "level": lambda value, _request: level_label(value),
        "time_after": time_words,
        "time_before": time_words,
    },
)


def found(wanted: ListQuery, user: Any) -> QuerySet[CoordinatorLog]:
    """Return the entries of a list, the newest first. A text is also looked for in the names of OLTs and events."""
    entries = wanted.narrowed(restrict(CoordinatorLog.objects.all(), user))
    if text := wanted.text:
        events = [event.name for event, label in EVENT_LABELS.items() if text.casefold() in str(label).casefold()]
        olts = visible_olts(user).filter(name__icontains=text).order_by()
        entries = entries.filter(Q(message__icontains=text) | Q(event_type__in=events) | Q(olt__in=olts.values("pk")))
    return entries.order_by("-timestamp", "-pk")


def _loaded(ids: list[int]) -> list[CoordinatorLog]:
    entries = CoordinatorLog.objects.select_related("olt").defer(*OLT_HEAVY).in_bulk(ids)
    return [entries[pk] for pk in ids if pk in entries]


@page("coordinator.view_coordinatorlog")
def log(request: HttpRequest) -> HttpResponse:
    """Show what the engine did: starts, failures, retries, lost slots, changes of jobs."""
    wanted = ListQuery(request, LOG)
    shown = uncounted_page(found(wanted, request.user), page_number(request.GET.get("page")), _loaded)
    context = {
        "active": "log",
        "entries": shown.object_list,
        "page": shown,
        "olts": visible_olts(request.user).only("name"),
        "olt_id": queries.number(wanted.query.get("olt")),
        "levels": [(level, LEVEL_LABELS[level]) for level in LEVELS[1:]],
        "events": sorted(((event.name, str(label)) for event, label in EVENT_LABELS.items()), key=lambda each: each[1]),
    }
    return show(request, "log.html", {**context, **wanted.context()})


@page("coordinator.view_coordinatorlog")
def log_file(request: HttpRequest, file_format: str) -> HttpResponseBase:
    wanted = ListQuery(request, LOG)
    table = CoordinatorLog.objects.annotate(olt_name=F("olt__name"))
    return file_of(wanted, found(wanted, request.user), table, LOG_COLUMNS, gettext("Log"), file_format)
