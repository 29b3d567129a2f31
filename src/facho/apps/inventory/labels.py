"""Labels of the names and keys that Facho itself makes. Pages show the label; the API and the database keep the key.

A name or key that is not listed was written by a user or in a profile of theirs, and is shown as it is.
"""

from collections.abc import Iterable, Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

# Jobs of the templates of `facho.brands`, of the identification and of the demonstration.
JOBS: Mapping[str, Promise] = {
    "Discovery": pgettext_lazy("job", "Discovery"),
    "Identification": pgettext_lazy("job", "Identification"),
    "Inventory": pgettext_lazy("job", "Inventory"),
    "Names": pgettext_lazy("job", "Names"),
    "Optical power": pgettext_lazy("job", "Optical power"),
    "State": pgettext_lazy("job", "State"),
    "Traffic": pgettext_lazy("job", "Traffic"),
}

# Columns of the brands.
COLUMNS: Mapping[str, Promise] = {
    "admin_state": _("administrative state"),
    "bias_ma": _("bias current (mA)"),
    "clei": _("CLEI code"),
    "config_state": _("configuration state"),
    "connected_s": _("connected (s)"),
    "description": _("description"),
    "distance_m": _("distance (m)"),
    "down_cause": _("down cause"),
    "equipment_id": _("equipment id"),
    "firmware": _("firmware"),
    "hardware": _("hardware"),
    "in_octets": _("octets from the ONU"),
    "last_down": _("last down"),
    "last_dying_gasp": _("last loss of electrical power"),
    "last_up": _("last up"),
    "line_profile": _("line profile"),
    "loid": _("LOID"),
    "mac": _("MAC"),
    "match_state": _("profile match"),
    "model": _("model"),
    "name": _("name"),
    "olt_rx_dbm": _("received by the OLT (dBm)"),
    "out_octets": _("octets to the ONU"),
    "place": _("place"),
    "port": _("port"),
    "registered_s": _("registered (s)"),
    "rx_dbm": _("received power (dBm)"),
    "serial": _("serial"),
    "service_profile": _("service profile"),
    "software": _("software"),
    "state": _("state"),
    "temperature_c": _("temperature (°C)"),
    "tx_dbm": _("sent power (dBm)"),
    "uptime_s": _("uptime (s)"),
    "vendor": _("vendor"),
    "voltage_v": _("voltage (V)"),
}


def job(name: str) -> str:
    """Return the label of a job."""
    return str(JOBS.get(name, name))


def jobs(names: Iterable[str]) -> str:
    """Return the labels of several jobs, as a list in a sentence."""
    return ", ".join(map(job, names))


def jobs_labelled(text: str) -> list[str]:
    """Return the names of the jobs whose label has this text, for a search in the user's language."""
    wanted = text.casefold().strip()
    return [name for name, label in JOBS.items() if wanted and wanted in str(label).casefold()]


def column(key: str) -> str:
    """Return the label of a column."""
    return str(COLUMNS.get(key, key))


def columns(keys: Iterable[str]) -> str:
    """Return the labels of several columns, as a list in a sentence."""
    return ", ".join(map(column, keys))
