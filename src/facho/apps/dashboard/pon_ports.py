"""Pages of PON ports: one port, and the list of all ports with its rankings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import smart_split
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy
from django.views.decorators.http import require_POST

from facho.apps.accounts.permissions import missing
from facho.apps.changes.models import Change
from facho.apps.dashboard import history, onu_timeline, port_timeline
from facho.apps.dashboard.shown_changes import last_changes
from facho.apps.dashboard.views import page, show
from facho.apps.inventory.formats import whole
from facho.apps.inventory.models import Tag
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.rest.filters import search_problem
from facho.apps.telemetry.models import RX_WEAK, Onu, PonPort
from facho.apps.telemetry.pon_ports import (
    Span,
    matching,
    onu_ids,
    onus_at,
    port_rows,
    with_numbers,
)
from facho.apps.telemetry.pon_ports_api import PonPortFilter
from facho.apps.telemetry.port_history import POWER, daily_values, power_changes, traffic
from facho.apps.telemetry.port_levels import Level
from facho.problems.queries import problems_at

CHANGE_PERMISSION = "telemetry.change_ponport"

PORTS_PER_PAGE = 50

# Ranges of the timeline in hours.
RANGES = (24, 7 * 24, 30 * 24)

# Length of the charts.
CHART = timedelta(days=30)

# Order of ONUs by state, the worst first.
STATE_RANKS = {
    state: rank
    for rank, state in enumerate(
        ("los", "dying_gasp", "offline", "missing", "auth_failed", "degraded", "logging", "syncing", "unknown",
         "disabled", "online")
    )
}  # fmt: skip

NOT_ONLINE = [state.value for state in Onu.State if state != Onu.State.ONLINE]


class PortPart:
    """Slot or port in an address: a number, or - if the OLT does not report it."""

    regex = "-|-?[0-9]{1,10}"

    def to_python(self, value: str) -> int | None:
        return None if value == "-" else int(value)

    def to_url(self, value: int | None) -> str:
        return "-" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Header:
    """Head of a column: its link changes the order. Without `next_sort` the column cannot be sorted."""

    label: Any
    next_sort: str = ""
    # Of the order: up or down.
    direction: str = ""
    # Numbers and times are aligned to the end.
    is_end: bool = False


def header(label: Any, key: str, sort: str, *, is_end: bool = False, falls_first: bool = False) -> Header:
    """Return the head of a column that is sorted by this key. A click on the present order reverses it."""
    first, second = (f"-{key}", key) if falls_first else (key, f"-{key}")
    direction = {key: "up", f"-{key}": "down"}.get(sort, "")
    return Header(label, second if sort == first else first, direction, is_end)


@dataclass(frozen=True, slots=True)
class OnuRow:
    """An ONU of a port."""

    onu: Onu

    @property
    def is_dark(self) -> bool:
        return self.onu.state in Onu.DARK

    @property
    def is_weak(self) -> bool:
        return self.power is not None and self.power < RX_WEAK

    @property
    def power(self) -> float | None:
        """Return its received power. An ONU that is down or missing may have an old one, which does not count."""
        return None if self.is_dark or self.onu.is_missing else self.onu.rx_dbm

    @property
    def cause(self) -> str:
        """Return why it is down or missing; empty if it is neither."""
        if self.onu.is_missing:
            return self.onu.missing_cause
        return self.onu.down_cause_text if self.is_dark else ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the ONUs of a port, by which they can be sorted."""

    key: str
    label: Any
    value: Callable[[OnuRow], Any]
    # Numbers and times are aligned to the end.
    is_end: bool = False


COLUMNS = (
    Column("place", gettext_lazy("Place"), lambda row: row.onu.onu),
    Column("name", gettext_lazy("ONU"), lambda row: row.onu.name and row.onu.name.casefold()),
    Column("serial", gettext_lazy("Serial"), lambda row: row.onu.serial or row.onu.mac),
    Column("state", gettext_lazy("State"), lambda row: STATE_RANKS["missing" if row.onu.is_missing else row.onu.state]),
    Column("since", gettext_lazy("Since"), lambda row: row.onu.missing_since or row.onu.state_since, is_end=True),
    Column("cause", gettext_lazy("Cause"), lambda row: row.cause or None),
    Column("rx", gettext_lazy("Rx dBm"), lambda row: row.power, is_end=True),
    Column("olt_rx", gettext_lazy("OLT rx dBm"), lambda row: row.onu.olt_rx_dbm, is_end=True),
    Column("distance", gettext_lazy("Distance"), lambda row: row.onu.distance_m, is_end=True),
    Column("read", gettext_lazy("Last read"), lambda row: row.onu.read_at, is_end=True),
)


def sorted_rows(rows: Sequence[OnuRow], sort: str) -> list[OnuRow]:
    """Return rows in the order of a column, or with - before it in reverse; rows without a value are last."""
    value = next(column.value for column in COLUMNS if column.key == sort.removeprefix("-"))
    by_place = sorted(rows, key=lambda row: (row.onu.onu is None, row.onu.onu, row.onu.pk))
    known = [row for row in by_place if value(row) is not None]
    known.sort(key=value, reverse=sort.startswith("-"))
    return known + [row for row in by_place if value(row) is None]


def _ports(user: Any) -> QuerySet[PonPort]:
    return with_numbers(restrict(PonPort.objects.all(), user))


def _found(request: HttpRequest, place: Mapping[str, int | None]) -> PonPort:
    return get_object_or_404(_ports(request.user), **place)


def _onus(port: PonPort) -> list[Onu]:
    return list(
        Onu.objects.filter(onus_at([port]))
        .with_freshness()
        .select_related("replaced_by")
        .only(
            "slot", "port", "onu", "index", "serial", "mac", "name", "description", "model", "state", "state_since",
            "rx_dbm", "olt_rx_dbm", "distance_m", "last_rx_dbm", "last_rx_at", "last_distance_m", "last_distance_at",
            "down_cause", "missing_since", "moved_at", "moved_from", "first_seen_at",
            *(f"replaced_by__{name}" for name in ("serial", "mac", "slot", "port", "onu", "index")),
        )
    )  # fmt: skip


@page("telemetry.view_ponport")
def port(request: HttpRequest, **place: int | None) -> HttpResponse:
    found, now = _found(request, place), timezone.now()
    onus = _onus(found)
    hours = _chosen_hours(request)
    events = port_timeline.events_of(found.olt_id, onus, now - timedelta(hours=hours))
    lines = port_timeline.lines_of(events.rows)
    sort = _chosen_sort(request)
    rows = [OnuRow(onu) for onu in onus]
    current = {row.onu.pk: row.power for row in rows if row.power is not None}
    ids = onu_ids(found, onus)
    own_changes = Change.objects.filter(object_type="telemetry.ponport", object_id=found.pk)
    context = {
        "active": "ports",
        "port": found,
        "problems": problems_at(request.user, found.olt_id, found.slot, found.port) if _may_see(request) else [],
        "state": state_text(found),
        "by_state": states_text(found),
        "rows": sorted_rows(rows, sort),
        "columns": [header(each.label, each.key, sort, is_end=each.is_end) for each in COLUMNS],
        "mean_rx": fmean(current.values()) if current else None,
        "worst": min((onu for onu in onus if onu.pk in current), key=lambda onu: (onu.rx_dbm, onu.pk), default=None),
        "power_count": len(current),
        "changes_of_power": _changes_of_power(found, current, onus, now),
        "has_ids": ids is not None,
        "free_ids": spans_text(ids.free) if ids else "",
        "reserved_ids": spans_text(ids.reserved) if ids else "",
        "traffic": traffic(found.olt_id, {onu.pk for onu in onus}, now),
        "lines": lines[: port_timeline.MOST_LINES],
        "has_more_lines": len(lines) > port_timeline.MOST_LINES or events.is_cut,
        "hours": hours,
        "ranges": RANGES,
        "may_change": request.user.has_perm(CHANGE_PERMISSION),
        "form": CapacityForm(instance=found),
        "changes": last_changes(own_changes, request.user),
    }
    return show(request, "port.html", context)


def _may_see(request: HttpRequest) -> bool:
    return request.user.has_perm("problems.view_problem")


def _chosen_hours(request: HttpRequest) -> int:
    return next((hours for hours in RANGES if str(hours) == request.GET.get("hours")), RANGES[0])


def _chosen_sort(request: HttpRequest) -> str:
    sort = request.GET.get("sort", "")
    return sort if sort.removeprefix("-") in {column.key for column in COLUMNS} else "place"


def _changes_of_power(port: PonPort, current: Mapping[int, float], onus: Sequence[Onu], now: datetime) -> list[Any]:
    """Return the changes since yesterday and since a week ago: title, change, and the ONU that fell most."""
    by_id = {onu.pk: onu for onu in onus}
    titles = (_("Since yesterday"), _("Since a week ago"))
    found = power_changes(port.olt_id, current, now)
    return [(title, each, by_id[each.fallen] if each else None) for title, each in zip(titles, found, strict=True)]


def state_text(port: PonPort) -> str:
    """Return the state of a port in a sentence."""
    if not port.present:
        return _("There are no ONUs on this port.")
    said = ngettext("%(online)s of %(all)s ONU is online.", "%(online)s of %(all)s ONUs are online.", port.present)
    parts = [said % {"online": whole(port.online), "all": whole(port.present)}]
    if states := states_text(port):
        parts.append(_("Not online: %(states)s.") % {"states": states})
    if port.weak:
        said = ngettext("%(n)s ONU has low power.", "%(n)s ONUs have low power.", port.weak)
        parts.append(said % {"n": whole(port.weak)})
    return " ".join(parts)


def states_text(port: PonPort) -> str:
    """Return the ONUs that are not online, by state: 16 loss of signal, 7 power lost."""
    labels = dict(Onu.State.choices)
    counts = sorted(((getattr(port, state), state) for state in NOT_ONLINE), key=lambda each: -each[0])
    return ", ".join(f"{whole(count)} {labels[state]}" for count, state in counts if count)


def spans_text(spans: Iterable[Span]) -> str:
    """Return spans of ids as text: 5–7, 12."""
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in spans)


@page("telemetry.view_ponport")
def port_history(request: HttpRequest, **place: int | None) -> HttpResponse:
    """Return the charts of a port as JSON: mean and worst power of each day, and the number of ONUs online."""
    found, now = _found(request, place), timezone.now()
    since = now - CHART
    onus = list(
        Onu.objects.filter(onus_at([found])).only(
            "slot", "port", "state", "missing_since", "moved_at", "moved_from", "first_seen_at"
        )
    )
    days = daily_values(found.olt_id, {onu.pk for onu in onus}, POWER, since, now)
    events = port_timeline.events_of(found.olt_id, onus, since)
    online = port_timeline.online_points(onus, events.rows, events.since, now)
    return JsonResponse(
        {
            "from": history.milliseconds(now - CHART),
            "to": history.milliseconds(now),
            "mean": [[history.milliseconds(day), round(fmean(each.values()), 2)] for day, each in days.items()],
            "worst": [[history.milliseconds(day), min(each.values())] for day, each in days.items()],
            "online": history.as_json(history.thin(online, CHART / history.MAX_POINTS)),
            "marks": [
                {
                    "at": history.milliseconds(mark.at),
                    "until": mark.until and history.milliseconds(mark.until),
                    "title": mark.text,
                }
                for marks in (onu_timeline.maintenance_marks, onu_timeline.replacement_marks)
                for mark in marks(found, request.user, since, now)
            ],
        }
    )


class CapacityForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """The capacity of a port."""

    class Meta:
        model = PonPort
        fields = ("capacity",)


@require_POST
@login_required
def port_capacity(request: HttpRequest, **place: int | None) -> HttpResponse:
    """Set the capacity of a port; an empty one is that of the brand."""
    if not request.user.has_perm(CHANGE_PERMISSION):
        return render(request, "403.html", {"exception": missing(CHANGE_PERMISSION)}, status=403)
    found = _found(request, place)
    form = CapacityForm(request.POST, instance=found)
    if form.is_valid():
        form.save()
        messages.success(request, _("The capacity was saved."))
    else:
        messages.error(request, " ".join(map(str, form.errors["capacity"])))
    return redirect(reverse("dashboard:port", kwargs=place))


# Each sort order of the list. Equal ones are ordered by place.
SORTS = {
    "level": ("level_rank", "-dark", "-weak"),
    "online": ("online_percent", "online"),
    "dark": ("dark", "dark_percent"),
    "weak": ("weak", "weak_percent"),
    "used": ("used_percent", "present"),
    "missing": ("missing",),
    "place": (),
}
BY_PLACE = ("olt__name", "slot", "port", "id")

# Title and order of the rankings.
RANKINGS = (
    (pgettext_lazy("ports", "Most troubled"), "level"),
    (pgettext_lazy("ports", "Fullest"), "-used"),
    (pgettext_lazy("ports", "Weakest"), "-weak"),
    (pgettext_lazy("ports", "By place"), "place"),
)


def _headers(sort: str) -> list[Header]:
    return [
        header(_("Port"), "place", sort),
        header(_("Level"), "level", sort),
        header(_("ONUs online"), "online", sort),
        header(pgettext("ONUs", "Down"), "dark", sort, is_end=True, falls_first=True),
        header(_("Weak"), "weak", sort, is_end=True, falls_first=True),
        # Power is read for the ports of a page only.
        Header(_("Mean rx"), is_end=True),
        Header(_("Worst rx"), is_end=True),
        header(_("Used"), "used", sort, is_end=True, falls_first=True),
        header(_("Missing"), "missing", sort, is_end=True, falls_first=True),
        Header(_("Data"), is_end=True),
    ]


def _order(sort: str) -> list[Any]:
    name = sort.removeprefix("-")
    flipped = sort.startswith("-")
    order = []
    for each in SORTS[name]:
        field = F(each.removeprefix("-"))
        is_falling = each.startswith("-") != flipped
        order.append(field.desc(nulls_last=True) if is_falling else field.asc(nulls_last=True))
    places = [f"-{each}" if flipped and name == "place" else each for each in BY_PLACE]
    return [*order, *places]


@page("telemetry.view_ponport")
def ports(request: HttpRequest) -> HttpResponse:
    sort, wanted = request.GET.get("sort", ""), request.GET.get("q", "").strip()
    if sort.removeprefix("-") not in SORTS:
        sort = RANKINGS[0][1]
    problem = search_problem(wanted)
    filters = request.GET.copy()
    for name in [name for name, value in filters.items() if not value or name not in PonPortFilter.base_filters]:
        del filters[name]
    found = PonPortFilter(filters, _ports(request.user), request=request)
    listed = PonPort.objects.none()
    if found.is_valid() and not problem:
        listed = matching(found.qs, smart_split(wanted)).order_by(*_order(sort))
    shown = Paginator(listed, PORTS_PER_PAGE).get_page(request.GET.get("page"))
    olts = visible_olts(request.user).select_related("site").only("name", "site__name")
    context = {
        "active": "ports",
        "page": shown,
        "rows": port_rows(list(shown.object_list)),
        "sort": sort,
        "columns": _headers(sort),
        "rankings": RANKINGS,
        "wanted": request.GET,
        "q": wanted,
        "is_filtered": bool(filters or wanted),
        "problems": [problem] if problem else [each for errors in found.errors.values() for each in errors],
        "olts": olts,
        "sites": sorted({each.site.name for each in olts if each.site}),
        "tags": Tag.objects.filter(olts__in=[each.pk for each in olts]).distinct().values_list("name", flat=True),
        "levels": Level.choices,
    }
    return show(request, "ports.html", context)
