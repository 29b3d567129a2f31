"""Users, groups and API tokens in the admin."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from rest_framework.authtoken.models import Token, TokenProxy
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.forms import AdminPasswordChangeForm, BaseDialogForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget

from facho.apps.inventory.admin_tools import dialog, never

admin.site.unregister(User)
admin.site.unregister(Group)
admin.site.unregister(TokenProxy)


# First word of the code name of a permission.
PERMISSIONS = {
    "add": pgettext_lazy("permission", "add"),
    "change": pgettext_lazy("permission", "change"),
    "delete": pgettext_lazy("permission", "delete"),
    "run": pgettext_lazy("permission", "run now"),
    "view": pgettext_lazy("permission", "view"),
}


def permission_label(permission: Permission) -> str:
    """Return a permission in the user's language. Django keeps its name in English in the database."""
    verb = permission.codename.partition("_")[0]
    return f"{permission.content_type} | {PERMISSIONS.get(verb, permission.name)}"


class PermissionLabels:
    """A form in which permissions are shown in the user's language."""

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field: Any = super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]  # of an admin
        if field is not None and db_field.related_model is Permission:
            field.label_from_instance = permission_label
        return field


@admin.register(User)
class FachoUserAdmin(PermissionLabels, UserAdmin, ModelAdmin):  # type: ignore[type-arg]  # generic only in the stubs
    """Users."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class FachoGroupAdmin(PermissionLabels, GroupAdmin, ModelAdmin):  # type: ignore[misc]  # signatures of the stubs
    """Groups of permissions."""


class NewTokenForm(BaseDialogForm):
    """User of a new token: one without a token."""

    user = forms.ModelChoiceField(
        label=_("User"),
        queryset=User.objects.filter(is_active=True, auth_token__isnull=True),
        widget=UnfoldAdminSelectWidget,
    )


@admin.register(TokenProxy)
class FachoTokenAdmin(ModelAdmin):
    """API tokens. A token gives the rights of its user, so only superusers create them, and a key is shown once.

    Django's standard pages would show the key in title, URL and change log, so they are not used.
    """

    list_display = ["user", "created"]
    list_display_links = None
    list_select_related = ["user"]
    search_fields = ["user__username"]
    ordering = ["user__username"]
    actions = None
    actions_list = ["new_token"]
    actions_row = ["take_back"]
    has_add_permission = has_change_permission = has_delete_permission = never

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return obj is None and bool(request.user.is_active and request.user.is_superuser)

    @action(
        description=_("New token"),
        icon="key",
        permissions=["view"],
        dialog=dialog(
            _("New token"),
            _("It gives access to the API with all permissions of this user."),
            _("Create"),
            NewTokenForm,
        ),
    )
    def new_token(self, request: HttpRequest, form: NewTokenForm) -> HttpResponse:
        token, _is_new = Token.objects.get_or_create(user=form.cleaned_data["user"])
        messages.warning(
            request,
            gettext("The token of %(user)s is %(key)s. Copy it now: it is not shown again.")
            % {"user": token.user, "key": token.key},
        )
        return self._back()

    @action(
        description=_("Revoke"),
        icon="block",
        permissions=["view"],
        dialog=dialog(_("Revoke the token"), _("Programs that use it lose access immediately."), _("Revoke")),
    )
    def take_back(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        # A TokenProxy is identified by the id of its user.
        Token.objects.filter(user_id=object_id).delete()
        messages.success(request, gettext("The token was revoked."))
        return self._back()

    @staticmethod
    def _back() -> HttpResponse:
        return HttpResponse(headers={"HX-Redirect": reverse("admin:authtoken_tokenproxy_changelist")})
