"""Jobs and nodes of API v1."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from facho.apps.accounts.permissions import missing, needs
from facho.apps.inventory.asking import answering
from facho.apps.inventory.bulk import Result
from facho.apps.inventory.changes import one_at_a_time
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import ScopedView, restrict
from facho.apps.inventory.serializers import QuestionSerializer, refusals
from facho.apps.jobs import in_effect
from facho.apps.jobs.bulk import NodeState, PlannedChange, job_actions_of
from facho.apps.jobs.filters import JobFilter, NodeFilter
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.jobs.serializers import (
    ApplySerializer,
    FollowersSerializer,
    FollowersWish,
    JobBulkResultSerializer,
    JobBulkSerializer,
    JobSerializer,
    NodeSerializer,
    NodesSerializer,
    TrySerializer,
    check_shared,
)
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView

# With the OIDs, which decide whether a job without columns reads anything.
NODES = WorkflowNode.objects.select_related("olt", "job", "master__job").prefetch_related("job__oids")


class MayChangeJobs(IsAuthenticated):
    """Users who may run at least one action on nodes. The serializer checks the permission of the chosen one."""

    @property
    def message(self) -> str:
        return missing(WorkflowNode.OPERATE_PERMISSION)

    def has_permission(self, request: Request, view: Any) -> bool:
        return super().has_permission(request, view) and bool(job_actions_of(request.user))


class JobViewSet(StrictView, viewsets.ModelViewSet[SnmpJob]):
    """Jobs: columns to read, and the default interval."""

    queryset = SnmpJob.objects.select_related("follows").prefetch_related("oids", "followers")
    serializer_class = JobSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = JobFilter
    search_fields = ["name"]
    ordering_fields = ["id", "name", "brand", "kind", "interval_seconds", "priority", "enabled", "updated_at"]
    operated_fields = SnmpJob.OPERATED_FIELDS

    def get_queryset(self) -> QuerySet[SnmpJob]:
        # Applying a job to one OLT must not read its nodes on all others.
        if self.action == "apply":
            return SnmpJob.objects.select_related("follows")
        nodes = restrict(WorkflowNode.objects.select_related("olt").order_by("olt__name"), self.request.user)
        return super().get_queryset().prefetch_related(Prefetch("nodes", nodes))

    def known_parameters(self) -> list[str]:
        own = list(FollowersWish().fields) if self.action == "destroy" else []
        return [*own, *super().known_parameters()]

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        with one_at_a_time():
            return super().create(request, *args, **kwargs)

    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        with one_at_a_time():
            return super().update(request, *args, **kwargs)

    def perform_create(self, serializer: BaseSerializer[SnmpJob]) -> None:
        # Read again: a job that follows another one gets nodes when it is saved.
        serializer.instance = self.get_queryset().get(pk=serializer.save().pk)

    perform_update = perform_create

    @extend_schema(
        parameters=[FollowersWish],
        responses={
            200: OpenApiResponse(FollowersSerializer, "Deleted. The followers were detached."),
            204: OpenApiResponse(description="Deleted, with its followers if there were any."),
            409: OpenApiResponse(FollowersSerializer, "Other jobs follow this one. Nothing is deleted."),
        },
    )
    @one_at_a_time()
    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Delete a job and its nodes. Readings and executions are kept. For followers see `followers`."""
        job = self.get_object()
        check_shared(job, request.user)
        wish = FollowersWish(data=request.query_params)
        wish.is_valid(raise_exception=True)
        followers = list(SnmpJob.followers_left_by([job]))
        names = {"job": job, "followers": ", ".join(map(str, followers))}
        if followers and "followers" not in wish.validated_data:
            said = _(
                "%(job)s is followed by %(followers)s. Add ?followers=delete to delete them too, or "
                "?followers=detach to give each one its own schedule."
            )
            answer = FollowersSerializer({"detail": said % names, "followers": followers})
            return Response(answer.data, status=status.HTTP_409_CONFLICT)
        detached = SnmpJob.remove([job], wish.validated_data.get("followers", ""))
        if not detached:
            return Response(status=status.HTTP_204_NO_CONTENT)
        said = _("%(job)s was deleted. These jobs now have their own schedule: %(followers)s.")
        return Response(FollowersSerializer({"detail": said % names, "followers": detached}).data)

    @extend_schema(request=ApplySerializer, responses={202: NodesSerializer})
    @action(
        detail=True,
        methods=["post"],
        permission_classes=[needs("jobs.add_workflownode")],
        body_serializer=ApplySerializer,
    )
    def apply(self, request: Request, pk: str) -> Response:
        """Apply this job and its followers to these OLTs. Existing nodes are not changed."""
        job = self.get_object()
        body = ApplySerializer(data=request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        olts = body.validated_data["olts"]
        with refusals():
            masters = job.apply_to(olts)
        nodes = NODES.filter(pk__in=[node.pk for node in masters]) | NODES.filter(master__in=masters)
        answer = NodesSerializer({"nodes": nodes.order_by("olt__name", *in_effect.CHAIN_ORDER)})
        return Response(answer.data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        request=TrySerializer,
        responses={
            200: QuestionSerializer,
            202: OpenApiResponse(QuestionSerializer, description="There is no answer yet. Poll the `url`."),
        },
    )
    def try_now(self, request: Request) -> Response:
        """Read the first rows of each column of a job from an OLT, without storing the job or the values.

        Responds as soon as the OLT has answered, or after 20 seconds with 202.
        """
        job = TrySerializer(data=request.data, context=self.get_serializer_context())
        job.is_valid(raise_exception=True)
        question = job.ask(by=request.user)
        answer = QuestionSerializer(question, context=self.get_serializer_context())
        return Response(answer.data, status=status.HTTP_202_ACCEPTED)


TRY_NOW = JobViewSet.as_view(
    {"post": "try_now"},
    detail=False,
    permission_classes=[needs("jobs.change_snmpjob")],
    body_serializer=TrySerializer,
)
try_job = answering(TRY_NOW)


class NodeViewSet(ScopedView, viewsets.ModelViewSet[WorkflowNode]):
    """Nodes: one job on one OLT each. Followers are created and deleted with their master."""

    queryset = NODES
    serializer_class = NodeSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = NodeFilter
    search_fields = ["olt__name", "job__name"]
    ordering_fields = ["id", "olt__name", "job__name", "next_run_at", "last_run_at", "run_requested_at"]
    operated_fields = WorkflowNode.OPERATED_FIELDS
    # No PUT: all editable fields are optional.
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]

    @extend_schema(responses={204: None, 409: OpenApiResponse(description="It follows another node; see `detail`.")})
    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Remove a job and its followers from an OLT. Readings and executions are kept."""
        node = self.get_object()
        if node.master_id is not None:
            said = _("%(node)s runs after another node. Delete that node, or set own_enabled to false here.")
            return Response({"detail": said % {"node": node}}, status=status.HTTP_409_CONFLICT)
        node.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=JobBulkSerializer, responses={200: JobBulkResultSerializer})
    @action(
        detail=False,
        methods=["post"],
        permission_classes=[MayChangeJobs],
        body_serializer=JobBulkSerializer,
        filter_backends=[],
        filterset_class=None,
    )
    def bulk(self, request: Request) -> Response:
        """Change one job on many OLTs: these `ids`, or all that match `filter`. Each is changed or left out alone.

        With `dry_run` nothing is changed. Send its `before` back as `seen`, so that no later change is overwritten.
        """
        body = JobBulkSerializer(data=request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        change, results = body.run()
        said, nothing = _("There is no such OLT."), NodeState()
        unknown = [PlannedChange(Olt(pk=pk), nothing, nothing, Result.REFUSED, said) for pk in body.unknown_ids()]
        is_dry = body.validated_data["dry_run"]
        answer = {
            "action": change.action,
            "job": change.job.pk,
            "dry_run": is_dry,
            "detail": change.intention(results) if is_dry else change.story([*results, *unknown]),
            "results": [*results, *unknown],
        }
        return Response(JobBulkResultSerializer(answer).data)
