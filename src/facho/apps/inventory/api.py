"""OLTs and brands of API v1."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError as ModelError
from django.db.models import ProtectedError, QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import generics, mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from facho.apps.accounts.permissions import missing, needs
from facho.apps.changes.api import ChangeViewSet
from facho.apps.inventory import bulk
from facho.apps.inventory.changes import one_at_a_time
from facho.apps.inventory.columns import OLT_COLUMNS
from facho.apps.inventory.filters import LabelFilter, OltFilter
from facho.apps.inventory.models import Olt, Question, Site, Tag, resolve_hosts
from facho.apps.inventory.queries import with_olt_counts, with_onu_counts, with_sharing
from facho.apps.inventory.remarks import with_remarks
from facho.apps.inventory.removal import delete_olt
from facho.apps.inventory.scopes import ScopedView, SharedView, restrict_labels
from facho.apps.inventory.search import matching_olts
from facho.apps.inventory.serializers import (
    BrandSerializer,
    BulkResultSerializer,
    BulkSerializer,
    DecoderSerializer,
    OltSerializer,
    QuestionSerializer,
    SiteSerializer,
    TagSerializer,
)
from facho.apps.rest.export import ExportedList, describe_export
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView
from facho.brands import BRANDS
from facho.brands.decode import RAW_DECODERS

OLTS = with_sharing(with_onu_counts(Olt.objects.select_related("site"))).prefetch_related(with_remarks(), "tags")


class MayRunBulk(IsAuthenticated):
    """Users who may run at least one action. The view checks the permission of the chosen one."""

    @property
    def message(self) -> str:
        return missing(Olt.OPERATE_PERMISSION)

    def has_permission(self, request: Request, view: Any) -> bool:
        return super().has_permission(request, view) and bool(bulk.actions_of(request.user))


@extend_schema_view(list=describe_export(OltSerializer))
class OltViewSet(ExportedList, ScopedView, viewsets.ModelViewSet[Olt]):
    """OLTs. SNMP secrets can be written and are never returned."""

    queryset = OLTS
    export_name = "olts"
    export_columns = OLT_COLUMNS
    olt_path = "pk"
    serializer_class = OltSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = OltFilter
    matching = staticmethod(matching_olts)
    ordering_fields = [
        "id",
        "name",
        "brand",
        "host",
        "location",
        "site__name",
        "enabled",
        "reachability",
        "onus_total",
        "onus_online",
        "onus_missing",
        "last_answer_at",
        "last_read_at",
        "created_at",
        "updated_at",
    ]
    operated_fields = ["enabled"]

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        resolve_host(request)
        with one_at_a_time():
            return super().create(request, *args, **kwargs)

    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        resolve_host(request)
        with one_at_a_time():
            return super().update(request, *args, **kwargs)

    def perform_create(self, serializer: BaseSerializer[Olt]) -> None:
        # Read again, for the counters of the query. A new OLT is not among those that the scope had before.
        serializer.instance = OLTS.get(pk=serializer.save().pk)

    perform_update = perform_create

    @extend_schema(
        responses={
            202: OpenApiResponse(OltSerializer, "It is disabled, and the engine deletes the rest."),
            204: OpenApiResponse(description="It is deleted."),
        }
    )
    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Delete an OLT with its ONUs and their history.

        It is disabled at once, and its name and address are free. A large one takes some minutes.
        """
        olt = self.get_object()
        if delete_olt(olt):
            return Response(status=status.HTTP_204_NO_CONTENT)
        left = self.get_queryset().get(pk=olt.pk)
        return Response(self.get_serializer(left).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        request=None,
        responses={202: OltSerializer, 409: OpenApiResponse(description="It is being deleted; see `detail`.")},
    )
    @action(detail=True, methods=["post"], permission_classes=[needs(Olt.OPERATE_PERMISSION)])
    def enable(self, request: Request, pk: str) -> Response:
        """Enable polling of this OLT. Its nodes start within about one minute, spread over time."""
        olt = self.get_object()
        try:
            olt.enable()
        except ModelError as error:
            return Response({"detail": " ".join(error.messages)}, status=status.HTTP_409_CONFLICT)
        return Response(self.get_serializer(olt).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: OltSerializer})
    @action(detail=True, methods=["post"], permission_classes=[needs(Olt.OPERATE_PERMISSION)])
    def disable(self, request: Request, pk: str) -> Response:
        """Disable polling of this OLT from the next tick on."""
        olt = self.get_object()
        olt.disable()
        return Response(self.get_serializer(olt).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        request=None,
        responses={202: OltSerializer, 409: OpenApiResponse(description="The breaker is not open; see `detail`.")},
    )
    @action(
        detail=True,
        methods=["post"],
        url_path="close-breaker",
        url_name="close-breaker",
        permission_classes=[needs(Olt.OPERATE_PERMISSION)],
    )
    def close_breaker(self, request: Request, pk: str) -> Response:
        """Close the breaker, although the OLT has not answered. It opens again if the OLT stays unreachable."""
        olt = self.get_object()
        if not olt.close_breaker(by=request.user):
            detail = _("The breaker of %(olt)s is not open: it is polled already.") % {"olt": olt}
            return Response({"detail": detail}, status=status.HTTP_409_CONFLICT)
        return Response(self.get_serializer(olt).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=BulkSerializer, responses={200: BulkResultSerializer})
    @action(
        detail=False,
        methods=["post"],
        permission_classes=[MayRunBulk],
        body_serializer=BulkSerializer,
        filter_backends=[],
        filterset_class=None,
    )
    def bulk(self, request: Request) -> Response:
        """Run an action on many OLTs: these `ids`, or all that match `filter`. Each is changed or refused alone."""
        body = BulkSerializer(data=request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        outcomes = body.run()
        chosen = bulk.Action(body.validated_data["action"])
        answer = {"action": chosen, "detail": bulk.story(chosen, outcomes), "results": outcomes}
        return Response(BulkResultSerializer(answer).data)


def resolve_host(request: Request) -> None:
    """Resolve the host name of a body before the transaction, so that no DNS lookup holds the lock."""
    host = request.data.get("host") if isinstance(request.data, Mapping) else None
    if isinstance(host, str):
        resolve_hosts([host.strip()])


class LabelViewSet(SharedView, viewsets.ModelViewSet[Any]):
    """Sites or tags."""

    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    filter_backends = LIST_BACKENDS
    filterset_class = LabelFilter
    search_fields = ["name"]
    ordering_fields = ["id", "name", "olts_total"]

    def get_queryset(self) -> QuerySet[Any]:
        user = self.request.user
        return with_olt_counts(restrict_labels(super().get_queryset(), user), user)

    def perform_create(self, serializer: BaseSerializer[Any]) -> None:
        # Read again, for the number of OLTs.
        serializer.instance = self.get_queryset().get(pk=serializer.save().pk)

    perform_update = perform_create


class SiteViewSet(LabelViewSet):
    """Sites of OLTs."""

    queryset = Site.objects.all()
    serializer_class = SiteSerializer
    search_fields = ["name", "description"]

    @extend_schema(responses={204: None, 409: OpenApiResponse(description="OLTs are at this site; see `detail`.")})
    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Delete a site without OLTs."""
        try:
            return super().destroy(request, *args, **kwargs)
        except ProtectedError as error:
            names = ", ".join(sorted(map(str, error.protected_objects)))
            detail = _("These OLTs are at this site: %(olts)s. Move them to another site first.") % {"olts": names}
            return Response({"detail": detail}, status=status.HTTP_409_CONFLICT)


class TagViewSet(LabelViewSet):
    """Tags of OLTs. A deleted tag is removed from its OLTs."""

    queryset = Tag.objects.all()
    serializer_class = TagSerializer


class ScopedChangeViewSet(ScopedView, ChangeViewSet):
    __doc__ = ChangeViewSet.__doc__
    olt_path = "olt_id"


class QuestionViewSet(ScopedView, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Question]):
    """Requests to OLTs, such as the trial of a job. Only the user who sent one can read it, for one day."""

    queryset = Question.objects.select_related("olt").defer("olt__community", "olt__v3_auth_key", "olt__v3_priv_key")
    serializer_class = QuestionSerializer
    permission_classes = (IsAuthenticated,)
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Question]:
        return super().get_queryset().filter(asked_by=self.request.user.pk)


class BrandList(StrictView, generics.ListAPIView[Any]):
    """Brands, with the columns that a job can read."""

    permission_classes = (IsAuthenticated,)
    filter_backends = ()
    serializer_class = BrandSerializer

    def get_queryset(self) -> Any:
        return [
            {
                "id": brand.id,
                "label": brand.label,
                "experimental": brand.experimental,
                "columns": [
                    {
                        "field": column.field,
                        "optical": column.optical,
                        "floor_seconds": None if column.floor is None else round(column.floor.total_seconds()),
                    }
                    for column in brand.columns.values()
                ],
                "discovery": brand.discovery,
            }
            for brand in BRANDS.values()
        ]


class DecoderList(StrictView, generics.ListAPIView[Any]):
    """Decoders for the value of a raw OID."""

    permission_classes = (IsAuthenticated,)
    filter_backends = ()
    serializer_class = DecoderSerializer

    def get_queryset(self) -> Any:
        return list(RAW_DECODERS.values())
