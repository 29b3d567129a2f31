"""Form of an OLT. Its secrets are write-only."""

from contextlib import suppress
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminPasswordWidget

from facho.apps.inventory.models import MOST_SECRET_BYTES, Olt, resolve_hosts
from facho.apps.inventory.scopes import check_place, visible_ids
from facho.apps.rest.spreadsheets import SpreadsheetField
from facho.engine.address import split_address
from facho.engine.errors import BadAddress


class SecretFormField(forms.CharField):
    """An input that is always empty; left empty, the stored secret is kept."""

    def __init__(self, *, max_length: int = MOST_SECRET_BYTES, **kwargs: Any) -> None:
        # Without this, browsers fill in the user's own password.
        widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
        super().__init__(required=False, strip=False, widget=widget, max_length=max_length, **kwargs)


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


def resolve_typed_host(text: str) -> None:
    """Resolve the host of a form before its transaction, so that no DNS lookup holds the database lock."""
    with suppress(BadAddress):
        resolve_hosts([split_address(text.strip())[0]])


class OltForm(SecretsForm):
    """Settings of an OLT."""

    # The user who edits it: see `ScopedAdmin`.
    user: Any = None
    # Port that was written after the address.
    port_in_host: int | None = None

    community = SecretFormField(label=_("Community"))
    v3_auth_key = SecretFormField(label=_("V3 authentication password"))
    v3_priv_key = SecretFormField(label=_("V3 privacy password"))

    class Meta:
        model = Olt
        exclude: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.instance.readers_olts = visible_ids(self.user)

    def clean_host(self) -> str:
        """Accept a port after the address, as in 10.0.0.7:1161."""
        text: str = self.cleaned_data["host"]
        try:
            host, self.port_in_host = split_address(text)
        except BadAddress as error:
            said = _("Write an address like 10.0.0.7, 10.0.0.7:1161 or [2001:db8::1]:161. Ports are 1 to 65535.")
            raise ValidationError(said) from error
        return host

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.port_in_host is not None:
            cleaned["port"] = self.instance.port = self.port_in_host
        if "site" in cleaned and "tags" in cleaned:
            check_place(self.user, cleaned["site"], cleaned["tags"])
        return cleaned


class OltImportForm(forms.Form):
    """A file of OLTs, and the community of the rows without one."""

    file = SpreadsheetField(label=_("CSV or XLSX file"))
    community = SecretFormField(
        label=_("Community"),
        help_text=_("Of new and moved OLTs without one in the file. Others keep theirs."),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if not len(file.dataset):
            raise ValidationError(_("The file has no rows below the names of the columns."))
        return file


class ScopeFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # generic only in the stubs
    """The scope of a user. Without sites and tags there is no scope."""

    def clean(self) -> None:
        super().clean()
        if self.instance.is_superuser and any(map(self._is_chosen, self.forms)):
            raise ValidationError(
                gettext("A superuser sees all OLTs. Remove the sites and tags, or the superuser status.")
            )

    def save_new(self, form: Any, commit: bool = True) -> Any:
        return super().save_new(form, commit) if self._is_chosen(form) else form.instance

    def save_existing(self, form: Any, obj: Any, commit: bool = True) -> Any:
        if self._is_chosen(form):
            return super().save_existing(form, obj, commit)
        obj.delete()
        return obj

    @staticmethod
    def _is_chosen(form: Any) -> bool:
        chosen = getattr(form, "cleaned_data", {})
        return bool(chosen.get("sites") or chosen.get("tags"))
