"""Template tags of the admin's header."""

from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from facho.apps.inventory.admin_menu import page_of_list, page_of_row

register = template.Library()


@register.simple_tag(takes_context=True)
def dashboard_page(context: Any) -> str:
    """Return the page of the dashboard that shows this row or list; empty if there is none."""
    request, row, changes = context.get("request"), context.get("original"), context.get("cl")
    if request is None:
        return ""
    if row is not None and getattr(row, "pk", None) is not None:
        return page_of_row(request.user, row)
    return page_of_list(request.user, changes.model) if changes is not None else ""


@register.simple_tag
def clock() -> SafeString:
    """Show the time in the zone of the installation, in which the admin shows all times. A script moves it on."""
    now, zone = timezone.localtime(), timezone.get_current_timezone_name()
    return format_html(
        '<span id="clock" class="whitespace-nowrap" title="{}: {}"><time datetime="{}" data-zone="{}">{}</time>'
        " <small>{}</small></span>",
        _("Time zone"),
        zone,
        now.isoformat(),
        zone,
        f"{now:%H:%M:%S}",
        now.tzname(),
    )
