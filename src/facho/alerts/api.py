"""Alerts of API v1: channels, rules, alerts and deliveries."""

from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from facho.alerts.filters import AlertFilter, ChannelFilter, DeliveryFilter, RuleFilter
from facho.alerts.kinds import clean_params
from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.alerts.past import try_rule
from facho.alerts.preview import preview
from facho.alerts.scopes import check_channel, restrict_deliveries, restrict_rules
from facho.alerts.serializers import (
    AlertSerializer,
    ChannelSerializer,
    DeliverySerializer,
    PreviewSerializer,
    RuleSerializer,
    TrialSerializer,
    TryRuleSerializer,
)
from facho.apps.accounts.permissions import needs
from facho.apps.inventory.scopes import ScopedView
from facho.apps.inventory.serializers import refusals
from facho.apps.polling import live
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView


class ChannelViewSet(StrictView, viewsets.ModelViewSet[Channel]):
    """Channels for messages. Secrets can be written and are never returned.

    Users with a scope do not change a channel of alerts about other OLTs.
    """

    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = ChannelFilter
    search_fields = ["name"]
    ordering_fields = ["id", "name", "kind", "enabled", "updated_at"]

    def perform_update(self, serializer: BaseSerializer[Channel]) -> None:
        channel: Any = serializer.instance
        check_channel(self.request.user, channel)
        serializer.save()

    def perform_destroy(self, instance: Channel) -> None:
        check_channel(self.request.user, instance)
        instance.delete()

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"], permission_classes=[needs("alerts.change_channel")], filterset_class=None)
    def test(self, request: Request, pk: str) -> Response:
        """Send a test message. Its delivery has the result after a few seconds."""
        channel = self.get_object()
        check_channel(request.user, channel)
        delivery = channel.ask_for_test()
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

    @extend_schema(request=TryRuleSerializer, responses={200: TrialSerializer})
    @action(
        detail=True,
        methods=["post"],
        url_path="try",
        permission_classes=[needs("alerts.view_rule")],
        filterset_class=None,
        body_serializer=TryRuleSerializer,
    )
    def try_on_past(self, request: Request, pk: str) -> Response:
        """Return what the rule would have done in the last days, from events and history. Nothing is sent or saved."""
        rule, wanted = self.get_object(), self.validated_body()
        with refusals():
            rule.params = clean_params(rule.kind, rule.params | wanted.get("params", {}))
        return Response(TrialSerializer(try_rule(rule, wanted["days"], timezone.now())).data)

    @extend_schema(responses={200: PreviewSerializer})
    @action(detail=True, permission_classes=[needs("alerts.view_rule")], filterset_class=None)
    def preview(self, request: Request, pk: str) -> Response:
        """Return the message that the rule would send now."""
        now = timezone.now()
        found = preview(self.get_object(), now, live.snapshot(now), settings.FACHO_PUBLIC_URL)
        return Response(PreviewSerializer(found).data)

    @extend_schema(request=None, responses={202: DeliverySerializer(many=True)}, filters=False)
    @action(
        detail=True,
        methods=["post"],
        permission_classes=[needs("alerts.change_channel")],
        filterset_class=None,
        pagination_class=None,
    )
    def test(self, request: Request, pk: str) -> Response:
        """Send a test message to each enabled channel of the rule."""
        deliveries = self.get_object().ask_for_test()
        return Response(DeliverySerializer(deliveries, many=True).data, status=status.HTTP_202_ACCEPTED)


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
