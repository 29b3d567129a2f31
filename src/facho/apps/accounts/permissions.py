"""Permissions of the API: the same as in the admin, and `view` for reading."""

from collections.abc import Collection, Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.permissions import SAFE_METHODS, DjangoModelPermissions, IsAuthenticated
from rest_framework.request import Request

from facho.apps.accounts.roles import lowest_role_with


def missing(permission: str) -> str:
    """Return the message for a missing permission, with the lowest role that has it."""
    role = lowest_role_with(permission)
    if role is None:
        return _("This needs the permission %(permission)s. An admin can grant it.") % {"permission": permission}
    said = _("This needs the permission %(permission)s, which the role %(role)s has. An admin can grant it.")
    return said % {"permission": permission, "role": role.label}


class ModelPermissions(DjangoModelPermissions):
    """The permissions on the model of the view set: view, add, change and delete.

    A PATCH of nothing but `operated_fields` of the view set also passes with the permission to operate the row.
    """

    view = ["%(app_label)s.view_%(model_name)s"]
    perms_map = {**DjangoModelPermissions.perms_map, "GET": view, "HEAD": view, "OPTIONS": view}
    message = ""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not (request.user and request.user.is_authenticated):
            return False
        model = self._queryset(view).model
        needed = self.get_required_permissions(request.method or "", model)
        lacking = [name for name in needed if not request.user.has_perm(name)]
        if lacking and request.method == "PATCH" and _changes_only(request, getattr(view, "operated_fields", ())):
            operate = f"{model._meta.app_label}.operate_{model._meta.model_name}"
            lacking = [] if request.user.has_perm(operate) else [operate]
        self.message = missing(lacking[0]) if lacking else ""
        return not lacking


def _changes_only(request: Request, fields: Collection[str]) -> bool:
    return isinstance(request.data, Mapping) and bool(request.data) and set(request.data) <= set(fields)


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
