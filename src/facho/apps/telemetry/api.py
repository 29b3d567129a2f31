"""ONUs and their events of API v1."""

from typing import Any

from django.db.models import F, Prefetch, QuerySet
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema, extend_schema_view
from rest_framework import viewsets
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.inventory.scopes import ScopedView, restrict
from facho.apps.rest.export import ExportedList, describe_export
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.telemetry.columns import ONU_COLUMNS
from facho.apps.telemetry.filters import OnuEventFilter, OnuFilter
from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import Onu, OnuEvent
from facho.apps.telemetry.queries import summary
from facho.apps.telemetry.serializers import (
    EventSerializer,
    HistoryBucketSerializer,
    HistorySerializer,
    HistoryWish,
    OnuSerializer,
    OtherOnuSerializer,
    SummarySerializer,
)
from facho.engine.brand import ONU_FIELDS

# Newest first. Only the name of the OLT is read, never its secrets.
EVENTS = OnuEvent.objects.annotate(
    olt_name=F("olt__name"), onu_name=F("onu__name"), onu_serial=F("onu__serial")
).order_by("-at", "-id")


@extend_schema_view(list=describe_export(OnuSerializer))
class OnuViewSet(ExportedList, ScopedView, viewsets.ReadOnlyModelViewSet[Onu]):
    """ONUs with their last values."""

    # By place; the id keeps ONUs without a place in a stable order across pages.
    queryset = (
        Onu.objects.with_freshness()
        .annotate(olt_name=F("olt__name"))
        .select_related("replaced_by")
        .prefetch_related(Prefetch("replaces", Onu.objects.only(*OtherOnuSerializer.Meta.fields, "replaced_by")))
        .order_by("olt__name", "slot", "port", "onu", "id")
    )
    serializer_class = OnuSerializer
    export_name = "onus"
    export_columns = ONU_COLUMNS
    filter_backends = LIST_BACKENDS
    filterset_class = OnuFilter
    search_fields = ["name", "serial", "mac", "description"]
    ordering_fields = [
        "id",
        "olt__name",
        "slot",
        "port",
        "onu",
        *ONU_FIELDS,
        "state_since",
        "missing_since",
        "moved_at",
        "first_seen_at",
        "read_at",
        "state_at",
        "power_at",
    ]

    def export_table(self) -> QuerySet[Onu]:
        # The links to replaced ONUs are no column, and would cost as much as all others.
        return super().export_table().prefetch_related(None)

    @extend_schema(
        parameters=[HistoryWish],
        responses=PolymorphicProxySerializer(
            component_name="HistoryResult",
            serializers=[HistorySerializer, HistoryBucketSerializer],
            resource_type_field_name=None,
            many=True,
        ),
    )
    @action(detail=True, filter_backends=[], filterset_class=None, query_serializer=HistoryWish)
    def history(self, request: Request, pk: str) -> Response:
        """Return the readings of this ONU, the latest first: each reading, or buckets if `step` is given."""
        wish = self.validated_query()
        rows: Any = series(self.get_object().pk, wish["fields"], wish["since"], wish["until"], wish["step"])[::-1]
        shown = HistorySerializer if wish["step"] is None else HistoryBucketSerializer
        return self.get_paginated_response(shown(self.paginate_queryset(rows), many=True).data)

    @extend_schema(responses=EventSerializer(many=True))
    @action(
        detail=True,
        queryset=EVENTS,
        filterset_class=OnuEventFilter,
        search_fields=None,
        ordering_fields=["id", "at", "field"],
    )
    def events(self, request: Request, pk: str) -> Response:
        """Return the changes of this ONU: presence, place, serial, MAC, state and down cause, the latest first."""
        onu = get_object_or_404(restrict(Onu.objects.only("pk"), request.user), pk=pk)
        events: Any = self.get_queryset().filter(onu=onu)
        page: Any = self.paginate_queryset(self.filter_queryset(events))
        return self.get_paginated_response(EventSerializer(page, many=True).data)

    @extend_schema(responses=SummarySerializer)
    @action(detail=False, pagination_class=None, filter_backends=[], filterset_class=None)
    def summary(self, request: Request) -> Response:
        """Count the ONUs by state, in all and on each OLT."""
        return Response(SummarySerializer(summary(request.user)).data)


class EventViewSet(ScopedView, viewsets.ReadOnlyModelViewSet[OnuEvent]):
    """Events of ONUs, the latest first."""

    queryset = EVENTS
    serializer_class = EventSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = OnuEventFilter
    search_fields = ["onu__name", "onu__serial"]
    ordering_fields = ["id", "at", "field", "olt__name"]
