"""Security headers of all answers, beside those of Django's own middleware."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

# ONU names come from devices: only our own files may run.
PAGES = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

# Styles in the page, and images in styles. Neither the admin nor Swagger UI works without them.
STYLED = f"{PAGES}; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

# Policies by the start of the path. Alpine, which Unfold uses, evaluates the expressions in its attributes.
POLICIES = {
    "/admin/": f"{STYLED}; script-src 'self' 'unsafe-eval'",
    "/api/v1/docs/": STYLED,
}

# The copy button of API tokens writes to the clipboard, so that is not denied.
DENIED = (
    "accelerometer",
    "camera",
    "display-capture",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "usb",
)
PERMISSIONS = ", ".join(f"{name}=()" for name in DENIED)

# Parts of the API without data of the installation.
WITHOUT_DATA = ("/api/v1/docs/", "/api/v1/schema/")

Answer = Callable[[HttpRequest], HttpResponseBase]


@sync_and_async_middleware
def security_headers(get_response: Answer) -> Answer | Callable[[HttpRequest], Awaitable[HttpResponseBase]]:
    """Add the headers to every answer, also to errors and static files."""
    if iscoroutinefunction(get_response):
        ask: Any = get_response

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            return _with_headers(request, await ask(request))

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _with_headers(request, get_response(request))

    return answer


def _with_headers(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    path = request.path_info
    policy = next((POLICIES[start] for start in POLICIES if path.startswith(start)), PAGES)
    if path == "/map/" and settings.FACHO_MAP_TILES:
        tiles = urlsplit(settings.FACHO_MAP_TILES)
        policy = f"{policy}; img-src 'self' {tiles.scheme}://{tiles.netloc}"
    response["Content-Security-Policy"] = policy
    response["Permissions-Policy"] = PERMISSIONS
    if path.startswith("/api/") and not path.startswith(WITHOUT_DATA):
        response["Cache-Control"] = "no-store"
    return response
