"""Rules over a whole row that hold for every maker. A rule returns a row, and never adds a field that was not read."""

from typing import Any

Row = dict[str, Any]

# What only an ONU that answers can tell.
OPTICS = ("rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "voltage_v", "bias_ma")
# States in which it may answer. Of one that is unknown, what was measured is the best that is known.
ANSWERING = frozenset({"online", "degraded", "unknown", None})


def disabled_by_admin(row: Row) -> Row:
    """Call an ONU disabled that is off because somebody switched it off."""
    is_off = row.get("state") == "offline" and row.get("admin_state") == "disabled"
    return {**row, "state": "disabled"} if is_off else row


def no_optics_when_off(row: Row) -> Row:
    """Take the measurements from an ONU that is off: an agent may answer old ones, or its idea of nothing."""
    if row.get("state") in ANSWERING:
        return row
    return {name: None if name in OPTICS else value for name, value in row.items()}
