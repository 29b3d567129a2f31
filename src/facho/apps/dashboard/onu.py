"""The page of one ONU: its state and values first, then its history, notes and places."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from facho.apps.dashboard import freshness, history, onu_timeline, queries
from facho.apps.dashboard.views import ONUS_PER_PAGE, page, show
from facho.apps.inventory import labels
from facho.apps.inventory.scopes import restrict
from facho.apps.jobs.raw_values import raw_values
from facho.apps.polling import live
from facho.apps.telemetry import reading
from facho.apps.telemetry.models import RX_WEAK, Onu, OnuEvent, OnuNote
from facho.problems.queries import problems_with

EVENTS_ON_PAGE = 20
PLACES_ON_PAGE = 10
NOTES_ON_PAGE = 50

# Fields shown elsewhere on the page.
SHOWN_ELSEWHERE = {
    "id", "olt", "slot", "port", "onu", "state", "rx_dbm", "tx_dbm", "olt_rx_dbm", "distance_m", "extra",
    "place_taken", "replaced_by", "pon_port", "rx_level", "last_rx_dbm", "last_distance_m",
}  # fmt: skip
FIELDS = [
    field
    for field in Onu._meta.fields
    if field.name not in SHOWN_ELSEWHERE and not isinstance(field, models.DateTimeField)
]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value at the top of the page. `kind` is that of a power, or empty for a distance."""

    label: str
    kind: str
    value: float | None
    # When it was read.
    at: datetime | None
    # Why there is no value, or why it is an earlier one.
    note: str = ""
    is_earlier: bool = False


def figures(onu: Onu) -> list[Figure]:
    """Return the powers and the distance; of a dark ONU the last ones, and why they are old."""
    rx = _figure(onu, _("ONU receives"), "rx", onu.rx_dbm, onu.power_at, onu.last_rx_dbm, onu.last_rx_at)
    olt_rx = _figure(onu, _("OLT receives"), "olt_rx", onu.olt_rx_dbm, onu.power_at)
    tx = _figure(onu, _("ONU sends"), "tx", onu.tx_dbm, onu.power_at)
    # ZTE measures 0 m to an ONU without light.
    distance = (onu.distance_m or None) if onu.state in Onu.DARK else onu.distance_m
    far = _figure(onu, _("Distance"), "", distance, onu.read_at, onu.last_distance_m, onu.last_distance_at)
    return [rx, olt_rx, tx, far]


def _figure(
    onu: Onu,
    label: str,
    kind: str,
    value: float | None,
    at: datetime | None,
    last: float | None = None,
    last_at: datetime | None = None,
) -> Figure:
    if value is not None:
        return Figure(label, kind, value, at)
    if last is not None:
        return Figure(label, kind, last, last_at, _before(onu), is_earlier=True)
    if at is None:
        return Figure(label, kind, None, None, _("never read"))
    return Figure(label, kind, None, at, _("no light") if onu.state in Onu.DARK else _("the OLT has no value"))


def _before(onu: Onu) -> str:
    """Return when an ONU still had a value that it does not have now."""
    return {
        Onu.State.LOS: _("before the signal was lost"),
        Onu.State.DYING_GASP: _("before the power was lost"),
        Onu.State.OFFLINE: _("before it went offline"),
    }.get(Onu.State(onu.state), _("the OLT has no value now"))


def state_since(onu: Onu, events: Sequence[OnuEvent]) -> datetime | None:
    """Return the start of the state. One that was not stored is that of the last event, or what the OLT reports."""
    if onu.state_since is not None:
        return onu.state_since
    changed = next((event.at for event in events if event.field == OnuEvent.Field.STATE), None)
    return changed or (onu.last_down if onu.state in Onu.DARK else onu.last_up)


def cause_text(onu: Onu) -> str:
    """Return why an ONU is dark; empty if its state already says it."""
    text = onu.down_cause_text if onu.state in Onu.DARK else ""
    return "" if text == onu.get_state_display() else text


def _found(request: HttpRequest, onu_id: int, onus: QuerySet[Onu]) -> Onu:
    hidden = [f"olt__{name}" for name in (*queries.SECRETS, *queries.ENGINES_OWN)]
    return get_object_or_404(restrict(onus.select_related("olt"), request.user).defer(*hidden), pk=onu_id)


@page("telemetry.view_onu")
def onu(request: HttpRequest, onu_id: int) -> HttpResponse:
    now = timezone.now()
    found = _found(request, onu_id, Onu.objects.with_freshness().select_related("replaced_by", "position"))
    rows = queries.node_rows(found.olt_id)
    raw = raw_values(found.olt_id, scalar=False)
    news = live.snapshot_for(request.user, now)
    own = restrict(found.events.all(), request.user)
    events = list(own[:EVENTS_ON_PAGE])
    context = {
        "active": "onus",
        "onu": found,
        "since": state_since(found, events),
        "cause": cause_text(found),
        "figures": figures(found),
        "refusal": reading.refusal_of(found),
        "problems": problems_with(request.user, found) if request.user.has_perm("problems.view_problem") else [],
        "power": freshness.power_freshness(found, rows, news, now),
        "state": freshness.state_freshness(found, rows, news, now),
        "fields": [
            (field.verbose_name, getattr(found, f"{field.name}_text", getattr(found, field.name))) for field in FIELDS
        ],
        "units": {value.name: value.unit for value in raw},
        "raw_values": [value for value in raw if value.is_number],
        "raw_url": reverse("dashboard:onu-values", args=[found.pk]),
        "events": events,
        "notes": _notes(request, found),
        "longest_note": OnuNote.LONGEST,
        "places": own.filter(field=OnuEvent.Field.PLACE)[:PLACES_ON_PAGE],
        "others": _earlier_onus(found),
        "replaced": list(found.replaces.only("index", "name", "serial", "mac", "missing_since")),
        "period": (period := history.Period.read(request.GET.dict(), now)),
        "earlier": period.moved(-1),
        "later": period.moved(1) if period.until < now else None,
        "ranges": history.RANGES,
        "boot": {
            "limits": {"weak": RX_WEAK},
            "columns": {name: str(label) for name, label in labels.COLUMNS.items()},
        },
    }
    return show(request, "onu.html", context)


def _notes(request: HttpRequest, onu: Onu) -> list[tuple[OnuNote, bool]]:
    """Return the newest notes, and whether the user may change each."""
    if not request.user.has_perm("telemetry.view_onunote"):
        return []
    may_change = request.user.has_perm("telemetry.change_onunote")
    return [(note, may_change and note.is_of(request.user)) for note in onu.notes.all()[:NOTES_ON_PAGE]]


def _earlier_onus(onu: Onu) -> QuerySet[Onu]:
    """Return the other ONUs whose last known place is that of this one, the last one first."""
    place = {"slot": onu.slot, "port": onu.port, "onu": onu.onu}
    where = {"index": onu.index} if None in place.values() else place
    others = Onu.objects.filter(olt_id=onu.olt_id, place_taken=True, **where).exclude(pk=onu.pk)
    return others.only("index", "name", "serial", "mac", "missing_since").order_by("-missing_since")[:PLACES_ON_PAGE]


@page("telemetry.view_onuevent")
def onu_events(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Show all events of an ONU, the newest first."""
    found = _found(request, onu_id, Onu.objects.all())
    events = Paginator(restrict(found.events.all(), request.user), ONUS_PER_PAGE).get_page(request.GET.get("page"))
    return show(request, "onu_events.html", {"active": "onus", "onu": found, "page": events, "events": events})


@page("telemetry.view_onu")
def onu_history(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Return the history of an ONU as JSON, for its charts and its timeline."""
    found = _found(request, onu_id, Onu.objects.all())
    period = history.Period.read(request.GET.dict(), timezone.now())
    read = history.onu_history(found, period)
    spans = onu_timeline.timeline(found, read.read, period.since, period.until)
    marks = onu_timeline.marks(found, request.user, period.since, period.until)
    return JsonResponse(
        {
            "from": history.milliseconds(period.since),
            "to": history.milliseconds(period.until),
            "series": {name: history.as_json(points) for name, points in read.lines.items()},
            "breaks": {name: history.breaks(points) for name, points in read.lines.items()},
            "timeline": [_span_json(span) for span in spans],
            "marks": [_mark_json(mark) for mark in marks],
        }
    )


def _span_json(span: onu_timeline.Span) -> dict[str, Any]:
    return {
        "from": history.milliseconds(span.since),
        "to": history.milliseconds(span.until),
        "kind": span.kind,
        "label": span.label,
        "cause": span.cause_text,
    }


def _mark_json(mark: onu_timeline.Mark) -> dict[str, Any]:
    until = None if mark.until is None else history.milliseconds(mark.until)
    return {**asdict(mark), "at": history.milliseconds(mark.at), "until": until}
