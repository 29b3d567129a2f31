"""Users, groups, API tokens and failed logins in the admin."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminTextareaWidget

from facho.apps.accounts.forms import NETWORKS_HELP, NetworksField
from facho.apps.accounts.logins import forget, lock_end
from facho.apps.accounts.models import (
    ApiToken,
    ExternalIdentity,
    FailedLogin,
    TwoFactor,
    UserSession,
    check_expiry,
    end_access,
)
from facho.apps.accounts.roles import Role, role_of, set_role, users_within
from facho.apps.accounts.user_forms import NewUserForm, PasswordForm, UserForm
from facho.apps.changes.admin import RecordedAdmin
from facho.apps.changes.record import recorded
from facho.apps.rest.admin_search import LimitedSearchAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


# First word of the code name of a permission.
PERMISSIONS = {
    "add": pgettext_lazy("permission", "add"),
    "change": pgettext_lazy("permission", "change"),
    "delete": pgettext_lazy("permission", "delete"),
    "operate": pgettext_lazy("permission", "operate"),
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
            # Tables of a library, which no page shows.
            field.queryset = field.queryset.exclude(content_type__app_label="axes")
        return field


class ExternalIdentityInline(TabularInline):
    """The login server that keeps the password of a user. Without this row, the account is a local one."""

    model = ExternalIdentity
    fields = readonly_fields = ["provider", "subject", "created_at"]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_active_superuser(request)


@admin.register(User)
class FachoUserAdmin(RecordedAdmin, PermissionLabels, UserAdmin, LimitedSearchAdmin):  # type: ignore[type-arg]  # in stubs
    """Users. Nobody gives rights that they do not have, or changes users with more rights.

    Flags, groups and single permissions are for superusers. Others choose a role.
    """

    form = UserForm
    add_form = NewUserForm
    change_password_form = PasswordForm
    actions_detail = ["end_sessions", "remove_two_factor"]
    list_display = ["username", "role_name", "first_name", "last_name", "email", "is_active", "last_login"]
    list_filter = ["groups", "is_active", "is_superuser"]
    person = (_("Person"), {"classes": ["tab"], "fields": [("first_name", "last_name"), "email"]})
    rights = (
        _("Own groups and permissions"),
        {"classes": ["tab"], "fields": [("is_staff", "is_superuser"), "groups", "user_permissions"]},
    )
    dates = (_("Dates"), {"classes": ["tab"], "fields": ["last_login", "date_joined"]})
    add_fieldsets = [(None, {"fields": ["username", "role", "usable_password", "password1", "password2"]})]

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        if obj is None:
            return self.add_fieldsets
        role = "role" if self._may_set_role(request, obj) else "role_name"
        account = (None, {"fields": ["username", "password", role, "is_active"]})
        return [account, self.person, *([self.rights] if is_active_superuser(request) else []), self.dates]

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        fields = ["role_name", "last_login", "date_joined"]
        return fields if obj is None or self._may_set_role(request, obj) else [*fields, "is_active"]

    def get_inlines(self, request: HttpRequest, obj: User | None) -> Any:
        return [ExternalIdentityInline] if obj is not None and hasattr(obj, "external_identity") else []

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        users: QuerySet[User] = super().get_queryset(request)
        return users.prefetch_related("groups")

    def get_form(self, request: HttpRequest, obj: User | None = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.editor = request.user
        if obj is not None and not self._may_set_role(request, obj):
            # A declared field is part of the form even if no fieldset has it.
            del form.base_fields["role"]
        return form

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "groups":
            kwargs["queryset"] = Group.objects.exclude(name__in=Role)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_change: bool = super().has_change_permission(request, obj)
        return may_change and (obj is None or users_within(request.user).filter(pk=obj.pk).exists())

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_delete: bool = super().has_delete_permission(request, obj)
        is_within = obj is None or (obj != request.user and users_within(request.user).filter(pk=obj.pk).exists())
        return may_delete and is_within

    def _may_set_role(self, request: HttpRequest, user: User) -> bool:
        """Return whether this user can change the role of another one. Only superusers change their own."""
        return self.has_change_permission(request, user) and (is_active_superuser(request) or user != request.user)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        if id == str(request.user.pk):
            # This page asks for the present password.
            return redirect("dashboard:password")
        user: Any = self.get_object(request, id)
        is_allowed = user is not None and self.has_change_permission(request, user)
        if is_allowed and (refusal := ExternalIdentity.password_refusal(user)):
            messages.warning(request, refusal)
            return redirect("admin:auth_user_change", user.pk)
        response: HttpResponse = super().user_change_password(request, id, form_url)
        return response

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        user, is_staff = form.instance, form.cleaned_data.get("is_staff")
        if "role" in form.cleaned_data and form.cleaned_data["role"] != role_of(user):
            set_role(user, form.cleaned_data["role"])
            if "is_staff" in form.changed_data:
                row = User.objects.filter(pk=user.pk)
                with recorded(row, "is_staff"):
                    row.update(is_staff=is_staff)

    @admin.display(description=_("role"))
    def role_name(self, user: User) -> str:
        if user.is_superuser:
            return gettext("Superuser")
        role = role_of(user)
        return role.label if role else "-"

    def save_model(self, request: Any, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            # They would be valid again, if the user is enabled later.
            UserSession.of(obj).delete()

    def has_end_sessions_permission(self, request: HttpRequest, object_id: str) -> bool:
        return self._may_protect(request, object_id)

    @action(
        description=_("End sessions and revoke tokens"),
        icon="logout",
        permissions=["end_sessions"],
        dialog={
            "title": _("End sessions and revoke tokens"),
            "description": _("The user must log in again, and programs with a token of this user lose access."),
            "form_class": BaseDialogForm,
            "form_submit_text": _("End and revoke"),
        },
    )
    def end_sessions(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        user = get_object_or_404(User, pk=object_id)
        end_access(user)
        messages.success(request, gettext("All sessions were ended and all tokens revoked."))
        return HttpResponse(headers={"HX-Redirect": reverse("admin:auth_user_change", args=[user.pk])})

    def has_remove_two_factor_permission(self, request: HttpRequest, object_id: str) -> bool:
        # One's own page asks for the password, so that an open session is not enough.
        is_own = object_id == str(request.user.pk)
        return (
            not is_own
            and self._may_protect(request, object_id)
            and TwoFactor.objects.filter(pk=int(object_id)).exists()
        )

    @action(
        description=_("Remove two-factor authentication"),
        icon="phonelink_erase",
        permissions=["remove_two_factor"],
        dialog={
            "title": _("Remove two-factor authentication"),
            "description": _(
                "For a user who lost the phone and the recovery codes. The password alone is then enough."
            ),
            "form_class": BaseDialogForm,
            "form_submit_text": _("Remove"),
        },
    )
    def remove_two_factor(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        get_object_or_404(TwoFactor, pk=object_id).turn_off()
        messages.success(request, gettext("Two-factor authentication was removed."))
        return HttpResponse(headers={"HX-Redirect": reverse("admin:auth_user_change", args=[object_id])})

    def _may_protect(self, request: HttpRequest, object_id: str) -> bool:
        """Return whether this admin may change the access of a user."""
        user = self.get_object(request, object_id)
        return user is not None and self.has_change_permission(request, user)


@admin.register(Group)
class FachoGroupAdmin(RecordedAdmin, PermissionLabels, GroupAdmin, LimitedSearchAdmin):  # type: ignore[misc]  # of the stubs
    """Groups of permissions. A group gives rights, so only superusers change one, and nobody that of a role."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_active_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_active_superuser(request) and not is_of_role(obj)

    has_delete_permission = has_change_permission

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if not is_of_role(obj):
            return super().get_fieldsets(request, obj)
        said = _("This is the group of a role. Each version of Facho sets its permissions, so it cannot be changed.")
        return [(None, {"fields": ["name", "permission_list"], "description": said})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["permission_list"] if is_of_role(obj) else []

    @admin.display(description=_("permissions"))
    def permission_list(self, group: Group) -> str:
        permissions = group.permissions.select_related("content_type")
        return format_html_join(mark_safe("<br>"), "{}", ((permission_label(each),) for each in permissions))


def is_of_role(group: Any) -> bool:
    return isinstance(group, Group) and group.name in set(Role)


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
class ApiTokenAdmin(RecordedAdmin, LimitedSearchAdmin):
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

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_delete: bool = super().has_delete_permission(request, obj)
        return may_delete and (obj is None or users_within(request.user).filter(pk=obj.user_id).exists())

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
        label={"valid": "success", "expired": "warning", "revoked": "default"},
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
        if not self.has_delete_permission(request, token):
            raise PermissionDenied
        token.revoke()
        messages.success(request, gettext("The token was revoked."))
        return HttpResponse(headers={"HX-Redirect": reverse("admin:accounts_apitoken_changelist")})


@admin.register(FailedLogin)
class FailedLoginAdmin(RecordedAdmin, LimitedSearchAdmin):
    """Recent failed logins. Unlocking deletes them."""

    list_display = ["user", "address", "failures", "last_failure", "lock"]
    search_fields = ["username", "ip_address"]
    actions = ["unlock_selected"]
    actions_row = ["unlock"]
    list_display_links = None

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {name: each for name, each in super().get_actions(request).items() if name != "delete_selected"}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    @admin.display(description=_("user"), ordering="username")
    def user(self, failed: FailedLogin) -> str:
        return str(failed.username)

    @admin.display(description=_("address"), ordering="ip_address")
    def address(self, failed: FailedLogin) -> str:
        return str(failed.ip_address or "")

    @admin.display(description=_("last failure"), ordering="attempt_time")
    def last_failure(self, failed: FailedLogin) -> Any:
        return failed.attempt_time

    @admin.display(description=_("failures"), ordering="failures_since_start")
    def failures(self, failed: FailedLogin) -> int:
        return int(failed.failures_since_start)

    @display(description=_("lock"), label={"locked": "warning", "open": "default"})
    def lock(self, failed: FailedLogin) -> tuple[str, str]:
        ends_at = lock_end(failed)
        if ends_at is None:
            return "open", gettext("not locked")
        return "locked", gettext("until %(time)s") % {"time": f"{timezone.localtime(ends_at):%H:%M:%S}"}

    @admin.action(description=_("Unlock"), permissions=["delete"])
    def unlock_selected(self, request: HttpRequest, chosen: QuerySet[FailedLogin]) -> None:
        forget(chosen)
        messages.success(request, gettext("Unlocked."))

    @action(
        description=_("Unlock"),
        icon="lock_open",
        permissions=["delete"],
        dialog={
            "title": _("Unlock"),
            "description": _("The user can try again from this address immediately."),
            "form_class": BaseDialogForm,
            "form_submit_text": _("Unlock"),
        },
    )
    def unlock(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        failed = get_object_or_404(FailedLogin, pk=object_id)
        forget(FailedLogin.objects.filter(pk=failed.pk))
        messages.success(request, gettext("Unlocked."))
        return HttpResponse(headers={"HX-Redirect": reverse("admin:accounts_failedlogin_changelist")})


def is_active_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)
