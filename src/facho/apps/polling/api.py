"""Pollers, queue, executions, and manual runs."""

from typing import Any

from django.db.models import F, Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from facho.apps.accounts.permissions import needs
from facho.apps.inventory.scopes import ScopedView, restrict, visible_olts
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling import live
from facho.apps.polling.columns import EXECUTION_COLUMNS
from facho.apps.polling.filters import ExecutionFilter
from facho.apps.polling.models import Execution
from facho.apps.polling.olt_stats import olt_stats
from facho.apps.polling.pool_history import pool_history
from facho.apps.polling.queries import with_parts, with_times
from facho.apps.polling.serializers import (
    ExecutionDetailSerializer,
    ExecutionSerializer,
    OltStatsQuerySerializer,
    OltStatsSerializer,
    PeriodSerializer,
    PollersSerializer,
    PoolHistorySerializer,
    QueueQuerySerializer,
    QueueSerializer,
    RunSerializer,
    StatsSerializer,
)
from facho.apps.rest.export import ExportedList, describe_export
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView

# Only the name of the OLT is read, never its secrets.
EXECUTIONS = with_parts(with_times(Execution.objects.annotate(olt_name=F("olt__name"))))

# Only for a single execution; a list would carry megabytes of them.
LONG_COLUMNS = ("coverage", "failed_onus")


def _news(request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the last snapshot as the user may see it, and how old it is."""
    snapshot = live.snapshot_for(request.user)
    return snapshot, {name: snapshot[name] for name in ("at", "age", "stale")}


class PollersView(StrictView):
    """State of each poller, as last reported by the engine."""

    permission_classes = (needs(live.POOL_PERMISSION),)

    @extend_schema(responses=PollersSerializer, operation_id="pollers_list")
    def get(self, request: Request) -> Response:
        snapshot, age = _news(request)
        return Response(PollersSerializer({**age, **snapshot["stats"], "pollers": snapshot["pollers"]}).data)


class QueueView(StrictView):
    """Queued composites, the most urgent first."""

    permission_classes = (needs(live.POOL_PERMISSION),)
    query_serializer = QueueQuerySerializer

    @extend_schema(parameters=[QueueQuerySerializer], responses=QueueSerializer)
    def get(self, request: Request) -> Response:
        limit = self.validated_query()["limit"]
        snapshot, age = _news(request)
        queue = snapshot["queue"]
        return Response(QueueSerializer({**age, **queue, "next_nodes": queue["next"][:limit]}).data)


class StatsView(StrictView):
    """Load of the pollers, and whether they are saturated."""

    permission_classes = (needs("polling.view_pollerstats"),)

    @extend_schema(responses=StatsSerializer)
    def get(self, request: Request) -> Response:
        snapshot, age = _news(request)
        return Response(StatsSerializer({**age, **snapshot["stats"]}).data)


class StatsHistoryView(StrictView):
    """Load of the pollers over time, in at most a few hundred points."""

    permission_classes = (needs("polling.view_pollerstats"),)
    query_serializer = PeriodSerializer

    @extend_schema(
        parameters=[PeriodSerializer],
        responses={
            200: PoolHistorySerializer,
            400: OpenApiResponse(description="The period is invalid or longer than a month."),
        },
    )
    def get(self, request: Request) -> Response:
        period = self.validated_query()
        step, points = pool_history(**period)
        answer = PoolHistorySerializer({**period, "step": step.total_seconds(), "points": points})
        return Response(answer.data)


class OltStatsView(StrictView):
    """Statistics of an OLT over time: success, durations, round trips, retries and lost slots."""

    permission_classes = (needs("inventory.view_olt"),)
    query_serializer = OltStatsQuerySerializer

    @extend_schema(
        parameters=[OltStatsQuerySerializer],
        responses={
            200: OltStatsSerializer,
            400: OpenApiResponse(description="The period or the step is invalid; the answer has the reason."),
            404: OpenApiResponse(description="Unknown OLT."),
        },
    )
    def get(self, request: Request, olt_id: int) -> Response:
        query = self.validated_query()
        olt = get_object_or_404(visible_olts(request.user).only("name"), pk=olt_id)
        answer = {**query, "olt": olt.pk, "olt_name": olt.name, "points": olt_stats(olt_id, **query)}
        return Response(OltStatsSerializer(answer).data)


class RunNodeView(StrictView):
    """Request a run. The engine starts it at its next tick. Two requests cause one run."""

    permission_classes = (needs(WorkflowNode.RUN_PERMISSION),)

    @extend_schema(
        request=None,
        responses={
            202: RunSerializer,
            404: OpenApiResponse(description="Unknown node."),
            409: OpenApiResponse(description="The node or its OLT is disabled or was changed; see `detail`."),
        },
    )
    def post(self, request: Request, node_id: int) -> Response:
        nodes = restrict(WorkflowNode.objects.select_related("olt", "job"), request.user)
        node = get_object_or_404(nodes, pk=node_id)
        if reason := node.why_not_runnable():
            return Response({"detail": reason}, status=status.HTTP_409_CONFLICT)
        is_new = node.request_run()
        if node.run_requested_at is None:
            detail = _("%(node)s has just started, or it was disabled or deleted. Reload the page.")
            return Response({"detail": detail % {"node": node}}, status=status.HTTP_409_CONFLICT)
        answer = RunSerializer(
            {"node": node.pk, "run_requested_at": node.run_requested_at, "already_requested": not is_new}
        )
        return Response(answer.data, status=status.HTTP_202_ACCEPTED)


@extend_schema_view(list=describe_export(ExecutionSerializer))
class ExecutionViewSet(ExportedList, ScopedView, viewsets.ReadOnlyModelViewSet[Execution]):
    """Executions with their results. The detail view includes the chain and the attempts."""

    queryset = EXECUTIONS
    export_name = "executions"
    export_columns = EXECUTION_COLUMNS
    filter_backends = LIST_BACKENDS
    filterset_class = ExecutionFilter
    search_fields = ["node_name", "olt__name", "error"]
    ordering_fields = [
        "id",
        "slot",
        "started_at",
        "ended_at",
        "lateness",
        "duration",
        "status",
        "olt__name",
        "node_name",
        "readings",
        "pdus",
    ]

    def get_queryset(self) -> QuerySet[Execution]:
        if self.action != "retrieve":
            return super().get_queryset().defer(*LONG_COLUMNS)
        links = EXECUTIONS.order_by("id")
        return super().get_queryset().prefetch_related(Prefetch("links", links), "attempts")

    def get_serializer_class(self) -> type[BaseSerializer[Execution]]:
        return ExecutionDetailSerializer if self.action == "retrieve" else ExecutionSerializer
