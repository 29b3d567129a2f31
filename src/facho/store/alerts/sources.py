"""What fires now, for all rules of a kind at once: as many queries for a hundred rules as for one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max

from facho.apps.alerts.kinds import RuleKind
from facho.apps.alerts.models import Rule
from facho.apps.coordinator.models import CoordinatorLog, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import PollerStats
from facho.engine.alerts import Firing
from facho.store.alerts.onus import dark_ports, low_power
from facho.store.alerts.world import Firings, World

# A violation counts until the next hour has been judged: that is settled some minutes after it ended.
HOUR_IS_JUDGED_AFTER = timedelta(minutes=70)

# What an OLT is that has answered since it was silent.
ANSWERED = (Olt.Reachability.REACHABLE, Olt.Reachability.SLOW)

SEVERITY_ORDER = list(QuotaViolation.Severity.values)


def unreachable(rules: Sequence[Rule], world: World) -> Firings:
    """Those whose breaker is open. A person may close it, too: what was told is over when the OLT has answered."""
    silent = {id_: olt for id_, olt in world.olts.items() if olt["reachability"] not in ANSWERED}
    firings: Firings = {}
    for rule in rules:
        found = {id_: olt for id_, olt in world.olts.items() if olt["breaker_opened_at"] is not None}
        found |= {id_: olt for id_, olt in silent.items() if world.is_open(rule, f"olt:{id_}")}
        firings[rule.pk] = _of_olts(rule, world, found, lambda olt: {"error": olt["last_error"]})
    return firings


def vanishing(rules: Sequence[Rule], world: World) -> Firings:
    suspect = {id_: olt for id_, olt in world.olts.items() if olt["suspect_since"] is not None}
    return {rule.pk: _of_olts(rule, world, suspect, lambda olt: {}) for rule in rules}


def _of_olts(
    rule: Rule,
    world: World,
    olts: Mapping[int, Mapping[str, Any]],
    more: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> list[Firing]:
    return [
        Firing(f"olt:{id_}", rule.kind, {"olt": olt["name"], **more(olt)}, olt_id=id_)
        for id_, olt in olts.items()
        if world.watches(rule, id_)
    ]


def saturated(rules: Sequence[Rule], world: World) -> Firings:
    if world.snapshot["stale"]:
        return {rule.pk: None for rule in rules}
    stats = world.snapshot["stats"]
    params = {"busy": round(stats["busy_percentage"])}
    return {rule.pk: [Firing("pool", rule.kind, params)] if stats["is_saturated"] else [] for rule in rules}


def stalled(rules: Sequence[Rule], world: World) -> Firings:
    age = world.snapshot["age"]
    seconds = (world.now - world.since).total_seconds() if age is None else age
    return {
        rule.pk: [Firing("scheduler", rule.kind, {"age": round(seconds)})]
        if seconds > rule.setting("stalled_seconds")
        else []
        for rule in rules
    }


def delayed(rules: Sequence[Rule], world: World) -> Firings:
    """Many delayed now, and at every minute since long enough."""
    if world.snapshot["stale"]:
        return {rule.pk: None for rule in rules}
    longest = timedelta(minutes=max(rule.setting("minutes") for rule in rules))
    minutes = PollerStats.objects.filter(timestamp__gt=world.now - longest - timedelta(minutes=1))
    samples = dict(minutes.values_list("timestamp", "delayed"))
    now = world.snapshot["queue"]["delayed"]
    firings: Firings = {}
    for rule in rules:
        is_long = world.is_open(rule, "queue") or _was_delayed(rule, samples, world.now)
        params = {"delayed": now, "minutes": rule.setting("minutes")}
        firings[rule.pk] = [Firing("queue", rule.kind, params)] if now > rule.setting("delayed") and is_long else []
    return firings


def _was_delayed(rule: Rule, samples: Mapping[datetime, int], now: datetime) -> bool:
    span = timedelta(minutes=rule.setting("minutes"))
    within = {at: count for at, count in samples.items() if at > now - span - timedelta(minutes=1)}
    # The first sample of the time must be there: a restart in between is no proof of anything.
    is_covered = any(at <= now - span + timedelta(minutes=1) for at in within)
    return is_covered and all(count > rule.setting("delayed") for count in within.values())


def violations(rules: Sequence[Rule], world: World) -> Firings:
    """The last judged hour of each job on each OLT. The next hour renews the alert, or ends it."""
    rows = QuotaViolation.objects.filter(period_end__gt=world.now - HOUR_IS_JUDGED_AFTER).order_by("period_start")
    latest = {(row.olt_id, row.task_type): row for row in rows.defer("olt")}
    firings: Firings = {}
    for rule in rules:
        severe = SEVERITY_ORDER[SEVERITY_ORDER.index(rule.setting("min_severity")) :]
        firings[rule.pk] = [
            _of_violation(rule, row, world.olts[row.olt_id]["name"])
            for row in latest.values()
            if row.severity in severe and world.watches(rule, row.olt_id)
        ]
    return firings


def _of_violation(rule: Rule, row: QuotaViolation, olt: str) -> Firing:
    report = row.report if isinstance(row.report, dict) else {}
    known = {name: report[name] for name in ("completed", "required", "causes", "advice") if name in report}
    params = {
        "olt": olt,
        "task": row.task_type,
        "severity": row.severity,
        "hour": f"{row.period_start:%Y-%m-%d %H:%M} UTC",
        "violation": row.pk,
        **known,
    }
    return Firing(f"olt:{row.olt_id}:{row.task_type}", rule.kind, params, olt_id=row.olt_id)


def events(rules: Sequence[Rule], world: World) -> Firings:
    """What the log told lately: one alert for each event and OLT, however often it is told."""
    types = {type_ for rule in rules for type_ in rule.setting("event_types")}
    longest = timedelta(minutes=max(rule.setting("event_minutes") for rule in rules))
    recent = CoordinatorLog.objects.filter(event_type__in=types, timestamp__gt=world.now - longest)
    groups = list(recent.order_by().values("event_type", "olt_id").annotate(last=Max("id"), times=Count("id")))
    told = CoordinatorLog.objects.in_bulk([group["last"] for group in groups])
    return {
        rule.pk: [
            _of_event(rule, told[group["last"]], group["times"])
            for group in groups
            if group["last"] in told and _is_of(rule, told[group["last"]], world)
        ]
        for rule in rules
    }


def _is_of(rule: Rule, entry: CoordinatorLog, world: World) -> bool:
    # What was told before there was a rule is no news.
    since = max(world.now - timedelta(minutes=rule.setting("event_minutes")), rule.created_at)
    return (
        world.watches(rule, entry.olt_id)
        and entry.event_type in rule.setting("event_types")
        and entry.timestamp > since
    )


def _of_event(rule: Rule, entry: CoordinatorLog, times: int) -> Firing:
    params = {"event": entry.event_type, "details": entry.details, "message": entry.message, "times": times}
    return Firing(f"event:{entry.event_type}:{entry.olt_id or ''}", rule.kind, params, olt_id=entry.olt_id)


SOURCES: Mapping[str, Callable[[Sequence[Rule], World], Firings]] = {
    RuleKind.OLT_UNREACHABLE: unreachable,
    RuleKind.VIOLATION: violations,
    RuleKind.PORT_DARK: dark_ports,
    RuleKind.LOW_POWER: low_power,
    RuleKind.MASS_VANISHING: vanishing,
    RuleKind.POOL_SATURATED: saturated,
    RuleKind.QUEUE_DELAYED: delayed,
    RuleKind.SCHEDULER_STALLED: stalled,
    RuleKind.EVENT: events,
}


def firings(rules: Iterable[Rule], world: World) -> Firings:
    """Return what fires, for each rule."""
    by_kind: dict[str, list[Rule]] = {}
    for rule in rules:
        by_kind.setdefault(rule.kind, []).append(rule)
    found: Firings = {}
    for kind, same in by_kind.items():
        found |= SOURCES[kind](same, world)
    return found
