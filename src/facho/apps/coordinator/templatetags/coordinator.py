"""Template tags of quotas and plans, for the admin and the dashboard. Bars are SVG, so no page needs inline styles."""

from typing import Any

from django import template
from django.utils import timezone

from facho.apps.coordinator import queries
from facho.apps.coordinator.progress import PART_NAMES, QuotaProgress, counted
from facho.apps.inventory import labels
from facho.apps.polling.errors import error_type
from facho.apps.polling.lateness import PART_LABELS
from facho.apps.polling.models import CAUSE_CHOICES

register = template.Library()

CAUSES = dict(CAUSE_CHOICES)


@register.filter
def pct(value: float) -> str:
    """Return a share for SVG: with a decimal point in every language."""
    return f"{value:.2f}%"


@register.filter
def job_label(name: str) -> str:
    """Return the label of a job."""
    return labels.job(name)


@register.filter
def column_label(key: str) -> str:
    """Return the label of a column."""
    return labels.column(key)


@register.filter
def cause_label(cause: str) -> Any:
    """Return the label of a cause or a type of error."""
    return CAUSES.get(cause) or error_type(cause)


@register.filter
def part_label(part: str) -> Any:
    """Return the label of a part of a delay or a quota."""
    return PART_LABELS.get(part) or PART_NAMES.get(part, part)


@register.filter
def runs_counted(number: int, part: str) -> str:
    """Return the number of runs of a part of a quota as text."""
    return counted(part, number)


@register.inclusion_tag("coordinator/_bar.html")
def quota_bar(progress: QuotaProgress) -> dict[str, Any]:
    """Show completed, failed, skipped and pending runs side by side."""
    return {"progress": progress}


@register.inclusion_tag("coordinator/_day.html")
def olt_day(olt_id: int) -> dict[str, Any]:
    """Show the last 24 hours of an OLT, all jobs together."""
    strips = queries.strips(olt_id, timezone.now())
    return {"hours": queries.day_bars(strips), "strips": strips}
