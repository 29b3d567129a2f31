"""Forms of channels and rules. Secrets are write-only; a rule shows the settings of its kind."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelect2MultipleWidget,
    UnfoldAdminSelectWidget,
)

from facho.alerts.kinds import PARAMS, Param, clean_params
from facho.alerts.models import Channel, Rule
from facho.apps.inventory.forms import SecretFormField, SecretsForm
from facho.apps.inventory.models import Olt

SECRETS = ("signing_secret", "smtp_password", "bot_token", "slack_url", "apprise_url")


class ChannelForm(SecretsForm):
    """Settings of a channel."""

    signing_secret = SecretFormField(label=_("Signing secret"))
    smtp_password = SecretFormField(label=_("Password"))
    bot_token = SecretFormField(label=_("Bot token"))
    slack_url = SecretFormField(label=_("Webhook address"))
    apprise_url = SecretFormField(label=_("Apprise URL"))

    class Meta:
        model = Channel
        exclude: tuple[str, ...] = ()


def field_of(param: Param) -> forms.Field:
    """Return the form field of one setting of a rule."""
    common = {"label": param.label, "help_text": param.help, "required": False, "initial": param.default}
    if param.several:
        return forms.MultipleChoiceField(choices=param.choices, widget=UnfoldAdminSelect2MultipleWidget, **common)
    if param.choices:
        return forms.ChoiceField(choices=param.choices, widget=UnfoldAdminSelectWidget, **common)
    if param.is_whole:
        return forms.IntegerField(widget=UnfoldAdminIntegerFieldWidget, **common)
    return forms.FloatField(widget=UnfoldAdminDecimalFieldWidget, **common)


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A rule with the settings of every kind; the page shows those of the chosen kind."""

    class Meta:
        model = Rule
        fields = [
            "name",
            "kind",
            "enabled",
            "severity",
            "olts",
            "channels",
            "tells_recovery",
            "recover_after_seconds",
            "repeat_minutes",
            "most_per_hour",
            "quiet_from",
            "quiet_to",
            "quiet_zone",
            "quiet_mode",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.fields.keys() & self.instance.params.keys():
            self.initial[name] = self.instance.params[name]
        for name, model in (("olts", Olt), ("channels", Channel)):
            if name in self.fields:
                # Without secrets: only names are shown.
                choices: Any = self.fields[name]
                choices.queryset = model._default_manager.only("name").order_by("name")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        given = {name: cleaned.get(name) for name in PARAMS.get(cleaned.get("kind", ""), {})}
        params = {name: value for name, value in given.items() if value not in (None, "")}
        try:
            self.instance.params = clean_params(cleaned.get("kind", ""), params)
        except ValidationError as error:
            # The stored value must be valid, or the model would report a second error.
            self.instance.params = {}
            for message in error.messages:
                name, _colon, sentence = message.partition(": ")
                self.add_error(name if name in self.fields else None, sentence or message)
        return cleaned


# One form field per setting of each kind; their names are unique.
for _params in PARAMS.values():
    for _name, _param in _params.items():
        RuleForm.base_fields[_name] = RuleForm.declared_fields[_name] = field_of(_param)
