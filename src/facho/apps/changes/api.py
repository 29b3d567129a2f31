"""The record of changes in API v1. Read-only."""

from typing import Any

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import viewsets
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.changes.csv import csv_lines
from facho.apps.changes.filters import ChangeFilter
from facho.apps.changes.models import Change
from facho.apps.changes.serializers import ChangeSerializer
from facho.apps.rest.export import CsvRenderer
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView


class ChangeViewSet(StrictView, viewsets.ReadOnlyModelViewSet[Change]):
    """Record of changes by people, tokens and the engine, and of logins, the newest first.

    `format=csv` returns the whole filtered list as CSV, with a line for each changed field.
    """

    queryset = Change.objects.all()
    serializer_class = ChangeSerializer
    filter_backends = LIST_BACKENDS
    filterset_class = ChangeFilter
    search_fields = ["actor", "object_name", "note"]
    ordering_fields = ["id", "at", "actor", "action", "object_type", "object_name"]

    def get_renderers(self) -> list[BaseRenderer]:
        own: list[BaseRenderer] = [CsvRenderer()] if getattr(self, "action", None) == "list" else []
        return [JSONRenderer(), *own]

    def handle_exception(self, exc: Exception) -> Response:
        # Errors are JSON. A format that was refused has set neither.
        self.request.accepted_renderer = JSONRenderer()
        self.request.accepted_media_type = JSONRenderer.media_type
        return super().handle_exception(exc)

    @extend_schema(responses={(200, "application/json"): ChangeSerializer(many=True), (200, "text/csv"): str})
    def list(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        if request.accepted_renderer.format != CsvRenderer.format:
            return super().list(request, *args, **kwargs)
        lines = csv_lines(self.filter_queryset(self.get_queryset()))
        headers = {"Content-Disposition": 'attachment; filename="facho-changes.csv"'}
        return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)
