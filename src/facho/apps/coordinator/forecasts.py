"""Forecasts in the API: requested with POST, run by the engine, polled for the result."""

from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.coordinator.models import Forecast
from facho.apps.inventory.scopes import FleetView
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictSerializer

# Limits of one forecast, to bound its run time.
MOST_OLTS = 5000
MOST_HOURS = 168
MOST_JOBS = 20
# OLTs times hours.
MOST_WORK = 50_000

# Maximum number of pending forecasts. Each takes a core for a minute or two.
MOST_WAITING = 20


class ForecastJobSerializer(StrictSerializer):
    """A job of a made-up fleet, or one more on every OLT that there is."""

    name = serializers.RegexField(r"^[^:]+$", max_length=100)
    interval_seconds = serializers.IntegerField(min_value=10, max_value=7 * 24 * 3600)
    seconds = serializers.FloatField(min_value=0.1, max_value=3600, help_text="Mean duration of a run, in seconds.")
    priority = serializers.IntegerField(min_value=0, max_value=100, default=40)


class ForecastParamsSerializer(StrictSerializer):
    """What to forecast. Without `olts`, the OLTs of this installation with what was learned of them."""

    olts = serializers.IntegerField(min_value=1, max_value=MOST_OLTS, required=False)
    pollers = serializers.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        help_text="If omitted: the pollers of this installation, or as many as an imaginary fleet needs.",
    )
    hours = serializers.IntegerField(min_value=1, max_value=MOST_HOURS, default=24)
    dead = serializers.IntegerField(
        min_value=0, max_value=100, default=0, help_text="Percentage of OLTs that do not answer."
    )
    seed = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=1)
    jobs = serializers.ListField(child=ForecastJobSerializer(), max_length=MOST_JOBS, default=list)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("olts", 1) * attrs["hours"] > MOST_WORK:
            raise serializers.ValidationError(
                _("The forecast is too large: OLTs multiplied by hours must not exceed %(most)d.") % {"most": MOST_WORK}
            )
        names = [job["name"] for job in attrs["jobs"]]
        if len(set(names)) < len(names):
            raise serializers.ValidationError({"jobs": [_("Two jobs have the same name.")]})
        return attrs


class ForecastSerializer(serializers.ModelSerializer[Forecast]):
    """A forecast, and what came of it: `result` is what `facho forecast --json` prints."""

    by = serializers.CharField(source="by_name", read_only=True, allow_null=True)
    params = ForecastParamsSerializer(read_only=True)
    result = serializers.JSONField(read_only=True, allow_null=True)

    class Meta:
        model = Forecast
        fields = ["id", "status", "requested_at", "by", "params", "started_at", "ended_at", "error", "result"]
        read_only_fields = fields


class ForecastViewSet(
    FleetView,
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    mixins.CreateModelMixin,
    viewsets.GenericViewSet[Forecast],
):
    """Whether jobs, OLTs and pollers will do, before anybody depends on it."""

    queryset = Forecast.objects.annotate(by_name=F("by__username"))
    serializer_class = ForecastSerializer
    filter_backends = LIST_BACKENDS
    filterset_fields = ["status"]
    body_serializer = ForecastParamsSerializer
    ordering_fields = ["id", "requested_at", "status"]

    @extend_schema(
        request=ForecastParamsSerializer,
        responses={
            202: ForecastSerializer,
            409: OpenApiResponse(description="Too many forecasts are waiting."),
        },
    )
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        params = self.validated_body()
        if Forecast.objects.filter(status=Forecast.Status.PENDING).count() >= MOST_WAITING:
            detail = _("%(count)d forecasts are already waiting. Wait until some have finished.") % {
                "count": MOST_WAITING
            }
            return Response({"detail": detail}, status=status.HTTP_409_CONFLICT)
        made = Forecast.objects.create(by_id=request.user.pk, params=params)
        return Response(self.get_serializer(self.get_queryset().get(pk=made.pk)).data, status.HTTP_202_ACCEPTED)
