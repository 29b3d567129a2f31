"""Rules over a whole row, for more than one maker. A rule returns a row, and only adds what follows from it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

Row = dict[str, Any]
Rule = Callable[[Row], Row]

# What only an ONU that answers can tell.
OPTICS = ("rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "voltage_v", "bias_ma")
# States in which it may answer. Of one that is unknown, what was measured is the best that is known.
ANSWERING = frozenset({"online", "degraded", "unknown", None})
# States that say themselves why an ONU is down.
TELLING = frozenset({"los", "dying_gasp", "auth_failed"})


def disabled_by_admin(row: Row) -> Row:
    """Call an ONU disabled that is off because somebody switched it off."""
    is_off = row.get("state") == "offline" and row.get("admin_state") == "disabled"
    return {**row, "state": "disabled"} if is_off else row


def no_optics_when_off(row: Row) -> Row:
    """Take the measurements from an ONU that is off: an agent may answer old ones, or its idea of nothing."""
    return _without(OPTICS, row)


def cause_from_state(row: Row) -> Row:
    """Say why an ONU is down where its state tells, and no column does."""
    if row.get("down_cause") is not None or row.get("state") not in TELLING:
        return row
    return {**row, "down_cause": row["state"]}


def no_slot(row: Row) -> Row:
    """Say that the device has no slots, so that its ONUs are in none, and not in slot 0."""
    return {**row, "slot": None}


def null_when_off(fields: Collection[str]) -> Rule:
    """Return a rule that takes these values from an ONU that is off, since the agent answers zeros for them."""

    def rule(row: Row) -> Row:
        return _without(fields, row)

    return rule


def state_by_cause(states: Mapping[str, str]) -> Rule:
    """Return a rule that says more of an ONU that is only known to be offline, by the cause it went down for."""

    def rule(row: Row) -> Row:
        if row.get("state") != "offline":
            return row
        return {**row, "state": states.get(row.get("down_cause") or "", "offline")}

    return rule


def chain(rules: Sequence[Rule]) -> Rule | None:
    """Return one rule that goes through all of them in order, or None if there are none."""

    def rule(row: Row) -> Row:
        for each in rules:
            row = each(row)
        return row

    return rule if rules else None


def _without(fields: Collection[str], row: Row) -> Row:
    if row.get("state") in ANSWERING:
        return row
    return {name: None if name in fields else value for name, value in row.items()}


# Rules that a profile can name as they are.
RULES: Mapping[str, Rule] = MappingProxyType(
    {each.__name__: each for each in (disabled_by_admin, no_optics_when_off, cause_from_state, no_slot)}
)
