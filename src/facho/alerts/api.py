"""Alerts of API v1: channels, rules, alerts and deliveries."""

from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from facho.alerts.filters import AlertFilter, ChannelFilter, DeliveryFilter, RuleFilter
from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.alerts.serializers import AlertSerializer, ChannelSerializer, DeliverySerializer, RuleSerializer
from facho.apps.inventory.filters import LIST_BACKENDS
from facho.apps.inventory.permissions import needs
from facho.apps.inventory.strict import StrictView


class ChannelViewSet(StrictView, viewsets.ModelViewSet[Channel]):
    """The channels. Secrets go in and never come out."""

    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = ChannelFilter
    search_fields = ["name"]
    ordering_fields = ["id", "name", "kind", "enabled", "updated_at"]

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"], permission_classes=[needs("alerts.change_channel")], filterset_class=None)
    def test(self, request: Request, pk: str) -> Response:
        """Send a message that says hello. Look at the delivery again after some seconds."""
        delivery = self.get_object().ask_for_test()
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)


class RuleViewSet(StrictView, viewsets.ModelViewSet[Rule]):
    """The rules: what is worth a message, to whom, and how often."""

    queryset = Rule.objects.prefetch_related("olts", "channels")
    serializer_class = RuleSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = RuleFilter
    search_fields = ["name"]
    ordering_fields = ["id", "name", "kind", "severity", "enabled", "updated_at"]


class AlertViewSet(StrictView, viewsets.ReadOnlyModelViewSet[Alert]):
    """What is wrong, and what was: the open ones first."""

    queryset = (
        Alert.objects.annotate(olt_name=F("olt__name"))
        .select_related("acknowledged_by")
        .order_by(F("recovered_at").desc(nulls_first=True), "-opened_at", "-id")
    )
    serializer_class = AlertSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = AlertFilter
    search_fields = ["rule_name", "olt__name"]
    ordering_fields = ["id", "opened_at", "last_seen_at", "recovered_at", "severity", "olt__name", "rule_name", "count"]

    @extend_schema(request=None, responses={202: AlertSerializer})
    @action(detail=True, methods=["post"], permission_classes=[needs("alerts.change_alert")], filterset_class=None)
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Say that somebody looks after it: it is not repeated any more. Doing so twice changes nothing."""
        alert = self.get_object()
        alert.acknowledge(by=request.user)
        return Response(self.get_serializer(alert).data, status=status.HTTP_202_ACCEPTED)


class DeliveryViewSet(StrictView, viewsets.ReadOnlyModelViewSet[Delivery]):
    """Every message, and what became of it: the latest first."""

    queryset = Delivery.objects.all()
    serializer_class = DeliverySerializer
    filter_backends = LIST_BACKENDS
    filterset_class = DeliveryFilter
    search_fields = ["channel_name", "error"]
    ordering_fields = ["id", "created_at", "due_at", "sent_at", "status", "channel_name", "attempts"]

    @extend_schema(
        request=None,
        responses={202: DeliverySerializer, 409: OpenApiResponse(description="It was sent, or is waiting to be sent.")},
    )
    @action(detail=True, methods=["post"], permission_classes=[needs("alerts.change_delivery")], filterset_class=None)
    def retry(self, request: Request, pk: str) -> Response:
        """Put a message that was not sent back into the outbox."""
        delivery: Any = self.get_object()
        if not delivery.retry():
            detail = _("It was sent, is waiting to be sent, or its channel was deleted.")
            return Response({"detail": detail}, status=status.HTTP_409_CONFLICT)
        delivery.refresh_from_db()
        return Response(self.get_serializer(delivery).data, status=status.HTTP_202_ACCEPTED)
