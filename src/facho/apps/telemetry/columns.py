"""Columns of ONUs in files."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from facho.apps.rest.export import column, columns_of, label_of
from facho.apps.telemetry.models import Onu


def _state(onu: Onu) -> Any:
    return _("missing") if onu.is_missing else onu.get_state_display()


# As in the API. Values of people that differ are their words.
ONU_COLUMNS = (
    column("id", "id"),
    column("olt", _("OLT id"), "olt_id"),
    column("olt_name", _("OLT")),
    *columns_of(Onu, "index", "slot", "port", "onu", "serial", "mac", "name", "description"),
    column("admin_state", label_of(Onu, "admin_state"), said=lambda onu: onu.admin_state_text),
    column("state", label_of(Onu, "state"), said=_state),
    *columns_of(Onu, "state_since", "rx_dbm", "tx_dbm", "olt_rx_dbm", "distance_m"),
    *columns_of(Onu, "last_rx_dbm", "last_rx_at", "last_distance_m", "last_distance_at"),
    column("down_cause", label_of(Onu, "down_cause"), said=lambda onu: onu.down_cause_text),
    *columns_of(Onu, "last_up", "last_down", "model", "software", "line_profile", "service_profile"),
    *columns_of(Onu, "temperature_c", "voltage_v", "in_octets", "out_octets"),
    column("is_missing", _("is missing")),
    *columns_of(Onu, "missing_since"),
    column("missing_cause", _("missing because")),
    *columns_of(Onu, "moved_at", "moved_from", "first_seen_at"),
    column("read_at", _("last read")),
    column("state_at", _("state read")),
    column("power_at", _("power read")),
    # Of its position.
    column("latitude", _("latitude")),
    column("longitude", _("longitude")),
)
