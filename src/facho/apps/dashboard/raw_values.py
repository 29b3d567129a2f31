"""Charts of raw OIDs: of an ONU, or of the OLT itself."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone

from facho.apps.dashboard import history, onu_timeline
from facho.apps.dashboard.views import page
from facho.apps.inventory.models import Olt, Replacement
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.jobs.raw_values import RawValue, raw_values
from facho.apps.telemetry.history import OLT_ITSELF, series_of
from facho.apps.telemetry.models import Onu


@page("telemetry.view_onu")
def onu_values(request: HttpRequest, onu_id: int) -> JsonResponse:
    """Return the history of the raw OIDs of an ONU as JSON."""
    onu = get_object_or_404(restrict(Onu.objects.only("olt_id"), request.user), pk=onu_id)
    return _history(request, onu.olt_id, onu.pk, raw_values(onu.olt_id, scalar=False))


@page("inventory.view_olt")
def olt_values(request: HttpRequest, olt_id: int) -> JsonResponse:
    """Return the history of the raw OIDs of an OLT itself as JSON."""
    olt: Olt = get_object_or_404(visible_olts(request.user).only("pk"), pk=olt_id)
    return _history(request, olt.pk, OLT_ITSELF, raw_values(olt.pk, scalar=True))


def _history(request: HttpRequest, olt_id: int, onu_id: int, values: Sequence[RawValue]) -> JsonResponse:
    """Return the points of each value. A day of a long period is its mean."""
    period = history.Period.read(request.GET.dict(), timezone.now())
    is_long = period.span > history.LONGEST_RAW
    fields = [value.field for value in values if value.is_number]
    step = history.DAY if is_long else None
    rows = series_of(olt_id, onu_id, fields, period.since, period.until, step) if fields else []
    bucket = period.span / history.MAX_POINTS
    lines: dict[str, Any] = {}
    for value in values:
        known = [(row["at"], row[value.field]) for row in rows if row.get(value.field) is not None]
        points = [(at, each["mean"] if is_long else each) for at, each in known]
        lines[value.name] = history.as_json(history.thin(points, bucket, max))
    replacements = Replacement.objects.filter(olt=olt_id, at__range=(period.since, period.until))
    marks = [onu_timeline.Mark("change", each.at, each.headline) for each in replacements]
    return JsonResponse(
        {
            "from": history.milliseconds(period.since),
            "to": history.milliseconds(period.until),
            "series": lines,
            "marks": [{**asdict(mark), "at": history.milliseconds(mark.at)} for mark in marks],
        }
    )
