"""Links and badges of alerts."""

from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

TONES = {"critical": "bad", "warning": "warn"}


@register.filter
def alert_url(alert: Any) -> str:
    """Return the page of the place of an alert; empty if it is at none."""
    if alert.olt_id is None:
        return ""
    if alert.slot is None or alert.port is None:
        return reverse("dashboard:olt", args=[alert.olt_id])
    return reverse("dashboard:port", args=[alert.olt_id, alert.slot, alert.port])


@register.simple_tag
def alert_badge(severity: str, label: str) -> SafeString:
    return format_html('<span class="badge {}">{}</span>', TONES.get(severity, ""), label)
