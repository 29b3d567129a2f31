"""Search in lists of the admin."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from facho.apps.rest.filters import search_problem


class LimitedSearchAdmin(ModelAdmin):
    """A list whose search has the limits of the API. A longer one finds nothing, and a message tells why.

    With a function `matching` it searches with that; `search_fields` then only shows the search box.
    """

    matching: Callable[[QuerySet[Any], str], QuerySet[Any]] | None = None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if problem := search_problem(search_term):
            messages.error(request, problem)
            return queryset.none(), False
        if self.matching is not None:
            return self.matching(queryset, search_term), False
        found: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, search_term)
        return found
