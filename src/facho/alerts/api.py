"""Alerts of API v1: channels, rules, alerts and deliveries."""

from typing import Any

from django.db.models import F, QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from facho.alerts.filters import AlertFilter, ChannelFilter, DeliveryFilter, RuleFilter
from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.alerts.scopes import restrict_deliveries, restrict_rules
from facho.alerts.serializers import AlertSerializer, ChannelSerializer, DeliverySerializer, RuleSerializer
from facho.apps.accounts.permissions import needs
from facho.apps.inventory.scopes import ScopedView
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView


class ChannelViewSet(StrictView, viewsets.ModelViewSet[Channel]):
    """Channels for messages. Secrets can be written and are never returned."""

    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = ChannelFilter
    search_fields = ["name"]
    ordering_fields = ["id", "name", "kind", "enabled", "updated_at"]

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"], permission_classes=[needs("alerts.change_channel")], filterset_class=None)
    def test(self, request: Request, pk: str) -> Response:
        """Send a test message. Its delivery has the result after a few seconds."""
        delivery = self.get_object().ask_for_test()
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)


class RuleViewSet(StrictView, viewsets.ModelViewSet[Rule]):
    """Rules: condition, channels, and frequency of messages. Users with a scope see the rules about their OLTs only."""

    queryset = Rule.objects.prefetch_related("olts", "channels", "escalation_channels")
    serializer_class = RuleSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = RuleFilter
    search_fields = ["name"]
    ordering_fields = ["id", "name", "kind", "severity", "enabled", "updated_at"]

    def get_queryset(self) -> QuerySet[Rule]:
        return restrict_rules(super().get_queryset(), self.request.user)


class AlertViewSet(ScopedView, viewsets.ReadOnlyModelViewSet[Alert]):
    """Alerts, open ones first."""

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
        """Acknowledge an alert: its message is not repeated. A second acknowledgement changes nothing."""
        alert = self.get_object()
        alert.acknowledge(by=request.user)
        return Response(self.get_serializer(alert).data, status=status.HTTP_202_ACCEPTED)


class DeliveryViewSet(StrictView, viewsets.ReadOnlyModelViewSet[Delivery]):
    """Messages to channels with their result, the latest first."""

    queryset = Delivery.objects.all()
    serializer_class = DeliverySerializer
    filter_backends = LIST_BACKENDS
    filterset_class = DeliveryFilter
    search_fields = ["channel_name", "error"]
    ordering_fields = ["id", "created_at", "due_at", "sent_at", "status", "channel_name", "attempts"]

    def get_queryset(self) -> QuerySet[Delivery]:
        return restrict_deliveries(super().get_queryset(), self.request.user)

    @extend_schema(
        request=None,
        responses={202: DeliverySerializer, 409: OpenApiResponse(description="It was sent, or is waiting to be sent.")},
    )
    @action(detail=True, methods=["post"], permission_classes=[needs("alerts.change_delivery")], filterset_class=None)
    def retry(self, request: Request, pk: str) -> Response:
        """Return a message that was not sent to the outbox."""
        delivery: Any = self.get_object()
        if not delivery.retry():
            detail = _("It was sent, is waiting to be sent, or its channel was deleted.")
            return Response({"detail": detail}, status=status.HTTP_409_CONFLICT)
        delivery.refresh_from_db()
        return Response(self.get_serializer(delivery).data, status=status.HTTP_202_ACCEPTED)
