"""Users in the admin: the role is one choice."""

from typing import Any

from django import forms
from django.contrib.auth.models import Group, User
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget

from facho.apps.accounts.models import UserSession
from facho.apps.accounts.roles import Role, role_of, roles_within

ROLE_HELP = _("Each role includes the one before it. Without a role, the user can log in and see nothing.")


class RoleFormMixin(forms.Form):
    """A user form with one choice of role, among those that the editor has the permissions of."""

    role = forms.ChoiceField(label=_("Role"), required=False, help_text=ROLE_HELP, widget=UnfoldAdminSelectWidget)
    # Set by the admin for each request.
    editor: User

    def offer_roles(self, initial: Role | None) -> None:
        if "role" in self.fields:
            choices = [("", _("none")), *((role.value, role.label) for role in roles_within(self.editor))]
            self.fields["role"].choices = choices  # type: ignore[attr-defined]  # it has choices
            self.initial["role"] = initial or ""

    def clean_username(self) -> str:
        """Refuse a name that differs from another one by case only: failed logins of both count together."""
        name = str(self.cleaned_data["username"])
        if User.objects.filter(username__iexact=name).exclude(pk=self.instance.pk).exists():  # type: ignore[attr-defined]  # of a model form
            raise forms.ValidationError(User._meta.get_field("username").error_messages["unique"])
        return name

    def clean_role(self) -> Role | None:
        return Role(self.cleaned_data["role"]) if self.cleaned_data["role"] else None


class UserForm(RoleFormMixin, UserChangeForm):
    """A user, and for superusers also own groups and single permissions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer_roles(role_of(self.instance))

    def clean_groups(self) -> Any:
        """Keep the group of the role, which is not among the choices."""
        role = Group.objects.filter(user=self.instance, name__in=Role)
        return Group.objects.filter(Q(pk__in=self.cleaned_data["groups"]) | Q(pk__in=role))


class NewUserForm(RoleFormMixin, UserCreationForm):
    """A new user."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer_roles(Role.VIEWER)


class PasswordForm(AdminPasswordChangeForm):
    """A password that an admin sets. It ends the sessions of the user, and the streams of open pages with them."""

    def save(self, commit: bool = True) -> User:
        user: User = super().save(commit)
        UserSession.of(user).delete()
        return user
