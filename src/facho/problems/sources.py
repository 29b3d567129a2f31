"""What is known of the network, as values for `engine/problems`.

States of ONUs are read again only for OLTs with a new `inventory_version`: a few of a thousand at a time.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from facho.apps.coordinator.models import QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.jobs import in_effect
from facho.apps.jobs.models import WorkflowNode
from facho.apps.telemetry.models import Onu, OnuEvent, PonPort
from facho.engine.problems import flapping, optics, outages
from facho.engine.problems.branches import is_on_the_way
from facho.engine.problems.model import (
    DownOnu,
    Falls,
    FoundProblem,
    LateNode,
    OltState,
    PortOnu,
    PortState,
    PowerDrop,
    ViolatedQuota,
)

# A violation counts until the next hour is judged, some minutes after its end.
HOUR_IS_JUDGED_AFTER = timedelta(minutes=70)

# A time that the OLT reports is stored in whole seconds.
EXACT = timedelta(seconds=1)

# An ONU that was moved has another power: that is no fault.
AFTER_MOVE = timedelta(days=1)

# OLTs in one query.
OLTS_AT_ONCE = 100

Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class OnusOfOlt:
    """What is known of the ONUs of an OLT at one version of its inventory."""

    version: int
    ports: tuple[PortState, ...] = ()
    drops: tuple[PowerDrop, ...] = ()
    falls: tuple[Falls, ...] = ()
    state_interval: timedelta | None = None


class _Down(NamedTuple):
    """An ONU that is down, and whether the counters of its port leave it out."""

    onu: DownOnu
    is_missing: bool


class Network:
    """The OLTs, kept between readings. A cache: an empty one gives the same result."""

    def __init__(self) -> None:
        self._onus: dict[int, OnusOfOlt] = {}

    def read(self, now: datetime, oldest: Mapping[int, datetime]) -> dict[int, OltState]:
        """Return the OLTs by id. `oldest` has the start of the oldest open problem of each OLT that has one."""
        columns = (
            "pk", "name", "site__name", "enabled", "breaker_opened_at", "last_error", "suspect_since",
            "suspect_reason", "inventory_version",
        )  # fmt: skip
        rows = {row["pk"]: row for row in Olt.objects.order_by("pk").values(*columns)}
        versions = {id_: row["inventory_version"] for id_, row in rows.items()}
        self._onus = {id_: onus for id_, onus in self._onus.items() if id_ in rows}
        changed = [
            id_ for id_, version in versions.items() if id_ not in self._onus or self._onus[id_].version != version
        ]
        for first in range(0, len(changed), OLTS_AT_ONCE):
            self._onus |= _onus_of(changed[first : first + OLTS_AT_ONCE], versions, now, oldest)
        return {id_: _olt(row, self._onus[id_]) for id_, row in rows.items()}

    def version(self, olt_id: int) -> int:
        return self._onus[olt_id].version


def _olt(row: Mapping[str, Any], onus: OnusOfOlt) -> OltState:
    return OltState(
        id=row["pk"],
        name=row["name"],
        site=row["site__name"] or "",
        is_enabled=row["enabled"],
        down_since=row["breaker_opened_at"],
        error=row["last_error"],
        suspect_since=row["suspect_since"],
        suspect_reason=row["suspect_reason"],
        ports=onus.ports,
        drops=onus.drops,
        falls=onus.falls,
        state_interval=onus.state_interval,
    )


def _onus_of(
    ids: Collection[int], versions: Mapping[int, int], now: datetime, oldest: Mapping[int, datetime]
) -> dict[int, OnusOfOlt]:
    """Read the ports, the ONUs that are down, and the recent events of some OLTs, each with one query."""
    since = min([now - outages.NEWS_FOR, *(oldest[id_] for id_ in ids if id_ in oldest)])
    down, gone = _down_onus(ids, since, now - outages.NEWS_FOR), _gone_onus(ids, now - outages.NEWS_FOR)
    ports = _ports(ids, down, gone)
    drops = _drops(ids, now - optics.DROP_LASTS)
    falls = _falls(ids, now - flapping.WITHIN)
    intervals = _state_intervals(ids)
    return {
        id_: OnusOfOlt(
            versions[id_],
            tuple(ports.get(id_, ())),
            tuple(drops.get(id_, ())),
            tuple(falls.get(id_, ())),
            intervals.get(id_),
        )
        for id_ in ids
    }


def _ports(
    ids: Collection[int], down: Mapping[Place, Sequence[_Down]], gone: Mapping[Place, Sequence[_Down]]
) -> dict[int, list[PortState]]:
    watched = F("total") - F("missing") - F("disabled")
    # Without NULLs, which the types of a query do not know. The same below.
    rows: Any = (
        PonPort.objects.filter(olt__in=ids, slot__isnull=False, port__isnull=False)
        .annotate(watched=watched, down=F("los") + F("dying_gasp") + F("offline") + F("auth_failed"))
        .order_by("olt", "slot", "port")
    )
    found = defaultdict(list)
    for olt_id, slot, port, total, dark, weak, state_at in rows.values_list(
        "olt_id", "slot", "port", "watched", "down", "weak", "state_at"
    ):
        fallen, lost = down.get((olt_id, slot, port), ()), gone.get((olt_id, slot, port), ())
        # The counters do not have missing ONUs, and have those that the last discovery did not find as they were.
        missing = sum(each.is_missing for each in (*fallen, *lost))
        dark += missing + sum(not each.is_missing for each in lost)
        onus = tuple(each.onu for each in (*fallen, *lost))
        found[olt_id].append(PortState(slot, port, max(total, 0) + missing, dark, weak, state_at, onus))
    return found


# Down: without light, or refused by the OLT.
DOWN = (*Onu.DARK, Onu.State.AUTH_FAILED)


def _down_onus(ids: Collection[int], since: datetime, missing_since: datetime) -> dict[Place, list[_Down]]:
    """Return the ONUs that are down since a run saw them go down; not those that were down when they were found.

    Some OLTs list an ONU that is down for a while only.
    """
    seen = OnuEvent.objects.filter(onu=OuterRef("pk"), field=OnuEvent.Field.STATE, at__gte=OuterRef("state_since"))
    refused = Onu.State.AUTH_FAILED
    fell = Q(new__in=Onu.DARK) & ~Q(old__in=Onu.DARK) | Q(new=refused) & ~Q(old=refused)
    rows: Any = (
        _placed(ids, missing_since).filter(state__in=DOWN, state_since__gte=since).filter(Exists(seen.filter(fell)))
    )
    found = defaultdict(list)
    for olt_id, slot, port, id_, state, at, last_down, cause, missing in rows.values_list(
        "olt_id", "slot", "port", "pk", "state", "state_since", "last_down", "down_cause", "missing_since"
    ):
        is_exact = last_down is not None and abs(last_down - at) <= EXACT
        found[olt_id, slot, port].append(_Down(DownOnu(id_, state, at, is_exact, cause or ""), missing is not None))
    return found


def _gone_onus(ids: Collection[int], since: datetime) -> dict[Place, list[_Down]]:
    """Return the ONUs that were up when the OLT listed them for the last time. They fell after that reading.

    A mass disappearance that is not confirmed yet says nothing of its ONUs.
    """
    # Two statements, each with its index: of most OLTs nothing is absent.
    held: Any = PonPort.objects.filter(olt__in=ids, held__gt=0).order_by().values_list("olt_id", flat=True)
    absent = [
        _placed(ids, since).filter(missing_since__isnull=False),
        _placed(set(held), since).filter(missing_since__isnull=True, misses__gt=0),
    ]
    known = Q(own_state_at__gte=since) & ~Q(state__in=(*DOWN, Onu.State.DISABLED))
    columns = ("olt_id", "slot", "port", "pk", "own_state_at", "missing_since")
    rows: Any = chain.from_iterable(
        each.filter(known).exclude(olt__suspect_reason=Olt.Suspect.VANISHING).values_list(*columns) for each in absent
    )
    found = defaultdict(list)
    for olt_id, slot, port, id_, at, missing in rows:
        found[olt_id, slot, port].append(_Down(DownOnu(id_, "missing", at, is_exact=False), missing is not None))
    return found


def _placed(ids: Collection[int], missing_since: datetime) -> QuerySet[Onu]:
    """Return the ONUs of OLTs with a place, without those that are missing for long or are elsewhere now."""
    elsewhere = Onu.objects.filter(serial=OuterRef("serial"), missing_since__isnull=True, misses=0)
    moved_away = Exists(elsewhere.exclude(olt=OuterRef("olt")))
    lost = Q(missing_since__gte=missing_since, place_taken=False) & ~Q(moved_away)
    return (
        Onu.objects.filter(olt__in=ids, slot__isnull=False, port__isnull=False)
        .filter(Q(missing_since__isnull=True) | lost)
        .order_by()
    )


def _events(ids: Collection[int], field: str, since: datetime) -> QuerySet[OnuEvent]:
    events = OnuEvent.objects.filter(olt__in=ids, field=field, at__gte=since)
    return events.filter(onu__slot__isnull=False, onu__port__isnull=False).order_by("at", "id")


def _drops(ids: Collection[int], since: datetime) -> dict[int, list[PowerDrop]]:
    rows: Any = _events(ids, "rx_dbm", since).values_list(
        "olt_id", "onu_id", "onu__slot", "onu__port", "at", "old", "new", "onu__rx_dbm", "onu__state", "onu__moved_at"
    )
    found = defaultdict(list)
    for olt_id, onu, slot, port, at, old, new, rx_dbm, state, moved_at in rows:
        before, after = float(old), float(new)
        is_moved = moved_at is not None and at - AFTER_MOVE <= moved_at <= at
        if after < before and not is_moved:
            found[olt_id].append(PowerDrop(onu, slot, port, at, before, after, None if state in Onu.DARK else rx_dbm))
    return found


def _falls(ids: Collection[int], since: datetime) -> dict[int, list[Falls]]:
    rows: Any = _events(ids, OnuEvent.Field.STATE, since).filter(new__in=Onu.DARK).exclude(old__in=Onu.DARK)
    times: dict[tuple[int, int, int, int], list[datetime]] = defaultdict(list)
    for olt_id, onu, slot, port, at in rows.values_list("olt_id", "onu_id", "onu__slot", "onu__port", "at"):
        times[olt_id, onu, slot, port].append(at)
    found = defaultdict(list)
    for (olt_id, onu, slot, port), several in times.items():
        # Most ONUs go down once.
        if len(several) >= flapping.FEWEST_STILL:
            found[olt_id].append(Falls(onu, slot, port, tuple(several)))
    return found


def port_onus(olt_id: int, found: Iterable[FoundProblem]) -> dict[tuple[int | None, int | None], list[PortOnu]]:
    """Return the ONUs of the ports of an OLT with a problem on the way to them, by slot and port."""
    places = {(each.slot, each.port) for each in found if is_on_the_way(each)}
    if not places:
        return {}
    any_of = Q()
    for slot, port in places:
        any_of |= Q(slot=slot, port=port)
    rows = Onu.objects.filter(any_of, olt=olt_id, missing_since__isnull=True).order_by()
    onus: dict[tuple[int | None, int | None], list[PortOnu]] = defaultdict(list)
    for id_, slot, port, state, power, distance, last in rows.values_list(
        "pk", "slot", "port", "state", "rx_dbm", "distance_m", "last_distance_m"
    ):
        onus[slot, port].append(PortOnu(id_, distance or last, None if state in Onu.DARK else power))
    return onus


def _state_intervals(ids: Iterable[int]) -> dict[int, timedelta]:
    """Return the shortest interval of a job that reads states, by OLT. A chained job runs with its master."""
    rows = WorkflowNode.objects.filter(olt__in=ids).polled()
    rows = rows.annotate(own=in_effect.interval_seconds(), masters=in_effect.interval_seconds("master__"))
    found: dict[int, timedelta] = {}
    for olt_id, columns, own, masters, master in rows.values_list(
        "olt_id", "job__columns", "own", "masters", "master_id"
    ):
        if "state" in columns:
            interval = timedelta(seconds=own if master is None else masters)
            found[olt_id] = min(interval, found.get(olt_id, interval))
    return found


def violated_quotas(now: datetime) -> list[ViolatedQuota]:
    """Return the last judged hour of each job on each OLT, if it was violated. The next hour renews or ends it."""
    rows = QuotaViolation.objects.filter(period_end__gt=now - HOUR_IS_JUDGED_AFTER).order_by("period_start")
    latest = {(row.olt_id, row.task_type): row for row in rows.defer("olt")}
    return [
        ViolatedQuota(
            row.olt_id,
            row.task_type,
            row.period_start,
            row.severity == QuotaViolation.Severity.CRITICAL,
            {name: row.report[name] for name in ("completed", "required", "causes") if name in row.report}
            if isinstance(row.report, dict)
            else {},
        )
        for row in latest.values()
    ]


def late_nodes(now: datetime) -> list[LateNode]:
    """Return the masters that are due for a minute. A slot that was taken is no longer due."""
    rows = WorkflowNode.objects.polled().filter(master__isnull=True, next_run_at__lt=now - timedelta(minutes=1))
    columns = rows.annotate(interval=in_effect.interval_seconds()).values_list(
        "pk", "olt_id", "job__name", "next_run_at", "interval"
    )
    return [LateNode(pk, olt_id, name, due, timedelta(seconds=interval)) for pk, olt_id, name, due, interval in columns]
