"""Maintenance of API v1."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.accounts.permissions import needs
from facho.apps.inventory.scopes import ScopedView
from facho.apps.inventory.serializers import refusals
from facho.apps.maintenance.filters import MaintenanceFilter
from facho.apps.maintenance.models import Maintenance
from facho.apps.maintenance.queries import may_plan, restrict_maintenance
from facho.apps.maintenance.serializers import ExtendBody, MaintenanceSerializer
from facho.apps.rest.filters import LIST_BACKENDS

NOT_RUNNING = OpenApiResponse(description="It is not running; see `detail`.")


class MaintenanceViewSet(ScopedView, viewsets.ModelViewSet[Maintenance]):
    """Maintenance of OLTs, ports, sites and tags. Alerts are held while it runs."""

    queryset = Maintenance.objects.select_related("olt", "site", "tag").defer(
        "olt__community", "olt__v3_auth_key", "olt__v3_priv_key", "olt__extra", "olt__learned"
    )
    serializer_class = MaintenanceSerializer
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    filter_backends = LIST_BACKENDS
    filterset_class = MaintenanceFilter
    search_fields = ["reason", "author_name", "olt__name", "site__name", "tag__name"]
    ordering_fields = ["id", "starts_at", "ends_at", "created_at"]

    def get_queryset(self) -> QuerySet[Maintenance]:
        rows: Any = super(ScopedView, self).get_queryset()
        return restrict_maintenance(rows, self.request.user).with_window()

    def check_object_permissions(self, request: Request, obj: Maintenance) -> None:
        super().check_object_permissions(request, obj)
        if request.method not in SAFE_METHODS and not may_plan(request.user, obj):
            raise PermissionDenied(_("It covers OLTs outside your scope."))

    def perform_create(self, serializer: Any) -> None:
        # Read again, for its window.
        serializer.instance = self.get_queryset().get(pk=serializer.save().pk)

    perform_update = perform_create

    def perform_destroy(self, instance: Maintenance) -> None:
        instance.cancel()

    @extend_schema(request=None, responses={202: MaintenanceSerializer, 409: NOT_RUNNING})
    @action(detail=True, methods=["post"], permission_classes=[needs(Maintenance.CHANGE_PERMISSION)])
    def end(self, request: Request, pk: str) -> Response:
        """End the running window now. A repeated maintenance goes on with its next window."""
        return self._answer(self.get_object().end_now())

    @extend_schema(request=ExtendBody, responses={202: MaintenanceSerializer, 409: NOT_RUNNING})
    @action(
        detail=True,
        methods=["post"],
        permission_classes=[needs(Maintenance.CHANGE_PERMISSION)],
        body_serializer=ExtendBody,
    )
    def extend(self, request: Request, pk: str) -> Response:
        """Let the running window last longer."""
        plan = self.get_object()
        with refusals():
            done = plan.extend(timedelta(minutes=self.validated_body()["minutes"]))
        return self._answer(done)

    def _answer(self, done: bool) -> Response:
        if not done:
            return Response({"detail": _("It is not running.")}, status=status.HTTP_409_CONFLICT)
        return Response(self.get_serializer(self.get_object()).data, status=status.HTTP_202_ACCEPTED)
