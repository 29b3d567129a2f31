"""Middleware."""

from datetime import UTC

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin


class UtcApi(MiddlewareMixin):
    """Uses UTC in the API. Pages use the zone of the installation."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith("/api/"):
            timezone.activate(UTC)
        else:
            # The thread may have served the API before.
            timezone.deactivate()

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        timezone.deactivate()
        return response
