"""Quotas, violations, plans and the log of the engine.

The engine writes these tables; users read them.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.apps.coordinator.event_labels import event_label
from facho.apps.inventory import formats, labels
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.engine.quota.hour_plan import SEVERAL_FAILURES


class QuotaTracker(models.Model):
    """Quota of one job on one OLT in one hour. The sum holds in every row at every moment.

    PARTIAL runs count as completed, because they have readings. INTERRUPTED ones count as failed.
    """

    class Status(models.TextChoices):
        IN_PROGRESS = "IN_PROGRESS", _("in progress")
        # All runs of the hour.
        COMPLETED = "COMPLETED", _("completed")
        # Fulfilled, but not all runs.
        PARTIAL = "PARTIAL", _("partial")
        QUOTA_NOT_MET = "QUOTA_NOT_MET", _("quota not met")
        # No run at all.
        FAILED = "FAILED", _("failed")
        # The OLT or the job was disabled within the hour.
        INTERRUPTED = "INTERRUPTED", _("interrupted")

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="quotas", verbose_name=_("OLT"))
    node = models.ForeignKey(WorkflowNode, models.SET_NULL, null=True, related_name="quotas", verbose_name=_("node"))
    # Name of the job: history outlives the node.
    task_type = models.CharField(_("job"), max_length=100)
    period_start = models.DateTimeField(_("from"))
    period_end = models.DateTimeField(_("to"))
    quota_required = models.PositiveIntegerField(_("required"), default=0)
    quota_completed = models.PositiveIntegerField(pgettext_lazy("runs", "completed"), default=0)
    quota_failed = models.PositiveIntegerField(pgettext_lazy("runs", "failed"), default=0)
    quota_skipped = models.PositiveIntegerField(pgettext_lazy("runs", "skipped"), default=0)
    quota_pending = models.PositiveIntegerField(pgettext_lazy("runs", "pending"), default=0)
    # Number of skipped or failed runs by cause, or by kind of error.
    causes = models.JSONField(_("causes"), default=dict)
    total_duration_ms = models.PositiveBigIntegerField(_("total time (ms)"), default=0)
    # Mean of completed and failed runs; null without runs.
    avg_duration_ms = models.PositiveBigIntegerField(_("mean duration of a run (ms)"), null=True)
    status = models.CharField(_("status"), max_length=20, choices=Status.choices, default=Status.IN_PROGRESS)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "quota_tracker"
        ordering = ["-period_start", "olt", "task_type"]
        verbose_name = _("quota")
        verbose_name_plural = _("quotas")
        constraints = [
            models.UniqueConstraint(name="one_quota_per_hour", fields=["olt", "task_type", "period_start"]),
            models.CheckConstraint(
                name="quota_balances",
                condition=Q(
                    quota_required=F("quota_completed") + F("quota_failed") + F("quota_skipped") + F("quota_pending")
                ),
            ),
            models.CheckConstraint(
                name="quota_judged_when_settled",
                condition=Q(status__in=["IN_PROGRESS", "INTERRUPTED"]) | Q(quota_pending=0),
            ),
        ]
        indexes = [
            models.Index(name="quota_status", fields=["status"]),
            models.Index(name="quota_by_hour", fields=["period_start"]),
            models.Index(name="quota_by_olt", fields=["olt", "period_start"]),
        ]

    def __str__(self) -> str:
        return f"{labels.job(self.task_type)} @ {self.olt} {formats.hour(self.period_start)}"


class QuotaViolation(models.Model):
    """An hour in which a job on an OLT ran too rarely, with advice."""

    class Severity(models.TextChoices):
        LOW = "LOW", _("low")
        MEDIUM = "MEDIUM", _("medium")
        HIGH = "HIGH", _("high")
        CRITICAL = "CRITICAL", _("critical")

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="violations", verbose_name=_("OLT"))
    node = models.ForeignKey(
        WorkflowNode, models.SET_NULL, null=True, related_name="violations", verbose_name=_("node")
    )
    task_type = models.CharField(_("job"), max_length=100, default="")
    period_start = models.DateTimeField(_("from"))
    period_end = models.DateTimeField(_("to"))
    # `engine/quota/quota.py` describes its format.
    report = models.JSONField(_("report"), default=dict)
    severity = models.CharField(_("severity"), max_length=10, choices=Severity.choices)
    notified = models.BooleanField(_("notified"), default=False)
    notified_at = models.DateTimeField(_("notified at"), null=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        db_table = "quota_violations"
        ordering = ["-period_start", "olt", "task_type"]
        verbose_name = _("quota violation")
        verbose_name_plural = _("quota violations")
        constraints = [
            models.UniqueConstraint(name="one_violation_per_hour", fields=["olt", "task_type", "period_start"])
        ]
        indexes = [
            models.Index(name="violation_by_olt", fields=["olt", "created_at"]),
            models.Index(name="violation_severity", fields=["severity"]),
            models.Index(name="violation_notified", fields=["notified"]),
        ]

    def __str__(self) -> str:
        job = labels.job(self.task_type)
        return f"{self.get_severity_display()}: {job} @ {self.olt} {formats.hour(self.period_start)}"


class CoordinatorLog(models.Model):
    """Log of the engine: see `engine/events.py` for the events."""

    olt = models.ForeignKey(Olt, models.CASCADE, null=True, related_name="logs", verbose_name=_("OLT"))
    event_type = models.CharField(_("event"), max_length=30)
    level = models.CharField(_("level"), max_length=10)
    # In English, as in the log file.
    message = models.TextField(_("message"))
    # Details of the event, for its message in another language.
    details = models.JSONField(_("details"), default=dict)
    timestamp = models.DateTimeField(_("time"))

    class Meta:
        db_table = "coordinator_logs"
        ordering = ["-id"]
        verbose_name = _("log entry")
        verbose_name_plural = _("log")
        indexes = [
            models.Index(name="log_by_olt", fields=["olt", "timestamp"]),
            models.Index(name="log_by_event", fields=["event_type", "timestamp"]),
            models.Index(name="log_by_level", fields=["level", "timestamp"]),
            models.Index(name="log_by_time", fields=["timestamp"]),
        ]

    def __str__(self) -> str:
        return f"{event_label(self.event_type)} {formats.moment(self.timestamp)}"


class ExecutionPlan(models.Model):
    """Plan of an OLT's hour, and the actual result."""

    class Status(models.TextChoices):
        ACTIVE = "ACTIVE", _("active")
        # The hour is over; the plan has the actual result beside the expected one.
        COMPLETED = "COMPLETED", pgettext_lazy("plan", "completed")
        # A change within the hour led to a new plan.
        SUPERSEDED = "SUPERSEDED", _("superseded")
        # The OLT was disabled within the hour.
        ABORTED = "ABORTED", _("aborted")

    class Reason(models.TextChoices):
        HOUR = "hour", _("new hour")
        CHANGED = "changed", _("jobs changed")
        DURATIONS = "durations", _("runs take longer or shorter than planned")
        REACHABILITY = "reachability", _("the OLT stopped or started answering")
        FAILURES = "failures", _("several runs failed")

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="plans", verbose_name=_("OLT"))
    period_start = models.DateTimeField(_("from"))
    period_end = models.DateTimeField(_("to"))
    # `engine/quota/hour_plan.py` describes its format.
    plan_data = models.JSONField(_("plan"), default=list)
    status = models.CharField(_("status"), max_length=12, choices=Status.choices, default=Status.ACTIVE)
    # Reason of the plan. Empty for plans of older versions.
    reason = models.CharField(_("reason"), max_length=12, choices=Reason.choices, blank=True, default="")
    # Digest of its input, see `store/plans.py`: a plan with another fingerprint is outdated.
    fingerprint = models.CharField(max_length=64, default="")
    # Seconds that its jobs need in an hour, and these in percent.
    needed_seconds = models.FloatField(_("needed (s)"), default=0)
    utilisation = models.FloatField(_("utilisation (%)"), default=0)
    is_feasible = models.BooleanField(_("feasible"), default=True)
    # Changes that make it feasible, as events: see `engine/quota/hour_plan.py`.
    advice = models.JSONField(_("advice"), default=list)
    total_tasks = models.PositiveIntegerField(_("slots"), default=0)
    completed_tasks = models.PositiveIntegerField(pgettext_lazy("runs", "completed"), default=0)
    failed_tasks = models.PositiveIntegerField(pgettext_lazy("runs", "failed"), default=0)
    # Failed runs since the last completed one.
    failures_in_row = models.PositiveIntegerField(_("failures in a row"), default=0)
    # Runs that were claimed before are not in it.
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "execution_plans"
        ordering = ["-period_start", "olt", "-id"]
        verbose_name = _("plan")
        verbose_name_plural = _("plans")
        constraints = [
            models.UniqueConstraint(
                name="one_active_plan_per_hour", fields=["olt", "period_start"], condition=Q(status="ACTIVE")
            )
        ]
        indexes = [
            models.Index(name="plan_by_olt", fields=["olt", "period_start"]),
            models.Index(name="plan_status", fields=["status"]),
            models.Index(
                name="plan_failing", fields=["olt"], condition=Q(status="ACTIVE", failures_in_row__gte=SEVERAL_FAILURES)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.olt} {formats.hour(self.period_start)}"


class Forecast(models.Model):
    """A requested forecast. The engine runs one at a time beside its work."""

    VIEW_PERMISSION = "coordinator.view_forecast"
    ADD_PERMISSION = "coordinator.add_forecast"

    # Maximum number of pending forecasts. Each takes a core for a minute or two.
    MOST_WAITING = 20

    class Status(models.TextChoices):
        PENDING = "PENDING", _("pending")
        RUNNING = "RUNNING", _("running")
        DONE = "DONE", _("done")
        FAILED = "FAILED", pgettext_lazy("forecast", "failed")

    requested_at = models.DateTimeField(_("requested"), auto_now_add=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="forecasts", verbose_name=_("by")
    )
    # By the option names of `facho forecast`.
    params = models.JSONField(_("parameters"), default=dict)
    status = models.CharField(_("status"), max_length=8, choices=Status.choices, default=Status.PENDING)
    # Output of `facho forecast --json`.
    result = models.JSONField(_("result"), null=True)
    # In percent, while it is running.
    progress = models.PositiveSmallIntegerField(_("progress (%)"), default=0)
    error = models.TextField(_("error"), blank=True)
    started_at = models.DateTimeField(_("started"), null=True)
    ended_at = models.DateTimeField(_("ended"), null=True)

    class Meta:
        db_table = "forecasts"
        ordering = ["-id"]
        verbose_name = _("forecast")
        verbose_name_plural = _("forecasts")
        constraints = [
            models.UniqueConstraint(name="one_forecast_at_a_time", fields=["status"], condition=Q(status="RUNNING"))
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {formats.hour(self.requested_at)}"

    @classmethod
    def request(cls, params: Mapping[str, Any], by: Any) -> "Forecast":
        """Request a forecast; refused while too many are waiting."""
        if cls.objects.filter(status=cls.Status.PENDING).count() >= cls.MOST_WAITING:
            raise ValidationError(
                _("%(count)d forecasts are already waiting. Wait until some have finished.")
                % {"count": cls.MOST_WAITING}
            )
        return cls.objects.create(by_id=by.pk, params=params)

    @property
    def is_over(self) -> bool:
        return self.status in (self.Status.DONE, self.Status.FAILED)

    def begin(self, now: datetime) -> bool:
        """Mark it as running, if it is still pending."""
        waiting = Forecast.objects.filter(pk=self.pk, status=self.Status.PENDING)
        return bool(waiting.update(status=self.Status.RUNNING, started_at=now))

    def show_progress(self, percent: int) -> None:
        """Store the progress of a running forecast. It does no harm if the database is unavailable for a moment."""
        with suppress(DatabaseError):
            Forecast.objects.filter(pk=self.pk, status=self.Status.RUNNING).update(progress=percent)

    def end(self, now: datetime, *, result: dict[str, Any] | None = None, error: str = "") -> None:
        """Store the result; with an error, it failed."""
        self.status = self.Status.FAILED if error else self.Status.DONE
        self.result, self.error, self.ended_at = result, error, now
        self.save(update_fields=["status", "result", "error", "ended_at"])
