"""Last activity of a session, and two-factor authentication where it is required."""

from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from rest_framework.permissions import SAFE_METHODS

from facho.apps.accounts.two_factor import is_missing
from facho.apps.rest.addresses import client_address


class LastActivity(MiddlewareMixin):
    """Records what a person does, so that an idle session ends.

    Scripts refresh an open page on their own. Their requests do not accept HTML, unless a person caused them.
    """

    def process_request(self, request: HttpRequest) -> None:
        is_by_person = request.method not in SAFE_METHODS or "text/html" in request.headers.get("Accept", "")
        if request.session.get(SESSION_KEY) is None:
            return
        session: Any = request.session
        client = client_address(request), request.headers.get("User-Agent", "")
        if is_by_person:
            session.row.record_activity(*client)
        elif not session.row.user_agent:
            # A session that only a script uses must be recognised in the list, too.
            session.row.record_client(*client)


class RequiredTwoFactor(MiddlewareMixin):
    """Leads users without their required second factor to its set-up, and refuses everything else."""

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        if settings.FACHO_REQUIRE_TOTP == "none" or not is_missing(request.user):
            return None
        page = reverse("dashboard:two-factor")
        if request.path_info.startswith((page, reverse("logout"), reverse("set_language"))):
            return None
        if request.path_info.startswith("/api/") or "text/html" not in request.headers.get("Accept", ""):
            return JsonResponse(
                {"detail": _("Set up two-factor authentication first: %(page)s") % {"page": page}}, status=403
            )
        return redirect(page)
