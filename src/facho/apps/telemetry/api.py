"""ONUs of API v1."""

from datetime import timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.inventory.filters import LIST_BACKENDS
from facho.apps.telemetry.filters import OnuFilter
from facho.apps.telemetry.models import Onu
from facho.apps.telemetry.queries import summary
from facho.apps.telemetry.serializers import HistorySerializer, HistoryWish, OnuSerializer, SummarySerializer


class OnuViewSet(viewsets.ReadOnlyModelViewSet[Onu]):
    """The ONUs, as they were last read."""

    # By place; two ONUs whose place is unknown would else change places between pages.
    queryset = Onu.objects.annotate(olt_name=F("olt__name")).order_by("olt__name", "slot", "port", "onu", "id")
    serializer_class = OnuSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = OnuFilter
    search_fields = ["name", "serial", "mac", "description"]
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

    @extend_schema(parameters=[HistoryWish], responses=HistorySerializer(many=True))
    @action(detail=True, filter_backends=[], filterset_class=None)
    def history(self, request: Request, pk: str) -> Response:
        """Return what was read of this ONU in the last hours, the latest first."""
        wish = HistoryWish(data=request.query_params)
        wish.is_valid(raise_exception=True)
        since = timezone.now() - timedelta(hours=wish.validated_data["hours"])
        readings: QuerySet[Any] = self.get_object().history.filter(at__gte=since)
        page: Any = self.paginate_queryset(readings)
        return self.get_paginated_response(HistorySerializer(page, many=True).data)

    @extend_schema(responses=SummarySerializer)
    @action(detail=False, pagination_class=None, filter_backends=[], filterset_class=None)
    def summary(self, request: Request) -> Response:
        """Count the ONUs by state, in all and on each OLT."""
        return Response(SummarySerializer(summary()).data)
