"""Users, groups and API tokens in the admin."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.forms import AdminPasswordChangeForm, BaseDialogForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminTextareaWidget

from facho.apps.accounts.forms import NETWORKS_HELP, NetworksField
from facho.apps.accounts.models import ApiToken, check_expiry

admin.site.unregister(User)
admin.site.unregister(Group)


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


class ApiTokenForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A token in the admin."""

    networks = NetworksField(
        label=_("Allowed networks"),
        required=False,
        help_text=NETWORKS_HELP,
        widget=UnfoldAdminTextareaWidget,
    )

    class Meta:
        model = ApiToken
        fields = ["user", "name", "is_read_only", "role", "networks", "expires_at"]

    def clean_expires_at(self) -> Any:
        moment = self.cleaned_data["expires_at"]
        return check_expiry(moment) if "expires_at" in self.changed_data else moment


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):
    """API tokens. A token gives rights of its user, so only superusers create and change them. A key is shown once."""

    form = ApiTokenForm
    list_display = [
        "name",
        "user",
        "visible_key",
        "state",
        "is_read_only",
        "role",
        "created_at",
        "expires_at",
        "last_used_at",
        "last_address",
    ]
    list_filter = ["is_read_only", "origin", "role"]
    list_select_related = ["user", "role"]
    search_fields = ["name", "prefix", "user__username"]
    actions_row = ["revoke"]
    readonly_fields = [
        "visible_key",
        "state",
        "origin",
        "created_at",
        "revoked_at",
        "last_used_at",
        "last_address",
    ]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [*ApiTokenForm.Meta.fields, *(self.readonly_fields if obj else [])]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        # A key must not pass to another user.
        return [*self.readonly_fields, "user"] if obj else []

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_active_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        is_over = isinstance(obj, ApiToken) and obj.revoked_at is not None
        return is_active_superuser(request) and not is_over

    def save_model(self, request: Any, obj: ApiToken, form: Any, change: bool) -> None:
        if change:
            # Not a whole row: it may have been revoked since it was read.
            obj.save(update_fields=form.changed_data)
        else:
            request.new_key = obj.issue()

    def response_add(self, request: Any, obj: ApiToken, post_url_continue: str | None = None) -> HttpResponse:
        """Show the key in the answer itself: a message would store it in a cookie or in the session."""
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("New token"),
            "token": obj,
            "key": request.new_key,
            "opts": self.opts,
        }
        return TemplateResponse(request, "accounts/token_created.html", context)

    @display(
        description=_("state"),
        label={"valid": "success", "expired": "warning", "revoked": "danger"},
    )
    def state(self, token: ApiToken) -> tuple[str, str]:
        return token.state, token.get_state_display()

    @admin.display(description=_("key"), ordering="prefix")
    def visible_key(self, token: ApiToken) -> str:
        return f"{token.prefix}…"

    @action(
        description=_("Revoke"),
        icon="block",
        permissions=["delete"],
        dialog={
            "title": _("Revoke the token"),
            "description": _("Programs that use it lose access immediately."),
            "form_class": BaseDialogForm,
            "form_submit_text": _("Revoke"),
        },
    )
    def revoke(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        token = get_object_or_404(ApiToken, pk=object_id)
        if token.revoke():
            self.log_change(request, token, [{"changed": {"fields": ["revoked_at"]}}])
        messages.success(request, gettext("The token was revoked."))
        return HttpResponse(headers={"HX-Redirect": reverse("admin:accounts_apitoken_changelist")})


def is_active_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)
