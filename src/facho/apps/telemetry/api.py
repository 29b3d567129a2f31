"""ONUs and their events of API v1."""

from functools import partial
from typing import Any

from django.db.models import F, Prefetch, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, PolymorphicProxySerializer, extend_schema, extend_schema_view
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.generics import get_object_or_404
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from facho.apps.accounts.permissions import needs
from facho.apps.inventory.asking import answering
from facho.apps.inventory.pagination import IdsFirstPages, Pages
from facho.apps.inventory.scopes import ScopedView, restrict
from facho.apps.inventory.serializers import QuestionSerializer
from facho.apps.rest.export import ExportedList, describe_export
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView
from facho.apps.telemetry import positions, reading
from facho.apps.telemetry.columns import ONU_COLUMNS
from facho.apps.telemetry.filters import OnuEventFilter, OnuFilter
from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import Onu, OnuEvent, OnuNote, OnuPosition
from facho.apps.telemetry.queries import summary
from facho.apps.telemetry.search import Search, find, matching
from facho.apps.telemetry.serializers import (
    EventSerializer,
    HistoryBucketSerializer,
    HistorySerializer,
    HistoryWish,
    NoteSerializer,
    OnuSerializer,
    OtherOnuSerializer,
    PositionsResultSerializer,
    PositionsSerializer,
    ReadWish,
    SearchSerializer,
    SearchWish,
    SummarySerializer,
)
from facho.engine.brand import ONU_FIELDS

# Newest first. Only the name of the OLT is read, never its secrets.
EVENTS = (
    OnuEvent.objects.select_related("olt", "onu")
    .only(*(field.name for field in OnuEvent._meta.concrete_fields), "olt__name", "onu__name", "onu__serial")
    .order_by("-at", "-id")
)


@extend_schema_view(list=describe_export(OnuSerializer))
class OnuViewSet(ExportedList, ScopedView, viewsets.ReadOnlyModelViewSet[Onu]):
    """ONUs with their last values."""

    # By place; the id keeps ONUs without a place in a stable order across pages.
    queryset = Onu.objects.with_freshness().order_by("olt__name", "slot", "port", "onu", "id")
    serializer_class = OnuSerializer
    export_name = "onus"
    export_columns = ONU_COLUMNS
    filter_backends = LIST_BACKENDS
    filterset_class = OnuFilter
    matching = staticmethod(matching)
    pagination_class = IdsFirstPages
    coarse_ordering = {"rx_dbm": "rx_level"}
    ordering_fields = [
        "id",
        "olt__name",
        "slot",
        "port",
        "onu",
        *ONU_FIELDS,
        "state_since",
        "missing_since",
        "moved_at",
        "first_seen_at",
        "read_at",
        "state_at",
        "power_at",
    ]

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()
        return self.complete(rows) if self.action == "retrieve" else rows

    @staticmethod
    def complete(onus: QuerySet[Onu]) -> QuerySet[Onu]:
        """Add what is shown of ONUs but is in other tables. A list is filtered, ordered and counted without it."""
        others = Prefetch("replaces", Onu.objects.only(*OtherOnuSerializer.Meta.fields, "replaced_by"))
        position = {"latitude": F("position__latitude"), "longitude": F("position__longitude")}
        return onus.annotate(olt_name=F("olt__name"), **position).select_related("replaced_by").prefetch_related(others)

    def export_table(self) -> QuerySet[Onu]:
        # The links to replaced ONUs are no column, and would cost as much as all others.
        return self.complete(super().export_table()).prefetch_related(None)

    @extend_schema(
        parameters=[HistoryWish],
        responses=PolymorphicProxySerializer(
            component_name="HistoryResult",
            serializers=[HistorySerializer, HistoryBucketSerializer],
            resource_type_field_name=None,
            many=True,
        ),
    )
    @action(detail=True, filter_backends=[], filterset_class=None, query_serializer=HistoryWish)
    def history(self, request: Request, pk: str) -> Response:
        """Return the readings of this ONU, the latest first: each reading, or buckets if `step` is given."""
        wish = self.validated_query()
        rows: Any = series(self.get_object().pk, wish["fields"], wish["since"], wish["until"], wish["step"])[::-1]
        shown = HistorySerializer if wish["step"] is None else HistoryBucketSerializer
        return self.get_paginated_response(shown(self.paginate_queryset(rows), many=True).data)

    @extend_schema(responses=EventSerializer(many=True))
    @action(
        detail=True,
        queryset=EVENTS,
        pagination_class=Pages,
        filterset_class=OnuEventFilter,
        matching=None,
        ordering_fields=["id", "at", "field"],
    )
    def events(self, request: Request, pk: str) -> Response:
        """Return the changes of this ONU: presence, place, serial, MAC, state and down cause, the latest first."""
        onu = get_object_or_404(restrict(Onu.objects.only("pk"), request.user), pk=pk)
        events: Any = self.get_queryset().filter(onu=onu)
        page: Any = self.paginate_queryset(self.filter_queryset(events))
        return self.get_paginated_response(EventSerializer(page, many=True).data)

    @extend_schema(
        request=None,
        parameters=[ReadWish],
        responses={
            200: QuestionSerializer,
            202: OpenApiResponse(QuestionSerializer, description="There is no answer yet. Poll the `url`."),
            409: OpenApiResponse(description="The OLT cannot be asked now; see `detail`."),
            429: OpenApiResponse(description="It was asked a moment ago; see `detail` and the header Retry-After."),
        },
    )
    def read(self, request: Request, pk: str) -> Response:
        """Read all values of this ONU from its OLT now, and store them.

        The OLT is asked as soon as no run is in progress on it. Responds when it has answered, or after `wait` seconds
        with 202. An ONU can be read once in 10 seconds, and the ONUs of an OLT 10 times a minute.
        """
        self.validated_query()
        hidden = [f"olt__{name}" for name in ("community", "v3_auth_key", "v3_priv_key", "extra", "learned")]
        onus = restrict(Onu.objects.select_related("olt").defer(*hidden), request.user)
        question = reading.ask(get_object_or_404(onus, pk=pk), by=request.user)
        answer = QuestionSerializer(question, context=self.get_serializer_context())
        return Response(answer.data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=PositionsSerializer, responses=PositionsResultSerializer)
    @action(
        detail=False,
        methods=["post"],
        permission_classes=[needs(OnuPosition.CHANGE_PERMISSION)],
        pagination_class=None,
        filter_backends=[],
        filterset_class=None,
        body_serializer=PositionsSerializer,
    )
    def positions(self, request: Request) -> Response:
        """Set the positions of ONUs on the map, all or none. It is one change in the record."""
        entries = self.validated_body()["positions"]
        found = positions.read([positions.Row(line, **entry) for line, entry in enumerate(entries)], request.user)
        if found.errors:
            raise ValidationError({"positions": {str(line): [said] for line, said in found.errors}})
        return Response(PositionsResultSerializer(positions.set_positions(found.positions, request.user)).data)

    @extend_schema(responses=SummarySerializer)
    @action(detail=False, pagination_class=None, filter_backends=[], filterset_class=None)
    def summary(self, request: Request) -> Response:
        """Count the ONUs by state, in all and on each OLT."""
        return Response(SummarySerializer(summary(request.user)).data)


read_onu = answering(
    OnuViewSet.as_view(
        {"post": "read"},
        detail=True,
        permission_classes=[needs(Onu.READ_PERMISSION)],
        filter_backends=[],
        filterset_class=None,
        query_serializer=ReadWish,
    )
)


class NoteViewSet(ScopedView, viewsets.ModelViewSet[OnuNote]):
    """Notes of users about one ONU, the newest first. Only its author can change or delete a note."""

    queryset = OnuNote.objects.select_related("onu")
    olt_path = "onu__olt"
    serializer_class = NoteSerializer
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    filter_backends = ()

    def get_queryset(self) -> QuerySet[OnuNote]:
        notes = super().get_queryset()
        return notes.filter(onu=self.kwargs["onu_id"]) if "onu_id" in self.kwargs else notes

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        # 404 if there is no such ONU.
        self._onu()
        return super().list(request, *args, **kwargs)

    def check_object_permissions(self, request: Request, obj: OnuNote) -> None:
        super().check_object_permissions(request, obj)
        if request.method not in SAFE_METHODS and not obj.is_of(request.user):
            raise PermissionDenied(_("Only %(author)s can change this note.") % {"author": obj.author_name})

    def perform_create(self, serializer: BaseSerializer[OnuNote]) -> None:
        user = self.request.user
        serializer.save(onu=self._onu(), author=user, author_name=user.get_username())

    def perform_update(self, serializer: BaseSerializer[OnuNote]) -> None:
        serializer.save(edited_at=timezone.now())

    def _onu(self) -> Onu:
        return get_object_or_404(restrict(Onu.objects.only("olt_id"), self.request.user), pk=self.kwargs["onu_id"])


NOTES_OF_ONU = NoteViewSet.as_view({"get": "list", "post": "create"})
NOTE = NoteViewSet.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"})


class EventViewSet(ScopedView, viewsets.ReadOnlyModelViewSet[OnuEvent]):
    """Events of ONUs, the latest first."""

    queryset = EVENTS
    serializer_class = EventSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = OnuEventFilter
    matching = staticmethod(partial(matching, path="onu"))
    ordering_fields = ["id", "at", "field", "olt__name"]


class SearchView(StrictView):
    """Search of ONUs, ports and OLTs."""

    permission_classes = (needs("telemetry.view_onu"),)
    query_serializer = SearchWish

    @extend_schema(operation_id="search", parameters=[SearchWish], responses=SearchSerializer)
    def get(self, request: Request) -> Response:
        """Search ONUs, ports and OLTs as `search` of their lists does. The best of each come first."""
        wish = self.validated_query()
        return Response(SearchSerializer(find(Search(wish["q"]), request.user, wish["limit"])).data)
