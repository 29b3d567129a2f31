"""How a quota stands, in words and shares. Only arithmetic, for API, admin and pages alike."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.apps.coordinator.models import QuotaTracker
from facho.engine.model import Cause
from facho.engine.quota.quota import ENOUGH

# So many slots may be under way, or wait for their turn, without the hour being behind.
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
    ON_COURSE: _("on course"),
    BEHIND: _("behind schedule"),
    AT_RISK: _("at risk"),
    LOST: _("cannot be met any more"),
}


@dataclass(frozen=True, slots=True)
class QuotaProgress:
    """What was owed and what it has come to, of one quota or of many."""

    required: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    pending: int = 0
    # Of the skipped ones: what a person disabled is missing for nobody.
    disabled: int = 0

    @classmethod
    def of(cls, quota: QuotaTracker) -> "QuotaProgress":
        parts = {part: getattr(quota, f"quota_{part}") for part in PARTS}
        return cls(quota.quota_required, **parts, disabled=quota.causes.get(Cause.DISABLED.value, 0))

    @classmethod
    def total(cls, each: Iterable["QuotaProgress"]) -> "QuotaProgress":
        rows = [astuple(one) for one in each]
        return cls(*(sum(column) for column in zip(*rows, strict=True))) if rows else cls()

    @property
    def percent(self) -> float | None:
        """Return the share of the runs that were owed and came, or None where none was owed."""
        return round(100 * self.completed / self.wanted, 1) if self.wanted else None

    @property
    def wanted(self) -> int:
        """Return how many are judged: all but those that a person disabled."""
        return max(self.required - self.disabled, self.completed)

    @property
    def came(self) -> int:
        """Return how many of those that are judged are over."""
        return max(self.wanted - self.pending, 0)

    @property
    def percent_of_those_that_came(self) -> float | None:
        return round(100 * self.completed / self.came, 1) if self.came else None

    def stack(self) -> list[tuple[str, int, float, float]]:
        """Return the parts that are there: name, number, and where its bar begins and how wide it is, in percent."""
        bars, at = [], 0.0
        for part in PARTS:
            number = getattr(self, part)
            if number:
                width = 100 * number / self.required
                bars.append((part, number, at, width))
                at += width
        return bars

    def says(self) -> str:
        """Return the numbers as people read them."""
        return ", ".join(f"{number} {PART_NAMES[part]}" for part, number, *_bar in self.stack())


def risk(progress: QuotaProgress, end: datetime, every: timedelta | None, now: datetime) -> str:
    """Return how a quota of an hour that is not over is likely to end.

    LOST: even if all that is to come goes well, it stays below what is asked
    for. AT_RISK: at the rate of those that came it would. BEHIND: slots that
    should have ended by now have not, for more are pending than fit into the
    rest of the hour. Told by its rest, since a job may have begun in its middle.
    """
    enough = progress.wanted * ENOUGH
    if 100 * (progress.completed + progress.pending) < enough:
        return LOST
    if progress.came and 100 * progress.completed < ENOUGH * progress.came:
        return AT_RISK
    to_come = -(-max(end - now, timedelta(0)) // every) if every else progress.pending
    return BEHIND if progress.pending - to_come > UNDER_WAY else ON_COURSE


def risk_of(quota: QuotaTracker, now: datetime) -> str | None:
    """Return the same of a row that has the `every` of `queries.EVERY`; None where its hour is over."""
    if quota.status != QuotaTracker.Status.IN_PROGRESS or quota.period_end <= now:
        return None
    seconds = getattr(quota, "every", None)
    return risk(QuotaProgress.of(quota), quota.period_end, timedelta(seconds=seconds) if seconds else None, now)
