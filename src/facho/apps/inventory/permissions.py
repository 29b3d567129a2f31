"""Who may do what through the API. Whoever is logged in may read; writing takes the permissions of the admin."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request


def missing(permission: str) -> str:
    """Return the sentence for a person who lacks a permission."""
    return _("This needs the permission %(permission)s. An admin can grant it.") % {"permission": permission}


def needs(permission: str) -> type[IsAuthenticated]:
    """Return the rule of an action that is more than creating, changing or deleting the row it is called on."""

    class Needs(IsAuthenticated):
        @property
        def message(self) -> str:
            return missing(permission)

        def has_permission(self, request: Request, view: Any) -> bool:
            return super().has_permission(request, view) and request.user.has_perm(permission)

    return Needs
