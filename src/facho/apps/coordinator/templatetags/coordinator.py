"""How quotas and plans look, on admin pages and in the dashboard alike. Bars are SVG: no page needs inline styles."""

from typing import Any

from django import template
from django.utils import timezone

from facho.apps.coordinator import queries
from facho.apps.coordinator.progress import PART_NAMES, QuotaProgress
from facho.apps.polling.lateness import PART_LABELS
from facho.apps.polling.models import CAUSE_CHOICES

register = template.Library()

CAUSES = dict(CAUSE_CHOICES)


@register.filter
def pct(value: float) -> str:
    """Return a share as SVG wants it: with a point, in every language."""
    return f"{value:.2f}%"


@register.filter
def cause_label(cause: str) -> Any:
    """Return a cause in words; the kind of an error is its own word."""
    return CAUSES.get(cause, cause)


@register.filter
def part_label(part: str) -> Any:
    """Return a part of a lateness, or of a quota, in words."""
    return PART_LABELS.get(part) or PART_NAMES.get(part, part)


@register.inclusion_tag("coordinator/_bar.html")
def quota_bar(progress: QuotaProgress) -> dict[str, Any]:
    """Show what was completed, failed, skipped and is pending, side by side."""
    return {"progress": progress}


@register.inclusion_tag("coordinator/_day.html")
def olt_day(olt_id: int) -> dict[str, Any]:
    """Show what an OLT got in each of the last 24 hours, all jobs together."""
    strips = queries.strips(olt_id, timezone.now())
    return {"hours": queries.day_bars(strips), "strips": strips}
