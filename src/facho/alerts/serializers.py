"""Channels, rules, alerts and deliveries in the API."""

from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.alerts.kinds import clean_params
from facho.alerts.models import MOST_URL_CHARACTERS, Alert, Channel, Delivery, Rule
from facho.alerts.past import MOST_DAYS, Trial
from facho.alerts.scopes import check_rule
from facho.apps.inventory.scopes import OltChoice
from facho.apps.inventory.serializers import CheckedSerializer, SecretInput, refusals
from facho.apps.rest.strict import StrictSerializer


class ChannelSerializer(CheckedSerializer[Channel]):
    """A channel for messages. The settings depend on `kind`. Secrets can be written and are never returned."""

    url = SecretInput(help_text="Address of a webhook. Its path can be a key, so only `url_origin` is returned.")

    signing_secret = SecretInput(help_text="Signing secret of a webhook: at least 16 characters.")
    smtp_password = SecretInput(help_text="Password of a mail server.")
    bot_token = SecretInput(help_text="Token of a Telegram bot.")
    slack_url = SecretInput(
        max_length=MOST_URL_CHARACTERS,
        help_text="Address of an incoming webhook. It is a secret: anyone who has it can post messages.",
    )
    apprise_url = SecretInput(
        max_length=MOST_URL_CHARACTERS,
        help_text="URL of a service in the notation of Apprise, such as ntfys://ntfy.example.net/noc. It is a secret. "
        "Needs the extra `apprise`: pip install 'facho[apprise]'.",
    )
    on_call_days = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=6),
        required=False,
        help_text="Weekdays of the on-call times, from 0 (Monday) to 6 (Sunday). Empty: every day.",
    )
    url_origin = serializers.CharField(read_only=True, help_text="Scheme, host and port of `url`, or empty.")
    has_signing_secret = serializers.BooleanField(source="signing_secret", read_only=True)
    has_smtp_password = serializers.BooleanField(source="smtp_password", read_only=True)
    has_bot_token = serializers.BooleanField(source="bot_token", read_only=True)
    has_slack_url = serializers.BooleanField(source="slack_url", read_only=True)
    has_apprise_url = serializers.BooleanField(source="apprise_url", read_only=True)

    class Meta:
        model = Channel
        fields = [
            "id",
            "name",
            "kind",
            "enabled",
            "language",
            "zone",
            "on_call_days",
            "on_call_from",
            "on_call_to",
            "url",
            "signing_secret",
            "smtp_host",
            "smtp_port",
            "smtp_security",
            "smtp_user",
            "smtp_password",
            "mail_from",
            "mail_to",
            "bot_token",
            "chat_id",
            "telegram_url",
            "slack_url",
            "apprise_url",
            "url_origin",
            "has_signing_secret",
            "has_smtp_password",
            "has_bot_token",
            "has_slack_url",
            "has_apprise_url",
            "created_at",
            "updated_at",
        ]


class RuleSerializer(CheckedSerializer[Rule]):
    """A rule: condition, channels, and frequency of messages."""

    params = serializers.DictField(
        required=False,
        help_text=(
            "Depends on `kind`. violation: min_severity. port_dark: dark_onus, dark_percent. low_power: "
            "below_dbm, hysteresis_db, low_onus. queue_delayed: delayed, minutes. scheduler_stalled: "
            "stalled_seconds. event: event_types, event_minutes. Omitted settings get their default."
        ),
    )

    olts = OltChoice(many=True, required=False)
    has_lost_its_olts = serializers.BooleanField(
        read_only=True,
        help_text="All OLTs of the rule were deleted, so it is disabled. Set `olts` ([] for all OLTs) and `enabled`.",
    )

    class Meta:
        model = Rule
        fields = [
            "id",
            "name",
            "kind",
            "enabled",
            "params",
            "severity",
            "olts",
            "has_lost_its_olts",
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
            "created_at",
            "updated_at",
        ]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        stored = self.instance if isinstance(self.instance, Rule) else Rule()
        kind = attrs.get("kind", stored.kind)
        # Settings of another kind do not apply.
        kept = stored.params if kind == stored.kind else {}
        olts = attrs.get("olts", stored.olts.all() if stored.pk else [])
        with refusals():
            check_rule(self.context["request"].user, kind, olts)
            attrs["params"] = clean_params(kind, attrs.get("params", kept))
        return super().validate(attrs)

    @transaction.atomic
    def create(self, validated_data: dict[str, Any]) -> Rule:
        rule = super().create(validated_data)
        rule.settle_olts()
        return rule

    @transaction.atomic
    def update(self, instance: Rule, validated_data: dict[str, Any]) -> Rule:
        related = {
            name: validated_data.pop(name)
            for name in ("olts", "channels", "escalation_channels")
            if name in validated_data
        }
        rule = super().update(instance, validated_data)
        for name, rows in related.items():
            getattr(rule, name).set(rows)
        if "olts" in related:
            rule.settle_olts()
        return rule


class TryRuleSerializer(StrictSerializer):
    """A period of the past, and settings to try instead of those of the rule."""

    days = serializers.IntegerField(min_value=1, max_value=MOST_DAYS, default=30)
    params = serializers.DictField(required=False, help_text="Settings to try, such as below_dbm. Nothing is saved.")


class PlaceTotalSerializer(serializers.Serializer[Any]):
    """Alerts about the same OLT, port, job or event."""

    subject = serializers.CharField()
    olt = serializers.IntegerField(source="last.firing.olt_id", allow_null=True)
    slot = serializers.IntegerField(source="last.firing.slot", allow_null=True)
    port = serializers.IntegerField(source="last.firing.port", allow_null=True)
    times = serializers.IntegerField()
    seconds = serializers.FloatField(help_text="Duration of all of them.")


class DayCountSerializer(serializers.Serializer[Any]):
    """Alerts that began on a day (UTC)."""

    day = serializers.DateTimeField()
    alerts = serializers.IntegerField()


class TrialSerializer(serializers.Serializer[Any]):
    """What a rule would have done."""

    days = serializers.IntegerField()
    since = serializers.DateTimeField(help_text="Start of what is known: the history may be shorter than `days`.")
    alerts = serializers.IntegerField()
    messages = serializers.IntegerField(help_text="Messages to each channel, without repetitions and escalations.")
    still_open = serializers.IntegerField()
    by_day = serializers.SerializerMethodField()
    places = PlaceTotalSerializer(many=True, help_text="The ten most frequent.")

    @extend_schema_field(DayCountSerializer(many=True))
    def get_by_day(self, trial: Trial) -> Any:
        return DayCountSerializer([{"day": day, "alerts": alerts} for day, alerts in trial.by_day], many=True).data


class PreviewSerializer(serializers.Serializer[Any]):
    """A message as the rule would send it now."""

    origin = serializers.ChoiceField(
        choices=["now", "last", "example"],
        help_text="Origin of the values: problems of now, the last alert of the rule, or an example.",
    )
    alerts = serializers.IntegerField(help_text="Number of alerts in it.")
    subject = serializers.CharField(source="message.subject")
    text = serializers.CharField(source="message.text")
    url = serializers.CharField(source="message.url")


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """An alert. `subject` is in the language of the request."""

    olt_name = serializers.CharField(read_only=True, allow_null=True)
    subject = serializers.CharField(read_only=True)
    is_open = serializers.BooleanField(read_only=True)
    is_unknown = serializers.BooleanField(
        read_only=True,
        help_text="Whether it was closed by a maintenance or because it is not watched any more; its problem may last.",
    )
    acknowledged_by = serializers.SerializerMethodField(help_text="Name of the user.")
    params = serializers.DictField(read_only=True, help_text="The values in the subject; they depend on `kind`.")

    class Meta:
        model = Alert
        fields = [
            "id",
            "rule",
            "rule_name",
            "kind",
            "severity",
            "subject",
            "params",
            "olt",
            "olt_name",
            "slot",
            "port",
            "is_open",
            "is_unknown",
            "opened_at",
            "last_seen_at",
            "recovered_at",
            "count",
            "first_told_at",
            "last_told_at",
            "held",
            "is_unstable",
            "escalated_at",
            "acknowledged_at",
            "acknowledged_by",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_acknowledged_by(self, alert: Alert) -> str | None:
        return alert.acknowledged_by.get_username() if alert.acknowledged_by else None


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """A message to a channel, and its result."""

    class Meta:
        model = Delivery
        fields = [
            "id",
            "alert",
            "channel",
            "channel_name",
            "news",
            "status",
            "reason",
            "attempts",
            "created_at",
            "due_at",
            "next_try_at",
            "sent_at",
            "response_code",
            "error",
        ]
        read_only_fields = fields
