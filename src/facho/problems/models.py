"""Problems of the network, present and past, and what people did about them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.text import capfirst
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from facho.apps.changes.models import Change
from facho.apps.changes.record import record, recorded
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import visible_ids
from facho.apps.telemetry.models import Onu
from facho.problems import text

MOST_COMMENT_CHARACTERS = 2000

CHANGE_PERMISSION = "problems.change_problem"


class ProblemQuerySet(models.QuerySet["Problem"]):
    """Problems, by their state."""

    def open(self) -> Self:
        return self.filter(until__isnull=True)

    def shown(self, now: datetime) -> Self:
        """Return the open problems that are not snoozed."""
        return self.open().exclude(snoozed_until__gt=now)

    def worst_first(self) -> Self:
        """Order by severity, number of customers and age."""
        return self.order_by("severity", "-affected", "-since", "-id")


class Problem(models.Model):
    """A problem, as long as it lasts and afterwards. A key has at most one open problem."""

    class Kind(models.TextChoices):
        OLT_DOWN = "olt_down", _("OLT unreachable")
        ONUS_DOWN = "onus_down", _("all ONUs of the OLT down")
        CARD_DOWN = "card_down", _("card down")
        PORT_DOWN = "port_down", _("port down")
        PORT_DEGRADED = "port_degraded", _("port degraded")
        POWER_CUT = "power_cut", _("power cut")
        LOW_POWER = "low_power", _("port with low power")
        POWER_DROP = "power_drop", _("sudden power drop")
        FLAPPING = "flapping", pgettext_lazy("problem", "flapping")
        QUOTA_VIOLATED = "quota_violated", _("quota violated")
        JOB_LATE = "job_late", _("job late")
        OLT_SUSPECT = "olt_suspect", _("OLT under suspicion")

    # In alphabetical order, the worst first.
    class Severity(models.TextChoices):
        CRITICAL = "critical", pgettext_lazy("severity", "critical")
        MAJOR = "major", pgettext_lazy("severity", "major")
        MINOR = "minor", pgettext_lazy("severity", "minor")

    class Cause(models.TextChoices):
        OLT_OR_UPLINK = "olt_or_uplink", _("power, uplink or management network of the OLT")
        SITE = "site", _("power or uplink of the site")
        OLT_RESTART = "olt_restart", _("restart of the OLT, or failure of its cards")
        CARD = "card", _("failure or restart of the card")
        FIBRE_CUT = "fibre_cut", _("fibre cut before the first splitter")
        CABLE_CUT = "cable_cut", _("cut of a cable with several fibres")
        AREA = "area", _("cable or cabinet of the area, or a power cut that the ONUs do not report")
        SPLITTER = "splitter", _("splitter or branch")
        FEEDER = "feeder", _("fibre or connector before the first splitter, or PON module")
        POWER_CUT = "power_cut", _("power cut in the area")
        ADMIN = "admin", _("disabled or restarted by a command")
        DROP_CABLE = "drop_cable", _("drop cable or device of the customer")
        NOT_REPORTED = "not_reported", _("not reported by the OLT: fibre or power")
        NOT_AUTHORISED = "not_authorised", _("authorisation by the OLT: profile, allow list or RADIUS")
        DISAPPEARED = "disappeared", _("no longer listed by the OLT: fibre or power, or removed")
        ONE_BY_ONE = "one_by_one", _("none in common: the ONUs went down one after another")
        MASS_DISAPPEARANCE = "mass_disappearance", _("many ONUs disappeared at once")
        TOO_MANY_ONUS = "too_many_onus", _("more ONUs than the limit")
        POOL_BUSY = "pool_busy", _("too few pollers, or slow OLTs")
        UNKNOWN = "unknown", pgettext_lazy("cause", "unknown")

    class Confidence(models.TextChoices):
        PROBABLE = "probable", pgettext_lazy("confidence", "probable")
        POSSIBLE = "possible", pgettext_lazy("confidence", "possible")
        UNKNOWN = "unknown", pgettext_lazy("confidence", "unknown")

    kind = models.CharField(_("type"), max_length=20, choices=Kind.choices)
    severity = models.CharField(_("severity"), max_length=10, choices=Severity.choices)
    # Key of the problem while it lasts: see `engine/problems`.
    key = models.CharField(max_length=200)
    olt = models.ForeignKey(Olt, models.CASCADE, null=True, related_name="problems", verbose_name=_("OLT"))
    slot = models.IntegerField(_("slot"), null=True)
    port = models.IntegerField(_("port"), null=True)
    onu = models.ForeignKey(Onu, models.SET_NULL, null=True, related_name="problems", verbose_name=_("ONU"))
    since = models.DateTimeField(_("since"))
    # When Facho found it.
    found_at = models.DateTimeField(_("found"))
    until = models.DateTimeField(_("until"), null=True)
    # Not found since then; it ends if it stays so.
    absent_since = models.DateTimeField(null=True)
    # Its OLT or port has not been read since then, so it neither lasts nor ends.
    unknown_since = models.DateTimeField(_("state unknown since"), null=True)
    cause = models.CharField(_("probable cause"), max_length=20, choices=Cause.choices)
    confidence = models.CharField(_("confidence"), max_length=10, choices=Confidence.choices)
    affected = models.PositiveIntegerField(_("affected customers"), default=0)
    peak = models.PositiveIntegerField(_("most affected customers"), default=0)
    evidence = models.JSONField(_("evidence"), default=dict)
    # Ids of the ONUs at the peak.
    onus = models.JSONField(default=list)
    # The larger problem that it turned out to be a part of.
    part_of = models.ForeignKey("self", models.SET_NULL, null=True, related_name="parts", verbose_name=_("part of"))

    acknowledged_at = models.DateTimeField(_("acknowledged"), null=True)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("acknowledged by")
    )
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("assigned to")
    )
    snoozed_until = models.DateTimeField(_("snoozed until"), null=True)

    objects = ProblemQuerySet.as_manager()

    class Meta:
        db_table = "problems"
        ordering = ["-since", "-id"]
        verbose_name = _("problem")
        verbose_name_plural = _("problems")
        # The engine creates and ends problems.
        default_permissions = ("view", "change")
        constraints = [
            models.UniqueConstraint(name="one_open_problem_per_key", fields=["key"], condition=Q(until__isnull=True))
        ]
        indexes = [
            models.Index(name="problem_open", fields=["severity", "olt"], condition=Q(until__isnull=True)),
            models.Index(name="problem_by_time", fields=["since"]),
            models.Index(name="problem_by_olt", fields=["olt", "since"]),
            models.Index(name="problem_by_end", fields=["key", "until"]),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("dashboard:problem", args=[self.pk])

    @property
    def title(self) -> str:
        """Return what and where in one line."""
        return " · ".join(filter(None, [capfirst(self.get_kind_display()), self.where]))

    @property
    def where(self) -> str:
        """Return OLT and place; empty if it concerns all OLTs."""
        return text.where(self.olt.name if self.olt else "", self.place)

    @property
    def place(self) -> str:
        return text.place(self.slot, self.port, self.onu.onu if self.onu else None)

    @property
    def summary(self) -> str:
        """Return the evidence in one sentence."""
        return text.summary(self.kind, self.evidence)

    @property
    def cause_text(self) -> str:
        """Return the cause and its confidence in words."""
        if self.kind == Problem.Kind.QUOTA_VIOLATED and self.evidence.get("causes"):
            return text.cause_of_runs(self.evidence["causes"])
        return text.cause(str(self.get_cause_display()), self.confidence)

    @property
    def evidence_lines(self) -> list[str]:
        return text.evidence(self.cause, self.evidence)

    @property
    def is_open(self) -> bool:
        return self.until is None

    @cached_property
    def is_snoozed(self) -> bool:
        return self.snoozed_until is not None and self.snoozed_until > timezone.now()

    @property
    def seconds(self) -> float:
        """Return its duration."""
        return max(((self.until or timezone.now()) - self.since).total_seconds(), 0)

    # Actions of people. Each is an entry of the history and of the record of changes, in one transaction.

    @transaction.atomic
    def acknowledge(self, by: Any, comment: str = "") -> bool:
        """Mark as seen by a person. False if it already was; then only the comment is added."""
        mine = Problem.objects.filter(pk=self.pk, acknowledged_at__isnull=True)
        if not mine.update(acknowledged_at=timezone.now(), acknowledged_by=by):
            if comment:
                self.comment(by, comment)
            return False
        record(Change.Action.ACKNOWLEDGED, self, {"comment": [None, comment]} if comment else None)
        self._note(ProblemEntry.Kind.ACKNOWLEDGED, by, comment)
        return True

    @transaction.atomic
    def unacknowledge(self, by: Any) -> bool:
        """Take the acknowledgement back. False if there was none."""
        mine = Problem.objects.filter(pk=self.pk, acknowledged_at__isnull=False)
        with recorded(mine, "acknowledged_by"):
            is_changed = bool(mine.update(acknowledged_at=None, acknowledged_by=None))
        if is_changed:
            self._note(ProblemEntry.Kind.UNACKNOWLEDGED, by)
        return is_changed

    @transaction.atomic
    def assign(self, by: Any, to: Any) -> None:
        """Assign to a user, or to no one."""
        if to is not None and not self.may_act(to):
            raise ValidationError({"user": gettext("This user may not act on this problem.")})
        mine = Problem.objects.filter(pk=self.pk)
        with recorded(mine, "assignee"):
            mine.update(assignee=to)
        self._note(ProblemEntry.Kind.ASSIGNED, by, to.get_username() if to is not None else "")

    @transaction.atomic
    def snooze(self, by: Any, until: datetime | None) -> None:
        """Hide it from the list until a time, or no longer."""
        if until is not None and until <= timezone.now():
            raise ValidationError({"until": gettext("Choose a time in the future.")})
        mine = Problem.objects.filter(pk=self.pk)
        with recorded(mine, "snoozed_until"):
            mine.update(snoozed_until=until)
        self._note(ProblemEntry.Kind.SNOOZED, by, values={"until": until.isoformat() if until else None})

    @transaction.atomic
    def comment(self, by: Any, comment: str) -> None:
        record(Change.Action.CHANGED, self, {"comment": [None, comment]})
        self._note(ProblemEntry.Kind.COMMENTED, by, comment)

    def may_act(self, user: Any) -> bool:
        """Return whether a user may act on this problem: the permission and the scope."""
        ids = visible_ids(user)
        return user.is_active and user.has_perm(CHANGE_PERMISSION) and (ids is None or self.olt_id in ids)

    def _note(self, kind: str, by: Any, comment: str = "", values: Mapping[str, Any] | None = None) -> None:
        ProblemEntry.objects.create(
            problem=self, at=timezone.now(), kind=kind, user=by, user_name=by.get_username(), text=comment,
            values=values or {},
        )  # fmt: skip
        self.refresh_from_db()


class ProblemEntry(models.Model):
    """One line of the history of a problem."""

    class Kind(models.TextChoices):
        FOUND = "found", pgettext_lazy("problem", "found")
        GREW = "grew", pgettext_lazy("problem", "grew")
        CHANGED = "changed", pgettext_lazy("problem", "other cause")
        ENDED = "ended", pgettext_lazy("problem", "ended")
        REOPENED = "reopened", pgettext_lazy("problem", "came back")
        ACKNOWLEDGED = "acknowledged", pgettext_lazy("problem", "acknowledged")
        UNACKNOWLEDGED = "unacknowledged", pgettext_lazy("problem", "acknowledgement withdrawn")
        ASSIGNED = "assigned", pgettext_lazy("problem", "assigned")
        SNOOZED = "snoozed", pgettext_lazy("problem", "snoozed")
        COMMENTED = "commented", pgettext_lazy("problem", "comment")

    problem = models.ForeignKey(Problem, models.CASCADE, related_name="entries", verbose_name=_("problem"))
    at = models.DateTimeField(_("time"))
    kind = models.CharField(_("type"), max_length=20, choices=Kind.choices)
    # NULL: the engine, or a deleted user.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("user")
    )
    user_name = models.CharField(_("who"), max_length=200, blank=True)
    text = models.TextField(_("comment"), blank=True)
    values = models.JSONField(default=dict)

    class Meta:
        db_table = "problem_entries"
        ordering = ["at", "id"]
        verbose_name = _("entry of a problem")
        verbose_name_plural = _("entries of problems")
        default_permissions = ()
        indexes = [models.Index(name="problem_entry_by_time", fields=["at"])]

    def __str__(self) -> str:
        return self.said

    @property
    def said(self) -> str:
        """Return what happened, in the user's language."""
        return text.entry(self.kind, str(self.get_kind_display()), self.text, self.values)
