"""Pagination of lists."""

import re
from typing import Any, cast

from django.core.paginator import EmptyPage, Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response

# Maximum count of a list: a month of executions has tens of millions of rows, and counting all for each page would take
# half a minute.
MOST = 1_000_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # it has none at run time
    """Counts no further than `MOST`."""

    @cached_property
    def _counted(self) -> int:
        if isinstance(self.object_list, QuerySet):
            return self.object_list.order_by().values("pk")[: MOST + 1].count()
        return len(self.object_list)

    @cached_property
    def count(self) -> int:
        return min(self._counted, MOST)

    @property
    def is_counted(self) -> bool:
        return self._counted <= MOST

    def validate_number(self, number: Any) -> int:
        try:
            return super().validate_number(number)
        except EmptyPage:
            if self.is_counted:
                raise
            raise EmptyPage(_("The list is too long to page this far. Filter it, for example by time.")) from None


class Pages(PageNumberPagination):
    """Pages by number. The answer has the page size, because a larger one is reduced to the maximum."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 1000
    django_paginator_class = BoundedPaginator
    invalid_page_message = "{message}"

    def get_page_size(self, request: Request) -> int | None:
        size = request.query_params.get(self.page_size_query_param, "1")
        if not re.fullmatch("[0-9]{1,9}", size) or not int(size):
            said = _("Write a number from 1 to %(most)d.") % {"most": self.max_page_size}
            raise ValidationError({self.page_size_query_param: [said]})
        return super().get_page_size(request)

    def get_paginated_response(self, data: Any) -> Response:
        assert self.page is not None  # noqa: S101  # DRF calls this after `paginate_queryset` only
        paginator = cast(BoundedPaginator, self.page.paginator)
        return Response(
            {
                "count": paginator.count,
                "is_counted": paginator.is_counted,
                "next": self.get_next_link(),
                "previous": self.get_previous_link(),
                "page_size": paginator.per_page,
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        described = super().get_paginated_response_schema(schema)
        described["properties"]["page_size"] = {"type": "integer", "example": self.page_size}
        described["properties"]["is_counted"] = {
            "type": "boolean",
            "description": f"false: there are more rows than `count`, which stops at {MOST:,}. Filter the list.",
        }
        described["required"] = [*described["required"], "page_size", "is_counted"]
        return described


class IdsFirstPages(Pages):
    """Pages of a large table: the ids are read first, so that no row is joined only to be filtered or sorted.

    The view's `complete` adds what the rows of a page show of other tables.
    """

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        if not isinstance(queryset, QuerySet):
            return super().paginate_queryset(queryset, request, view)
        ids = super().paginate_queryset(queryset.values_list("pk", flat=True), request, view) or []
        rows = {row.pk: row for row in view.complete(queryset.order_by().filter(pk__in=ids))}
        return [rows[pk] for pk in ids if pk in rows]
