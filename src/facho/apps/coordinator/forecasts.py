"""Forecasts in the API: requested with POST, run by the engine, polled for the result."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import F
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.coordinator.answers import FleetAnswer
from facho.apps.coordinator.models import Forecast
from facho.apps.inventory.scopes import FleetView, OltChoice
from facho.apps.jobs.models import LONGEST_INTERVAL, SHORTEST_INTERVAL, SnmpJob
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictSerializer

# Limits of one forecast, to bound its run time.
MOST_OLTS = 5000
MOST_HOURS = 168
DEFAULT_HOURS = 24
MOST_JOBS = 20
# OLTs times hours.
MOST_WORK = 50_000

MOST_POLLERS = 1000


class ForecastJobSerializer(StrictSerializer):
    """A job of a made-up fleet, or one more on every OLT that there is."""

    name = serializers.RegexField(r"^[^:]+$", max_length=100)
    interval_seconds = serializers.IntegerField(min_value=10, max_value=7 * 24 * 3600)
    seconds = serializers.FloatField(min_value=0.1, max_value=3600, help_text="Mean duration of a run, in seconds.")
    priority = serializers.IntegerField(min_value=0, max_value=100, default=40)


class IntervalQuestionSerializer(StrictSerializer):
    """Another interval of a job."""

    job: serializers.PrimaryKeyRelatedField[SnmpJob] = serializers.PrimaryKeyRelatedField(
        queryset=SnmpJob.objects.select_related("follows")
    )
    seconds = serializers.IntegerField(min_value=SHORTEST_INTERVAL, max_value=LONGEST_INTERVAL)
    olts = OltChoice(
        many=True, required=False, allow_empty=False, help_text="If omitted: all OLTs that the job is applied to."
    )

    def validate_job(self, job: SnmpJob) -> SnmpJob:
        if job.follows is not None:
            raise serializers.ValidationError(
                _("%(job)s runs after %(master)s. Ask for the interval of %(master)s.")
                % {"job": job, "master": job.follows}
            )
        return job

    def to_stored(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the question as stored: with ids, and with name and brand of the job, which may be deleted later."""
        job = values["job"]
        stored = {"job": job.pk, "name": job.name, "brand": job.brand, "seconds": values["seconds"]}
        return {**stored, "olts": sorted(olt.pk for olt in values["olts"])} if "olts" in values else stored


class FleetQuestionSerializer(StrictSerializer):
    """A change of this installation. Empty: whether it fits as it is. Several changes are made together."""

    more_olts = serializers.IntegerField(
        min_value=0, max_value=MOST_OLTS, default=0, help_text="So many more OLTs, with the mix of the present ones."
    )
    more_pollers = serializers.IntegerField(
        min_value=-MOST_POLLERS, max_value=MOST_POLLERS, default=0, help_text="So many more pollers; -1: one fewer."
    )
    interval = IntervalQuestionSerializer(required=False)

    def to_stored(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the question as stored."""
        stored = {"more_olts": values["more_olts"], "more_pollers": values["more_pollers"]}
        if "interval" not in values:
            return stored
        part: Any = self.fields["interval"]
        return {**stored, "interval": part.to_stored(values["interval"])}


class ForecastParamsSerializer(StrictSerializer):
    """What to forecast. Without `olts`, the OLTs of this installation with what was learned of them.

    With a `question`, the result says whether that fits, in `answer`, and what would have to change.
    """

    NOT_WITH_QUESTION = ("olts", "pollers", "dead", "jobs")

    olts = serializers.IntegerField(min_value=1, max_value=MOST_OLTS, required=False)
    pollers = serializers.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        help_text="If omitted: the pollers of this installation, or as many as an imaginary fleet needs.",
    )
    hours = serializers.IntegerField(
        min_value=1,
        max_value=MOST_HOURS,
        required=False,
        help_text="If omitted: 24, or for a question as many as take about a minute.",
    )
    dead = serializers.IntegerField(
        min_value=0, max_value=100, default=0, help_text="Percentage of OLTs that do not answer."
    )
    seed = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=1)
    jobs = serializers.ListField(child=ForecastJobSerializer(), max_length=MOST_JOBS, default=list)

    question = FleetQuestionSerializer(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "question" in attrs:
            return self._with_question(attrs)
        attrs.setdefault("hours", DEFAULT_HOURS)
        if attrs.get("olts", 1) * attrs["hours"] > MOST_WORK:
            raise serializers.ValidationError(
                _("The forecast is too large: OLTs multiplied by hours must not exceed %(most)d.") % {"most": MOST_WORK}
            )
        names = [job["name"] for job in attrs["jobs"]]
        if len(set(names)) < len(names):
            raise serializers.ValidationError({"jobs": [_("Two jobs have the same name.")]})
        return attrs

    def _with_question(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if stray := set(self.NOT_WITH_QUESTION) & set(self.initial_data):
            said = _("A question is about this installation. Leave this out.")
            raise serializers.ValidationError({name: [said] for name in sorted(stray)})
        part: Any = self.fields["question"]
        stored = {"question": part.to_stored(attrs["question"]), "seed": attrs["seed"]}
        return {**stored, "hours": attrs["hours"]} if "hours" in attrs else stored


class StoredIntervalSerializer(serializers.Serializer[Any]):
    """Another interval of a job."""

    job = serializers.IntegerField()
    name = serializers.CharField(help_text="Name of the job when the question was asked.")
    seconds = serializers.IntegerField()
    olts = serializers.ListField(child=serializers.IntegerField(), required=False)


class StoredQuestionSerializer(serializers.Serializer[Any]):
    """A question as it was asked."""

    more_olts = serializers.IntegerField(required=False)
    more_pollers = serializers.IntegerField(required=False)
    interval = StoredIntervalSerializer(required=False)


class StoredParamsSerializer(ForecastParamsSerializer):
    """What was requested."""

    question = StoredQuestionSerializer(required=False)  # type: ignore[assignment]  # the same, with names


class SaidSerializer(serializers.Serializer[Any]):
    """An answer as sentences, in the language of the request."""

    word = serializers.CharField(help_text="Yes or No.")
    reasons = serializers.ListField(child=serializers.CharField())
    changes = serializers.ListField(child=serializers.CharField(), help_text="What would make a No a Yes.")
    notes = serializers.ListField(child=serializers.CharField())


class ForecastSerializer(serializers.ModelSerializer[Forecast]):
    """A forecast, and what came of it: `result` is what `facho forecast --json` prints."""

    by = serializers.CharField(source="by_name", read_only=True, allow_null=True)
    params = StoredParamsSerializer(read_only=True)
    result = serializers.JSONField(read_only=True, allow_null=True)
    said = serializers.SerializerMethodField(help_text="The answer to a question as sentences; null without one.")

    class Meta:
        model = Forecast
        fields = [
            "id",
            "status",
            "requested_at",
            "by",
            "params",
            "started_at",
            "ended_at",
            "progress",
            "error",
            "said",
            "result",
        ]
        read_only_fields = fields

    @extend_schema_field(SaidSerializer(allow_null=True))
    def get_said(self, forecast: Forecast) -> dict[str, Any] | None:
        if "answer" not in (forecast.result or {}):
            return None
        return SaidSerializer(FleetAnswer(forecast.params, forecast.result or {})).data


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
        try:
            made = Forecast.request(params, by=request.user)
        except ValidationError as error:
            return Response({"detail": error.messages[0]}, status=status.HTTP_409_CONFLICT)
        return Response(self.get_serializer(self.get_queryset().get(pk=made.pk)).data, status.HTTP_202_ACCEPTED)
