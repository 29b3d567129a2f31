"""Jobs and nodes of API v1."""

from typing import Any

from django.db.models import F, Prefetch
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from facho.apps.inventory.filters import LIST_BACKENDS
from facho.apps.inventory.permissions import needs
from facho.apps.inventory.serializers import refusals
from facho.apps.jobs.filters import JobFilter, NodeFilter
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.jobs.serializers import ApplySerializer, JobSerializer, NodeSerializer, NodesSerializer

NODES = WorkflowNode.objects.select_related("olt", "job", "master__job")


class Conflict(APIException):
    """What was asked for goes against how things stand now."""

    status_code = status.HTTP_409_CONFLICT


class JobViewSet(viewsets.ModelViewSet[SnmpJob]):
    """The jobs: what to ask, and how often unless a node says otherwise."""

    queryset = SnmpJob.objects.select_related("follows").prefetch_related(
        "oids", "followers", Prefetch("nodes", WorkflowNode.objects.select_related("olt").order_by("olt__name"))
    )
    serializer_class = JobSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = JobFilter
    search_fields = ["name"]
    ordering_fields = ["id", "name", "brand", "kind", "interval_seconds", "priority", "enabled", "updated_at"]

    def perform_create(self, serializer: BaseSerializer[SnmpJob]) -> None:
        # Read again: a job that follows another one has got nodes by being saved.
        serializer.instance = self.get_queryset().get(pk=serializer.save().pk)

    def perform_update(self, serializer: BaseSerializer[SnmpJob]) -> None:
        serializer.instance = self.get_queryset().get(pk=serializer.save().pk)

    @extend_schema(request=ApplySerializer, responses={202: NodesSerializer})
    @action(detail=True, methods=["post"], permission_classes=[needs("jobs.add_workflownode")])
    def apply(self, request: Request, pk: str) -> Response:
        """Make this job a node on each of these OLTs, its chain with it. Where it is one already, nothing changes."""
        job = self.get_object()
        asked = ApplySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        olts = asked.validated_data["olts"]
        with refusals():
            masters = job.apply_to(olts)
        nodes = NODES.filter(pk__in=[node.pk for node in masters]) | NODES.filter(master__in=masters)
        answer = NodesSerializer({"nodes": nodes.order_by("olt__name", F("master_id").asc(nulls_first=True), "id")})
        return Response(answer.data, status=status.HTTP_202_ACCEPTED)


class NodeViewSet(viewsets.ModelViewSet[WorkflowNode]):
    """The nodes: each one job on one OLT. Jobs that follow another come and go with it."""

    queryset = NODES
    serializer_class = NodeSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = NodeFilter
    search_fields = ["olt__name", "job__name"]
    ordering_fields = ["id", "olt__name", "job__name", "next_run_at", "last_run_at", "run_requested_at"]
    # No PUT: all that can be changed is optional.
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Take a job off an OLT, its chain with it. What was read and run stays."""
        node = self.get_object()
        if node.master_id is not None:
            raise Conflict(
                _("%(node)s runs behind another node. Delete that one, or set own_enabled to false here.")
                % {"node": node}
            )
        node.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)
