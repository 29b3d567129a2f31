"""The list of executions, and its files."""

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.apps.dashboard import queries
from facho.apps.dashboard.field_times import time_words
from facho.apps.dashboard.files import file_of
from facho.apps.dashboard.list_pages import MOST, ListColumn, ListQuery, ListSpec, page_number, uncounted_page
from facho.apps.dashboard.onu_list import olt_name
from facho.apps.dashboard.views import page, show
from facho.apps.inventory.models import Tag
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.polling.columns import EXECUTION_COLUMNS
from facho.apps.polling.filters import ExecutionFilter
from facho.apps.polling.models import STATUS_CHOICES, TRIGGER_CHOICES, Execution
from facho.apps.polling.queries import with_chains, with_times


class CompositeFilter(ExecutionFilter):
    """Filters of masters. A status is that of the master or of a link."""

    def filter_queryset(self, queryset: QuerySet[Execution]) -> QuerySet[Execution]:
        statuses = self.form.cleaned_data.pop("status", None)
        found: QuerySet[Execution] = super().filter_queryset(queryset)
        if not statuses:
            return found
        links = Execution.objects.filter(master_execution=OuterRef("pk"), status__in=statuses)
        return found.filter(Q(status__in=statuses) | Exists(links))


def _status_name(value: str, _request: Any) -> str:
    return str(dict(STATUS_CHOICES).get(value, value))


def _trigger_name(value: str, _request: Any) -> str:
    return str(dict(TRIGGER_CHOICES).get(value, value))


EXECUTIONS = ListSpec(
    name="executions",
    filters=CompositeFilter,
    columns=(
        ListColumn("node_name", _("Job and OLT"), ("node_name", "olt__name"), in_files=("node_name", "olt_name")),
        ListColumn("status", _("Status"), ("status",), in_files=("status", "cause", "completeness")),
        ListColumn("chain", _("Chain"), in_files=("trigger",)),
        ListColumn("slot", _("Due"), ("slot",), is_number=True),
        ListColumn("late", _("Late"), ("lateness",), is_number=True, in_files=("started_at", "lateness")),
        ListColumn("took", _("Took"), ("duration",), is_number=True, in_files=("ended_at", "duration")),
        ListColumn("readings", _("ONUs"), ("readings",), is_number=True),
        ListColumn("pdus", _("Requests"), ("pdus",), is_number=True, in_files=("pdus", "retransmissions", "error")),
    ),
    sentences={
        "q": _("Search: %(value)s"),
        "olt": _("OLT: %(value)s"),
        "site": _("Site: %(value)s"),
        "tag": _("Tag: %(value)s"),
        "status": _("Status: %(value)s"),
        "trigger": _("Started by: %(value)s"),
        "node": _("Node: %(value)s"),
        "poller": _("Poller: %(value)s"),
        "master": _("Master: %(value)s"),
        "is_master": _("Masters only: %(value)s"),
        "is_retrying": _("Waiting for another attempt: %(value)s"),
        "slot_after": _("Due: from %(value)s"),
        "slot_before": _("Due: before %(value)s"),
    },
    words={
        "olt": olt_name,
        "status": _status_name,
        "trigger": _trigger_name,
        "slot_after": time_words,
        "slot_before": time_words,
    },
    more=("before",),
)


def found(wanted: ListQuery, user: Any) -> QuerySet[Execution]:
    """Return the masters of a list, the newest first. Another order is among the newest `MOST` of them.

    There may be millions, and an order without an index would read them all.
    """
    masters = wanted.narrowed(restrict(Execution.objects.filter(master_execution__isnull=True), user))
    if wanted.text:
        masters = masters.filter(
            Q(node_name__icontains=wanted.text) | Q(olt__name__icontains=wanted.text) | Q(error__icontains=wanted.text)
        )
    before = queries.number(wanted.request.GET.get("before"))
    if before is not None:
        masters = masters.filter(pk__lt=before)
    newest = masters.order_by("-pk")
    if not wanted.sort:
        return newest
    among = Execution.objects.filter(pk__in=newest.values("pk")[:MOST])
    return with_times(among).order_by(*wanted.order_by)


def _loaded(ids: list[int]) -> list[Execution]:
    hidden = [f"olt__{name}" for name in (*queries.SECRETS, *queries.ENGINES_OWN)]
    runs = with_chains(Execution.objects.select_related("olt").defer(*hidden)).in_bulk(ids)
    return [runs[pk] for pk in ids if pk in runs]


@page("polling.view_execution")
def executions(request: HttpRequest) -> HttpResponse:
    wanted = ListQuery(request, EXECUTIONS)
    shown = uncounted_page(found(wanted, request.user), page_number(request.GET.get("page")), _loaded)
    olts = visible_olts(request.user).select_related("site").only("name", "site__name")
    context = {
        "active": "executions",
        "composites": shown.object_list,
        "page": shown,
        "olts": olts,
        "sites": sorted({each.site.name for each in olts if each.site}),
        "tags": Tag.objects.filter(olts__in=[each.pk for each in olts]).distinct().values_list("name", flat=True),
        "olt_id": queries.number(wanted.query.get("olt")),
        "status": wanted.query.get("status", ""),
        "statuses": STATUS_CHOICES,
        "most": MOST,
    }
    return show(request, "executions.html", {**context, **wanted.context()})


@page("polling.view_execution")
def executions_file(request: HttpRequest, file_format: str) -> HttpResponseBase:
    """Return the list as a file: the newest masters that match, in its order."""
    wanted = ListQuery(request, EXECUTIONS)
    table = Execution.objects.annotate(olt_name=F("olt__name")).defer("coverage", "failed_onus")
    return file_of(wanted, found(wanted, request.user), table, EXECUTION_COLUMNS, gettext("Executions"), file_format)
