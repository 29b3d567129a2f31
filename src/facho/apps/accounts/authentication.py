"""Authentication of the API by token."""

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from facho.apps.accounts.models import ApiToken
from facho.apps.changes import actor
from facho.apps.rest.addresses import client_address


class ApiTokenAuthentication(BaseAuthentication):
    """`Authorization: Token KEY` or `Authorization: Bearer KEY`."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _space, key = get_authorization_header(request).decode("latin-1").strip().partition(" ")
        if scheme.lower() not in ("token", "bearer"):
            return None
        token = ApiToken.find(key.strip())
        if token is None:
            raise AuthenticationFailed(_("Invalid token."))
        address = client_address(request._request)
        if refusal := token.refusal(address):
            raise AuthenticationFailed(refusal)
        if token.is_read_only and request.method not in SAFE_METHODS:
            # For the line in the log. The framework resets `user` after a refusal.
            request._request._cached_user = token.user  # type: ignore[attr-defined]  # of Django's middleware
            raise PermissionDenied(_("This token is read-only. Use a token with full access."))
        token.record_use(address)
        actor.use_token(str(token))
        return token.effective_user(), token

    def authenticate_header(self, request: Request) -> str:
        return "Token"
