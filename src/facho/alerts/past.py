"""Problems of the past, from events and history, and what a rule would have done about them.

Each source returns the problems that `sources.py` would have found. Where the history is coarser, so are they: the
power of ONUs is known by day.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

from django.db.models import F, Min

from facho.alerts import text
from facho.alerts.evaluation import policy
from facho.alerts.kinds import RuleKind
from facho.alerts.models import Rule
from facho.alerts.rehearsal import PastAlert, Span, rehearse
from facho.alerts.rules import Firing, News
from facho.alerts.sources import HOUR_IS_JUDGED_AFTER, World, port_key, severities_from, violation_params
from facho.apps.coordinator.models import CoordinatorLog, QuotaViolation
from facho.apps.polling.models import Execution, PollerStats
from facho.apps.telemetry.history import start_of_day
from facho.apps.telemetry.models import DARK_ONUS, HistoryDay, HistoryMonth, Onu, OnuEvent, PonPort
from facho.apps.telemetry.port_history import daily_values
from facho.engine.model import Cause, Status
from facho.problems.models import Problem

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)

MOST_DAYS = 90

# Daily values of power that are read for one answer. More ONUs mean fewer days.
MOST_VALUES = 5_000_000

# Changes of states that are read for one answer. More changes mean fewer days.
MOST_CHANGES = 300_000

# Places in an answer.
MOST_PLACES = 10


@dataclass(slots=True)
class PastSpans:
    """Problems of the past, and the time from which they are known."""

    since: datetime
    spans: list[Span] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PlaceTotal:
    """Alerts with the same key."""

    last: PastAlert
    subject: str
    times: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What a rule would have done."""

    days: int
    # Start of what is known: the history may be shorter than asked for.
    since: datetime
    alerts: int
    # Messages to each channel, without repetitions.
    messages: int
    still_open: int
    by_day: list[tuple[datetime, int]]
    # The most frequent first.
    places: list[PlaceTotal]


def try_rule(rule: Rule, days: int, now: datetime) -> Trial:
    """Return what a rule would have done in the last days. The effect of other rules is not considered."""
    world = World(now, {}, now)
    found = SOURCES[rule.kind](rule, world, now - days * DAY)
    spans = [span for span in found.spans if span.end is None or span.end > found.since]
    result = rehearse(spans, policy(rule), now, flap_times=rule.flap_times)
    by_day = Counter(start_of_day(alert.opened_at) for alert in result.alerts)
    first = start_of_day(found.since)
    return Trial(
        days=days,
        since=found.since,
        alerts=len(result.alerts),
        messages=sum(said.news in (News.RAISED, News.RECOVERED) for said in result.messages),
        still_open=sum(alert.recovered_at is None for alert in result.alerts),
        by_day=[(first + number * DAY, by_day[first + number * DAY]) for number in range((now - first) // DAY + 1)],
        places=_places(rule.kind, result.alerts, now),
    )


def _places(kind: str, alerts: Iterable[PastAlert], now: datetime) -> list[PlaceTotal]:
    by_key: dict[str, list[PastAlert]] = defaultdict(list)
    for alert in alerts:
        by_key[alert.firing.key].append(alert)
    totals = [
        PlaceTotal(
            same[-1],
            text.subject(kind, same[-1].firing.params),
            len(same),
            sum(((each.recovered_at or now) - each.opened_at).total_seconds() for each in same),
        )
        for same in by_key.values()
    ]
    return sorted(totals, key=lambda each: (-each.times, -each.seconds))[:MOST_PLACES]


def _known_since(oldest: datetime | None, asked: datetime, now: datetime) -> datetime:
    return max(asked, oldest) if oldest is not None else now


def unreachable(rule: Rule, world: World, since: datetime) -> PastSpans:
    """Return the time from each run without an answer to the next one with an answer."""
    executions = Execution.objects.filter(slot__gte=since)
    failed: Any = executions.filter(status=Status.FAILED.value, cause=Cause.UNREACHABLE.value, ended_at__isnull=False)
    found = PastSpans(_known_since(executions.aggregate(Min("slot"))["slot__min"], since, world.now))
    rows = failed.order_by("olt_id", "slot").values_list("olt_id", "slot", "ended_at", "error")
    for olt_id, some in groupby(rows.iterator(), key=lambda row: row[0]):
        answered: datetime | None = since
        for _olt_id, slot, ended_at, error in some:
            if answered is None or slot <= answered or not world.watches(rule, olt_id):
                continue
            later = executions.filter(olt=olt_id, slot__gt=slot, ended_at__isnull=False)
            answers = later.filter(status__in=[Status.SUCCESS.value, Status.PARTIAL.value]).order_by("slot")
            next_one = answers.values_list("slot", "ended_at").first()
            params = {"olt": world.olts[olt_id]["name"], "error": error}
            firing = Firing(f"olt:{olt_id}", params, olt_id=olt_id)
            found.spans.append(Span(firing, ended_at, next_one and next_one[1]))
            answered = next_one and next_one[0]
    return found


def violations(rule: Rule, world: World, since: datetime) -> PastSpans:
    """Return the time after each violated hour until the next one is judged."""
    rows = QuotaViolation.objects.filter(period_end__gte=since).order_by("period_end").defer("olt")
    found = PastSpans(_known_since(QuotaViolation.objects.aggregate(at=Min("period_end"))["at"], since, world.now))
    for row in rows.filter(severity__in=severities_from(rule.setting("min_severity"))).iterator():
        if world.watches(rule, row.olt_id):
            firing = Firing(f"olt:{row.olt_id}:{row.task_type}", violation_params(row, world), olt_id=row.olt_id)
            found.spans.append(Span(firing, row.period_end, row.period_end + HOUR_IS_JUDGED_AFTER))
    return found


def dark_ports(rule: Rule, world: World, since: datetime) -> PastSpans:
    """Return the times at which enough ONUs of a port were down: the counters of now, and the changes back in time."""
    ports = PonPort.objects.filter(slot__isnull=False, port__isnull=False, olt__enabled=True)
    watched = [
        row
        for row in ports.annotate(down=DARK_ONUS, known=F("total") - F("missing")).values(
            "olt_id", "slot", "port", "down", "known"
        )
        if world.watches(rule, row["olt_id"])
    ]
    known = {(row["olt_id"], row["slot"], row["port"]): row["known"] for row in watched}
    down = {(row["olt_id"], row["slot"], row["port"]): row["down"] for row in watched}
    least, share = rule.setting("dark_onus"), rule.setting("dark_percent") / 100
    found = PastSpans(_known_since(OnuEvent.objects.aggregate(at=Min("at"))["at"], since, world.now))

    def is_dark(place: Any) -> bool:
        return bool(down[place] >= max(least, share * known[place]))

    def firing(place: Any, peak: int) -> Firing:
        olt_id, slot, port = place
        params = {
            "olt": world.olts[olt_id]["name"], "place": f"{slot}/{port}", "dark": peak, "known": known[place],
        }  # fmt: skip
        return Firing(port_key({"olt_id": olt_id, "slot": slot, "port": port}), params, olt_id, slot, port)

    # Time that is being followed back: its end, or None if it lasts, and the most ONUs that were down.
    ends: dict[Any, tuple[datetime | None, int]] = {place: (None, down[place]) for place in down if is_dark(place)}
    for number, (at, change, *place) in enumerate(_changes(since)):
        if number == MOST_CHANGES:
            found.since = max(found.since, at)
            break
        where = tuple(place)
        if where not in down:
            continue
        down[where] -= change
        if is_dark(where):
            end, peak = ends.get(where, (at, 0))
            ends[where] = (end, max(peak, down[where]))
        elif where in ends:
            end, peak = ends.pop(where)
            found.spans.append(Span(firing(where, peak), at, end))
    found.spans += [Span(firing(where, peak), found.since, end) for where, (end, peak) in ends.items()]
    return PastSpans(found.since, [span for span in found.spans if span.end is None or span.start < span.end])


def _changes(since: datetime) -> Iterator[tuple[Any, ...]]:
    """Return the ONUs that went down (1) or came back (-1), the last first."""
    events = OnuEvent.objects.filter(field=OnuEvent.Field.STATE, at__gte=since).order_by("-at", "-id")
    rows = events.values_list("at", "old", "new", "olt_id", "onu__slot", "onu__port")
    for at, old, new, *place in rows.iterator():
        if change := (new in Onu.DARK) - (old in Onu.DARK):
            yield at, change, *place


def low_power(rule: Rule, world: World, since: datetime) -> PastSpans:
    """Return the days on which enough ONUs of a port received too little power."""
    last = start_of_day(world.now)
    watched = [olt_id for olt_id in world.olts if world.watches(rule, olt_id)]
    onus: Any = Onu.objects.filter(olt__in=watched, slot__isnull=False, port__isnull=False)
    days = min((last - start_of_day(since)) // DAY, MOST_VALUES // max(onus.count(), 1))
    oldest = [HistoryDay.objects.aggregate(at=Min("at"))["at"], HistoryMonth.objects.aggregate(at=Min("start"))["at"]]
    found = PastSpans(_known_since(min(filter(None, oldest), default=None), last - days * DAY, world.now))
    below = rule.setting("below_dbm")
    for olt_id in watched:
        places = {pk: place for pk, *place in onus.filter(olt=olt_id).values_list("pk", "slot", "port")}
        open_: dict[tuple[int, int], Span] = {}
        for day, powers in daily_values(olt_id, places.keys(), "rx_dbm:min", found.since, last - MINUTE).items():
            by_port: dict[tuple[int, int], list[float]] = defaultdict(list)
            for onu, power in powers.items():
                if power < below + rule.setting("hysteresis_db"):
                    by_port[places[onu][0], places[onu][1]].append(power)
            open_ = {
                (slot, port): _low(rule, world, (olt_id, slot, port), low, day, open_.get((slot, port)))
                for (slot, port), low in by_port.items()
                if _is_low(low, below, rule, (slot, port) in open_)
            }
            found.spans += open_.values()
    # Yesterday is the last day that is known.
    found.spans = [replace(span, end=None) if span.end == last else span for span in found.spans]
    return found


def _is_low(powers: list[float], below: float, rule: Rule, lasts: bool) -> bool:
    count = len(powers) if lasts else sum(power < below for power in powers)
    return count >= int(rule.setting("low_onus"))


def _low(
    rule: Rule, world: World, place: tuple[int, int, int], powers: list[float], day: datetime, before: Span | None
) -> Span:
    olt_id, slot, port = place
    below = rule.setting("below_dbm")
    params = {
        "olt": world.olts[olt_id]["name"], "place": f"{slot}/{port}", "below": below,
        "low": sum(power < below for power in powers) or len(powers),
    }  # fmt: skip
    key = port_key({"olt_id": olt_id, "slot": slot, "port": port})
    # The days overlap, so that several in a row are one alert.
    start = day - MINUTE if before is not None else day
    return Span(Firing(key, params, olt_id, slot, port), start, day + DAY)


def vanishing(rule: Rule, world: World, since: datetime) -> PastSpans:
    rows = Problem.objects.filter(kind=Problem.Kind.OLT_SUSPECT, cause=Problem.Cause.MASS_DISAPPEARANCE)
    found = PastSpans(_known_since(Problem.objects.aggregate(at=Min("since"))["at"], since, world.now))
    for olt_id, start, end in rows.filter(since__gte=since).values_list("olt_id", "since", "until"):
        if world.watches(rule, olt_id):
            firing = Firing(f"olt:{olt_id}", {"olt": world.olts[olt_id]["name"]}, olt_id=olt_id)
            found.spans.append(Span(firing, start, end))
    return found


def _minutes(world: World, since: datetime, *columns: str) -> tuple[PastSpans, list[Any]]:
    """Return the minutes of the pool, the first one first."""
    rows = list(
        PollerStats.objects.filter(timestamp__gte=since).order_by("timestamp").values_list("timestamp", *columns)
    )
    return PastSpans(_known_since(rows[0][0] if rows else None, since, world.now)), rows


def saturated(rule: Rule, world: World, since: datetime) -> PastSpans:
    found, rows = _minutes(world, since, "is_saturated", "busy_percentage")
    for is_saturated, some in groupby(rows, key=lambda row: row[1]):
        minutes = list(some)
        if is_saturated:
            firing = Firing("pool", {"busy": round(max(busy for *_others, busy in minutes))})
            found.spans.append(Span(firing, minutes[0][0], minutes[-1][0] + MINUTE))
    return found


def delayed(rule: Rule, world: World, since: datetime) -> PastSpans:
    found, rows = _minutes(world, since, "delayed")
    limit, span = rule.setting("delayed"), timedelta(minutes=rule.setting("minutes"))
    for is_delayed, some in groupby(rows, key=lambda row: row[1] > limit):
        minutes = list(some)
        start, end = minutes[0][0] + span, minutes[-1][0] + MINUTE
        if is_delayed and start < end:
            params = {"delayed": max(row[1] for row in minutes), "minutes": rule.setting("minutes")}
            found.spans.append(Span(Firing("queue", params), start, end))
    return found


def stalled(rule: Rule, world: World, since: datetime) -> PastSpans:
    """Return the minutes without a report. The minutes in which Facho was not running at all are among them."""
    found, rows = _minutes(world, since)
    silent = timedelta(seconds=rule.setting("stalled_seconds"))
    for (before,), (after,) in pairwise(rows):
        if after - before > MINUTE + silent:
            firing = Firing("scheduler", {"age": round((after - before).total_seconds())})
            found.spans.append(Span(firing, before + MINUTE + silent, after))
    return found


def events(rule: Rule, world: World, since: datetime) -> PastSpans:
    found = PastSpans(_known_since(CoordinatorLog.objects.aggregate(at=Min("timestamp"))["at"], since, world.now))
    lasts = timedelta(minutes=rule.setting("event_minutes"))
    rows = CoordinatorLog.objects.filter(event_type__in=rule.setting("event_types"), timestamp__gte=since)
    for entry in rows.order_by("timestamp").defer("olt").iterator():
        if world.watches(rule, entry.olt_id):
            params = {"event": entry.event_type, "details": entry.details, "message": entry.message, "times": 1}
            firing = Firing(f"event:{entry.event_type}:{entry.olt_id or ''}", params, olt_id=entry.olt_id)
            found.spans.append(Span(firing, entry.timestamp, entry.timestamp + lasts))
    return found


SOURCES: Mapping[str, Callable[[Rule, World, datetime], PastSpans]] = {
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
