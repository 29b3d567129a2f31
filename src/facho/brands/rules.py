"""Rules over a whole row, shared by brands. A rule returns a row, and only adds derived values."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

Row = dict[str, Any]
Rule = Callable[[Row], Row]

# Values that only a reachable ONU has.
OPTICS = ("rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "voltage_v", "bias_ma")
# States in which it may answer. For an unknown state, measured values are kept.
ANSWERING = frozenset({"online", "degraded", "unknown", None})
# States that are themselves the down cause.
TELLING = frozenset({"los", "dying_gasp", "auth_failed"})


def disabled_by_admin(row: Row) -> Row:
    """Mark an ONU as disabled if the admin switched it off."""
    is_off = row.get("state") == "offline" and row.get("admin_state") == "disabled"
    return {**row, "state": "disabled"} if is_off else row


def no_optics_when_off(row: Row) -> Row:
    """Drop the measurements of an ONU that is off: an agent may return old ones or placeholders."""
    return _without(OPTICS, row)


def cause_from_state(row: Row) -> Row:
    """Set the down cause from the state if there is no column for it."""
    if row.get("down_cause") is not None or row.get("state") not in TELLING:
        return row
    return {**row, "down_cause": row["state"]}


def no_slot(row: Row) -> Row:
    """Clear the slot of a device without slots; otherwise it would be 0."""
    return {**row, "slot": None}


def null_when_off(fields: Collection[str]) -> Rule:
    """Return a rule that drops these values of an ONU that is off, because the agent returns zeros."""

    def rule(row: Row) -> Row:
        return _without(fields, row)

    return rule


def state_by_cause(states: Mapping[str, str]) -> Rule:
    """Return a rule that refines the state offline by the down cause."""

    def rule(row: Row) -> Row:
        if row.get("state") != "offline":
            return row
        return {**row, "state": states.get(row.get("down_cause") or "", "offline")}

    return rule


def chain(rules: Sequence[Rule]) -> Rule | None:
    """Return one rule that applies all in order, or None if there are none."""

    def rule(row: Row) -> Row:
        for each in rules:
            row = each(row)
        return row

    return rule if rules else None


def _without(fields: Collection[str], row: Row) -> Row:
    if row.get("state") in ANSWERING:
        return row
    return {name: None if name in fields else value for name, value in row.items()}


# Rules that a profile can name.
RULES: Mapping[str, Rule] = MappingProxyType(
    {each.__name__: each for each in (disabled_by_admin, no_optics_when_off, cause_from_state, no_slot)}
)
