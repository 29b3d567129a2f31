"""What holds for every request."""

from datetime import UTC

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin


class UtcApi(MiddlewareMixin):
    """Lets the API speak of times in UTC. Pages have the zone of the installation, since people read them."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith("/api/"):
            timezone.activate(UTC)
        else:
            # The thread may have answered for the API before.
            timezone.deactivate()

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        timezone.deactivate()
        return response
