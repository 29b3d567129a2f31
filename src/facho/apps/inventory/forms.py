"""Form of an OLT. Its secrets are write-only."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from unfold.contrib.import_export.forms import ImportForm
from unfold.widgets import UnfoldAdminPasswordWidget

from facho.apps.inventory.models import Olt

SECRETS = ("community", "v3_auth_key", "v3_priv_key")


class SecretFormField(forms.CharField):
    """An input that is always empty; left empty, the stored secret is kept."""

    def __init__(self, **kwargs: Any) -> None:
        # Without this, browsers fill in the user's own password.
        widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
        super().__init__(required=False, strip=False, widget=widget, **kwargs)


class SecretsForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """Shows of each secret only whether one is stored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._secrets = [name for name, field in self.fields.items() if isinstance(field, SecretFormField)]
        for name in self._secrets:
            self.initial[name] = ""
            is_stored = bool(getattr(self.instance, name))
            self.fields[name].help_text = _("Stored. Leave empty to keep it.") if is_stored else _("Nothing is stored.")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in self._secrets:
            cleaned[name] = cleaned.get(name) or getattr(self.instance, name)
        return cleaned


class OltForm(SecretsForm):
    """Settings of an OLT."""

    community = SecretFormField(label=_("Community"))
    v3_auth_key = SecretFormField(label=_("V3 authentication password"))
    v3_priv_key = SecretFormField(label=_("V3 privacy password"))

    class Meta:
        model = Olt
        exclude: tuple[str, ...] = ()


class OltImportForm(ImportForm):
    """A file of OLTs, and the community of new ones: files have no secrets."""

    community = SecretFormField(
        label=_("Community of new OLTs"),
        help_text=_("Existing OLTs keep their community. SNMPv3 users must be set on each OLT."),
    )
