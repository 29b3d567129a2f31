"""Channels and rules, which users edit, and alerts and deliveries, which result from them."""

from collections.abc import Hashable
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.alerts import text
from facho.alerts.channels import TELEGRAM_API
from facho.alerts.kinds import OF_OLTS, PARAMS, RuleKind, clean_params
from facho.alerts.rules import AlertSeverity, Hold, News, OnCall, Silence
from facho.alerts.validation import MAIL_SECURITY, clean_channel, origin
from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.inventory.bound_secrets import BoundSecrets
from facho.apps.inventory.models import Olt
from facho.apps.maintenance.models import MaintenanceWindow
from facho.apps.rest.fields import SecretField
from facho.apps.rest.names import validate_name

SEVERITIES = [
    (AlertSeverity.INFO.value, _("info")),
    (AlertSeverity.WARNING.value, _("warning")),
    (AlertSeverity.CRITICAL.value, _("critical")),
]
NEWS = [
    (News.RAISED.value, _("raised")),
    (News.REPEATED.value, _("repeated")),
    (News.ESCALATED.value, _("escalated")),
    (News.RECOVERED.value, _("recovered")),
    (News.CLOSED.value, _("closed, state unknown")),
    (News.SUMMARY.value, _("summary of a maintenance")),
    (News.TEST.value, _("test")),
]
SILENCES = [
    (Silence.QUIET_HOURS.value, _("quiet hours")),
    (Silence.RATE_LIMIT.value, _("rate limit")),
    (Silence.UNTOLD.value, _("resolved before the message was sent")),
    (Silence.UNWATCHED.value, _("no longer watched")),
    (Silence.UNWANTED.value, _("not requested by the rule")),
    (Silence.CHANNEL_DISABLED.value, _("channel disabled")),
    (Silence.ACKNOWLEDGED.value, _("acknowledged")),
]
HOLDS = [
    (Hold.OLT_UNREACHABLE.value, _("the OLT does not answer")),
    (Hold.PORT_DARK.value, _("the PON port is down")),
]
WEEKDAYS = [
    (0, _("Monday")),
    (1, _("Tuesday")),
    (2, _("Wednesday")),
    (3, _("Thursday")),
    (4, _("Friday")),
    (5, _("Saturday")),
    (6, _("Sunday")),
]


# A secret address of a channel.
MOST_URL_CHARACTERS = 2000
# All recipients of a channel together.
MOST_RECIPIENT_CHARACTERS = 5000


def local_zone() -> str:
    """Return the time zone of the installation."""
    return settings.TIME_ZONE


def validate_zone(name: str) -> None:
    if name not in available_timezones():
        raise ValidationError(_("Unknown time zone. Write one like America/Lima."))


def validate_days(days: Any) -> None:
    known = {number for number, _name in WEEKDAYS}
    if not isinstance(days, list) or not all(type(day) is int and day in known for day in days):
        raise ValidationError(_("Write a list of days from 0 (Monday) to 6 (Sunday)."))


class Channel(BoundSecrets):
    """A destination of messages. Its kind decides which settings apply."""

    class Kind(models.TextChoices):
        WEBHOOK = "webhook", _("webhook")
        EMAIL = "email", _("e-mail")
        TELEGRAM = "telegram", "Telegram"
        SLACK = "slack", _("Slack or compatible")
        APPRISE = "apprise", _("Apprise URL")

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[validate_name])
    kind = models.CharField(_("type"), max_length=10, choices=Kind.choices)
    enabled = models.BooleanField(pgettext_lazy("channel", "enabled"), default=True)
    language = models.CharField(
        _("language"), max_length=2, choices=settings.LANGUAGES, default="en", help_text=_("Language of the messages.")
    )

    zone = models.CharField(
        _("time zone"),
        max_length=64,
        default=local_zone,
        validators=[validate_zone],
        help_text=_("Time zone of the times in messages and of the on-call times."),
    )
    on_call_days = models.JSONField(
        _("on-call days"), default=list, blank=True, validators=[validate_days], help_text=_("Empty: every day.")
    )
    on_call_from = models.TimeField(_("on call from"), null=True, blank=True)
    on_call_to = models.TimeField(
        _("on call until"),
        null=True,
        blank=True,
        help_text=_(
            "Outside these times, messages wait for their next start, unless the alert is resolved by then. A critical "
            "message is sent immediately if no channel of its rule is on call."
        ),
    )

    # Many receivers have their key in the path.
    url = SecretField(
        _("address"), blank=True, default="", help_text=_("Messages are sent to this address as JSON, with POST.")
    )
    signing_secret = SecretField(_("signing secret"), blank=True, default="")

    smtp_host = models.CharField(_("mail server"), max_length=253, blank=True)
    smtp_port = models.PositiveIntegerField(
        _("port"), default=587, validators=[MinValueValidator(1), MaxValueValidator(65535)]
    )
    smtp_security = models.CharField(_("security"), max_length=10, choices=MAIL_SECURITY, default="starttls")
    smtp_user = models.CharField(_("user"), max_length=200, blank=True)
    smtp_password = SecretField(_("password"), blank=True, default="")
    mail_from = models.CharField(_("sender"), max_length=254, blank=True)
    mail_to = models.TextField(
        _("recipients"),
        blank=True,
        validators=[MaxLengthValidator(MOST_RECIPIENT_CHARACTERS)],
        help_text=_("Addresses, separated by commas."),
    )

    bot_token = SecretField(_("bot token"), blank=True, default="")
    chat_id = models.CharField(
        _("chat"), max_length=100, blank=True, help_text=_("Chat number, or @name of a public channel.")
    )
    telegram_url = models.CharField(
        _("Telegram API"), max_length=200, blank=True, help_text=_("Empty: https://api.telegram.org")
    )

    slack_url = SecretField(_("webhook address"), blank=True, default="")

    apprise_url = SecretField(_("Apprise URL"), blank=True, default="", db_default="")

    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "alert_channels"
        ordering = ["name"]
        verbose_name = _("channel")
        verbose_name_plural = _("channels")

    DESTINATION = frozenset({"url", "smtp_host", "smtp_port", "telegram_url"})

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        super().clean()
        if (self.on_call_from is None) != (self.on_call_to is None):
            raise ValidationError({"on_call_to": _("Set both the start and the end of the on-call times.")})
        clean_channel(self)
        self.ask_for_secrets()

    def destinations(self) -> dict[str, Hashable]:
        return {
            "signing_secret": origin(self.url.reveal()),
            "smtp_password": (self.smtp_host.lower(), self.smtp_port),
            "bot_token": origin(self.telegram_url or TELEGRAM_API),
        }

    def used_secrets(self) -> list[str]:
        used = {self.Kind.WEBHOOK: "signing_secret", self.Kind.TELEGRAM: "bot_token"}
        if self.smtp_user:
            used[self.Kind.EMAIL] = "smtp_password"
        return [used[each] for each in used if each == self.kind]

    @property
    def url_origin(self) -> str:
        """Return the destination without its path, because the path may be the secret."""
        return origin(self.url.reveal())

    @property
    def recipients(self) -> tuple[str, ...]:
        return tuple(filter(None, (part.strip() for part in self.mail_to.replace("\n", ",").split(","))))

    @property
    def on_call(self) -> OnCall:
        days, start, end = frozenset(self.on_call_days), self.on_call_from or time(0), self.on_call_to or time(0)
        return OnCall(ZoneInfo(self.zone), days, start, end)

    def ask_for_test(self) -> "Delivery":
        """Queue a test message. It is tried once."""
        now = timezone.now()
        with transaction.atomic():
            record(Change.Action.TEST_REQUESTED, self)
            return Delivery.objects.create(
                channel=self, channel_name=self.name, news=News.TEST.value, created_at=now, due_at=now, next_try_at=now
            )


class Rule(models.Model):
    """A condition to report: channels and frequency of messages."""

    class Quiet(models.TextChoices):
        HOLD = "hold", _("send when they end")
        DROP = "drop", _("drop")

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[validate_name])
    kind = models.CharField(_("watches for"), max_length=20, choices=RuleKind.choices)
    enabled = models.BooleanField(_("enabled"), default=True)
    params = models.JSONField(_("settings"), default=dict, blank=True)
    severity = models.CharField(_("severity"), max_length=10, choices=SEVERITIES, default=AlertSeverity.WARNING.value)
    olts = models.ManyToManyField(
        Olt, blank=True, related_name="alert_rules", verbose_name=_("OLTs"), help_text=_("Empty: all of them.")
    )
    channels = models.ManyToManyField(
        Channel,
        blank=True,
        related_name="rules",
        verbose_name=_("channels"),
        help_text=_("Without a channel, alerts are only listed here."),
    )
    # Whether OLTs were chosen. After the last one is deleted the rule applies to none, not to all.
    is_narrowed = models.BooleanField(default=False, editable=False)
    tells_recovery = models.BooleanField(
        _("notify when resolved"), default=True, help_text=_("Sent to the channels that received the first message.")
    )
    recover_after_seconds = models.PositiveIntegerField(
        _("resolved after (s)"),
        default=60,
        validators=[MaxValueValidator(86400)],
        help_text=_(
            "The problem must be gone for this time before the alert is resolved. Avoids a message for each flap."
        ),
    )
    repeat_minutes = models.PositiveIntegerField(
        _("repeat every (min)"),
        default=0,
        validators=[MaxValueValidator(10080)],
        help_text=_("Until the alert is resolved or acknowledged. 0: never."),
    )
    escalate_minutes = models.PositiveIntegerField(
        _("escalate after (min)"),
        default=0,
        validators=[MaxValueValidator(10080)],
        help_text=_("Minutes without acknowledgement after which other channels are notified too. 0: never."),
    )
    escalation_channels = models.ManyToManyField(
        Channel, blank=True, related_name="escalated_rules", verbose_name=_("escalate to")
    )
    flap_times = models.PositiveIntegerField(
        _("unstable after (times per hour)"),
        default=3,
        validators=[MaxValueValidator(60)],
        help_text=_("A problem that returned this often is resolved after 30 minutes without it. 0: never unstable."),
    )
    most_per_hour = models.PositiveIntegerField(
        _("maximum messages per hour"),
        default=20,
        help_text=_("Further alerts are sent later, in one message. 0: no limit. Critical alerts have no limit."),
    )
    quiet_from = models.TimeField(_("quiet from"), null=True, blank=True)
    quiet_to = models.TimeField(_("quiet until"), null=True, blank=True)
    quiet_zone = models.CharField(
        _("time zone"),
        max_length=64,
        default=local_zone,
        validators=[validate_zone],
        help_text=_("Time zone of the quiet hours."),
    )
    quiet_mode = models.CharField(
        _("in quiet hours"),
        max_length=4,
        choices=Quiet.choices,
        default=Quiet.HOLD,
        help_text=_("Critical alerts are always sent immediately."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "alert_rules"
        ordering = ["name"]
        verbose_name = _("rule")
        verbose_name_plural = _("rules")

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        super().clean()
        try:
            self.params = clean_params(self.kind, self.params)
        except ValidationError as error:
            raise ValidationError({"params": error.messages}) from error
        if (self.quiet_from is None) != (self.quiet_to is None):
            raise ValidationError({"quiet_to": _("Set both the start and the end of the quiet hours.")})
        if self.quiet_from is not None and self.quiet_from == self.quiet_to:
            raise ValidationError(
                {"quiet_to": _("Quiet hours cannot start and end at the same time. Leave both empty to disable them.")}
            )

    def ask_for_test(self) -> "list[Delivery]":
        """Queue a test message to each enabled channel, those of its escalation too."""
        used = Q(rules=self) | Q(escalated_rules=self)
        return [channel.ask_for_test() for channel in Channel.objects.filter(used, enabled=True).distinct()]

    def settle_olts(self) -> None:
        """Record whether it applies to chosen OLTs or to all. Called after a user has chosen."""
        self.is_narrowed = self.olts.exists()
        Rule.objects.filter(pk=self.pk).update(is_narrowed=self.is_narrowed)

    @property
    def has_lost_its_olts(self) -> bool:
        """Return whether all its OLTs were deleted."""
        return self.is_narrowed and self.kind in OF_OLTS and not self.olts.all()

    def setting(self, name: str) -> Any:
        """Return a setting, or its default."""
        return self.params[name] if name in self.params else PARAMS[self.kind][name].default


class Alert(models.Model):
    """A current or past problem. A rule has at most one open alert per key."""

    rule = models.ForeignKey(Rule, models.SET_NULL, null=True, related_name="alerts", verbose_name=_("rule"))
    # History outlives the rule.
    rule_name = models.CharField(_("rule"), max_length=100)
    kind = models.CharField(_("type"), max_length=20, choices=RuleKind.choices)
    severity = models.CharField(_("severity"), max_length=10, choices=SEVERITIES)
    # Key of the problem while it lasts.
    key = models.CharField(max_length=200)
    olt = models.ForeignKey(Olt, models.CASCADE, null=True, related_name="alerts", verbose_name=_("OLT"))
    slot = models.IntegerField(_("slot"), null=True)
    port = models.IntegerField(_("port"), null=True)
    # Values of its texts in any language: see `text.py`.
    params = models.JSONField(_("details"), default=dict)
    opened_at = models.DateTimeField(_("opened"))
    last_seen_at = models.DateTimeField(_("last seen"))
    absent_since = models.DateTimeField(null=True)
    # The maintenance that closed it, or that held it until it was over.
    window = models.ForeignKey(MaintenanceWindow, models.SET_NULL, null=True, related_name="alerts")
    recovered_at = models.DateTimeField(_("recovered"), null=True)
    # Number of occurrences, including flaps.
    count = models.PositiveIntegerField(_("times"), default=1)
    # Times of messages about it, including held ones.
    first_told_at = models.DateTimeField(_("first sent"), null=True)
    last_told_at = models.DateTimeField(_("last sent"), null=True)
    # Why it is only listed; empty: it is reported.
    held = models.CharField(_("not reported because"), max_length=20, choices=HOLDS, blank=True, default="")
    # It came back so often that it is resolved later.
    is_unstable = models.BooleanField(_("unstable"), default=False)
    escalated_at = models.DateTimeField(_("escalated"), null=True)
    acknowledged_at = models.DateTimeField(_("acknowledged"), null=True)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("acknowledged by")
    )

    class Meta:
        db_table = "alerts"
        ordering = ["-opened_at", "-id"]
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        constraints = [
            models.UniqueConstraint(
                name="one_open_alert_per_key", fields=["rule", "key"], condition=Q(recovered_at__isnull=True)
            )
        ]
        indexes = [
            models.Index(name="alert_open", fields=["opened_at"], condition=Q(recovered_at__isnull=True)),
            models.Index(name="alert_by_time", fields=["opened_at"]),
            models.Index(name="alert_by_olt", fields=["olt", "opened_at"]),
            models.Index(name="alert_by_end", fields=["recovered_at"]),
        ]

    def __str__(self) -> str:
        return self.subject

    @property
    def subject(self) -> str:
        """Return the subject in the user's language."""
        return text.subject(self.kind, self.params)

    @property
    def is_open(self) -> bool:
        return self.recovered_at is None

    @property
    def is_unknown(self) -> bool:
        """Return whether it was closed without knowing the state: see `text.closing`."""
        return "closed" in self.params

    def acknowledge(self, by: Any) -> bool:
        """Mark as acknowledged, so that it is not repeated. False if it already was."""
        now = timezone.now()
        mine = Alert.objects.filter(pk=self.pk, acknowledged_at__isnull=True)
        with transaction.atomic():
            is_first = bool(mine.update(acknowledged_at=now, acknowledged_by=by))
            if is_first:
                record(Change.Action.ACKNOWLEDGED, self)
                self.stop_reminders()
        self.refresh_from_db(fields=["acknowledged_at", "acknowledged_by"])
        return is_first

    def stop_reminders(self) -> None:
        """Drop the reminders that wait for quiet hours or on-call times."""
        self.deliveries.filter(
            news__in=[News.REPEATED.value, News.ESCALATED.value], status=Delivery.Status.PENDING, attempts=0
        ).update(status=Delivery.Status.SUPPRESSED, reason=Silence.ACKNOWLEDGED.value, next_try_at=None)


class Delivery(models.Model):
    """One message to one channel, and its result."""

    class Status(models.TextChoices):
        PENDING = "PENDING", _("pending")
        SENT = "SENT", _("sent")
        FAILED = "FAILED", _("failed")
        SUPPRESSED = "SUPPRESSED", _("suppressed")

    alert = models.ForeignKey(Alert, models.CASCADE, null=True, related_name="deliveries", verbose_name=_("alert"))
    channel = models.ForeignKey(
        Channel, models.SET_NULL, null=True, related_name="deliveries", verbose_name=_("channel")
    )
    channel_name = models.CharField(_("channel"), max_length=100)
    news = models.CharField(_("type"), max_length=10, choices=NEWS)
    status = models.CharField(_("status"), max_length=10, choices=Status.choices, default=Status.PENDING)
    # Reason for not sending it.
    reason = models.CharField(_("reason"), max_length=20, choices=SILENCES, blank=True, default="")
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    created_at = models.DateTimeField(_("created"))
    # Earliest time to send: after the creation if quiet hours hold it.
    due_at = models.DateTimeField(pgettext_lazy("delivery", "due"))
    # NULL if no further attempt is made.
    next_try_at = models.DateTimeField(_("next try"), null=True)
    sent_at = models.DateTimeField(_("sent at"), null=True)
    response_code = models.IntegerField(_("answer"), null=True)
    error = models.TextField(_("error"), blank=True, default="")

    class Meta:
        db_table = "alert_deliveries"
        ordering = ["-id"]
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        indexes = [
            models.Index(name="delivery_pending", fields=["next_try_at"], condition=Q(status="PENDING")),
            models.Index(name="delivery_by_due", fields=["due_at"]),
            models.Index(name="delivery_by_channel", fields=["channel", "id"]),
        ]

    def __str__(self) -> str:
        return f"{self.get_news_display()} → {self.channel_name}"

    def retry(self, now: datetime | None = None) -> bool:
        """Queue an unsent message again. False if it was sent or is queued."""
        now = now or timezone.now()
        lost = Delivery.objects.filter(
            pk=self.pk, channel__isnull=False, status__in=[self.Status.FAILED, self.Status.SUPPRESSED]
        )
        waiting = {"status": self.Status.PENDING, "reason": "", "attempts": 0, "due_at": now, "next_try_at": now}
        with transaction.atomic():
            is_queued = bool(lost.update(**waiting))
            if is_queued:
                record(Change.Action.SENT_AGAIN, self)
        return is_queued
