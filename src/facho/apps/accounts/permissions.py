"""Permissions of the API. Logged-in users may read; writing needs the permissions of the admin."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.request import Request


def missing(permission: str) -> str:
    """Return the message for a missing permission."""
    return _("This needs the permission %(permission)s. An admin can grant it.") % {"permission": permission}


def needs(permission: str) -> type[IsAuthenticated]:
    """Return the permission of an action beyond create, update and delete."""

    class Needs(IsAuthenticated):
        @property
        def message(self) -> str:
            return missing(permission)

        def has_permission(self, request: Request, view: Any) -> bool:
            return super().has_permission(request, view) and request.user.has_perm(permission)

    return Needs


class MayManageTokens(IsAuthenticated):
    """A token with limits must not create or change tokens, or it could remove its limits. It can revoke itself."""

    @property
    def message(self) -> str:
        return _("This token has limits and cannot manage tokens. Log in, or use a token without limits.")

    def has_permission(self, request: Request, view: Any) -> bool:
        is_allowed = _has_no_limits(request) or request.method in (*SAFE_METHODS, "DELETE")
        return super().has_permission(request, view) and is_allowed

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        return _has_no_limits(request) or request.method in SAFE_METHODS or obj == request.auth


def _has_no_limits(request: Request) -> bool:
    token: Any = request.auth
    return token is None or bool(token.is_unlimited)
