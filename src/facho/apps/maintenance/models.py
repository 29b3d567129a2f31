"""Maintenance: what a user plans, and the windows that follow from it."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.db.models import F, OuterRef, Q, Subquery
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.inventory.models import Olt, Site, Tag
from facho.engine import maintenance as engine

LONGEST_REASON = 500
LONGEST_WINDOW = timedelta(days=90)


def local_zone() -> str:
    """Return the time zone of the installation."""
    return settings.TIME_ZONE


def validate_zone(name: str) -> None:
    if name not in available_timezones():
        raise ValidationError(_("Unknown time zone. Write one like America/Lima."))


class MaintenanceQuerySet(models.QuerySet["Maintenance"]):
    def with_window(self) -> "MaintenanceQuerySet":
        """Add start and end of the running, next or last window."""
        last = MaintenanceWindow.objects.filter(maintenance=OuterRef("pk")).order_by("-starts_at")
        return self.annotate(
            window_start=Subquery(last.values("starts_at")[:1]), window_end=Subquery(last.values("ends_at")[:1])
        )

    def in_state(self, state: str, now: datetime) -> "MaintenanceQuerySet":
        """Return those in a state; with `with_window`."""
        running = Q(window_start__lte=now, window_end__gt=now)
        is_repeated = Q(cancelled_at__isnull=True) & ~Q(recurrence=Maintenance.Recurrence.NONE)
        goes_on = is_repeated & (Q(repeats_until__isnull=True) | Q(repeats_until__gt=now))
        planned = Q(window_start__gt=now) | (goes_on & Q(window_end__lte=now))
        match state:
            case Maintenance.State.RUNNING:
                return self.filter(running)
            case Maintenance.State.PLANNED:
                return self.filter(planned)
        return self.exclude(running | planned)


class Maintenance(models.Model):
    """A planned maintenance of an OLT, a PON port, a site or a tag.

    Its next or current window is a row, so that the window is known while the engine is down. The engine creates the
    following one when a window is over.
    """

    class Recurrence(models.TextChoices):
        NONE = engine.Recurrence.NONE.value, pgettext_lazy("maintenance", "once")
        DAILY = engine.Recurrence.DAILY.value, pgettext_lazy("maintenance", "every day")
        WEEKLY = engine.Recurrence.WEEKLY.value, pgettext_lazy("maintenance", "every week")

    class State(models.TextChoices):
        RUNNING = "running", pgettext_lazy("maintenance", "running")
        PLANNED = "planned", pgettext_lazy("maintenance", "planned")
        OVER = "over", pgettext_lazy("maintenance", "over")

    olt = models.ForeignKey(
        Olt, models.CASCADE, null=True, blank=True, related_name="maintenance", verbose_name=_("OLT")
    )
    slot = models.IntegerField(_("slot"), null=True, blank=True, validators=[MinValueValidator(0)])
    port = models.IntegerField(_("port"), null=True, blank=True, validators=[MinValueValidator(0)])
    site = models.ForeignKey(
        Site, models.CASCADE, null=True, blank=True, related_name="maintenance", verbose_name=_("site")
    )
    tag = models.ForeignKey(
        Tag, models.CASCADE, null=True, blank=True, related_name="maintenance", verbose_name=_("tag")
    )
    starts_at = models.DateTimeField(_("start"))
    ends_at = models.DateTimeField(_("end"))
    recurrence = models.CharField(_("repeat"), max_length=6, choices=Recurrence.choices, default=Recurrence.NONE)
    zone = models.CharField(
        _("time zone"),
        max_length=64,
        default=local_zone,
        validators=[validate_zone],
        help_text=_("It is repeated at the same time of day in this zone."),
    )
    repeats_until = models.DateTimeField(
        _("repeat until"), null=True, blank=True, help_text=_("Empty: until it is cancelled.")
    )
    polling = models.BooleanField(
        _("keep polling"),
        default=True,
        help_text=_("Off: nothing is read from the OLTs, except on request. A port is always read with its OLT."),
    )
    reason = models.CharField(_("reason"), max_length=LONGEST_REASON, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+", verbose_name=_("author")
    )
    # Stays when the user is deleted.
    author_name = models.CharField(_("author"), max_length=150, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    cancelled_at = models.DateTimeField(_("cancelled"), null=True, editable=False)

    objects = MaintenanceQuerySet.as_manager()

    ENGINE_OWNED = frozenset({"author", "author_name", "created_at"})

    VIEW_PERMISSION = "maintenance.view_maintenance"
    ADD_PERMISSION = "maintenance.add_maintenance"
    CHANGE_PERMISSION = "maintenance.change_maintenance"

    class Meta:
        db_table = "maintenance"
        ordering = ["-starts_at", "-id"]
        verbose_name = _("maintenance")
        verbose_name_plural = _("maintenance")
        constraints = [
            models.CheckConstraint(
                name="maintenance_of_one_thing",
                condition=Q(olt__isnull=False, site__isnull=True, tag__isnull=True)
                | Q(olt__isnull=True, site__isnull=False, tag__isnull=True)
                | Q(olt__isnull=True, site__isnull=True, tag__isnull=False),
                violation_error_message=_("Choose either an OLT, a site or a tag."),
            ),
            models.CheckConstraint(
                name="maintenance_of_a_port",
                condition=Q(slot__isnull=True, port__isnull=True)
                | Q(olt__isnull=False, slot__isnull=False, port__isnull=False),
                violation_error_message=_("Write both the slot and the port, and choose their OLT."),
            ),
            models.CheckConstraint(
                name="maintenance_ends_after_start",
                condition=Q(ends_at__gt=F("starts_at")),
                violation_error_message=_("The end must be after the start."),
            ),
        ]

    def __str__(self) -> str:
        return gettext("Maintenance of %(target)s") % {"target": self.target}

    @property
    def target(self) -> str:
        """Return the name of what is maintained."""
        if self.is_of_port:
            return f"{self.olt} {self.slot}/{self.port}"
        return str(self.olt or self.site or self.tag)

    @property
    def headline(self) -> str:
        """Return its name and reason."""
        return f"{self}: {self.reason}" if self.reason else str(self)

    @property
    def is_of_port(self) -> bool:
        return self.port is not None

    @property
    def polls(self) -> bool:
        """Return whether its OLTs are polled. A port is always read with its OLT."""
        return self.polling or self.is_of_port

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        """Return start and end of the running, next or last window, from `with_window`."""
        annotated: Any = self
        return annotated.window_start, annotated.window_end

    @property
    def state(self) -> str:
        """Return the state, from `with_window`."""
        now, (start, end) = timezone.now(), self.window
        if start is not None and end is not None and end > now:
            return self.State.RUNNING if start <= now else self.State.PLANNED
        is_over = self.cancelled_at is not None or self.schedule.next_window(now, start) is None
        return self.State.OVER if is_over else self.State.PLANNED

    @property
    def state_label(self) -> str:
        return str(self.State(self.state).label)

    def clean(self) -> None:
        super().clean()
        self._clean_target()
        start: datetime | None = self.starts_at
        end: datetime | None = self.ends_at
        if start is None or end is None:
            # The field itself is refused.
            return
        length = end - start
        if length > LONGEST_WINDOW:
            raise ValidationError({"ends_at": _("A maintenance lasts 90 days at most.")})
        step = engine.STEPS.get(self.recurrence)
        if step and length >= step:
            raise ValidationError({"recurrence": _("It must end before it is repeated.")})
        if end <= timezone.now() and self.recurrence == self.Recurrence.NONE and self._state.adding:
            raise ValidationError({"ends_at": _("The end must be in the future.")})
        if self.repeats_until and self.repeats_until < start:
            raise ValidationError({"repeats_until": _("It must be after the start.")})

    def _clean_target(self) -> None:
        # A form does not check the constraints of its empty fields.
        if sum(each is not None for each in (self.olt_id, self.site_id, self.tag_id)) != 1:
            raise ValidationError(_("Choose either an OLT, a site or a tag."))
        if self.olt is not None and self._state.adding:
            self.olt.refuse_while_deleting()
        if (self.slot is None) != (self.port is None) or (self.port is not None and self.olt_id is None):
            raise ValidationError(_("Write both the slot and the port, and choose their OLT."))

    @property
    def schedule(self) -> engine.Schedule:
        return engine.Schedule(
            self.starts_at, self.ends_at, engine.Recurrence(self.recurrence), ZoneInfo(self.zone), self.repeats_until
        )

    @transaction.atomic
    def plan(self, by: Any) -> None:
        """Save it as new, with its first window."""
        self.author, self.author_name = by, by.get_username()
        self.save()
        self.settle(timezone.now())

    @transaction.atomic
    def replan(self) -> None:
        """Save changed settings. A window that has started keeps its start; that of a repeated one its end too."""
        now = timezone.now()
        self.save()
        self.windows.filter(starts_at__gt=now).delete()
        if self.recurrence == self.Recurrence.NONE:
            self.running(now).update(ends_at=max(self.ends_at, now), reminded_at=None)
        self.settle(now)

    def settle(self, now: datetime) -> None:
        """Create the current or next window, if there is none yet."""
        last = self.windows.order_by("starts_at").last()
        if self.cancelled_at is not None or (last is not None and last.ends_at > now):
            return
        found = self.schedule.next_window(now, last.starts_at if last else None)
        if found is not None:
            self.windows.get_or_create(starts_at=found[0], defaults={"ends_at": found[1]})

    def running(self, now: datetime) -> "models.QuerySet[MaintenanceWindow]":
        return self.windows.filter(starts_at__lte=now, ends_at__gt=now)

    def end_now(self) -> bool:
        """End the running window; False if there is none. A repeated maintenance goes on with the next window."""
        now = timezone.now()
        return self._move_end(now, now)

    def extend(self, by: timedelta) -> bool:
        """Let the running window last longer; False if there is none."""
        now = timezone.now()
        window = self.running(now).first()
        return window is not None and self._move_end(now, window.ends_at + by)

    @transaction.atomic
    def _move_end(self, now: datetime, end: datetime) -> bool:
        window = self.running(now).select_for_update().first()
        if window is None:
            return False
        if end - window.starts_at > LONGEST_WINDOW:
            raise ValidationError(_("A maintenance lasts 90 days at most."))
        record(Change.Action.CHANGED, self, {"ends_at": [window.ends_at.isoformat(), end.isoformat()]})
        self.windows.filter(pk=window.pk).update(ends_at=end, reminded_at=None)
        self.settle(now)
        return True

    @transaction.atomic
    def cancel(self) -> None:
        """End it and all later windows. What has happened stays; a maintenance that never started is deleted."""
        now = timezone.now()
        self.windows.filter(starts_at__gt=now).delete()
        self.running(now).update(ends_at=now)
        if not self.windows.exists():
            self.delete()
        elif self.cancelled_at is None:
            self.cancelled_at = now
            self.save(update_fields=["cancelled_at"])


class MaintenanceWindow(models.Model):
    """One time of a maintenance. What is null has not been done yet by the engine."""

    maintenance = models.ForeignKey(
        Maintenance, models.CASCADE, related_name="windows", db_index=False, verbose_name=_("maintenance")
    )
    starts_at = models.DateTimeField(_("start"))
    ends_at = models.DateTimeField(_("end"))
    # Its start, the reminder and its end were logged.
    started_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # The alerts that were held were reported.
    summarised_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "maintenance_windows"
        ordering = ["starts_at", "id"]
        verbose_name = _("maintenance window")
        verbose_name_plural = _("maintenance windows")
        constraints = [models.UniqueConstraint(name="maintenance_window_once", fields=["maintenance", "starts_at"])]
        indexes = [models.Index(name="maintenance_window_by_end", fields=["ends_at", "starts_at"])]

    def __str__(self) -> str:
        return f"{self.maintenance} ({self.starts_at:%Y-%m-%d %H:%M})"

    @property
    def span(self) -> engine.Window:
        return engine.Window(self.starts_at, self.ends_at, self.maintenance.polls)
