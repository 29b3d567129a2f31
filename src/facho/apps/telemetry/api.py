"""ONUs and their events of API v1."""

from functools import partial
from typing import Any

from django.db.models import F, Prefetch
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework import viewsets
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.accounts.permissions import needs
from facho.apps.inventory.scopes import ScopedView, restrict
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView
from facho.apps.telemetry.filters import OnuEventFilter, OnuFilter
from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import Onu, OnuEvent
from facho.apps.telemetry.queries import summary
from facho.apps.telemetry.search import Search, find, matching
from facho.apps.telemetry.serializers import (
    EventSerializer,
    HistoryBucketSerializer,
    HistorySerializer,
    HistoryWish,
    OnuSerializer,
    OtherOnuSerializer,
    SearchSerializer,
    SearchWish,
    SummarySerializer,
)

# Newest first. Only the name of the OLT is read, never its secrets.
EVENTS = OnuEvent.objects.annotate(
    olt_name=F("olt__name"), onu_name=F("onu__name"), onu_serial=F("onu__serial")
).order_by("-at", "-id")


class OnuViewSet(ScopedView, viewsets.ReadOnlyModelViewSet[Onu]):
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
    filter_backends = LIST_BACKENDS
    filterset_class = OnuFilter
    matching = staticmethod(matching)
    ordering_fields = [
        "id",
        "olt__name",
        "slot",
        "port",
        "onu",
        "name",
        "serial",
        "state",
        "rx_dbm",
        "tx_dbm",
        "olt_rx_dbm",
        "distance_m",
        "temperature_c",
        "voltage_v",
        "in_octets",
        "out_octets",
        "last_up",
        "last_down",
        "missing_since",
        "moved_at",
        "first_seen_at",
        "read_at",
    ]

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
        matching=None,
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
    matching = staticmethod(partial(matching, path="onu"))
    ordering_fields = ["id", "at", "field", "olt__name"]


class SearchView(StrictView):
    """Search of ONUs, ports and OLTs."""

    permission_classes = (needs("telemetry.view_onu"),)
    query_serializer = SearchWish

    @extend_schema(operation_id="search", parameters=[SearchWish], responses=SearchSerializer)
    def get(self, request: Request) -> Response:
        """Search ONUs, ports and OLTs as `search` of their lists does. The best of each come first."""
        wish = self.validated_query()
        return Response(SearchSerializer(find(Search(wish["q"]), request.user, wish["limit"])).data)
