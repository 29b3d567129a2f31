"""The list of OLTs, its files, and actions on many of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import Count, F, Q, prefetch_related_objects
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from facho.apps.accounts.permissions import missing
from facho.apps.dashboard import queries
from facho.apps.dashboard.files import file_of
from facho.apps.dashboard.list_pages import ListColumn, ListQuery, ListSpec, page_number, slice_of
from facho.apps.dashboard.olt_jobs import CHANGE_JOB, change_job, chosen_olts
from facho.apps.dashboard.views import page, show
from facho.apps.inventory import bulk
from facho.apps.inventory.columns import OLT_COLUMNS
from facho.apps.inventory.filters import OltFilter
from facho.apps.inventory.models import Olt, Site, Tag
from facho.apps.inventory.queries import with_onu_counts
from facho.apps.inventory.scopes import restrict, restrict_labels, visible_olts
from facho.apps.inventory.search import matching_olts
from facho.apps.jobs.bulk import job_actions_of
from facho.apps.polling.errors import in_words
from facho.apps.telemetry.models import PonPort
from facho.apps.telemetry.port_levels import Level, level


def _state_name(value: str, _request: Any) -> str:
    return str({**dict(Olt.Reachability.choices), "disabled": _("disabled")}.get(value, value))


OLTS = ListSpec(
    name="olts",
    filters=OltFilter,
    columns=(
        ListColumn("name", _("OLT"), ("name",), in_files=("name", "brand", "site", "tags", "location")),
        ListColumn("state", _("State"), ("state",), in_files=("state", "last_error")),
        ListColumn("host", _("Address"), ("host",), in_files=("host", "port")),
        ListColumn("online", _("ONUs online"), ("online",), in_files=("onus_online", "onus_total")),
        ListColumn("dark", pgettext_lazy("ONUs", "Down"), ("dark",), is_number=True, in_files=("onus_missing",)),
        ListColumn("weak", _("Weak"), ("weak",), is_number=True, in_files=("last_answer_at",)),
        ListColumn("dark_ports", _("Ports down"), ("dark_ports",), is_number=True, in_files=("breaker_opened_at",)),
        ListColumn("read_at", _("Data"), ("read_at",), is_number=True, in_files=("last_read_at",)),
    ),
    sentences={
        "q": _("Search: %(value)s"),
        "state": _("State: %(value)s"),
        "site": _("Site: %(value)s"),
        "tag": _("Tag: %(value)s"),
        "brand": _("Brand: %(value)s"),
        "enabled": _("Enabled: %(value)s"),
        "reachability": _("Reachability: %(value)s"),
        "is_suspect": _("ONUs in doubt: %(value)s"),
        "breaker_open": _("Breaker open: %(value)s"),
    },
    words={"state": _state_name, "reachability": _state_name},
)


@dataclass(frozen=True, slots=True)
class ListedOlt:
    """An OLT with the counters of its ONUs and ports."""

    olt: Olt
    onus: queries.OnuCounts
    ports: int
    dark_ports: int
    degraded_ports: int

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """Return its place in the list: an OLT with a dark port is worse than one without, as on the overview."""
        state = queries.REACHABILITY_ORDER[self.olt.state]
        return (state, -self.dark_ports, -self.degraded_ports, self.olt.name)


def _ports(user: Any) -> dict[int, tuple[int, int, int]]:
    """Return the number of ports with ONUs of each OLT, and how many of them are down and degraded."""
    # As a dictionary: the type checker takes keywords for attributes, which exist.
    numbers: dict[str, Any] = {"level": level()}
    ports: Any = restrict(PonPort.objects.filter(total__gt=F("missing")), user).order_by().annotate(**numbers)
    dark, degraded = (Count("pk", filter=Q(level=each)) for each in (Level.DARK, Level.DEGRADED))
    rows = ports.values_list("olt_id").annotate(ports=Count("pk"), down=dark, degraded=degraded)
    return {olt_id: (number, down, degraded) for olt_id, number, down, degraded in rows}


KEYS: dict[str, Callable[[ListedOlt], Any]] = {
    "name": lambda row: row.olt.name.lower(),
    "state": lambda row: queries.REACHABILITY_ORDER[row.olt.state],
    "host": lambda row: _natural(row.olt.host),
    "online": lambda row: row.onus.online,
    "dark": lambda row: row.onus.dark,
    "weak": lambda row: row.onus.weak,
    "dark_ports": lambda row: row.dark_ports,
    "read_at": lambda row: row.onus.read_at,
}


def _natural(host: str) -> list[tuple[int, Any]]:
    """Return a key that sorts 10.0.0.9 before 10.0.0.10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in host.lower().split(".")]


def found(wanted: ListQuery, user: Any, listed: list[queries.OltRow]) -> list[ListedOlt]:
    """Return the OLTs of a list, in its order; the worst first if it has none. `listed`: all that the user sees."""
    if not wanted.is_valid:
        return []
    kept = {row.olt.pk for row in listed}
    if wanted.text or any(name in OltFilter.base_filters for name in wanted.query):
        olts = matching_olts(wanted.narrowed(visible_olts(user).order_by()), wanted.text)
        kept = set(olts.values_list("pk", flat=True))
    ports = _ports(user)
    rows = [ListedOlt(row.olt, row.onus, *ports.get(row.olt.pk, (0, 0, 0))) for row in listed if row.olt.pk in kept]
    rows.sort(key=lambda row: row.rank)
    key = KEYS.get(wanted.sort.removeprefix("-"))
    if key is None:
        return rows
    known = [row for row in rows if key(row) is not None]
    known.sort(key=key, reverse=wanted.sort.startswith("-"))
    return [*known, *(row for row in rows if key(row) is None)]


@page("inventory.view_olt")
def olts(request: HttpRequest) -> HttpResponse:
    wanted = ListQuery(request, OLTS)
    listed = queries.olt_rows(request.user)
    rows = found(wanted, request.user, listed)
    shown = slice_of(rows, page_number(request.GET.get("page")))
    prefetch_related_objects([row.olt for row in shown.object_list], "tags")
    states = {row.olt.state for row in listed}
    actions = bulk.actions_of(request.user)
    may_change = bulk.Action.SET_SITE in actions
    context = {
        "active": "olts",
        "olts": shown.object_list,
        "page": shown,
        "olt_total": len(listed),
        "all_ids": ",".join(str(row.olt.pk) for row in rows),
        "matching": len(rows),
        "state": wanted.query.get("state", ""),
        "states": [name for name in queries.REACHABILITY_ORDER if name in states],
        "sites": sorted({row.olt.site.name for row in listed if row.olt.site}),
        "tags": Tag.objects.filter(olts__in=[row.olt.pk for row in listed]).distinct().values_list("name", flat=True),
        "actions": [*((action.value, action.label) for action in actions), *_job_choice(request.user)],
        "all_sites": restrict_labels(Site.objects.all(), request.user) if may_change else [],
        "all_tags": restrict_labels(Tag.objects.all(), request.user) if may_change else [],
    }
    return show(request, "olts.html", {**context, **wanted.context()})


# In files of the page, errors are in the language of the user too.
COLUMNS = tuple(
    replace(each, said=lambda olt: in_words(olt.last_error)) if each.name == "last_error" else each
    for each in OLT_COLUMNS
)


def _job_choice(user: Any) -> list[tuple[str, str]]:
    return [(CHANGE_JOB, gettext("Change a job"))] if job_actions_of(user) else []


@page("inventory.view_olt")
def olts_file(request: HttpRequest, file_format: str) -> HttpResponseBase:
    """Return the list as a file: the same rows, columns and order."""
    wanted = ListQuery(request, OLTS)
    ids = [row.olt.pk for row in found(wanted, request.user, queries.olt_rows(request.user))]
    olts = with_onu_counts(Olt.objects.select_related("site").defer(*queries.SECRETS, *queries.ENGINES_OWN))
    return file_of(wanted, ids, olts.prefetch_related("tags"), COLUMNS, gettext("OLTs"), file_format)


@require_POST
@login_required
def olts_bulk(request: HttpRequest) -> HttpResponse:
    """Tell what an action would do to how many OLTs; run it when that is confirmed."""
    action = request.POST.get("action", "")
    if action == CHANGE_JOB:
        return change_job(request)
    if not bulk.actions_of(request.user) or not request.user.has_perm("inventory.view_olt"):
        return render(request, "403.html", {"exception": missing(Olt.OPERATE_PERMISSION)}, status=403)
    back = reverse("dashboard:olts") + request.POST.get("back", "")
    chosen = chosen_olts(request)
    if len(chosen) > bulk.MOST_OLTS:
        messages.error(request, gettext("At most %(most)d OLTs at once. Filter the list.") % {"most": bulk.MOST_OLTS})
        return redirect(back)
    if action not in list(bulk.Action) or not chosen:
        messages.error(request, gettext("Tick OLTs and choose an action."))
        return redirect(back)
    wanted = bulk.Action(action)
    if not request.user.has_perm(bulk.PERMISSIONS[wanted]):
        return render(request, "403.html", {"exception": missing(bulk.PERMISSIONS[wanted])}, status=403)
    name = request.POST.get("site" if wanted == bulk.Action.SET_SITE else "tag", "")
    if not name and wanted in (bulk.Action.ADD_TAG, bulk.Action.REMOVE_TAG):
        messages.error(request, gettext("Choose a tag."))
        return redirect(back)
    try:
        label = bulk.label_of(wanted, name, request.user)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect(back)
    if "confirmed" not in request.POST:
        context = {"active": "olts", "olts": chosen, "action": wanted, "label": label, "back": back}
        context |= {"intention": bulk.intention(wanted, len(chosen), label), "ids": ",".join(str(o.pk) for o in chosen)}
        return show(request, "olts_bulk.html", {**context, "name": name, "back_query": request.POST.get("back", "")})
    outcomes = bulk.run(wanted, chosen, label, request.user)
    refused = [each for each in outcomes if each.result == bulk.Result.REFUSED]
    (messages.warning if refused else messages.success)(request, bulk.story(wanted, outcomes))
    for each in refused[:5]:
        messages.error(request, f"{each.name}: {each.detail}")
    return redirect(back)
