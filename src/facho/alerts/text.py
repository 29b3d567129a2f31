"""Texts of alerts in the user's language: the only place that turns a kind and its values into text.

The params of a kind are listed beside its texts; the evaluation sets them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext, gettext_noop, ngettext

from facho.apps.coordinator.advice import violation_advice
from facho.apps.coordinator.text import WORDS, spoken, told
from facho.apps.inventory.formats import decimal
from facho.apps.polling.errors import in_words
from facho.engine.events import Event, ngettext_lazy

# Text of the problem (singular and plural if something is counted), and of its end. A place is "slot/port".
SUBJECTS: Mapping[str, tuple[str | tuple[str, str], str]] = {
    "olt_unreachable": (gettext_noop("%(olt)s does not answer"), gettext_noop("%(olt)s answers again")),
    "violation": (
        ngettext_lazy(
            "%(olt)s: %(task)s completed %(completed)s of %(required)s run in an hour",
            "%(olt)s: %(task)s completed %(completed)s of %(required)s runs in an hour",
        ),
        gettext_noop("%(olt)s: %(task)s meets its quota again"),
    ),
    "port_dark": (
        ngettext_lazy(
            "%(olt)s: %(dark)s of %(known)s ONUs on port %(place)s is down",
            "%(olt)s: %(dark)s of %(known)s ONUs on port %(place)s are down",
        ),
        gettext_noop("%(olt)s: the ONUs of port %(place)s are up again"),
    ),
    "low_power": (
        ngettext_lazy(
            "%(olt)s: low power on port %(place)s, %(low)s of its ONUs is below %(below)s dBm",
            "%(olt)s: low power on port %(place)s, %(low)s of its ONUs are below %(below)s dBm",
        ),
        gettext_noop("%(olt)s: the power on port %(place)s is back to normal"),
    ),
    "mass_vanishing": (
        gettext_noop("%(olt)s: too many ONUs disappeared at once"),
        gettext_noop("%(olt)s: a second discovery confirmed which ONUs disappeared"),
    ),
    "pool_saturated": (
        gettext_noop("The pollers are saturated: busy %(busy)s %% of the last minute"),
        gettext_noop("The pollers are no longer saturated"),
    ),
    "queue_delayed": (
        ngettext_lazy(
            "%(delayed)s node is delayed, for more than %(minutes)s min",
            "%(delayed)s nodes are delayed, for more than %(minutes)s min",
        ),
        gettext_noop("The queue is back on time"),
    ),
    "scheduler_stalled": (
        gettext_noop("The scheduler is stalled"),
        gettext_noop("The scheduler is running again"),
    ),
}
# Detail that decides between singular and plural.
COUNTED = {"violation": "required", "port_dark": "dark", "low_power": "low", "queue_delayed": "delayed"}
STATES = {
    "los": gettext_noop("%(count)s with loss of signal"),
    "dying_gasp": gettext_noop("%(count)s without electrical power"),
    "offline": gettext_noop("%(count)s offline"),
    "gone": gettext_noop("%(count)s no longer listed by the OLT"),
}
HINTS = {
    "olt_unreachable": gettext_noop("Check its power, its uplink, the management network and the SNMP credentials."),
    "mass_vanishing": gettext_noop("The ONUs keep their data until the next discovery confirms it."),
    "pool_saturated": gettext_noop("Add pollers (FACHO_POLLERS) or increase the intervals of some jobs."),
    "queue_delayed": gettext_noop("The overview page shows why the nodes are waiting."),
    "scheduler_stalled": gettext_noop("Nothing is being polled. Check the log of the service and restart it."),
}


def subject(kind: str, params: Mapping[str, Any], *, is_over: bool = False) -> str:
    """Return the subject of an alert in one line."""
    if kind == "event":
        try:
            return told(Event[str(params.get("event"))], params.get("details", {}))
        except (KeyError, TypeError, ValueError, AttributeError):
            # An event of another version, or with other details: use the text of the log.
            return str(params.get("message", "?"))
    raised, recovered = SUBJECTS[kind]
    forms = recovered if is_over else raised
    known = _Known(spoken(params))
    if isinstance(forms, str):
        return gettext(forms) % known
    count = params.get(COUNTED[kind])
    return ngettext(*forms, count if isinstance(count, int) else 2) % known


# The same for several alerts of a kind. The first text has details of the worst one, the second has names.
DIGESTS: Mapping[str, tuple[str, str]] = {
    "olt_unreachable": (
        gettext_noop("%(count)s OLTs do not answer: %(names)s"),
        gettext_noop("%(count)s OLTs answer again: %(names)s"),
    ),
    "violation": (
        gettext_noop("%(count)s jobs below their quota, worst %(task)s on %(olt)s: %(completed)s of %(required)s runs"),
        gettext_noop("%(count)s jobs meet their quotas again, on %(names)s"),
    ),
    "port_dark": (
        gettext_noop("%(count)s ports down with %(sum)s ONUs, worst %(dark)s of %(known)s on %(olt)s %(place)s"),
        gettext_noop("The ONUs of %(count)s ports are up again, on %(names)s"),
    ),
    "low_power": (
        gettext_noop("%(count)s ports below %(below)s dBm, worst %(rx_dbm)s dBm on %(olt)s %(place)s"),
        gettext_noop("The power on %(count)s ports is back to normal, on %(names)s"),
    ),
    "mass_vanishing": (
        gettext_noop("%(count)s OLTs: too many ONUs disappeared at once: %(names)s"),
        gettext_noop("%(count)s OLTs: a second discovery confirmed which ONUs disappeared: %(names)s"),
    ),
    "event": (gettext_noop("%(count)s events, the first: %(first)s"), gettext_noop("%(count)s events are over")),
}
# Names in a subject; the list below it has more.
MOST_NAMES = 4


def digest_subject(kind: str, several: Sequence[Mapping[str, Any]], *, is_over: bool = False) -> str:
    """Return the subject of a message about several alerts of a kind, in one line."""
    if kind not in DIGESTS:
        # At most one at a time, but an older one may end with it.
        return subject(kind, several[0], is_over=is_over)
    worst = min(several, key=lambda params: badness(kind, params))
    names = list(dict.fromkeys(str(params.get("olt", "?")) for params in several))
    shown = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        shown = gettext("%(names)s and %(count)d more") % {"names": shown, "count": len(names) - MOST_NAMES}
    values = {
        **spoken(worst),
        "count": len(several),
        "names": shown,
        "sum": sum(_number(params.get("dark")) for params in several),
        "first": subject(kind, several[0]),
    }
    if kind == "low_power":
        values["below"] = decimal(min(_number(params.get("below")) for params in several), 1)
        values["rx_dbm"] = decimal(badness(kind, worst), 1)
    return gettext(DIGESTS[kind][is_over]) % _Known(values)


def badness(kind: str, params: Mapping[str, Any]) -> float:
    """Return a number by which alerts of a kind are sorted, the worst first."""
    if kind == "low_power":
        return min((_number(onu.get("rx_dbm")) for onu in params.get("worst", [])), default=0.0)
    if kind == "port_dark":
        return -_number(params.get("dark"))
    if kind == "violation":
        return _number(params.get("completed")) / max(_number(params.get("required")), 1)
    return 0.0


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0


def closing(params: Mapping[str, Any]) -> str:
    """Return why an alert was closed although its problem may last; empty if it was not."""
    reason = params.get("closed")
    if not isinstance(reason, Mapping):
        return ""
    if reason.get("by") == "maintenance":
        known = _Known(spoken(reason))
        said = gettext("Maintenance of %(target)s until %(at)s.") % known
        return f"{said} {reason['reason']}" if reason.get("reason") else said
    if reason.get("by") == "disabled":
        return gettext("%(olt)s was disabled.") % _Known(params)
    return gettext("The rule no longer watches it.")


def summary_subject(target: str, still_open: int) -> str:
    """Return the subject of a summary of a maintenance."""
    if not still_open:
        return gettext("%(target)s: no alerts are open") % {"target": target}
    said = ngettext("%(target)s: %(count)s alert is open", "%(target)s: %(count)s alerts are open", still_open)
    return said % {"target": target, "count": still_open}


def lines(kind: str, params: Mapping[str, Any]) -> list[str]:
    """Return further details, one line each."""
    said: list[str] = [closing(params)] if "closed" in params else []
    if kind == "port_dark":
        states = [(sentence, params.get(state)) for state, sentence in STATES.items()]
        said.append(", ".join(gettext(sentence) % {"count": count} for sentence, count in states if count))
    elif kind == "low_power":
        said += [f"{onu['name']}: {decimal(onu['rx_dbm'], 2)} dBm" for onu in params.get("worst", [])]
    elif kind == "violation":
        said.append(gettext("Severity: %(severity)s. Start of the hour: %(hour)s.") % _Known(spoken(params)))
        causes = params.get("causes")
        if isinstance(causes, dict) and causes:
            listed = ", ".join(f"{WORDS['cause'].get(cause, cause)}: {count}" for cause, count in causes.items())
            said.append(gettext("Causes: %(causes)s.") % {"causes": listed})
        said += violation_advice(_Known(params))
    elif kind == "olt_unreachable" and params.get("error"):
        said.append(in_words(str(params["error"])))
    elif kind == "event" and (times := params.get("times", 1)) > 1:
        said.append(ngettext("It happened %(times)d time.", "It happened %(times)d times.", times) % {"times": times})
    elif kind == "scheduler_stalled":
        said.append(gettext("Last report: %(age)s s ago.") % _Known(params))
    if kind in HINTS:
        said.append(gettext(HINTS[kind]))
    return said


class _Known(dict[str, Any]):
    """Values by name; one that an older version did not store is a question mark."""

    def __missing__(self, name: str) -> str:
        return "?"
