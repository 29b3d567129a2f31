"""Forms for the login, API tokens, passwords and two-factor authentication."""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from facho.apps.accounts import two_factor
from facho.apps.accounts.logins import lock_of, turn_of
from facho.apps.accounts.models import ApiToken, TwoFactor
from facho.apps.accounts.networks import clean_networks
from facho.apps.accounts.roles import groups_within, label_of

# Days until a token expires.
LIFETIMES = [("30", _("in 30 days")), ("90", _("in 90 days")), ("365", _("in a year")), ("", _("never"))]


NETWORKS_HELP = _("Such as 192.0.2.0/24, 2001:db8::/32. Empty: from everywhere.")


class NetworksField(forms.CharField):
    """Networks, one per line or separated by commas or spaces."""

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return clean_networks(re.split(r"[\s,;]+", super().to_python(value) or ""))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)


class OwnTokenForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A new token of the user who fills in the form."""

    networks = NetworksField(label=_("Allowed networks"), required=False, help_text=NETWORKS_HELP)
    lifetime = forms.ChoiceField(label=_("Expires"), choices=LIFETIMES, required=False, initial="365")

    class Meta:
        model = ApiToken
        fields = ["name", "is_read_only", "role", "networks"]

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data, instance=ApiToken(user=user))
        role: Any = self.fields["role"]
        role.empty_label, role.queryset = _("all my permissions"), groups_within(user)
        role.label_from_instance = label_of

    def clean(self) -> dict[str, Any] | None:
        if days := self.cleaned_data.get("lifetime"):
            self.instance.expires_at = timezone.now() + timedelta(days=int(days))
        return super().clean()


class LoginForm(AuthenticationForm):
    """User name and password. A locked user learns how long the lock lasts."""

    def clean(self) -> dict[str, Any]:
        with turn_of(self.request):
            return super().clean()

    def get_invalid_login_error(self) -> forms.ValidationError:
        if self.request and (lock := lock_of(self.request, self.cleaned_data["username"])):
            return lock.error
        return super().get_invalid_login_error()


class CodeField(forms.CharField):
    """A code of an authenticator app, or a recovery code."""

    def __init__(self, **kwargs: Any) -> None:
        attributes = {"autocomplete": "one-time-code", "inputmode": "text", "autocapitalize": "none", "autofocus": True}
        super().__init__(label=_("Code"), max_length=50, widget=forms.TextInput(attributes), **kwargs)


class LoginCodeForm(forms.Form):
    """The second step of a login."""

    code = CodeField()

    def __init__(self, request: HttpRequest, factor: TwoFactor, data: Any = None) -> None:
        super().__init__(data)
        self.request = request
        self.factor = factor

    def clean_code(self) -> str:
        code = str(self.cleaned_data["code"])
        if refusal := two_factor.refusal(self.request, self.factor, code):
            raise refusal
        return code


class FirstCodeForm(forms.Form):
    """The first code of a new authenticator app."""

    code = CodeField(help_text=_("The 6 digits that the app shows now."))


class OwnPassword:
    """A form with a field for the user's own password. Wrong ones are counted as failed logins."""

    request: HttpRequest

    def check_own(self, password: str) -> str:
        user: Any = self.request.user
        with turn_of(self.request):
            found = authenticate(self.request, username=user.get_username(), password=password)
        # At a login server the name may belong to another person.
        if found != user:
            lock = lock_of(self.request, user.get_username())
            raise lock.error if lock else forms.ValidationError(_("This is not your password."))
        return password


class OwnPasswordForm(OwnPassword, PasswordChangeForm):
    """A new password, and optionally the end of all tokens."""

    revoke_tokens = forms.BooleanField(
        label=_("Revoke my API tokens"),
        required=False,
        help_text=_("Programs that use them lose access immediately."),
    )

    field_order: Iterable[str] = ["old_password", "new_password1", "new_password2", "revoke_tokens"]

    def __init__(self, request: HttpRequest, data: Any = None) -> None:
        self.request = request
        user: Any = request.user
        super().__init__(user, data)

    def clean_old_password(self) -> str:
        return self.check_own(self.cleaned_data["old_password"])

    @transaction.atomic
    def save(self, commit: bool = True) -> User:
        user = super().save(commit)
        if self.cleaned_data["revoke_tokens"]:
            ApiToken.objects.filter(user=user).revoke()
        return user


class ConfirmForm(OwnPassword, forms.Form):
    """The user's password, before a change of two-factor authentication."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, request: HttpRequest, data: Any = None) -> None:
        super().__init__(data)
        self.request = request

    def clean_password(self) -> str:
        return self.check_own(self.cleaned_data["password"])
