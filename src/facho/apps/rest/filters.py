"""Filters and ordering of lists."""

from collections.abc import Iterable
from typing import Any, ClassVar

import django_filters
from django import forms
from django.core.exceptions import ValidationError as InvalidValue
from django.core.validators import MaxValueValidator
from django.db.models import BooleanField, F, QuerySet
from django.db.models.expressions import OrderBy
from django.utils.text import smart_split
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_filters.fields import IsoDateTimeField
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.filters import OrderingFilter, SearchFilter
from rest_framework.request import Request

# A longer search makes a statement that a database refuses.
MOST_SEARCH_CHARACTERS, MOST_SEARCH_TERMS = 200, 10
# Fields of `ordering`.
MOST_ORDERING_FIELDS = 10


def search_problem(text: str) -> str:
    """Return why a search is refused; empty if it is not."""
    if len(text) <= MOST_SEARCH_CHARACTERS and len(list(smart_split(text))) <= MOST_SEARCH_TERMS:
        return ""
    limits = {"terms": MOST_SEARCH_TERMS, "characters": MOST_SEARCH_CHARACTERS}
    return gettext("Search for at most %(terms)d words and %(characters)d characters.") % limits


class LimitedSearch(SearchFilter):
    """Search by words, not too many.

    A view with a function `matching` searches with it, by its own rules; others by `search_fields`.
    """

    def get_search_fields(self, view: Any, request: Request) -> Any:
        return [self.search_param] if getattr(view, "matching", None) else super().get_search_fields(view, request)

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        matching = getattr(view, "matching", None)
        if matching is None:
            return super().filter_queryset(request, queryset, view)
        # Refuses what no search may have.
        self.get_search_terms(request)
        found: QuerySet[Any] = matching(queryset, request.query_params.get(self.search_param, ""))
        return found

    def get_search_terms(self, request: Request) -> list[str]:
        if problem := search_problem(request.query_params.get(self.search_param, "")):
            raise ValidationError({self.search_param: [problem]})
        try:
            return super().get_search_terms(request)
        except ValidationError as error:
            raise ValidationError({self.search_param: error.detail}) from error

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        if not getattr(view, "search_fields", None) and not getattr(view, "matching", None):
            return []
        described = super().get_schema_operation_parameters(view)
        for each in described:
            each["schema"] = {"type": "string", "maxLength": MOST_SEARCH_CHARACTERS}
        return described


class NullsLastOrdering(OrderingFilter):
    """Orders by known fields, rows without a value last, with a stable order of equal rows.

    Without a stable order a row could be on two pages, or on none.
    """

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        names = self.get_ordering(request, queryset, view)
        if not names:
            return queryset
        # A view may name an indexed column that orders as another does, only more coarsely.
        coarse: dict[str, str] = dict(getattr(view, "coarse_ordering", {}))
        coarse |= {f"-{fine}": f"-{name}" for fine, name in coarse.items()}
        full = [each for name in names for each in (coarse.get(name), name) if each]
        return queryset.order_by(*map(self._nulls_last, full), "pk")

    def remove_invalid_fields(
        self, queryset: QuerySet[Any], fields: Iterable[str], view: Any, request: Request
    ) -> list[str]:
        """Refuse unknown ordering fields instead of ignoring them."""
        fields = list(fields)
        if len(fields) > MOST_ORDERING_FIELDS:
            many = _("Order by at most %(most)d fields.") % {"most": MOST_ORDERING_FIELDS}
            raise ValidationError({"ordering": [many]})
        known = [name for name, _label in self.get_valid_fields(queryset, view, {"request": request})]
        if unknown := [name for name in fields if name.removeprefix("-") not in known]:
            shown = unknown[0][:MOST_SEARCH_CHARACTERS]
            said = _("Cannot order by “%(field)s”. Valid fields, each also with a - before it: %(known)s.")
            raise ValidationError({"ordering": [said % {"field": shown, "known": ", ".join(known)}]})
        return fields

    @staticmethod
    def _nulls_last(name: str) -> OrderBy:
        field = F(name.removeprefix("-"))
        return field.desc(nulls_last=True) if name.startswith("-") else field.asc(nulls_last=True)


# Largest BIGINT.
LARGEST_ID = 2**63 - 1

# At the ends of the calendar a conversion to another time zone would overflow.
FIRST_YEAR, LAST_YEAR = 2, 9998


class IdFilter(django_filters.NumberFilter):
    """Id of a row. An unknown id finds nothing; an impossible one is refused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, min_value=0, decimal_places=0, **kwargs)

    def get_max_validator(self) -> MaxValueValidator:
        return MaxValueValidator(LARGEST_ID)


class IdsFilter(django_filters.BaseInFilter, IdFilter):
    """Ids of rows, separated by commas."""


class MomentField(IsoDateTimeField):
    """A time with a zone that can be converted to every zone."""

    def clean(self, value: Any) -> Any:
        moment = super().clean(value)
        if moment is not None and not FIRST_YEAR <= moment.year <= LAST_YEAR:
            raise InvalidValue(self.error_messages["invalid"], code="invalid")
        return moment


class MomentFilter(django_filters.IsoDateTimeFilter):
    """A time in the format of the API."""

    field_class = MomentField


class YesNoField(forms.Field):
    """True or false; other values are refused."""

    widget = forms.TextInput
    words: ClassVar[dict[str, bool]] = {"true": True, "1": True, "false": False, "0": False}

    def to_python(self, value: Any) -> bool | None:
        if value in (None, ""):
            return None
        if str(value).lower() not in self.words:
            raise InvalidValue(_("Write true or false."))
        return self.words[str(value).lower()]


class YesNoFilter(django_filters.BooleanFilter):
    """A column that is true or false."""

    field_class = YesNoField


class FilterSet(django_filters.FilterSet):
    """Filters of a list: invalid values are refused."""

    FILTER_DEFAULTS = {**django_filters.FilterSet.FILTER_DEFAULTS, BooleanField: {"filter_class": YesNoFilter}}


class AnyOfFilter(django_filters.MultipleChoiceFilter):
    """Rows whose own column has one of these values. No row can match twice, so DISTINCT is not needed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"distinct": False, **kwargs})


# Filters of every list: by column, `search`, and `ordering`.
LIST_BACKENDS = (DjangoFilterBackend, LimitedSearch, NullsLastOrdering)
