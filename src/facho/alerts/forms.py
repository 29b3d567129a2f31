"""Forms of channels and rules. Secrets are write-only; a rule shows the settings of its kind."""

import secrets
from datetime import time
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelect2MultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from facho.alerts.kinds import PARAMS, Param, clean_params
from facho.alerts.models import MOST_URL_CHARACTERS, WEEKDAYS, Channel, Rule
from facho.alerts.scopes import check_rule
from facho.apps.inventory.forms import SecretFormField, SecretsForm
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import restrict_related

SECRETS = ("url", "signing_secret", "smtp_password", "bot_token", "slack_url", "apprise_url")


class TimeOfDayInput(UnfoldAdminTextInputWidget):
    """A time of day in the zone of its form. The input of the admin warns of the zone of the server."""

    input_type = "time"

    def format_value(self, value: Any) -> str | None:
        return value.strftime("%H:%M") if isinstance(value, time) else super().format_value(value)


class ChannelForm(SecretsForm):
    """Settings of a channel."""

    url = SecretFormField(label=_("Address"))
    signing_secret = SecretFormField(label=_("Signing secret"))
    smtp_password = SecretFormField(label=_("Password"))
    bot_token = SecretFormField(label=_("Bot token"))
    slack_url = SecretFormField(label=_("Webhook address"), max_length=MOST_URL_CHARACTERS)
    apprise_url = SecretFormField(label=_("Apprise URL"), max_length=MOST_URL_CHARACTERS)
    on_call_days = forms.TypedMultipleChoiceField(
        label=_("On-call days"),
        choices=WEEKDAYS,
        coerce=int,
        empty_value=[],
        required=False,
        widget=UnfoldAdminSelect2MultipleWidget,
        help_text=_("Empty: every day."),
    )

    class Meta:
        model = Channel
        exclude: tuple[str, ...] = ()
        widgets = {"on_call_from": TimeOfDayInput(), "on_call_to": TimeOfDayInput()}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        origin = self.instance.url_origin
        if "url" in self.fields:
            stored = _("Stored: %(address)s/… Leave empty to keep it.") % {"address": origin}
            self.fields["url"].help_text = stored if origin else Channel._meta.get_field("url").help_text
        if "signing_secret" in self.fields and self.instance._state.adding:
            field = self.fields["signing_secret"]
            field.widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})
            field.help_text = _("Generated. Copy it to the receiver now: it is not shown again.")
            self.initial["signing_secret"] = secrets.token_urlsafe(32)


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

    # The user who edits it: see `ScopedAdmin`.
    user: Any = None

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
            "escalate_minutes",
            "escalation_channels",
            "flap_times",
            "most_per_hour",
            "quiet_from",
            "quiet_to",
            "quiet_zone",
            "quiet_mode",
        ]
        widgets = {"quiet_from": TimeOfDayInput(), "quiet_to": TimeOfDayInput()}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.fields.keys() & self.instance.params.keys():
            self.initial[name] = self.instance.params[name]
        for name, model in (("olts", Olt), ("channels", Channel), ("escalation_channels", Channel)):
            if name in self.fields:
                # Without secrets: only names are shown.
                choices: Any = self.fields[name]
                rows = restrict_related(model._default_manager.all(), self.user)
                choices.queryset = rows.only("name").order_by("name")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if "kind" in cleaned and "olts" in cleaned:
            check_rule(self.user, cleaned["kind"], cleaned["olts"])
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
