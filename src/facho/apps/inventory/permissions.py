"""Permissions of the API. Logged-in users may read; writing needs the permissions of the admin."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.permissions import IsAuthenticated
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
