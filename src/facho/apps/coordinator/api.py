"""Quotas, violations, plans, the log, and explanations of delays. Read-only."""

from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.accounts.permissions import needs
from facho.apps.coordinator.explain import explain
from facho.apps.coordinator.filters import LogFilter, PlanFilter, QuotaFilter, ViolationFilter
from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.apps.coordinator.queries import EVERY
from facho.apps.coordinator.serializers import (
    ExplanationSerializer,
    LogSerializer,
    PlanSerializer,
    PlanSummarySerializer,
    QuotaSerializer,
    ViolationSerializer,
)
from facho.apps.inventory.scopes import ScopedView
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView

# Only the name of the OLT is read, never its secrets.
OLT_NAME = F("olt__name")


class QuotaViewSet(ScopedView, viewsets.ReadOnlyModelViewSet[QuotaTracker]):
    """Quotas: required and completed runs of each job on each OLT, per hour."""

    queryset = QuotaTracker.objects.annotate(olt_name=OLT_NAME, every=EVERY)
    serializer_class = QuotaSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = QuotaFilter
    search_fields = ["task_type", "olt__name"]
    ordering_fields = [
        "id",
        "period_start",
        "olt__name",
        "task_type",
        "quota_required",
        "quota_completed",
        "avg_duration_ms",
        "status",
    ]

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": timezone.now()}


class ViolationViewSet(ScopedView, viewsets.ReadOnlyModelViewSet[QuotaViolation]):
    """Hours in which a job ran too rarely, with causes and advice."""

    queryset = QuotaViolation.objects.annotate(olt_name=OLT_NAME)
    serializer_class = ViolationSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = ViolationFilter
    search_fields = ["task_type", "olt__name"]
    ordering_fields = ["id", "period_start", "olt__name", "task_type", "notified", "created_at"]


class PlanViewSet(ScopedView, viewsets.ReadOnlyModelViewSet[ExecutionPlan]):
    """Plan of each OLT's hour, and the actual result."""

    queryset = ExecutionPlan.objects.annotate(olt_name=OLT_NAME)
    filter_backends = LIST_BACKENDS
    filterset_class = PlanFilter
    search_fields = ["olt__name"]
    ordering_fields = ["id", "period_start", "olt__name", "utilisation", "needed_seconds", "status"]

    def get_queryset(self) -> QuerySet[ExecutionPlan]:
        plans = super().get_queryset()
        return plans.defer("plan_data") if self.action == "list" else plans

    def get_serializer_class(self) -> type[PlanSummarySerializer]:
        return PlanSummarySerializer if self.action == "list" else PlanSerializer


class LogViewSet(ScopedView, viewsets.ReadOnlyModelViewSet[CoordinatorLog]):
    """Log of the engine."""

    queryset = CoordinatorLog.objects.annotate(olt_name=OLT_NAME)
    serializer_class = LogSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = LogFilter
    search_fields = ["message"]
    ordering_fields = ["id", "timestamp", "level", "event_type", "olt__name"]


class ExplainView(StrictView):
    """Explain a delay: last slots with the causes of their delays, next slots, and current obstacles."""

    permission_classes = (needs("jobs.view_workflownode"),)

    @extend_schema(responses={200: ExplanationSerializer, 404: OpenApiResponse(description="Unknown node.")})
    def get(self, request: Request, node_id: int) -> Response:
        return Response(ExplanationSerializer(explain(node_id, timezone.now(), request.user)).data)
