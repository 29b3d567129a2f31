"""Login at an OpenID Connect provider, and logout."""

from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.views import LogoutView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache


@never_cache
def start(request: HttpRequest) -> HttpResponseBase:
    response: HttpResponseBase = _library().Start.as_view()(request)
    return response


@never_cache
def callback(request: HttpRequest) -> HttpResponseBase:
    response: HttpResponseBase = _library().Callback.as_view()(request)
    return response


def _library() -> Any:
    if not settings.CONFIG.oidc_issuer:
        raise Http404
    # Imported late: the packages of an extra.
    from facho.apps.accounts import oidc

    return oidc


class Logout(LogoutView):
    """Ends the session, and offers a person of the provider to end that session too."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        is_external = bool(settings.CONFIG.oidc_issuer) and "oidc" in request.session.get(BACKEND_SESSION_KEY, "")
        response: HttpResponse = super().post(request, *args, **kwargs)
        url = _library().end_session_url() if is_external else None
        if url is None:
            return response
        return render(request, "dashboard/logged_out.html", {"url": url, "label": settings.CONFIG.oidc_label})
