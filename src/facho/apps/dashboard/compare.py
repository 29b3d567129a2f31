"""The page that compares an OLT, or one of its ports, at two times."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

import tablib
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy
from rest_framework.exceptions import ValidationError

from facho.apps.dashboard.queries import ENGINES_OWN, SECRETS
from facho.apps.dashboard.views import page, show
from facho.apps.inventory.formats import decimal, moment_and_zone, whole
from facho.apps.inventory.scopes import visible_olts
from facho.apps.inventory.spans import span
from facho.apps.rest.export import CONTENT_TYPES, MARK
from facho.apps.rest.spreadsheets import FORMATS
from facho.apps.telemetry import words
from facho.apps.telemetry.comparison import OLD_READING, ComparedOnu, OltComparison, Side
from facho.apps.telemetry.comparison_api import ComparisonWish
from facho.apps.telemetry.history import has_daily_values, nearest_readings
from facho.apps.telemetry.models import Onu, OnuEvent, PonPort
from facho.engine.comparison import USUAL_STEP, Kind, Tally

ONUS_PER_PAGE = 100

EVENING, MORNING = time(22), time(6)

LABELS = {
    Kind.DARK: gettext_lazy("went down"),
    Kind.GONE: gettext_lazy("no longer found"),
    Kind.STATE: gettext_lazy("other state"),
    Kind.WEAKER: gettext_lazy("less power"),
    Kind.UNREAD: gettext_lazy("not comparable"),
    Kind.REPLACED: gettext_lazy("replaced"),
    Kind.MOVED: gettext_lazy("moved"),
    Kind.STRONGER: gettext_lazy("more power"),
    Kind.BACK: gettext_lazy("came back"),
    Kind.NEW: gettext_lazy("new"),
}
TONES = {
    Kind.DARK: "bad",
    Kind.GONE: "bad",
    Kind.STATE: "warn",
    Kind.WEAKER: "warn",
    Kind.REPLACED: "info",
    Kind.MOVED: "info",
    Kind.STRONGER: "ok",
    Kind.BACK: "ok",
    Kind.NEW: "info",
}
PHRASES = {
    Kind.DARK: ngettext_lazy("%(n)s went down", "%(n)s went down", "count"),
    Kind.GONE: ngettext_lazy("%(n)s is no longer found", "%(n)s are no longer found", "count"),
    Kind.STATE: ngettext_lazy("%(n)s has another state", "%(n)s have another state", "count"),
    Kind.WEAKER: ngettext_lazy("%(n)s lost at least %(db)s dB", "%(n)s lost at least %(db)s dB", "count"),
    Kind.UNREAD: ngettext_lazy("%(n)s not comparable", "%(n)s not comparable", "count"),
    Kind.REPLACED: ngettext_lazy("%(n)s replaced", "%(n)s replaced", "count"),
    Kind.MOVED: ngettext_lazy("%(n)s moved", "%(n)s moved", "count"),
    Kind.STRONGER: ngettext_lazy("%(n)s gained at least %(db)s dB", "%(n)s gained at least %(db)s dB", "count"),
    Kind.BACK: ngettext_lazy("%(n)s came back", "%(n)s came back", "count"),
    Kind.NEW: ngettext_lazy("%(n)s new", "%(n)s new", "count"),
}
STATES = {**dict(Onu.State.choices), **dict(OnuEvent.Presence.choices)}


@page("telemetry.view_onu")
def compare(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Show what changed between two times. Both are in the address, so that it means the same to everybody."""
    olts = visible_olts(request.user).defer(*SECRETS, *ENGINES_OWN)
    olt = get_object_or_404(olts, pk=olt_id)
    now = timezone.now()
    if not (request.GET.get("before") and request.GET.get("after")):
        return HttpResponseRedirect(f"?{_with_times(request.GET, now)}")
    wanted = request.GET.copy()
    for name in ["page", "file", *(name for name, value in request.GET.items() if not value)]:
        wanted.pop(name, None)
    wish = ComparisonWish(data=wanted)
    context = {
        "active": "olts",
        "olt": olt,
        "presets": [(name, label, f"?{_encoded(before, after)}") for name, label, before, after in presets(now)],
        "ports": PonPort.objects.filter(olt=olt_id, slot__isnull=False, port__isnull=False).order_by("slot", "port"),
        "port": wanted.get("port", ""),
        "threshold": wanted.get("threshold") or str(USUAL_STEP),
    }
    try:
        wish.is_valid(raise_exception=True)
    except ValidationError as error:
        detail: Any = error.detail
        context["errors"] = [f"{name}: {said}" for name, many in detail.items() for said in many]
    else:
        found = _found(olt_id, wish.validated_data)
        if (form := request.GET.get("file")) in FORMATS:
            return _file(olt.name, found, wish.validated_data, form)
        context |= _shown(olt_id, found, wish.validated_data, wanted, request.GET.get("page"))
    return show(request, "compare.html", context)


def presets(now: datetime) -> list[tuple[str, str, datetime, datetime]]:
    """Return periods: key, label, start and end, in the user's zone. A script counts from the time of the click."""
    today = timezone.localtime(now).date()

    def local(days_ago: int, at: time) -> datetime:
        return timezone.make_aware(datetime.combine(today - timedelta(days=days_ago), at))

    is_night_over = now >= local(0, MORNING)
    last_morning = 0 if is_night_over else 1
    return [
        ("evening", _("Since yesterday 22:00"), local(1, EVENING), now),
        ("night", _("Last night, 22:00–06:00"), local(last_morning + 1, EVENING), local(last_morning, MORNING)),
        ("hour", _("Last hour"), now - timedelta(hours=1), now),
        ("day", _("Last 24 hours"), now - timedelta(hours=24), now),
        ("week", _("Last 7 days"), now - timedelta(days=7), now),
    ]


def _with_times(query: QueryDict, now: datetime) -> str:
    """Return a query with both times. Missing ones are those of the first preset."""
    _name, _label, before, after = presets(now)[0]
    full = query.copy()
    for name, at in (("before", before), ("after", after)):
        if not full.get(name):
            full[name] = _in_address(at)
    return full.urlencode()


def _encoded(before: datetime, after: datetime) -> str:
    return urlencode({"before": _in_address(before), "after": _in_address(after)})


def _in_address(at: datetime) -> str:
    """Return a time with its zone, in characters that need no escape but the colons."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _found(olt_id: int, wish: dict[str, Any]) -> OltComparison:
    return OltComparison(olt_id, wish["before"], wish["after"], wish["threshold"], wish["port"])


def _file(olt: str, found: OltComparison, wish: dict[str, Any], form: str) -> HttpResponse:
    """Return the differences of the page as a file for people: in their language, with the columns of the page."""
    headers = [
        _("ONU"), _("Serial"), _("Change"), _("Place"), _("State before"), _("State after"), _("dBm before"),
        _("dBm after"), "dB", _("Down cause"),
    ]  # fmt: skip
    table = tablib.Dataset(headers=headers, title="facho")
    for each in found.differences(wish["kind"], wish["sort"]):
        row = _row(found.described(each))
        onu, (before, after) = row["onu"], row["sides"]
        kinds = ", ".join(str(label) for label, _tone in row["kinds"])
        serial, place = (_change(onu, name) for name in ("serial", "place"))
        states = [str(side["label"]) for side in (before, after)]
        table.append([onu.name, serial, kinds, place, *states, before["power"], after["power"], onu.step, row["cause"]])
    content = FORMATS[form]().export_data(table)
    name = f"facho-compare-{slugify(olt)}-{timezone.localdate():%Y-%m-%d}.{form}"
    return HttpResponse(
        MARK + content if isinstance(content, str) else content,
        content_type=CONTENT_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


def _change(onu: ComparedOnu, name: str) -> str:
    """Return a serial or a place; both values if it changed."""
    values = [getattr(side, name) for side in (onu.before, onu.after) if side is not None]
    return " → ".join(dict.fromkeys(values))


def _shown(
    olt_id: int, found: OltComparison, wish: dict[str, Any], wanted: QueryDict, number: str | None
) -> dict[str, Any]:
    overall = found.result.overall
    pages = Paginator(found.differences(wish["kind"], wish["sort"]), ONUS_PER_PAGE).get_page(number)
    exported = wanted.copy()
    exported["before"], exported["after"] = _in_address(wish["before"]), _in_address(wish["after"])
    return {
        "found": found,
        "power_level": found.power_field.removesuffix("_dbm"),
        "before": wish["before"],
        "after": wish["after"],
        "notes": list(_notes(olt_id, found)),
        "summary": summary(overall, wish["threshold"]),
        "overall": overall,
        "chips": [(kind, LABELS[kind], overall.kinds[kind]) for kind in Kind if overall.kinds[kind]],
        "chosen": wish["kind"],
        "sort": wish["sort"],
        "troubled": [
            (port, tally, ", ".join(_phrases(tally, wish["threshold"])))
            for port, tally in found.result.ports.items()
            if tally.kinds
        ],
        "quiet": sum(not tally.kinds for tally in found.result.ports.values()),
        "page": pages,
        "rows": [_row(found.described(each)) for each in pages],
        "exports": [(form.upper(), f"?{exported.urlencode()}&file={form}") for form in FORMATS],
    }


def summary(tally: Tally, threshold: float) -> str:
    """Return the result in one sentence: 412 ONUs: 398 unchanged, 9 went down, 3 came back."""
    total = ngettext("%(n)s ONU", "%(n)s ONUs", tally.total) % {"n": whole(tally.total)}
    unchanged = _("%(n)s unchanged") % {"n": whole(tally.unchanged)}
    return f"{total}: {', '.join([unchanged, *_phrases(tally, threshold)])}."


def _phrases(tally: Tally, threshold: float) -> list[str]:
    db = decimal(threshold, 0 if threshold == int(threshold) else 1)
    return [
        str(PHRASES[kind] % {"count": count, "n": whole(count), "db": db})
        for kind in Kind
        if (count := tally.kinds[kind])
    ]


def _notes(olt_id: int, found: OltComparison) -> Iterator[tuple[str, list[tuple[str, datetime]]]]:
    """Return a sentence for each time without recent readings, and the nearest times that have some."""
    for name, at, newest in zip(("before", "after"), found.times, found.newest_readings(), strict=True):
        if newest is None:
            nearest = [(name, each) for each in nearest_readings(olt_id, at) if each]
            said = _("No ONU was read in the 24 hours before %(time)s.") % {"time": moment_and_zone(at)}
            if has_daily_values(olt_id, at):
                said += " " + _("Only the daily minimum, mean and maximum of that day are kept.")
            yield said, nearest
        elif (age := at - newest) > OLD_READING:
            values = {"time": moment_and_zone(at), "span": span(age.total_seconds())}
            yield _("At %(time)s the last readings were %(span)s old.") % values, []


def _row(onu: ComparedOnu) -> dict[str, Any]:
    return {
        "onu": onu,
        "kinds": [(LABELS[kind], TONES.get(kind, "quiet")) for kind in onu.kinds],
        "sides": [_side(onu.before), _side(onu.after)],
        "cause": words.down_cause(onu.cause),
    }


def _side(side: Side | None) -> dict[str, Any]:
    """Return the values of an ONU at one time for the page; all empty if it was not there."""
    if side is None:
        return {"state": "", "label": "", "power": None, "age": ""}
    label = STATES[side.state] if side.state else ""
    age = span(side.age.total_seconds()) if side.age else ""
    return {"state": side.state, "label": label, "power": side.power, "age": age}
