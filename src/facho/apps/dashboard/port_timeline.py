"""Timeline of a PON port: events of its ONUs, joined to a line where many happened together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils.translation import ngettext

from facho.apps.telemetry.models import Onu, OnuEvent

# Events that are closer together belong to one line: the ONUs of a fibre go down within seconds, and a run over a large
# OLT takes less than a minute to see them.
GAP = timedelta(seconds=60)

# Events that a page reads, and lines that it shows.
MOST_EVENTS, MOST_LINES = 2_000, 100

Field, State, Presence = OnuEvent.Field, Onu.State, OnuEvent.Presence

# Sentence of each kind of event, the worst first. A kind is a new state or presence, or another changed field.
SENTENCES: dict[str, Callable[[int], str]] = {
    State.LOS: lambda n: ngettext("%(n)d ONU lost its signal", "%(n)d ONUs lost their signal", n),
    State.DYING_GASP: lambda n: ngettext("%(n)d ONU lost power", "%(n)d ONUs lost power", n),
    State.OFFLINE: lambda n: ngettext("%(n)d ONU went offline", "%(n)d ONUs went offline", n),
    Presence.MISSING: lambda n: ngettext("%(n)d ONU went missing", "%(n)d ONUs went missing", n),
    Presence.REPLACED: lambda n: ngettext("%(n)d ONU was replaced", "%(n)d ONUs were replaced", n),
    State.AUTH_FAILED: lambda n: ngettext("%(n)d ONU is not authorised", "%(n)d ONUs are not authorised", n),
    State.DEGRADED: lambda n: ngettext("%(n)d ONU is degraded", "%(n)d ONUs are degraded", n),
    State.DISABLED: lambda n: ngettext("%(n)d ONU was disabled", "%(n)d ONUs were disabled", n),
    State.LOGGING: lambda n: ngettext("%(n)d ONU is logging in", "%(n)d ONUs are logging in", n),
    State.SYNCING: lambda n: ngettext("%(n)d ONU is synchronising", "%(n)d ONUs are synchronising", n),
    State.UNKNOWN: lambda n: ngettext("%(n)d ONU has an unknown state", "%(n)d ONUs have an unknown state", n),
    State.ONLINE: lambda n: ngettext("%(n)d ONU came online", "%(n)d ONUs came online", n),
    Presence.PRESENT: lambda n: ngettext("%(n)d ONU was found", "%(n)d ONUs were found", n),
    Field.PLACE: lambda n: ngettext("%(n)d ONU moved", "%(n)d ONUs moved", n),
    Field.SERIAL: lambda n: ngettext("%(n)d ONU has another serial", "%(n)d ONUs have another serial", n),
    Field.MAC: lambda n: ngettext("%(n)d ONU has another MAC", "%(n)d ONUs have another MAC", n),
    Field.DOWN_CAUSE: lambda n: ngettext("%(n)d ONU has another down cause", "%(n)d ONUs have another down cause", n),
}
BAD = {*Onu.DARK, Presence.MISSING}
GOOD = {State.ONLINE, Presence.PRESENT}


@dataclass(frozen=True, slots=True)
class Line:
    """Events that happened together, the earliest first."""

    events: Sequence[OnuEvent]
    text: str
    # Good, bad or quiet.
    tone: str

    @property
    def start(self) -> datetime:
        return self.events[0].at

    @property
    def end(self) -> datetime:
        return self.events[-1].at

    @property
    def onu(self) -> Onu | None:
        """Return the ONU, if all events are of one."""
        first = self.events[0].onu
        return first if all(event.onu_id == first.pk for event in self.events) else None


class Events(NamedTuple):
    """Events of the ONUs of a port, the latest first. Before `since` they are not known."""

    rows: list[OnuEvent]
    since: datetime
    is_cut: bool


def events_of(olt_id: int, onus: Sequence[Onu], since: datetime) -> Events:
    """Return the last events of ONUs since a time; the ones from another port are left out."""
    by_id = {onu.pk: onu for onu in onus}
    # The OLT limits the rows that a database looks at, if it prefers the order to the ids.
    rows = OnuEvent.objects.filter(olt_id=olt_id, onu_id__in=by_id, at__gte=since).order_by("-at", "-id")
    found = list(rows[:MOST_EVENTS])
    for event in found:
        event.onu = by_id[event.onu_id]
    is_cut = len(found) == MOST_EVENTS
    here = [event for event in found if event.at >= arrival(event.onu)]
    return Events(here, found[-1].at if is_cut else since, is_cut)


def arrival(onu: Onu) -> datetime:
    """Return when an ONU came to its port."""
    is_from_elsewhere = onu.moved_from.rpartition("/")[0] != f"{onu.slot}/{onu.port}"
    return onu.moved_at if onu.moved_at and is_from_elsewhere else onu.first_seen_at


def lines_of(events: Sequence[OnuEvent]) -> list[Line]:
    """Join events, given with the latest first, to lines in the same order."""
    groups: list[list[OnuEvent]] = []
    for event in events:
        if not groups or groups[-1][-1].at - event.at > GAP:
            groups.append([])
        groups[-1].append(event)
    return [_line(group[::-1]) for group in groups]


def _line(events: Sequence[OnuEvent]) -> Line:
    onus: defaultdict[str, set[int]] = defaultdict(set)
    for event in events:
        onus[_kind(event)].add(event.onu_id)
    # A cause that came with a state is part of it.
    with_state = {event.onu_id for event in events if event.field == Field.STATE}
    onus[Field.DOWN_CAUSE] -= with_state
    kinds = [kind for kind in SENTENCES if onus.get(kind)]
    tone = "bad" if BAD & set(kinds) else "good" if GOOD & set(kinds) else "quiet"
    counts = {kind: len(onus[kind]) for kind in kinds}
    return Line(events, ", ".join(SENTENCES[kind](counts[kind]) % {"n": counts[kind]} for kind in kinds), tone)


def _kind(event: OnuEvent) -> str:
    kind = event.new if event.field in (Field.STATE, Field.PRESENCE) else event.field
    return kind if kind in SENTENCES else State.UNKNOWN


# Time and number.
Points = list[tuple[datetime, float]]


def online_points(onus: Iterable[Onu], events: Iterable[OnuEvent], since: datetime, now: datetime) -> Points:
    """Return the number of ONUs online over time, back from the present states; each change is two points.

    Events are given with the latest first.
    """
    by_onu: defaultdict[int, list[OnuEvent]] = defaultdict(list)
    for event in events:
        by_onu[event.onu_id].append(event)
    changes: list[tuple[datetime, int]] = []
    count = 0
    for onu in onus:
        count += _is_online(onu.state, onu.missing_since is None)
        changes += _changes(onu, by_onu[onu.pk], since)
    points: Points = [(now, count)]
    for at, change in sorted(changes, reverse=True):
        points.append((at, count))
        count -= change
        points.append((at, count))
    return [*points, (since, count)][::-1]


def _changes(onu: Onu, events: Iterable[OnuEvent], since: datetime) -> list[tuple[datetime, int]]:
    """Return when an ONU came online (1) and ceased to be (-1)."""
    state, is_here, changes = onu.state, onu.missing_since is None, []
    for event in events:
        after = _is_online(state, is_here)
        if event.field == Field.STATE:
            state = event.old
        elif event.field == Field.PRESENCE:
            is_here = event.old == Presence.PRESENT
        if change := after - _is_online(state, is_here):
            changes.append((event.at, change))
    came = arrival(onu)
    if came > since and _is_online(state, is_here):
        changes.append((came, 1))
    return changes


def _is_online(state: Any, is_here: bool) -> bool:
    return is_here and state == State.ONLINE
