"""Errors outside views: JSON for API paths, Django's page for others."""

from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views import defaults

from facho.apps.rest.parsers import too_large


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return a 400 for requests that Django refuses before a view sees them, such as thousands of parameters."""
    if not is_for_programs(request):
        return defaults.bad_request(request, exception)
    if isinstance(exception, RequestDataTooBig):
        return _refusal(too_large(), 400)
    return _refusal(_("The request was refused: it has too many parameters, or its host is not allowed."), 400)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return a 404. Not a catch-all route, which would match paths without their last /."""
    if not is_for_programs(request):
        return defaults.page_not_found(request, exception)
    known = {"path": request.path, "docs": reverse("api-docs")}
    said = _("There is nothing at %(path)s. The documentation is at %(docs)s.") % known
    return _refusal(said, 404)


def server_error(request: HttpRequest, *args: Any) -> HttpResponse:
    """Return a 500. The details are only in the log."""
    if not is_for_programs(request):
        return defaults.server_error(request)
    said = _("Internal error. The details are in the log of Facho.")
    return _refusal(said, 500)


def _refusal(sentence: str, status: int) -> JsonResponse:
    # Like the rest of the API: non-ASCII letters are not escaped.
    return JsonResponse({"detail": sentence}, status=status, json_dumps_params={"ensure_ascii": False})


def is_for_programs(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")
