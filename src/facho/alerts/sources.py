"""Current problems, for all rules of a kind at once: as many queries for a hundred rules as for one."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import Count, F, Max, Min, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from facho.alerts.kinds import RuleKind
from facho.alerts.models import Rule
from facho.alerts.rules import Firing
from facho.apps.coordinator.models import CoordinatorLog, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import PollerStats
from facho.apps.telemetry.models import DARK_ONUS, Onu, PonPort

# Problems by rule id; None if nothing is known now, so that its alerts stay unchanged.
Firings = dict[int, list[Firing] | None]


@dataclass(frozen=True)
class World:
    """Input of the sources."""

    now: datetime
    # From `polling.live.snapshot`.
    snapshot: Mapping[str, Any]
    # Start of the evaluations: a scheduler without a snapshot is silent since then.
    since: datetime
    # Keys of open alerts, by rule.
    open_keys: Mapping[int, Collection[str]] = field(default_factory=dict)
    _chosen: dict[int, Collection[int]] = field(default_factory=dict)

    @cached_property
    def olts(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the enabled OLTs. Disabled OLTs are not watched."""
        columns = ("pk", "name", "breaker_opened_at", "reachability", "suspect_reason", "last_error")
        return {row["pk"]: row for row in Olt.objects.filter(enabled=True).values(*columns)}

    def is_open(self, rule: Rule, key: str) -> bool:
        return key in self.open_keys.get(rule.pk, ())

    def watches(self, rule: Rule, olt_id: int | None) -> bool:
        """Return whether a rule covers an OLT. Events also cover disabled OLTs."""
        if rule.pk not in self._chosen:
            # Prefetched without secrets. Empty stands for all.
            self._chosen[rule.pk] = {olt.pk for olt in rule.olts.all()}
        chosen = self._chosen[rule.pk]
        return (not chosen or olt_id in chosen) and (rule.kind == RuleKind.EVENT or olt_id in self.olts)


# Maximum number of ONUs in an alert.
WORST_SHOWN = 5


def _present(onus: QuerySet[Onu]) -> QuerySet[Onu]:
    """Return the present ONUs with a place, on enabled OLTs."""
    return onus.filter(missing_since__isnull=True, slot__isnull=False, port__isnull=False, olt__enabled=True)


# An OLT may list an ONU without light for some time only. For so long it counts for an alert that is open.
GONE_COUNT_FOR = timedelta(days=7)


def _gone_onus(rules: Sequence[Rule], world: World) -> Mapping[tuple[int, int, int], int]:
    """Return the number of missing ONUs that were dark, of ports with an open alert: it is not over with them."""
    if not any(world.open_keys.get(rule.pk) for rule in rules):
        return {}
    gone = Onu.objects.filter(missing_since__gte=world.now - GONE_COUNT_FOR, place_taken=False, state__in=Onu.DARK)
    placed = gone.filter(slot__isnull=False, port__isnull=False).order_by().values("olt_id", "slot", "port")
    ports = list(placed.annotate(gone=Count("id")))
    return {_place(port): port["gone"] for port in ports if any(world.is_open(rule, port_key(port)) for rule in rules)}


def dark_ports(rules: Sequence[Rule], world: World) -> Firings:
    """Return ports with enough dark ONUs."""
    fewest = min(rule.setting("dark_onus") for rule in rules)
    gone = _gone_onus(rules, world)
    placed = PonPort.objects.filter(slot__isnull=False, port__isnull=False, olt__enabled=True).order_by("pk")
    counted = placed.annotate(down=DARK_ONUS, known=F("total") - F("missing"))
    counts = ("known", *(state.value for state in Onu.DARK))
    wanted = Q(down__gte=fewest)
    for olt_id, slot, number in gone:
        wanted |= Q(olt=olt_id, slot=slot, port=number)
    ports = list(counted.filter(wanted).values("olt_id", "slot", "port", "down", *counts))
    firings: Firings = {}
    for rule in rules:
        least, share = rule.setting("dark_onus"), rule.setting("dark_percent") / 100
        found = firings[rule.pk] = []
        for port in ports:
            missing = gone.get(_place(port), 0) if world.is_open(rule, port_key(port)) else 0
            down, known = port["down"] + missing, port["known"] + missing
            if down >= max(least, share * known) and world.watches(rule, port["olt_id"]):
                params = {name: port[name] for name in counts} | {"known": known, "dark": down}
                found.append(_of_port(port, world, params | ({"gone": missing} if missing else {})))
    return firings


def low_power(rules: Sequence[Rule], world: World) -> Firings:
    """Return one alert per port: a splice or a splitter affects all ONUs behind it."""
    highest = max(rule.setting("below_dbm") + rule.setting("hysteresis_db") for rule in rules)
    lit = _present(Onu.objects.below(highest).exclude(state__in=Onu.DARK))
    counts = {}
    for rule in rules:
        below = rule.setting("below_dbm")
        counts[f"low_{rule.pk}"] = Count("id", filter=Q(rx_dbm__lt=below))
        counts[f"high_{rule.pk}"] = Count("id", filter=Q(rx_dbm__lt=below + rule.setting("hysteresis_db")))
    grouped = lit.order_by().values("olt_id", "slot", "port").annotate(lowest=Min("rx_dbm"), **counts)
    ports: list[Any] = sorted(grouped, key=lambda port: float(port["lowest"]))
    chosen: dict[int, list[Any]] = {}
    for rule in rules:
        chosen[rule.pk] = []
        for port in ports:
            # An open alert needs a clear improvement to end.
            column = "high" if world.is_open(rule, port_key(port)) else "low"
            if world.watches(rule, port["olt_id"]) and port[f"{column}_{rule.pk}"] >= rule.setting("low_onus"):
                chosen[rule.pk].append(port)
    worst = _worst(lit, [port for some in chosen.values() for port in some])
    firings: Firings = {}
    for rule in rules:
        found = firings[rule.pk] = []
        for port in chosen[rule.pk]:
            low, below = port[f"low_{rule.pk}"], rule.setting("below_dbm")
            if not low:
                # All are within the hysteresis: count those below its upper end.
                low, below = port[f"high_{rule.pk}"], below + rule.setting("hysteresis_db")
            found.append(_of_port(port, world, {"low": low, "below": below, "worst": worst[_place(port)]}))
    return firings


def _worst(lit: QuerySet[Onu], ports: Iterable[Mapping[str, Any]]) -> Mapping[tuple[int, int, int], list[Any]]:
    """Return the ONUs with the lowest power on each of these ports."""
    places = {_place(port): list[Any]() for port in ports}
    if not places:
        return places
    rank = Window(RowNumber(), partition_by=[F("olt_id"), F("slot"), F("port")], order_by=[F("rx_dbm"), F("id")])
    rows = lit.filter(olt_id__in={olt_id for olt_id, _slot, _port in places}).annotate(rank=rank)
    columns = ["olt_id", "slot", "port", "onu", "index", "name", "rx_dbm"]
    for onu in rows.filter(rank__lte=WORST_SHOWN).order_by("rx_dbm", "id").only(*columns):
        if (shown := places.get((onu.olt_id, onu.slot or 0, onu.port or 0))) is not None:
            shown.append({"name": " ".join(filter(None, [onu.called, onu.name])), "rx_dbm": onu.rx_dbm})
    return places


def _of_port(port: Mapping[str, Any], world: World, more: dict[str, Any]) -> Firing:
    params = {"olt": world.olts[port["olt_id"]]["name"], "place": f"{port['slot']}/{port['port']}", **more}
    return Firing(port_key(port), params, port["olt_id"], port["slot"], port["port"])


def port_key(port: Mapping[str, Any]) -> str:
    return f"port:{port['olt_id']}:{port['slot']}/{port['port']}"


def _place(port: Mapping[str, Any]) -> tuple[int, int, int]:
    return port["olt_id"], port["slot"], port["port"]


# A violation counts until the next hour is judged, some minutes after its end.
HOUR_IS_JUDGED_AFTER = timedelta(minutes=70)

# States of an OLT that has answered since its failure.
ANSWERED = (Olt.Reachability.REACHABLE, Olt.Reachability.SLOW)

SEVERITY_ORDER = list(QuotaViolation.Severity.values)


def unreachable(rules: Sequence[Rule], world: World) -> Firings:
    """Return the OLTs that do not answer. Other credentials or a closed breaker are no answer: an alert stays open."""
    firings: Firings = {}
    for rule in rules:
        found = firings[rule.pk] = []
        for id_, olt in world.olts.items():
            key = f"olt:{id_}"
            is_down = olt["breaker_opened_at"] is not None or olt["reachability"] == Olt.Reachability.UNREACHABLE
            lasts = olt["reachability"] not in ANSWERED and world.is_open(rule, key)
            if (is_down or lasts) and world.watches(rule, id_):
                params = {"olt": olt["name"], "error": olt["last_error"]}
                found.append(Firing(key, params, olt_id=id_))
    return firings


def vanishing(rules: Sequence[Rule], world: World) -> Firings:
    return {
        rule.pk: [
            Firing(f"olt:{id_}", {"olt": olt["name"]}, olt_id=id_)
            for id_, olt in world.olts.items()
            if olt["suspect_reason"] == Olt.Suspect.VANISHING and world.watches(rule, id_)
        ]
        for rule in rules
    }


def saturated(rules: Sequence[Rule], world: World) -> Firings:
    if world.snapshot["stale"]:
        return {rule.pk: None for rule in rules}
    stats = world.snapshot["stats"]
    params = {"busy": round(stats["busy_percentage"])}
    return {rule.pk: [Firing("pool", params)] if stats["is_saturated"] else [] for rule in rules}


def stalled(rules: Sequence[Rule], world: World) -> Firings:
    age = world.snapshot["age"]
    seconds = (world.now - world.since).total_seconds() if age is None else age
    return {
        rule.pk: [Firing("scheduler", {"age": round(seconds)})] if seconds > rule.setting("stalled_seconds") else []
        for rule in rules
    }


def delayed(rules: Sequence[Rule], world: World) -> Firings:
    """Return an alert if many runs are delayed now and in every minute of the time span."""
    if world.snapshot["stale"]:
        return {rule.pk: None for rule in rules}
    longest = timedelta(minutes=max(rule.setting("minutes") for rule in rules))
    minutes = PollerStats.objects.filter(timestamp__gt=world.now - longest - timedelta(minutes=1))
    samples = dict(minutes.values_list("timestamp", "delayed"))
    now = world.snapshot["queue"]["delayed"]
    firings: Firings = {}
    for rule in rules:
        limit, start = rule.setting("delayed"), world.now - timedelta(minutes=rule.setting("minutes"))
        within = {at: count for at, count in samples.items() if at > start - timedelta(minutes=1)}
        # The first sample of the span must exist: a restart in between proves nothing.
        is_covered = any(at <= start + timedelta(minutes=1) for at in within)
        is_long = world.is_open(rule, "queue") or (is_covered and all(count > limit for count in within.values()))
        params = {"delayed": now, "minutes": rule.setting("minutes")}
        firings[rule.pk] = [Firing("queue", params)] if now > limit and is_long else []
    return firings


def violations(rules: Sequence[Rule], world: World) -> Firings:
    """Return the last judged hour of each job on each OLT. The next hour renews the alert or ends it."""
    rows = QuotaViolation.objects.filter(period_end__gt=world.now - HOUR_IS_JUDGED_AFTER).order_by("period_start")
    latest = {(row.olt_id, row.task_type): row for row in rows.defer("olt")}
    firings: Firings = {}
    for rule in rules:
        severe = severities_from(rule.setting("min_severity"))
        found = firings[rule.pk] = []
        for row in latest.values():
            if row.severity not in severe or not world.watches(rule, row.olt_id):
                continue
            params = violation_params(row, world)
            found.append(Firing(f"olt:{row.olt_id}:{row.task_type}", params, olt_id=row.olt_id))
    return firings


def severities_from(least: str) -> list[str]:
    """Return a severity and those above it."""
    return SEVERITY_ORDER[SEVERITY_ORDER.index(least) :]


def violation_params(row: QuotaViolation, world: World) -> dict[str, Any]:
    report = row.report if isinstance(row.report, dict) else {}
    return {
        "olt": world.olts[row.olt_id]["name"],
        "task": row.task_type,
        "severity": row.severity,
        "hour": row.period_start.isoformat(),
        "violation": row.pk,
        **{name: report[name] for name in ("completed", "required", "causes", "advice") if name in report},
    }


def events(rules: Sequence[Rule], world: World) -> Firings:
    """Return recent log events: one alert per event and OLT."""
    types = {type_ for rule in rules for type_ in rule.setting("event_types")}
    longest = timedelta(minutes=max(rule.setting("event_minutes") for rule in rules))
    recent = CoordinatorLog.objects.filter(event_type__in=types, timestamp__gt=world.now - longest)
    groups = list(recent.order_by().values("event_type", "olt_id").annotate(last=Max("id"), times=Count("id")))
    told = CoordinatorLog.objects.in_bulk([group["last"] for group in groups])
    firings: Firings = {}
    for rule in rules:
        found = firings[rule.pk] = []
        # Events before the rule existed do not count.
        since = max(world.now - timedelta(minutes=rule.setting("event_minutes")), rule.created_at)
        for group in groups:
            type_, olt_id, entry = group["event_type"], group["olt_id"], told.get(group["last"])
            if entry is None or entry.timestamp <= since:
                continue
            if type_ in rule.setting("event_types") and world.watches(rule, olt_id):
                params = {"event": type_, "details": entry.details, "message": entry.message, "times": group["times"]}
                found.append(Firing(f"event:{type_}:{olt_id or ''}", params, olt_id=olt_id))
    return firings


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
    """Return the problems of each rule."""
    by_kind: dict[str, list[Rule]] = {}
    for rule in rules:
        by_kind.setdefault(rule.kind, []).append(rule)
    found: Firings = {}
    for kind, same in by_kind.items():
        found |= SOURCES[kind](same, world)
    return found
