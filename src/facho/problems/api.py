"""Problems of API v1."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.accounts.permissions import needs
from facho.apps.inventory.scopes import ScopedView
from facho.apps.inventory.serializers import refusals
from facho.apps.rest.export import ExportedList, describe_export
from facho.apps.rest.filters import LIST_BACKENDS
from facho.problems.columns import PROBLEM_COLUMNS
from facho.problems.filters import SEARCHED, ProblemFilter
from facho.problems.models import CHANGE_PERMISSION, Problem
from facho.problems.queries import OWN, SHOWN, with_comment
from facho.problems.serializers import (
    AcknowledgeBody,
    AssignBody,
    CommentBody,
    ProblemDetailSerializer,
    ProblemSerializer,
    SnoozeBody,
)

Action = Callable[["ProblemViewSet", Request, str], Response]


def act(body: type[serializers.Serializer[Any]] | None) -> Callable[[Action], Any]:
    """Declare an action on a problem."""
    described = extend_schema(request=body, responses={202: ProblemDetailSerializer})
    may = [needs(CHANGE_PERMISSION)]
    declared = action(detail=True, methods=["post"], permission_classes=may, filterset_class=None, body_serializer=body)
    return lambda method: described(declared(method))


@extend_schema_view(list=describe_export(ProblemSerializer))
class ProblemViewSet(ExportedList, ScopedView, viewsets.ReadOnlyModelViewSet[Problem]):
    """Problems of the network with their probable causes, open ones first, the worst first."""

    queryset = (
        Problem.objects.select_related("olt", "onu", "acknowledged_by", "assignee")
        .only(*OWN, *SHOWN)
        .order_by(F("until").desc(nulls_first=True), "severity", "-affected", "-since", "-id")
    )
    serializer_class = ProblemSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = ProblemFilter
    search_fields = [*SEARCHED, "entries__text"]
    ordering_fields = ["id", "severity", "since", "until", "affected", "kind", "olt__name", "slot", "port"]

    export_name = "problems"
    export_columns = PROBLEM_COLUMNS

    def export_table(self) -> QuerySet[Problem]:
        return with_comment(Problem.objects.select_related("olt", "onu", "acknowledged_by", "assignee"))

    def get_serializer_class(self) -> Any:
        return ProblemSerializer if self.action == "list" else ProblemDetailSerializer

    def get_queryset(self) -> QuerySet[Problem]:
        problems: QuerySet[Problem] = super().get_queryset()
        return problems if self.action == "list" else problems.prefetch_related("entries")

    @act(AcknowledgeBody)
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Acknowledge a problem, with a comment. A second acknowledgement adds its comment only."""
        problem = self.get_object()
        problem.acknowledge(by=request.user, comment=self.validated_body().get("comment", ""))
        return self._shown()

    @act(None)
    def unacknowledge(self, request: Request, pk: str) -> Response:
        """Take an acknowledgement back."""
        self.get_object().unacknowledge(by=request.user)
        return self._shown()

    @act(AssignBody)
    def assign(self, request: Request, pk: str) -> Response:
        """Assign a problem to a user, or to no one."""
        problem = self.get_object()
        with refusals():
            problem.assign(by=request.user, to=self.validated_body()["user"])
        return self._shown()

    @act(SnoozeBody)
    def snooze(self, request: Request, pk: str) -> Response:
        """Hide a problem from the open ones until a time, or no longer."""
        problem = self.get_object()
        until: datetime | None = self.validated_body()["until"]
        with refusals():
            problem.snooze(by=request.user, until=until)
        return self._shown()

    @act(CommentBody)
    def comment(self, request: Request, pk: str) -> Response:
        """Add a comment to the history of a problem."""
        problem = self.get_object()
        problem.comment(by=request.user, comment=self.validated_body()["comment"])
        return self._shown()

    def _shown(self) -> Response:
        """Return the problem as it is now, with its history."""
        return Response(self.get_serializer(self.get_object()).data, status=status.HTTP_202_ACCEPTED)
