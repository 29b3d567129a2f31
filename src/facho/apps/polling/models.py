"""Executions, pollers and leases. The engine writes these tables; users read them."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.apps.inventory import formats, labels
from facho.apps.inventory.models import DEVICE_LENGTH, Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling import coverage, lateness
from facho.engine.model import Cause, Completeness, Status, Trigger

STATUS_CHOICES = [
    (Status.PENDING.value, _("pending")),
    (Status.RUNNING.value, _("running")),
    (Status.SUCCESS.value, _("success")),
    (Status.PARTIAL.value, _("partial")),
    (Status.FAILED.value, _("failed")),
    (Status.INTERRUPTED.value, _("interrupted")),
    (Status.SKIPPED.value, _("skipped")),
]
# Of executions that are not over.
OPEN_STATUSES = (Status.PENDING.value, Status.RUNNING.value)
CAUSE_CHOICES = [
    (Cause.OLT_BUSY.value, _("the OLT was busy")),
    (Cause.NO_FREE_POLLER.value, _("no poller was free")),
    (Cause.BREAKER_OPEN.value, _("the breaker of the OLT was open")),
    (Cause.SCHEDULER_LATE.value, _("the scheduler was late")),
    (Cause.ENGINE_DOWN.value, _("the engine was down")),
    (Cause.STOPPED.value, _("the engine was stopped")),
    (Cause.DISABLED.value, _("it was disabled")),
    (Cause.UNREACHABLE.value, _("the OLT is unreachable")),
    (Cause.LEASE_LOST.value, _("the lease of the OLT was lost")),
    (Cause.DATABASE_UNAVAILABLE.value, _("the database was unavailable")),
    (Cause.BROKER_UNAVAILABLE.value, _("Redis was unavailable")),
    (Cause.CLOCK_SET.value, _("the clock was set forward")),
    (Cause.MAINTENANCE.value, _("the OLT was in maintenance")),
]
COMPLETENESS_CHOICES = [
    (Completeness.COMPLETE.value, _("complete")),
    (Completeness.PARTIAL.value, _("partial")),
    (Completeness.EMPTY.value, _("empty")),
]
TRIGGER_CHOICES = [(Trigger.SCHEDULE.value, _("schedule")), (Trigger.MANUAL.value, _("manual"))]


class Execution(models.Model):
    """One node in one slot. A link names the execution of its master and runs in the same poller."""

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="executions", verbose_name=_("OLT"))
    node = models.ForeignKey(
        WorkflowNode, models.SET_NULL, null=True, related_name="executions", verbose_name=_("node")
    )
    # Name of the node: history outlives it.
    node_name = models.CharField(_("job"), max_length=100)
    master_execution = models.ForeignKey(
        "self", models.CASCADE, null=True, related_name="links", verbose_name=_("master")
    )
    poller_id = models.PositiveIntegerField(_("poller"), null=True)
    trigger = models.CharField(_("started by"), max_length=10, choices=TRIGGER_CHOICES, default=Trigger.SCHEDULE)
    slot = models.DateTimeField(_("due"))
    # A skipped row may stand for several consecutive slots, from `slot` on.
    slots = models.PositiveIntegerField(_("slots"), default=1)
    status = models.CharField(_("status"), max_length=12, choices=STATUS_CHOICES, default=Status.PENDING)
    cause = models.CharField(_("cause"), max_length=20, choices=CAUSE_CHOICES, blank=True)
    error = models.TextField(_("error"), blank=True)
    error_class = models.CharField(_("error type"), max_length=60, blank=True)
    # Seconds by cause; they add up to the time from slot to claim.
    waits = models.JSONField(_("waited"), default=dict)
    claimed_at = models.DateTimeField(_("claimed"), null=True)
    started_at = models.DateTimeField(_("started"), null=True)
    ended_at = models.DateTimeField(_("ended"), null=True)
    lease_token = models.BigIntegerField(null=True)
    # Device of the last run: see `engine/device.py`. NULL, and not empty, so that the migration of a large table is
    # instant.
    device = models.CharField(_("device"), max_length=DEVICE_LENGTH, null=True)
    # Pending, with the next attempt at this time.
    retry_at = models.DateTimeField(_("tried again"), null=True)

    readings = models.PositiveIntegerField(_("ONUs read"), default=0)
    completeness = models.CharField(_("completeness"), max_length=10, blank=True, choices=COMPLETENESS_CHOICES)
    pdus = models.PositiveIntegerField(_("requests"), default=0)
    retransmissions = models.PositiveIntegerField(_("retransmitted requests"), default=0)
    varbinds = models.PositiveIntegerField(_("values"), default=0)
    bytes_sent = models.PositiveBigIntegerField(_("octets sent"), default=0)
    bytes_received = models.PositiveBigIntegerField(_("octets received"), default=0)
    rtt_p50 = models.FloatField(_("round trip, median (s)"), null=True)
    rtt_p95 = models.FloatField(_("round trip, 95 % (s)"), null=True)
    rtt_p99 = models.FloatField(_("round trip, 99 % (s)"), null=True)
    peak_in_flight = models.PositiveIntegerField(_("maximum in flight"), default=0)
    # Final request sizes, by table: repetitions of a walk, or rows of a GET.
    sizes = models.JSONField(_("request sizes"), default=dict)
    # `apps/polling/coverage.py` describes its format.
    coverage = models.JSONField(_("coverage"), default=dict)
    failed_onus = models.JSONField(_("failed ONUs"), default=list)

    class Meta:
        db_table = "snmp_executions"
        ordering = ["-id"]
        verbose_name = _("execution")
        verbose_name_plural = _("executions")
        constraints = [
            models.UniqueConstraint(name="one_execution_per_slot", fields=["node", "slot"]),
            models.UniqueConstraint(
                name="one_running_execution_per_olt", fields=["olt"], condition=Q(status=Status.RUNNING.value)
            ),
            models.UniqueConstraint(
                name="one_running_execution_per_device",
                fields=["device"],
                condition=Q(status=Status.RUNNING.value),
            ),
            models.CheckConstraint(
                name="a_running_execution_has_started",
                condition=~Q(status=Status.RUNNING.value) | Q(started_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="execution_by_olt", fields=["olt", "-slot"]),
            models.Index(name="execution_by_slot", fields=["-slot"]),
            models.Index(
                name="execution_open",
                fields=["status"],
                condition=Q(status__in=[Status.PENDING.value, Status.RUNNING.value]),
            ),
        ]

    def __str__(self) -> str:
        return f"{labels.job(self.node_name)} @ {self.olt} {formats.moment(self.slot)}"

    @property
    def duration(self) -> float | None:
        """Return the seconds from the start of its first attempt to its end."""
        if self.started_at is None or self.ended_at is None:
            return None
        return max((self.ended_at - self.started_at).total_seconds(), 0.0)

    @property
    def lateness(self) -> float | None:
        """Return the seconds between its slot and the start of its first attempt."""
        # A run that waited while the clock was set back starts before its slot.
        return max((self.started_at - self.slot).total_seconds(), 0.0) if self.started_at else None

    @property
    def parts(self) -> dict[str, float]:
        """Return the parts of its delay in seconds; before its start, its waits.

        A link waited with its master: `queries.with_parts` reads that too.
        """
        waits = self.waits or getattr(self, "master_waits", None) or {}
        if self.lateness is None:
            return dict(waits)
        rest = lateness.STARTING if self.master_execution_id is None else lateness.IN_CHAIN
        return lateness.parts(self.lateness, waits, rest=rest)

    def column_lines(self) -> list[str]:
        """Return the coverage of each column as text."""
        return coverage.column_lines(self.coverage)

    def failure_lines(self) -> list[str]:
        """Return the failed ports as text."""
        return coverage.failure_lines(self.coverage)


class ExecutionAttempt(models.Model):
    """One attempt of an execution."""

    execution = models.ForeignKey(Execution, models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField(_("attempt"))
    status = models.CharField(_("status"), max_length=12, choices=STATUS_CHOICES)
    error_class = models.CharField(_("error type"), max_length=60, blank=True)
    error = models.TextField(_("error"), blank=True)
    started_at = models.DateTimeField(_("started"))
    ended_at = models.DateTimeField(_("ended"), null=True)
    pdus = models.PositiveIntegerField(_("requests"), default=0)

    class Meta:
        db_table = "execution_attempts"
        ordering = ["execution", "number"]
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = [models.UniqueConstraint(name="attempt_once", fields=["execution", "number"])]

    def __str__(self) -> str:
        return f"{self.execution_id} #{self.number}"


class Poller(models.Model):
    """A poller, as last reported."""

    class Status(models.TextChoices):
        FREE = "FREE", _("free")
        BUSY = "BUSY", _("busy")

    poller_id = models.PositiveIntegerField(_("poller"), unique=True)
    worker = models.CharField(_("worker"), max_length=200, blank=True)
    host = models.CharField(_("machine"), max_length=200, blank=True)
    status = models.CharField(_("status"), max_length=4, choices=Status.choices, default=Status.FREE)
    current_olt_id = models.BigIntegerField(_("OLT"), null=True)
    current_node_id = models.BigIntegerField(_("node"), null=True)
    link = models.PositiveSmallIntegerField(_("link"), null=True)
    links = models.PositiveSmallIntegerField(_("links"), null=True)
    busy_since = models.DateTimeField(_("busy since"), null=True)
    busy_time = models.FloatField(_("time busy (s)"), default=0)
    total_time = models.FloatField(_("total time (s)"), default=0)
    tasks_completed = models.PositiveBigIntegerField(_("composites run"), default=0)
    tasks_delayed = models.PositiveBigIntegerField(_("of these late"), default=0)
    # When the process of this poller started.
    created_at = models.DateTimeField(_("started"), null=True)
    updated_at = models.DateTimeField(_("reported"))

    class Meta:
        db_table = "pollers"
        ordering = ["poller_id"]
        verbose_name = _("poller")
        verbose_name_plural = _("pollers")

    def __str__(self) -> str:
        return f"Poller {self.poller_id}"


class Lease(models.Model):
    """Holder of a device, or the active scheduler. Times are of the database's clock."""

    # "device:10.0.0.7:161", or "scheduler".
    key = models.CharField(_("what"), max_length=DEVICE_LENGTH + 10, primary_key=True)
    holder = models.CharField(_("holder"), max_length=200)
    # Grows with each holder, so that an old holder is recognised.
    token = models.BigIntegerField(_("token"))
    expires_at = models.DateTimeField(_("expires"))
    # It cannot be renewed any more.
    revoked = models.BooleanField(_("revoked"), default=False)

    class Meta:
        db_table = "leases"
        ordering = ["key"]
        verbose_name = _("lease")
        verbose_name_plural = _("leases")

    def __str__(self) -> str:
        return f"{self.key} ({self.holder})"


class PollerStats(models.Model):
    """Load of the pool in one minute, for charts."""

    timestamp = models.DateTimeField(_("time"), unique=True)
    total_pollers = models.PositiveIntegerField(_("pollers"))
    free_pollers = models.PositiveIntegerField(_("free"))
    busy_pollers = models.PositiveIntegerField(_("busy"))
    busy_percentage = models.FloatField(_("busy (%)"))
    queue_size = models.PositiveIntegerField(_("queue"))
    delayed = models.PositiveIntegerField(_("delayed"))
    is_saturated = models.BooleanField(_("saturated"))
    total_tasks_completed = models.PositiveBigIntegerField(_("composites run"))
    total_tasks_delayed = models.PositiveBigIntegerField(_("of these late"))

    class Meta:
        db_table = "poller_stats"
        ordering = ["-timestamp"]
        verbose_name = _("pool statistics")
        verbose_name_plural = _("pool statistics")

    def __str__(self) -> str:
        return formats.hour(self.timestamp)
