"""Before and after of an OLT in API v1, also as a file."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import tablib
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.accounts.permissions import needs
from facho.apps.inventory.scopes import visible_olts
from facho.apps.rest.export import CsvRenderer, XlsxRenderer
from facho.apps.rest.filters import FIRST_YEAR, LAST_YEAR
from facho.apps.rest.spreadsheets import FORMATS
from facho.apps.rest.strict import StrictView
from facho.apps.telemetry.comparison import ORDERS, ComparedOnu, OltComparison, Side
from facho.engine.comparison import USUAL_STEP, Kind, Tally

MOST_DECIBELS = 50


class ComparisonWish(serializers.Serializer[Any]):
    """The two times, and what of their differences is wanted."""

    before = serializers.DateTimeField(help_text="The earlier time.")
    after = serializers.DateTimeField(required=False, help_text="The later time. Now if omitted.")
    port = serializers.RegexField(
        r"^\d{1,9}/\d{1,9}$",
        required=False,
        default="",
        error_messages={"invalid": _("Write slot and port, such as 1/9.")},
        help_text="Slot and port, such as `1/9`: only ONUs that are or were there.",
    )
    threshold = serializers.FloatField(
        default=USUAL_STEP,
        min_value=0.1,
        max_value=MOST_DECIBELS,
        help_text="Smallest change of power in dB that is a difference.",
    )
    kind = serializers.ListField(
        child=serializers.ChoiceField(choices=[kind.value for kind in Kind]),
        required=False,
        default=list,
        help_text="Only this kind of differences, may be repeated.",
    )
    sort = serializers.ChoiceField(
        choices=list(ORDERS), required=False, default="", help_text="Order of the ONUs; the worst first if omitted."
    )

    def validate(self, wish: dict[str, Any]) -> dict[str, Any]:
        now = timezone.now()
        # There is nothing to read after now; at the ends of the calendar a time cannot be converted.
        wish["after"] = min(wish.get("after") or now, now)
        if not FIRST_YEAR <= min(wish["before"], wish["after"]).year <= LAST_YEAR:
            raise serializers.ValidationError({"before": [_("This date is too far in the past.")]})
        if wish["before"] >= wish["after"]:
            raise serializers.ValidationError({"before": [_("This must be before the end.")]})
        return wish


class SideSerializer(serializers.Serializer[Any]):
    """An ONU at one of the times. A value that was not read in the day before it is null."""

    onu = serializers.IntegerField()
    serial = serializers.CharField(help_text="The serial or the MAC; empty if neither is known.")
    place = serializers.CharField()
    state = serializers.CharField(allow_null=True, help_text="A state, or `missing`.")
    state_at = serializers.DateTimeField(allow_null=True, help_text="Time of the reading.")
    power = serializers.FloatField(allow_null=True, help_text="dBm; null for an ONU without light.")
    power_at = serializers.DateTimeField(allow_null=True, help_text="Time of the reading.")


class ComparedOnuSerializer(serializers.Serializer[Any]):
    """One difference. `before` is null for a new ONU, `after` for one that is gone."""

    onu = serializers.IntegerField(help_text="Id of the ONU; of the present one if it was replaced.")
    name = serializers.CharField()
    kinds: serializers.ListField = serializers.ListField(
        child=serializers.ChoiceField(choices=[kind.value for kind in Kind]), help_text="The worst first."
    )
    step = serializers.FloatField(
        allow_null=True, help_text="Change of power in dB. Null if the power was not read again or there was no light."
    )
    cause = serializers.CharField(help_text="Down cause of an ONU that is dark, as reported by the device.")
    before = SideSerializer(allow_null=True)
    after = SideSerializer(allow_null=True)


class TallySerializer(serializers.Serializer[Any]):
    """Numbers of ONUs. One with two differences counts in both kinds."""

    total = serializers.IntegerField(help_text="ONUs that were present at one of the times.")
    unchanged = serializers.IntegerField()
    powers_compared = serializers.IntegerField(help_text="ONUs with light and a power at both times.")
    median_step = serializers.FloatField(allow_null=True, help_text="Median change of power in dB.")
    kinds: serializers.DictField = serializers.DictField(child=serializers.IntegerField())


class PortTallySerializer(TallySerializer):
    """The same for one port, where the ONUs are now or were last."""

    port = serializers.CharField(help_text="Slot and port; empty for ONUs without a known place.")


class ComparisonSerializer(TallySerializer):
    """What changed on an OLT between two times: the worst port first, and the worst ONU first."""

    olt = serializers.IntegerField()
    olt_name = serializers.CharField()
    before = serializers.DateTimeField()
    after = serializers.DateTimeField()
    before_read_at = serializers.DateTimeField(
        allow_null=True, help_text="Last reading of a state at or before `before`; null if there was none for a day."
    )
    after_read_at = serializers.DateTimeField(allow_null=True, help_text="The same for `after`.")
    power = serializers.ChoiceField(
        choices=["rx_dbm", "olt_rx_dbm"], help_text="The compared power. `olt_rx_dbm` if the OLT reports no other."
    )
    ports = PortTallySerializer(many=True)
    onus = ComparedOnuSerializer(many=True)


class ComparisonView(StrictView):
    """Compare an OLT at two times: who went dark, lost power, moved, is new, or is back. Also as CSV and XLSX."""

    permission_classes = (needs("telemetry.view_onu"),)
    query_serializer = ComparisonWish
    renderer_classes = (JSONRenderer, CsvRenderer, XlsxRenderer)

    @extend_schema(
        parameters=[ComparisonWish],
        responses={
            (200, "application/json"): ComparisonSerializer,
            (200, CsvRenderer.media_type): str,
            (200, XlsxRenderer.media_type): OpenApiTypes.BINARY,
            400: OpenApiResponse(description="A parameter is invalid; the answer has the reason."),
            404: OpenApiResponse(description="Unknown OLT."),
        },
    )
    def get(self, request: Request, olt_id: int) -> HttpResponseBase:
        wish = self.validated_query()
        olt = get_object_or_404(visible_olts(request.user).only("name"), pk=olt_id)
        found = OltComparison(olt.pk, wish["before"], wish["after"], wish["threshold"], wish["port"])
        onus = map(found.described, found.differences(wish["kind"], wish["sort"]))
        form = request.accepted_renderer.format
        if form in FORMATS:
            content = FORMATS[form]().export_data(as_table(onus))
            headers = {"Content-Disposition": f'attachment; filename="facho-compare-{olt.pk}.{form}"'}
            return HttpResponse(content, content_type=request.accepted_renderer.media_type, headers=headers)
        before_read_at, after_read_at = found.newest_readings()
        answer = {
            **_numbers(found.result.overall),
            "olt": olt.pk,
            "olt_name": olt.name,
            "before": wish["before"],
            "after": wish["after"],
            "before_read_at": before_read_at,
            "after_read_at": after_read_at,
            "power": found.power_field,
            "ports": [{"port": port, **_numbers(tally)} for port, tally in found.result.ports.items()],
            "onus": onus,
        }
        return Response(ComparisonSerializer(answer).data)


def _numbers(tally: Tally) -> dict[str, Any]:
    return {
        "total": tally.total,
        "unchanged": tally.unchanged,
        "powers_compared": len(tally.steps),
        "median_step": tally.median_step,
        "kinds": {kind.value: tally.kinds[kind] for kind in Kind},
    }


def as_table(onus: Iterable[ComparedOnu]) -> tablib.Dataset:
    """Return differences as the rows of a file."""
    sides = [f"{name}_{when}" for name in SIDE_COLUMNS for when in ("before", "after")]
    table = tablib.Dataset(headers=["onu", "name", "kinds", *sides, "step", "cause"], title="facho")
    for each in onus:
        values = [_cell(side, name) for name in SIDE_COLUMNS for side in (each.before, each.after)]
        table.append([each.onu, each.name, " ".join(each.kinds), *values, each.step, each.cause])
    return table


SIDE_COLUMNS = ("serial", "place", "state", "state_at", "power", "power_at")


def _cell(side: Side | None, name: str) -> Any:
    value = None if side is None else getattr(side, name)
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
