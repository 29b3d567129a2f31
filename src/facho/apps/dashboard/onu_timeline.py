"""Timeline of one ONU: its states with their causes, times at which it was not read, and marks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from facho.apps.changes.models import Change
from facho.apps.dashboard.history import gaps
from facho.apps.dashboard.shown_changes import shown_changes
from facho.apps.inventory.models import Replacement
from facho.apps.inventory.scopes import restrict
from facho.apps.maintenance.models import Maintenance
from facho.apps.maintenance.queries import Maintained, windows_between
from facho.apps.telemetry.models import Onu, OnuEvent, PonPort

# A gap of the timeline is longer than this, because short jobs are late at times.
SHORTEST_GAP = timedelta(minutes=10)

# Of the newest changes of an OLT, those in the period are marked.
CHANGES_READ = 200

# Actions that change nothing on the OLT.
NO_CHANGE = (Change.Action.READ, Change.Action.TRIED)


@dataclass(frozen=True, slots=True)
class Span:
    """A time in one state. `state` is a state of an ONU, `missing`, or empty: it was not read."""

    since: datetime
    until: datetime
    state: str
    cause: str = ""

    @property
    def kind(self) -> str:
        """Return how it is drawn."""
        if self.state in Onu.DARK:
            return "dark"
        return {"": "unread", "online": "online", "missing": "missing"}.get(self.state, "other")

    @property
    def label(self) -> str:
        if self.state == "missing":
            return _("missing")
        return str(Onu.State(self.state).label) if self.state else _("not read")

    @property
    def cause_text(self) -> str:
        """Return the cause in the user's language, unless the state says the same."""
        text = OnuEvent(field="state", cause=self.cause).cause_text if self.cause else ""
        return "" if text == self.label else text


def timeline(onu: Onu, readings: Sequence[datetime], since: datetime, until: datetime) -> list[Span]:
    """Return the spans of a period from the events of an ONU and the times at which it was read."""
    events = OnuEvent.objects.filter(onu=onu, field__in=("state", "presence"), at__lte=until).order_by("at", "id")
    inside = list(events.filter(at__gt=since))
    before = [events.filter(at__lte=since, field=name).last() for name in ("state", "presence")]
    known = [event for event in before if event is not None]
    spans = states(onu, [*known, *inside], since, until)
    return with_gaps(spans, readings, since, until)


def states(onu: Onu, events: Iterable[OnuEvent], since: datetime, until: datetime) -> list[Span]:
    """Return the states of a period. `events` are those in it, and the last one of each field before it."""
    events = sorted(events, key=lambda event: event.at)
    of_state = [event for event in events if event.field == "state"]
    state = of_state[0].old if of_state else onu.state
    cause = "" if of_state else onu.down_cause or ""
    is_missing = False if any(event.field == "presence" for event in events) else onu.is_missing
    spans: list[Span] = []
    at = max(since, min(onu.first_seen_at, until))
    if at > since:
        spans.append(Span(since, at, ""))
    for event in events:
        if event.at > at:
            spans.append(Span(at, event.at, "missing" if is_missing else state, "" if is_missing else cause))
            at = event.at
        if event.field == "state":
            state, cause = event.new, event.cause
        else:
            is_missing = event.new != OnuEvent.Presence.PRESENT
    spans.append(Span(at, until, "missing" if is_missing else state, "" if is_missing else cause))
    return [span for span in _joined(spans) if span.until > span.since]


def with_gaps(spans: Sequence[Span], readings: Sequence[datetime], since: datetime, until: datetime) -> list[Span]:
    """Return the spans, with those at which nothing was read cut out.

    A missing ONU is not read, and its state is known.
    """
    edges = [since, *readings, until]
    unread = [(edges[position - 1], edges[position]) for position in gaps(edges, SHORTEST_GAP, bounds=1)]
    cut: list[Span] = []
    for span in spans:
        at = span.since
        for start, end in () if span.state in ("", "missing") else unread:
            start, end = max(start, at), min(end, span.until)
            if start < end:
                cut += [replace(span, since=at, until=start), Span(start, end, "")]
                at = end
        cut.append(replace(span, since=at))
    return _joined(span for span in cut if span.until > span.since)


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Return the spans; neighbours of the same state and cause are one."""
    joined: list[Span] = []
    for span in spans:
        if joined and (joined[-1].state, joined[-1].cause) == (span.state, span.cause):
            joined[-1] = replace(joined[-1], until=span.until)
        else:
            joined.append(span)
    return joined


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened to the OLT: at a time, or for a time. `kind` decides its form."""

    kind: str
    at: datetime
    text: str
    until: datetime | None = None
    url: str = ""


def change_marks(onu: Onu, user: Any, since: datetime, until: datetime) -> list[Mark]:
    """Return the changes of users on the OLT, its nodes and this ONU."""
    newest = restrict(Change.objects.filter(olt_id=onu.olt_id), user, "olt_id").exclude(action__in=NO_CHANGE)
    # They have marks of their own.
    newest = newest.exclude(object_type="inventory.replacement")
    rows = [row for row in newest[:CHANGES_READ] if since <= row.at <= until]
    return [
        Mark(
            "change",
            each.change.at,
            f"{each.change.actor}: {each.change.get_action_display()} {each.type_name} {each.change.object_name}",
            url=each.url,
        )
        for each in shown_changes(rows, user)
    ]


def maintenance_marks(at: Onu | PonPort, user: Any, since: datetime, until: datetime) -> list[Mark]:
    """Return the windows of maintenance of an ONU or port."""
    found = Maintained(windows_between(since, until)).of(at.olt_id, at.slot, at.port)
    return [
        Mark("maintenance", max(each.starts_at, since), each.maintenance.headline, min(each.ends_at, until))
        for each in found
        if user.has_perm(Maintenance.VIEW_PERMISSION)
    ]


def replacement_marks(at: Onu | PonPort, _user: Any, since: datetime, until: datetime) -> list[Mark]:
    """Return the replacements of the device of an ONU or port."""
    found = Replacement.objects.filter(olt=at.olt_id, at__range=(since, until))
    return [Mark("change", each.at, each.headline) for each in found]


# Each returns the marks of an ONU that a user sees, between two times.
MARKS: tuple[Callable[[Onu, Any, datetime, datetime], list[Mark]], ...] = (
    change_marks,
    maintenance_marks,
    replacement_marks,
)


def marks(onu: Onu, user: Any, since: datetime, until: datetime) -> list[Mark]:
    """Return all marks of a period, the earliest first."""
    found = [mark for source in MARKS for mark in source(onu, user, since, until)]
    return sorted(found, key=lambda mark: mark.at)
