"""Cells of lists."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from facho.apps.dashboard.templatetags.facho import (
    NOTHING,
    age,
    dbm,
    onu_badge,
    onu_distance,
    onu_power,
    place_link,
    plain,
    position_link,
)
from facho.apps.inventory.formats import decimal
from facho.apps.telemetry.models import Onu

register = template.Library()


def _place(onu: Onu) -> SafeString:
    return format_html('<span class="pair"><span>{}</span><small>{}</small></span>', onu.olt.name, place_link(onu))


def _text(value: Any) -> Any:
    return NOTHING if value in (None, "") else value


def _mono(value: Any) -> SafeString:
    return NOTHING if not value else format_html('<span class="mono">{}</span>', value)


def _position(onu: Any) -> SafeString:
    """Show the position that the query of the list adds."""
    return NOTHING if onu.latitude is None else position_link(onu.latitude, onu.longitude)


# How a value is shown; other values are ages or texts.
CELLS: dict[str, Callable[[Onu], Any]] = {
    "name": lambda onu: render_to_string("dashboard/_onu_name.html", {"onu": onu}),
    "state": onu_badge,
    "place": _place,
    "rx_dbm": onu_power,
    "tx_dbm": lambda onu: dbm(onu.tx_dbm, "tx"),
    "olt_rx_dbm": lambda onu: dbm(onu.olt_rx_dbm, "olt_rx"),
    "distance_m": onu_distance,
    "temperature_c": lambda onu: NOTHING if onu.temperature_c is None else f"{decimal(onu.temperature_c, 1)} °C",
    "voltage_v": lambda onu: NOTHING if onu.voltage_v is None else f"{decimal(onu.voltage_v, 2)} V",
    "admin_state": lambda onu: _text(onu.admin_state_text),
    "down_cause": lambda onu: _text(onu.down_cause_text),
    "serial": lambda onu: _mono(onu.serial),
    "mac": lambda onu: _mono(onu.mac),
    "position": lambda onu: _position(onu),
}


@register.simple_tag
def onu_cell(onu: Onu, name: str) -> Any:
    """Show a column of an ONU."""
    if name in CELLS:
        return CELLS[name](onu)
    value = getattr(onu, name)
    return age(value) if isinstance(value, datetime) else plain(value)
