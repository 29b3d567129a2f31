"""Strict requests: unknown parameters and fields are refused, because an ignored one looks like one that works."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.http import Http404
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django_filters import MultipleChoiceFilter
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.filters import OrderingFilter, SearchFilter
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

# Values of one parameter that may be given several times.
MOST_VALUES = 100

# Generic actions validate the body with the serializer of the view.
GENERIC = ("create", "update", "partial_update", "destroy")


class StrictView(APIView):
    """Refuses unknown query parameters, and a body where none is read.

    The known parameters are those of `query_serializer`, and for a GET those of the filters and pages.
    """

    # Parameters besides filters and pages. Also an argument of `@action`.
    query_serializer: type[serializers.Serializer[Any]] | None = None
    # Body of a POST that is not a generic action. Also an argument of `@action`.
    body_serializer: type[serializers.Serializer[Any]] | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        known = self.known_parameters()
        said = _("Unknown parameter. Valid parameters: %(known)s.") % {"known": ", ".join(known)}
        if unknown := request.query_params.keys() - set(known):
            raise serializers.ValidationError({name: [said] for name in sorted(unknown)})
        several = self._repeatable_parameters()
        repeated = [name for name, values in request.query_params.lists() if len(values) > 1 and name not in several]
        if repeated:
            raise serializers.ValidationError({name: [_("Give this parameter once.")] for name in repeated})
        if crowded := [name for name, values in request.query_params.lists() if len(values) > MOST_VALUES]:
            said = _("Give this parameter at most %(most)d times.") % {"most": MOST_VALUES}
            raise serializers.ValidationError({name: [said] for name in crowded})
        takes_body = getattr(self, "action", None) in GENERIC or self.body_serializer is not None
        if request.method == "POST" and not takes_body and request.data:
            raise serializers.ValidationError({"detail": _("This request takes no body.")})

    def handle_exception(self, exc: Exception) -> Response:
        # Django's message names a class.
        return super().handle_exception(NotFound() if isinstance(exc, Http404) else exc)

    def known_parameters(self) -> list[str]:
        names = list(self.query_serializer().fields) if self.query_serializer else []
        is_read = self.request.method in ("GET", "HEAD")
        if is_read and isinstance(self, GenericAPIView) and getattr(self, "action", None) != "retrieve":
            names += [name for backend in self.filter_backends for name in _parameters(backend(), self)]
            if self.paginator is not None:
                names += [each["name"] for each in self.paginator.get_schema_operation_parameters(self)]
        return [*names, str(api_settings.URL_FORMAT_OVERRIDE)]

    def validated_query(self) -> dict[str, Any]:
        """Return the values of `query_serializer`."""
        return _validated(self.query_serializer, self.request.query_params)

    def validated_body(self) -> dict[str, Any]:
        """Return the values of `body_serializer`."""
        return _validated(self.body_serializer, self.request.data)

    def _repeatable_parameters(self) -> set[str]:
        """Return the parameters that accept several values. Of any other only the last value would count."""
        fields = self.query_serializer().fields if self.query_serializer else {}
        names = {name for name, field in fields.items() if isinstance(field, serializers.ListField)}
        filters = getattr(getattr(self, "filterset_class", None), "base_filters", {})
        return names | {name for name, each in filters.items() if isinstance(each, MultipleChoiceFilter)}


class WholeNumber(serializers.IntegerField):
    """An integer in a query: 1, but not 1.0, which is a number of another type there."""

    re_decimal = re.compile(r"(?!)")


def _validated(serializer: type[serializers.Serializer[Any]] | None, data: Any) -> dict[str, Any]:
    if serializer is None:
        raise TypeError("the view has no serializer for this")
    checked = serializer(data=data)
    checked.is_valid(raise_exception=True)
    return dict(checked.validated_data)


def _parameters(backend: Any, view: GenericAPIView[Any]) -> list[str]:
    """Return the query parameters that a filter backend reads."""
    if isinstance(backend, DjangoFilterBackend):
        filters = backend.get_filterset_class(view, view.get_queryset())
        return list(filters.base_filters) if filters else []
    if isinstance(backend, SearchFilter):
        return [backend.search_param] if backend.get_search_fields(view, view.request) else []
    if isinstance(backend, OrderingFilter):
        return [backend.ordering_param]
    raise TypeError(f"the parameters of {type(backend).__name__} are not known")


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields, and changed values of read-only fields.

    A read-only field with its current value passes, because clients send back whole objects.
    """

    def to_internal_value(self, data: Any) -> Any:
        errors = dict(self._refusals(data)) if isinstance(data, Mapping) else {}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            detail = error.detail if isinstance(error.detail, dict) else {}
            raise serializers.ValidationError({**detail, **errors} if detail else error.detail) from error
        if errors:
            raise serializers.ValidationError(errors)
        return values

    def present(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the stored values of the row of `data`, as the API shows them; empty for a new one."""
        return {} if self.instance is None else self.to_representation(self.instance)

    def _refusals(self, data: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
        fields = self.fields
        writable = ", ".join(name for name, field in fields.items() if not field.read_only)
        for name in data:
            if name not in fields:
                yield name, [_("Unknown field. Writable fields: %(fields)s.") % {"fields": writable}]
        read_only = [name for name in data if name in fields and fields[name].read_only]
        present = self.present(data) if read_only else {}
        said = _("This field is read-only. Remove it. Writable fields: %(fields)s.") % {"fields": writable}
        for name in read_only:
            if name not in present or not _is_same(data[name], present[name]):
                yield name, [said]


def _is_same(given: Any, present: Any) -> bool:
    """Return whether a value is the current one; a time may have another format."""
    return bool(given == present) or (_moment(given) is not None and _moment(given) == _moment(present))


def _moment(value: Any) -> datetime | None:
    try:
        return parse_datetime(value) if isinstance(value, str) else None
    except ValueError:
        return None
