"""Progress of a quota, in words and shares. Arithmetic only, for API, admin and pages."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import attrgetter

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from facho.apps.coordinator.models import QuotaTracker
from facho.apps.inventory.formats import whole
from facho.engine.quota.quota import ENOUGH, unwanted

# Slots that may be running or queued without the hour being behind.
UNDER_WAY = 1

PARTS = ("completed", "failed", "skipped", "pending")
PART_NAMES = {
    "completed": pgettext_lazy("runs", "completed"),
    "failed": pgettext_lazy("runs", "failed"),
    "skipped": pgettext_lazy("runs", "skipped"),
    "pending": pgettext_lazy("runs", "pending"),
}

ON_COURSE, BEHIND, AT_RISK, LOST = "on_course", "behind", "at_risk", "lost"
RISKS = {
    ON_COURSE: _("on schedule"),
    BEHIND: _("behind schedule"),
    AT_RISK: _("at risk"),
    LOST: _("can no longer be met"),
}


@dataclass(frozen=True, slots=True)
class QuotaProgress:
    """Required runs and their results, of one quota or of many."""

    required: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    pending: int = 0
    # Part of the skipped ones: slots that were disabled or in maintenance are not judged.
    unwanted: int = 0

    @classmethod
    def of(cls, quota: QuotaTracker) -> "QuotaProgress":
        parts = {part: getattr(quota, f"quota_{part}") for part in PARTS}
        return cls(quota.quota_required, **parts, unwanted=unwanted(quota.causes))

    @classmethod
    def total(cls, each: Iterable["QuotaProgress"]) -> "QuotaProgress":
        rows = list(each)
        return cls(*(sum(map(attrgetter(part.name), rows)) for part in fields(cls)))

    @property
    def percent(self) -> float | None:
        """Return the completed share of the required runs, or None if none was required."""
        return round(100 * self.completed / self.wanted, 1) if self.wanted else None

    @property
    def wanted(self) -> int:
        """Return the number of runs to judge, without those that were disabled or in maintenance."""
        return max(self.required - self.unwanted, self.completed)

    @property
    def came(self) -> int:
        """Return the number of judged runs that are over."""
        return max(self.wanted - self.pending, 0)

    @property
    def percent_of_those_that_came(self) -> float | None:
        return round(100 * self.completed / self.came, 1) if self.came else None

    def stack(self) -> list[tuple[str, int, float, float]]:
        """Return the nonempty parts: name, number, start and width of the bar in percent."""
        bars, at = [], 0.0
        for part in PARTS:
            number = getattr(self, part)
            if number:
                width = 100 * number / self.required
                bars.append((part, number, at, width))
                at += width
        return bars

    def says(self) -> str:
        """Return the numbers as text."""
        return ", ".join(counted(part, number) for part, number, *_bar in self.stack())


def counted(part: str, number: int) -> str:
    """Return the number of runs of a part as text."""
    forms = {
        "completed": ngettext("%(n)s completed", "%(n)s completed", number),
        "failed": ngettext("%(n)s failed", "%(n)s failed", number),
        "skipped": ngettext("%(n)s skipped", "%(n)s skipped", number),
        "pending": ngettext("%(n)s pending", "%(n)s pending", number),
    }
    return forms[part] % {"n": whole(number)}


def risk(progress: QuotaProgress, end: datetime, every: timedelta | None, now: datetime) -> str:
    """Return the likely result of a quota whose hour is not over.

    LOST: even if all remaining runs succeed, it stays below the limit. AT_RISK: it would at the current rate. BEHIND:
    more slots are pending than fit into the rest of the hour. The rest is used because a job may have started in the
    middle of the hour.
    """
    enough = progress.wanted * ENOUGH
    if 100 * (progress.completed + progress.pending) < enough:
        return LOST
    if progress.came and 100 * progress.completed < ENOUGH * progress.came:
        return AT_RISK
    to_come = -(-max(end - now, timedelta(0)) // every) if every else progress.pending
    return BEHIND if progress.pending - to_come > UNDER_WAY else ON_COURSE


def risk_of(quota: QuotaTracker, now: datetime) -> str | None:
    """Return the same for a row with the `every` of `queries.EVERY`; None if its hour is over."""
    if quota.status != QuotaTracker.Status.IN_PROGRESS or quota.period_end <= now:
        return None
    seconds = getattr(quota, "every", None)
    return risk(QuotaProgress.of(quota), quota.period_end, timedelta(seconds=seconds) if seconds else None, now)
