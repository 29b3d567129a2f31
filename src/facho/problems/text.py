"""Sentences of problems in the user's language: the only place that turns codes and evidence into text."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, gettext_noop, ngettext

from facho.apps.coordinator.text import WORDS
from facho.apps.inventory.formats import decimal, moment, moment_and_zone, whole
from facho.apps.inventory.spans import interval, span
from facho.apps.polling.errors import in_words
from facho.engine.events import ngettext_lazy


def place(slot: int | None, port: int | None, onu: int | None) -> str:
    """Return a card, a port as slot/port or an ONU as slot/port/onu."""
    if slot is None:
        return ""
    if port is None:
        return gettext("card %(slot)s") % {"slot": slot}
    return "/".join(str(part) for part in (slot, port, onu) if part is not None)


def where(olt: str, place_: str) -> str:
    return " ".join(filter(None, [olt, place_]))


def cause(label: str, confidence: str) -> str:
    """Return the cause with its confidence: "probably a fibre cut" would need grammar, so it is a label and a name."""
    if confidence == "unknown":
        return gettext("Cause: %(cause)s") % {"cause": label}
    if confidence == "possible":
        return gettext("Possible cause: %(cause)s") % {"cause": label}
    return gettext("Probable cause: %(cause)s") % {"cause": label}


def cause_of_runs(causes: Mapping[str, int]) -> str:
    """Return the cause of most of the lost runs of a job."""
    name, count = max(causes.items(), key=lambda item: item[1])
    shown = {"cause": WORDS["cause"].get(name, name), "count": whole(count), "all": whole(sum(causes.values()))}
    return gettext("Main cause: %(cause)s (%(count)s of %(all)s lost runs)") % shown


# Evidence in one line, by kind; with "_many" if it is of several ONUs or jobs.
SENTENCES = {
    "low_power": gettext_noop("%(weak)s of %(up)s ONUs with light are below the limit"),
    "power_drop": gettext_noop("from %(before)s to %(after)s dBm between two readings"),
    "power_drop_many": gettext_noop("%(dropped)s of %(up)s ONUs lost %(step)s dB between two readings"),
    "flapping": gettext_noop("down %(falls)s times within %(hours)s h"),
    "flapping_many": gettext_noop("%(onus)s ONUs went down %(falls)s times within %(hours)s h"),
    "quota_violated": gettext_noop("%(task)s completed %(completed)s of %(required)s runs in an hour"),
    "job_late": gettext_noop("%(task)s is due and does not start"),
    "job_late_many": gettext_noop("%(jobs)s jobs are due and do not start"),
    "olt_suspect": gettext_noop("The next discovery decides. Until then the ONUs keep their data."),
}
MANY = {"power_drop": "dropped", "flapping": "onus", "job_late": "jobs"}

# Formats of values that are not whole numbers.
FORMATS: Mapping[str, Callable[[Any], str]] = {
    "before": lambda value: decimal(value, 2),
    "after": lambda value: decimal(value, 2),
    "step": lambda value: decimal(abs(value), 1),
    "hours": whole,
}


def summary(kind: str, evidence: Mapping[str, Any]) -> str:
    """Return the evidence in one line. Problems of another version may lack values."""
    if "down" in evidence:
        return _down(evidence)
    if kind == "olt_down":
        return in_words(str(evidence.get("error", ""))) or gettext("The OLT does not answer.")
    name = f"{kind}_many" if MANY.get(kind) in evidence else kind
    shown = {name: FORMATS[name](value) if name in FORMATS else value for name, value in evidence.items()}
    return gettext(SENTENCES[name]) % _Known(shown) if name in SENTENCES else ""


STATES = ("los", "dying_gasp", "offline", "auth_failed", "missing")

# Without them, "28 of 29 down" reads as if one ONU worked.
DOWN_BEFORE = ngettext_lazy(
    "(%(count)s other went down at another time)", "(%(count)s others went down at another time)"
)


def _down(evidence: Mapping[str, Any]) -> str:
    counts = {state: evidence.get(state, 0) for state in STATES}
    words = {
        "los": gettext("%(count)s with loss of signal"),
        "dying_gasp": gettext("%(count)s without power"),
        "offline": gettext("%(count)s offline"),
        "auth_failed": gettext("%(count)s not authorised"),
        "missing": gettext("%(count)s no longer listed"),
    }
    causes = ", ".join(words[state] % {"count": whole(count)} for state, count in counts.items() if count)
    down = whole(evidence["down"])
    if "total" in evidence:
        said = gettext("%(down)s of %(total)s ONUs down") % {"down": down, "total": whole(evidence["total"])}
        others = evidence["total"] - evidence["down"] - evidence.get("up", 0)
        if others > 0:
            said += " " + ngettext(*DOWN_BEFORE, others) % {"count": whole(others)}
    else:
        said = ngettext("%(down)s ONU down", "%(down)s ONUs down", evidence["down"]) % {"down": down}
    return f"{said}: {causes}; {_within(evidence)}"


def _within(evidence: Mapping[str, Any]) -> str:
    """Return how close together the ONUs went down. Without device times this is a poll interval, not seconds."""
    first, last = _time(evidence.get("first")), _time(evidence.get("last"))
    seconds = (last - first).total_seconds() if first and last else 0.0
    if evidence.get("exact"):
        if seconds < 1:
            return gettext("in the same second")
        return gettext("within %(span)s") % {"span": span(seconds)}
    if "interval" in evidence and seconds <= evidence["interval"]:
        return gettext("within one poll interval of %(interval)s") % {"interval": interval(int(evidence["interval"]))}
    if seconds < 1:
        return gettext("within one poll interval")
    return gettext("within %(span)s and one poll interval") % {"span": span(seconds)}


def _time(value: Any) -> datetime | None:
    return parse_datetime(value) if isinstance(value, str) else None


# Why the evidence leads to the cause.
REASONS = {
    "fibre_cut": gettext_noop("All ONUs that worked lost the signal together, and none reported a loss of power."),
    "cable_cut": gettext_noop("Several ports of the OLT lost the signal of all ONUs in the same minute."),
    "area": gettext_noop(
        "Several ports of the OLT lost the signal in the same minute, and at least one of them only in part. "
        "A splitter belongs to one port."
    ),
    "splitter": gettext_noop("Part of the ONUs of the port is concerned; the others work."),
    "feeder": gettext_noop("Nearly all ONUs of the port are concerned."),
    "power_cut": gettext_noop("ONUs reported a loss of power. ONUs that cannot report it show a loss of signal."),
    "card": gettext_noop("All ports in use on this card failed within a minute; other cards work."),
    "olt_restart": gettext_noop("All ports in use failed within a minute, but the OLT answers."),
    "admin": gettext_noop("The OLT reports a command as the cause."),
    "not_reported": gettext_noop("The ONUs went down together. The OLT reports them as offline, without a cause."),
    "not_authorised": gettext_noop("The OLT refuses these ONUs. They have light, but their customers have no service."),
    "disappeared": gettext_noop(
        "Discoveries that read the port to the end do not find these ONUs, and no other OLT has them. Some OLTs list "
        "only ONUs that are up."
    ),
    "one_by_one": gettext_noop("For example, customers switch off at night. A cut would take all of them together."),
    "drop_cable": gettext_noop("Other ONUs of the port are not concerned."),
    "site": gettext_noop("Other OLTs of the same site stopped answering at the same time."),
    "olt_or_uplink": gettext_noop("Check its power, its uplink, the management network and the SNMP credentials."),
    "pool_busy": gettext_noop("Many jobs wait at the same time. The overview shows why."),
}

OTHERS = ngettext_lazy("Site %(site)s: %(others)s other OLT.", "Site %(site)s: %(others)s other OLTs.")


def evidence(code: str, values: Mapping[str, Any]) -> list[str]:
    """Return further evidence, one line each."""
    lines = [gettext(REASONS[code])] if code in REASONS else []
    lines += [*_times(values), *_distances(values)]
    if values.get("ports"):
        lines.append(gettext("Ports: %(ports)s.") % {"ports": ", ".join(values["ports"])})
    if values.get("beside"):
        lines.append(gettext("Also in the same minute: %(ports)s.") % {"ports": ", ".join(values["beside"])})
    if "site" in values:
        lines.append(ngettext(*OTHERS, values["others"]) % values)
    causes = values.get("causes")
    if isinstance(causes, dict) and len(causes) > 1:
        listed = ", ".join(f"{WORDS['cause'].get(name, name)}: {count}" for name, count in causes.items())
        lines.append(gettext("Causes: %(causes)s.") % {"causes": listed})
    return lines


def _distances(values: Mapping[str, Any]) -> list[str]:
    """Return how far the ONUs are from the OLT, and where the fault must be."""
    if "near" not in values:
        return []
    metres = {name: whole(values[name]) for name in ("near", "far", "others_near", "others_far") if name in values}
    lines = [gettext("Distance of these ONUs: %(near)s to %(far)s m.")]
    if "others_near" in metres:
        lines.append(gettext("Distance of the other ONUs of the port: %(others_near)s to %(others_far)s m."))
    if values.get("is_beyond"):
        lines.append(gettext("All of them are beyond the others: look between %(others_far)s m and %(near)s m."))
    else:
        lines.append(gettext("A fault that they have in common is at most %(near)s m from the OLT."))
    return [line % metres for line in lines]


def _times(values: Mapping[str, Any]) -> list[str]:
    """Return when the ONUs went down, and how exact that is."""
    first, last = _time(values.get("first")), _time(values.get("last"))
    if first is None or last is None:
        return []
    shown = {"first": moment_and_zone(first), "last": moment_and_zone(last)}
    lines = [gettext("First: %(first)s. Last: %(last)s.") % shown]
    if not values.get("exact"):
        lines.append(gettext("The OLT does not report when ONUs go down. The times are those of the readings."))
    return lines


def entry(kind: str, label: str, comment: str, values: Mapping[str, Any]) -> str:
    """Return an entry of the history of a problem."""
    known = _Known(values)
    if kind == "grew":
        return gettext("grew from %(before)s to %(after)s customers") % known
    if kind == "ended" and "part_of" in values:
        return gettext("turned out to be part of a larger problem")
    if kind == "assigned":
        return gettext("assigned to %(user)s") % {"user": comment} if comment else gettext("no longer assigned")
    if kind == "snoozed":
        until = _time(values.get("until"))
        return gettext("snoozed until %(until)s") % {"until": moment(until)} if until else gettext("no longer snoozed")
    return f"{label}: {comment}" if comment else label


class _Known(dict[str, Any]):
    """Values by name; one that another version did not store is 0."""

    def __missing__(self, name: str) -> int:
        return 0
