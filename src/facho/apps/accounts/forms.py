"""Forms for API tokens and passwords."""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from facho.apps.accounts.models import ApiToken
from facho.apps.accounts.networks import clean_networks

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
        self.fields["role"].empty_label = _("all my permissions")  # type: ignore[attr-defined]  # a choice of models

    def clean(self) -> dict[str, Any] | None:
        if days := self.cleaned_data.get("lifetime"):
            self.instance.expires_at = timezone.now() + timedelta(days=int(days))
        return super().clean()


class OwnPasswordForm(PasswordChangeForm):
    """A new password, and optionally the end of all tokens."""

    revoke_tokens = forms.BooleanField(
        label=_("Revoke my API tokens"),
        required=False,
        help_text=_("Programs that use them lose access immediately."),
    )

    field_order: Iterable[str] = ["old_password", "new_password1", "new_password2", "revoke_tokens"]

    def save(self, commit: bool = True) -> User:
        user = super().save(commit)
        if self.cleaned_data["revoke_tokens"]:
            ApiToken.objects.filter(user=user).revoke()
        return user
