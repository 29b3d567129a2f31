"""Labels of ONUs in a time series store: the OLT, and place and serial at the time of a run.

A series must not depend on when it is sent: a run that is sent again, or late, has the labels of its own time. They are
those of the present rows with later events undone. Encoded labels are kept per OLT, in the order of its ONUs.
"""

import re
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu, OnuEvent
from facho.engine.chunks import NOT_READ, RunColumns
from facho.engine.remote_write import SeriesLabels, encoded
from facho.store.inventory import place_name

Field = OnuEvent.Field
# Slot and port as labels, empty without a port.
PortKey = tuple[str, str]

PLACE = re.compile(r"(\d+)/(\d+)/(\d+)")
COLUMNS = ("pk", "slot", "port", "onu", "index", "serial", "mac")

# ONUs whose labels are kept: about 150 bytes each.
MOST_ONUS = 2_000_000
# Sets of ONUs per OLT: runs of different jobs read different ones.
MOST_LAYOUTS = 6
# An ONU gets its first serial without an event, mostly from the next discovery: until then labels are loaded again
# after a minute, and otherwise after a day, in case somebody changed the database.
IS_NEW = timedelta(days=1)
UNNAMED_LAST = timedelta(minutes=1)
LABELS_LAST = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Labelled:
    """An ONU: its encoded labels, and its port."""

    labels: bytes
    port: PortKey


@dataclass(frozen=True)
class LabelLayout:
    """Labels of the ONUs of a run, in its order."""

    labels: Sequence[bytes]
    ports: Sequence[PortKey]
    # Marks ONUs that were deleted; empty if there are none.
    gone: bytes = b""

    @cached_property
    def series(self) -> SeriesLabels:
        return SeriesLabels(self.labels)

    @cached_property
    def places_of(self) -> Mapping[PortKey, list[int]]:
        """Return the positions of the ONUs of each port."""
        places: defaultdict[PortKey, list[int]] = defaultdict(list)
        for place, port in enumerate(self.ports):
            places[port].append(place)
        return places


@dataclass(slots=True)
class _Known:
    """Labels of the ONUs of an OLT, by ascending id."""

    olt: str
    loaded_at: datetime
    ids: list[int]
    labels: list[bytes]
    ports: list[PortKey]
    # Whether some new ONU has neither serial nor MAC.
    has_unnamed: bool
    # Events of places and serials that were known when the rows were loaded.
    seen: set[int]
    # Time of the last run with these labels.
    used_until: datetime
    layouts: OrderedDict[bytes, LabelLayout] = field(default_factory=OrderedDict)


@dataclass(frozen=True, slots=True)
class _Change:
    id: int
    at: datetime
    onu_id: int
    field: str
    old: str


class OnuLabels:
    """Labels of the runs of a batch. `prepare` reads what changed since the last batch, with two or three queries."""

    def __init__(self, most_onus: int = MOST_ONUS) -> None:
        self._most_onus = most_onus
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._changes: Mapping[int, list[_Change]] = {}

    def prepare(self, runs: Iterable[tuple[int, datetime]], now: datetime) -> None:
        """Prepare for runs of these OLTs and times."""
        earliest: dict[int, datetime] = {}
        latest: dict[int, datetime] = {}
        for olt_id, at in runs:
            earliest[olt_id] = min(earliest.get(olt_id, at), at)
            latest[olt_id] = max(latest.get(olt_id, at), at)
        if not earliest:
            return
        names = dict(Olt.objects.filter(pk__in=earliest).values_list("pk", "name"))
        for olt_id, known in self._known.items():
            if olt_id in earliest:
                earliest[olt_id] = min(earliest[olt_id], known.used_until)
        self._changes = _changes(earliest, min(earliest.values()))
        for olt_id, name in names.items():
            known_before = self._known.get(olt_id)
            seen = {change.id for change in self._changes.get(olt_id, ())}
            if known_before is None or _is_old(known_before, name, seen, now):
                self._load(olt_id, name, seen, now)
            self._known[olt_id].used_until = latest[olt_id]
            self._known.move_to_end(olt_id)
        self._forget(names)

    def olt(self, olt_id: int) -> str:
        """Return the name of an OLT; empty if it was deleted."""
        known = self._known.get(olt_id)
        return known.olt if known else ""

    def layout(self, olt_id: int, at: datetime, run: RunColumns, now: datetime) -> LabelLayout:
        """Return the labels that the ONUs of a run had at its time."""
        known = self._known[olt_id]
        layout = known.layouts.get(run.packed_ids)
        if layout is None:
            ids = run.onu_ids
            if not _has_all(known.ids, ids):
                # A new ONU, if none was deleted.
                known = self._load(olt_id, known.olt, known.seen, now, known.used_until)
            layout = known.layouts[run.packed_ids] = _layout(known, ids)
            if len(known.layouts) > MOST_LAYOUTS:
                known.layouts.popitem(last=False)
        later = [change for change in self._changes.get(olt_id, ()) if change.at > at]
        return _undone(known.olt, layout, run.onu_ids, later) if later else layout

    def _load(
        self, olt_id: int, name: str, seen: set[int], now: datetime, used_until: datetime | None = None
    ) -> _Known:
        rows = Onu.objects.filter(olt_id=olt_id).order_by("pk").values_list(*COLUMNS, "first_seen_at")
        ids, labels, ports, has_unnamed = [], [], [], False
        keys: dict[PortKey, PortKey] = {}
        for pk, slot, port, onu, index, serial, mac, first_seen_at in rows:
            one = _labelled(name, place_name(slot, port, onu, index), serial or mac or "")
            ids.append(pk)
            labels.append(one.labels)
            ports.append(keys.setdefault(one.port, one.port))
            has_unnamed = has_unnamed or (not (serial or mac) and now - first_seen_at < IS_NEW)
        known = _Known(name, now, ids, labels, ports, has_unnamed, seen, used_until or now)
        self._known[olt_id] = known
        return known

    def _forget(self, needed: Mapping[int, str]) -> None:
        """Drop the OLTs that were used least recently, if there are too many ONUs."""
        held = sum(len(known.ids) for known in self._known.values())
        for olt_id in list(self._known):
            if held <= self._most_onus:
                return
            if olt_id not in needed:
                held -= len(self._known.pop(olt_id).ids)


def port_key(slot: int | None, port: int | None) -> PortKey:
    return ("" if slot is None else str(slot), "" if port is None else str(port))


def _labelled(olt: str, place: str, serial: str) -> Labelled:
    """Return the labels of an ONU. One whose place is unknown has its index instead of its number."""
    found = PLACE.fullmatch(place)
    slot, port, onu = found.groups() if found else ("", "", place)
    labels = encoded({"olt": olt, "slot": slot, "port": port, "onu": onu, "serial": serial})
    return Labelled(labels, (slot, port))


def _is_old(known: _Known, name: str, seen: set[int], now: datetime) -> bool:
    age = now - known.loaded_at
    limit = UNNAMED_LAST if known.has_unnamed else LABELS_LAST
    return known.olt != name or not seen <= known.seen or not timedelta(0) <= age < limit


def _changes(olt_ids: Iterable[int], since: datetime) -> Mapping[int, list[_Change]]:
    """Return the changes of places and serials from a time on, the earliest first, by OLT."""
    events = OnuEvent.objects.filter(
        olt_id__in=list(olt_ids), at__gte=since, field__in=(Field.PLACE, Field.SERIAL, Field.MAC)
    )
    found: defaultdict[int, list[_Change]] = defaultdict(list)
    rows = events.order_by("at", "pk").values_list("olt_id", "pk", "at", "onu_id", "field", "old")
    for olt_id, pk, at, onu_id, name, old in rows:
        found[olt_id].append(_Change(pk, at, onu_id, name, old))
    return found


def _has_all(ids: Sequence[int], wanted: Sequence[int]) -> bool:
    return ids == wanted or set(wanted) <= set(ids)


def _layout(known: _Known, ids: Sequence[int]) -> LabelLayout:
    if ids == known.ids:
        return LabelLayout(known.labels, known.ports)
    places = [bisect_left(known.ids, each) for each in ids]
    found = [place < len(known.ids) and known.ids[place] == each for place, each in zip(places, ids, strict=True)]
    if all(found):
        return LabelLayout([known.labels[place] for place in places], [known.ports[place] for place in places])
    nowhere = ("", "")
    return LabelLayout(
        [known.labels[place] if is_known else b"" for place, is_known in zip(places, found, strict=True)],
        [known.ports[place] if is_known else nowhere for place, is_known in zip(places, found, strict=True)],
        bytes(0 if is_known else NOT_READ for is_known in found),
    )


def _undone(olt: str, layout: LabelLayout, ids: Sequence[int], later: Sequence[_Change]) -> LabelLayout:
    """Return a layout as it was before some changes."""
    before: dict[tuple[int, str], str] = {}
    for change in later:
        before.setdefault((change.onu_id, change.field), change.old)
    changed = {onu_id for onu_id, _ in before}
    labels, ports = list(layout.labels), list(layout.ports)
    place_of = {onu_id: place for place, onu_id in enumerate(ids)}
    rows = Onu.objects.filter(pk__in=changed & place_of.keys()).values_list(*COLUMNS)
    for pk, slot, port, onu, index, serial, mac in rows:
        was = before.get((pk, Field.SERIAL), serial) or before.get((pk, Field.MAC), mac) or ""
        one = _labelled(olt, before.get((pk, Field.PLACE), place_name(slot, port, onu, index)), was)
        labels[place_of[pk]], ports[place_of[pk]] = one.labels, one.port
    return LabelLayout(labels, ports, layout.gone)
