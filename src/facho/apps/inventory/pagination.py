"""How lists are cut into pages."""

from typing import Any

from rest_framework.pagination import PageNumberPagination
from rest_framework.response import Response


class Pages(PageNumberPagination):
    """Pages by number. The answer says how large they are, since a wish above the maximum is cut down to it."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 1000

    def get_paginated_response(self, data: Any) -> Response:
        assert self.page is not None  # noqa: S101  # DRF calls this after `paginate_queryset` only
        return Response(
            {
                "count": self.page.paginator.count,
                "next": self.get_next_link(),
                "previous": self.get_previous_link(),
                "page_size": self.page.paginator.per_page,
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        described = super().get_paginated_response_schema(schema)
        described["properties"]["page_size"] = {"type": "integer", "example": self.page_size}
        described["required"] = [*described["required"], "page_size"]
        return described
