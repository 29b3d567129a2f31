"""Inventory: the ONUs of an OLT in columns, as in the database, kept between runs and compared with each of them.

Most values repeat those of the last run, so `compare` looks at a column as a whole first, then only at cells that
differ. It does no I/O; its result contains everything to write, including events. `Inventory.apply` writes it.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import compress, count
from operator import eq, ne
from typing import TYPE_CHECKING, Any

from django.db import models

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import (
    COUNTERS,
    FOUND,
    FOUND_AGAIN,
    MOVED,
    NEVER,
    NOT_FOUND,
    REPLACED_BY,
    REPLACES,
    RX_WEAK,
    Onu,
    OnuEvent,
    OnuSearch,
    PonPort,
)
from facho.apps.telemetry.search import TEXT_FIELDS, text_of
from facho.engine.batch import UNREAD, Batch
from facho.engine.model import JobKind, KnownOnu, Reading
from facho.engine.presence import Census, Suspicion
from facho.store import sql
from facho.store.counters import PortCounters
from facho.store.sql import FILLED, PLACE, POWERS, adapted, merge_twins, normal, normals, plain_value, timestamp

if TYPE_CHECKING:
    from facho.store.presence import KnownOnus

Field, Presence = OnuEvent.Field, OnuEvent.Presence

# Slot and port; None if the device does not report it.
Port = tuple[int | None, int | None]

# Port number of an ONU without a port.
NO_PORT = -1

# The extra values of most ONUs: none. One object for all of them.
NO_EXTRA: dict[str, Any] = {}

# Times of a port, and the columns that update each of them. Any column updates `read_at`.
TIMES: Mapping[str, frozenset[str]] = {"read_at": frozenset(), "state_at": frozenset({"state"}), "power_at": POWERS}

# Times that a device reports: the start of a dark state, and of the state online.
STATE_STARTS = ("last_down", "last_up")

# Columns that have a value where an ONU was not found.
ABSENCE = ("misses", "missing_since")

# The clock of a device may differ this much from ours, so that its times of changes still fit.
CLOCK_SLACK = timedelta(minutes=5)
# ONUs whose texts are written with one query.
TEXTS_AT_ONCE = 5000
# A change of the received power by so many dB between two readings is an event.
POWER_STEP = 3.0
# Columns without a value, or 0, while an ONU has no light: those of the last value and its time, and when they are
# read.
KEPT = {
    "rx_dbm": (("last_rx_dbm", "last_rx_at"), "power_at"),
    "distance_m": (("last_distance_m", "last_distance_at"), "read_at"),
}

# Each change of these is an event.
TRACKED = frozenset({"state", "serial", "mac", "down_cause"})


@dataclass(frozen=True, slots=True)
class Columns:
    """Readings in columns: entry i of each is of the ONU with index i. Indexes are unique."""

    indexes: Sequence[str]
    # Slot, port and onu; None if the run does not report it.
    places: Mapping[str, Sequence[int | None]]
    columns: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, readings: Sequence[Reading]) -> "Columns":
        """Return readings in columns. A batch already has them, so no object per ONU is created."""
        batch = readings if isinstance(readings, Batch) else Batch.of(readings)
        if len(set(batch.layout.indexes)) < len(batch):
            batch = Batch.of(merge_twins(tuple(batch)))
        layout = batch.layout
        places = {"slot": list(layout.slots), "port": list(layout.ports), "onu": list(layout.onus)}
        return cls(layout.indexes, places, batch.columns)

    def only(self, entries: Sequence[int]) -> "Columns":
        return Columns(
            [self.indexes[entry] for entry in entries],
            {name: [column[entry] for entry in entries] for name, column in self.places.items()},
            {name: [column[entry] for entry in entries] for name, column in self.columns.items()},
        )


@dataclass(slots=True)
class OnuChange:
    """A change of an ONU, by its position in the inventory, or by its index if it is new."""

    onu: int | str
    field: str
    old: str
    new: str
    cause: str = ""


@dataclass(slots=True)
class InventoryChanges:
    """Changes to write, by position in the inventory and column."""

    at: datetime
    cells: defaultdict[int, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    # New ONUs in columns, and their port numbers.
    found: dict[str, list[Any]] = field(default_factory=dict)
    found_ports: list[int] = field(default_factory=list)
    # ONUs that release their index before others take it.
    leaving: list[int] = field(default_factory=list)
    # Replaced ONUs, and the index that another one has now.
    replaced: dict[int, str] = field(default_factory=dict)
    # Ports without a row, numbered after those of the inventory; ports with new times; ONUs on another port.
    new_ports: list[Port] = field(default_factory=list)
    moved_times: dict[str, set[int]] = field(default_factory=dict)
    port_of: dict[int, int] = field(default_factory=dict)
    events: list[OnuChange] = field(default_factory=list)
    # ONUs that may be counted differently after the run.
    counted: set[int] = field(default_factory=set)


def compare(
    inventory: "Inventory",
    read: Columns,
    now: datetime,
    census: Census | None = None,
    known: "KnownOnus | None" = None,
    *,
    is_single: bool = False,
) -> InventoryChanges:
    """Return the changes of a run. The inventory must have the columns that were read.

    With `is_single` an ONU gets its own times. Otherwise its port would, and all other ONUs of the port their own.
    """
    return _Comparison(inventory, read, now, is_single=is_single).run(census or Census(), known)


class _Comparison:
    """One comparison, in steps. The inventory is only read."""

    def __init__(self, inventory: "Inventory", read: Columns, now: datetime, *, is_single: bool = False) -> None:
        self._inventory = inventory
        self._is_single = is_single
        self._read = read
        self._now = now
        self._changes = InventoryChanges(now)
        # Positions with a change that makes an event, and those with a new place.
        self._tracked: set[int] = set()
        self._placed: set[int] = set()
        self._port_numbers = dict(inventory.port_numbers)
        # The serial, MAC or index of the replaced ONU, by the index that another one has now.
        self._replaced_at: dict[str, str] = {}

    def run(self, census: Census, known: "KnownOnus | None") -> InventoryChanges:
        indexes = self._read.indexes
        if known is None:
            self._positions = self._inventory.positions_of(indexes)
        else:
            self._positions = list(map(self._presence(census, known).get, indexes))
        met, new = self._read, None
        if isinstance(self._positions, range):
            self._met: Sequence[int] = self._positions
        else:
            if None in self._positions:
                entries = range(len(self._positions))
                new = self._read.only([entry for entry in entries if self._positions[entry] is None])
                met = self._read.only([entry for entry in entries if self._positions[entry] is not None])
            self._met = [position for position in self._positions if position is not None]
        self._compare(met)
        if new is not None:
            self._find(new)
        self._assign_ports()
        self._changes.counted |= self._tracked | self._changes.port_of.keys()
        if self._is_single:
            self._set_own_times(met, new)
        else:
            self._move_times(met, new)
        self._date_states()
        self._make_events()
        return self._changes

    def _presence(self, census: Census, known: "KnownOnus") -> dict[str, int]:
        """Apply a census, and return the holder of each index after it."""
        changes, columns, position = self._changes, self._inventory.columns, known.positions
        gone = set(census.gone)
        for key in census.found:
            self._set(position[key], misses=0, missing_since=None)
        for key in census.missed:
            self._set(position[key], misses=columns["misses"][position[key]] + 1)
            if key in gone:
                self._set(position[key], missing_since=self._now)
        movers = [position[move.known.index] for move in census.moved]
        others = [position[key] for key in census.replaced]
        changes.leaving = [*movers, *others]
        holders = self._inventory.positions
        if changes.leaving:
            left = {columns["index"][each] for each in changes.leaving if not columns["place_taken"][each]}
            holders = {index: each for index, each in holders.items() if index not in left}
        for each in others:
            # An ONU that was missing before keeps its time.
            since = changes.cells[each].get("missing_since", columns["missing_since"][each])
            changes.cells[each] |= {"place_taken": True, "missing_since": since or self._now}
            index = changes.replaced[each] = columns["index"][each]
            names = (columns[name][each] for name in ("serial", "mac") if name in columns)
            self._replaced_at[index] = next(filter(None, names), index)
            self._tracked.add(each)
        for move, each in zip(census.moved, movers, strict=True):
            changes.cells[each] |= {"place_taken": False, "replaced_by_id": None, "index": move.reading.index}
            if known.is_elsewhere(move):
                changes.cells[each] |= {"moved_at": self._now, "moved_from": known.origin(move)}
            holders[move.reading.index] = each
            self._tracked.add(each)
        return holders

    def _set(self, position: int, **values: Any) -> None:
        columns = self._inventory.columns
        changed = {name: value for name, value in values.items() if columns[name][position] != value}
        if changed:
            self._changes.cells[position] |= changed
            self._tracked.add(position)

    def _compare(self, read: Columns) -> None:
        """Find the cells of known ONUs that differ from the readings."""
        self._compare_places(read)
        extras = {}
        for name, column in read.columns.items():
            if name not in FILLED:
                extras[name] = column
                continue
            self._compare_column(name, column)
        self._tracked |= self._placed
        if extras:
            self._compare_extras(extras)

    def _compare_places(self, read: Columns) -> None:
        for name, column in read.places.items():
            for position, value in self._differing(name, column):
                if (place := normal(PLACE[name], value)) not in (None, self._inventory.columns[name][position]):
                    self._changes.cells[position][name] = place
                    self._placed.add(position)

    def _compare_column(self, name: str, column: Sequence[Any]) -> None:
        known, differing = self._inventory.columns[name], self._differing(name, column)
        stored = _stored(name, [value for _, value in differing])
        for (position, _), value in zip(differing, stored, strict=True):
            if known[position] != value:
                self._changes.cells[position][name] = value
                if name in TRACKED:
                    self._tracked.add(position)
                if name in KEPT and not value and known[position]:
                    self._keep_last(position, name)
        if name == "rx_dbm":
            powers = zip(differing, stored, strict=True)
            self._changes.counted |= {each for (each, _), rx in powers if is_weak(rx) is not is_weak(known[each])}

    def _keep_last(self, position: int, name: str) -> None:
        """Keep the last value of a column that has none now, and when it was read."""
        (value, at), time = KEPT[name]
        columns, port = self._inventory.columns, self._inventory.port_of[position]
        read_at = columns[f"own_{time}"][position] or self._inventory.time_of(time, port)
        self._changes.cells[position] |= {value: columns[name][position], at: read_at}

    def _differing(self, name: str, column: Sequence[Any]) -> list[tuple[int, Any]]:
        """Return the positions and new values where a column differs."""
        old = self._inventory.column_at(name, self._met)
        if old == column:
            return []
        entries = compress(count(), map(ne, old, column))
        return [(self._met[entry], column[entry]) for entry in entries if column[entry] is not UNREAD]

    def _compare_extras(self, extras: Mapping[str, Sequence[Any]]) -> None:
        known = self._inventory.columns["extra"]
        for name, column in extras.items():
            for position, value in zip(self._met, column, strict=True):
                if value is UNREAD or known[position].get(name, UNREAD) == value:
                    continue
                if (stored := plain_value(value)) != known[position].get(name, UNREAD):
                    extra = self._changes.cells[position].setdefault("extra", dict(known[position]))
                    extra[name] = stored

    def _find(self, new: Columns) -> None:
        """Create rows of new ONUs."""
        found: dict[str, list[Any]] = {"index": list(new.indexes), "first_seen_at": [self._now] * len(new.indexes)}
        found |= {name: normals(PLACE[name], column) for name, column in new.places.items()}
        found["state"] = [Onu.State.UNKNOWN.value] * len(new.indexes)
        found["extra"] = [NO_EXTRA] * len(new.indexes)
        for name, column in new.columns.items():
            if name in FILLED:
                found[name] = _stored(name, [None if value is UNREAD else value for value in column])
                continue
            for entry, value in enumerate(column):
                if value is not UNREAD:
                    found["extra"][entry] = {**found["extra"][entry], name: plain_value(value)}
        starts = {name: found[name] for name in ("state", *STATE_STARTS) if name in found}
        found["state_since"] = [
            self._since(dict(zip(starts, values, strict=True))) if values[0] != Onu.State.UNKNOWN else None
            for values in zip(*starts.values(), strict=True)
        ]
        self._changes.found = found
        self._changes.found_ports = list(map(self._port_number, zip(found["slot"], found["port"], strict=True)))
        self._changes.events += [
            OnuChange(index, Field.PRESENCE, "", Presence.PRESENT, self._arrival(index, FOUND)) for index in new.indexes
        ]

    def _port_number(self, port: Port) -> int:
        if port not in self._port_numbers:
            self._port_numbers[port] = len(self._port_numbers)
            self._changes.new_ports.append(port)
        return self._port_numbers[port]

    def _assign_ports(self) -> None:
        """Find ONUs whose port changed, or that have none yet."""
        columns, port_of = self._inventory.columns, self._inventory.port_of
        strangers = [position for position in self._met if port_of[position] == NO_PORT] if NO_PORT in port_of else []
        for position in {*self._placed, *strangers}:
            changed = self._changes.cells.get(position, {})
            port = tuple(changed.get(name, columns[name][position]) for name in ("slot", "port"))
            number = self._port_number((port[0], port[1]))
            if number != port_of[position]:
                self._changes.port_of[position] = number

    def _move_times(self, met: Columns, new: Columns | None) -> None:
        """Update the times of the ports that were read. ONUs that were left out keep their times."""
        every = set(self._met)
        ports_of_every = self._ports_of(every)
        left_out_of_every = set(range(len(self._inventory.ids))) - every
        for time, fields in TIMES.items():
            readers, ports, left_out = every, ports_of_every, left_out_of_every
            if not isinstance(entries := _entries(met, fields), range):
                readers = {self._met[entry] for entry in entries}
                ports, left_out = self._ports_of(readers), left_out | (every - readers)
            found = set(_entries(new, fields)) if new is not None else set()
            ports = ports | {self._changes.found_ports[entry] for entry in found}
            self._changes.moved_times[time] = ports
            own = self._inventory.columns[f"own_{time}"]
            for position in compress(count(), own):
                if position in readers:
                    self._changes.cells[position][f"own_{time}"] = None
            if ports or self._changes.port_of:
                for position in left_out:
                    self._keep_time(time, position, ports)
            if new is not None:
                covered = ports | {number for number, at in enumerate(self._inventory.port_times[time]) if at}
                self._changes.found[f"own_{time}"] = [
                    NEVER if entry not in found and number in covered else None
                    for entry, number in enumerate(self._changes.found_ports)
                ]

    def _set_own_times(self, met: Columns, new: Columns | None) -> None:
        """Give the ONUs that were read their own times."""
        for time, fields in TIMES.items():
            for position in self._changes.port_of:
                self._keep_time(time, position, set())
            for entry in _entries(met, fields):
                self._changes.cells[self._met[entry]][f"own_{time}"] = self._now
            if new is not None:
                found = set(_entries(new, fields))
                own = [self._now if entry in found else NEVER for entry in range(len(new.indexes))]
                self._changes.found[f"own_{time}"] = own

    def _ports_of(self, positions: set[int]) -> set[int]:
        """Return the ports on which these ONUs are after the run."""
        if not self._changes.port_of and len(positions) == len(self._inventory.port_of):
            return set(self._inventory.port_of)
        return set(map(self._port_after, positions))

    def _port_after(self, position: int) -> int:
        return self._changes.port_of.get(position, self._inventory.port_of[position])

    def _keep_time(self, time: str, position: int, ports: set[int]) -> None:
        """Give an ONU that was not read its own time, if that of its port changes."""
        inventory, number = self._inventory, self._port_after(position)
        before = inventory.columns[f"own_{time}"][position]
        if number not in ports and position not in self._changes.port_of:
            return
        kept = before or inventory.time_of(time, inventory.port_of[position]) or NEVER
        by_port = self._now if number in ports else inventory.time_of(time, number)
        own = None if kept == (by_port or NEVER) else kept
        if own != before:
            self._changes.cells[position][f"own_{time}"] = own

    def _date_states(self) -> None:
        """Set the start of each state that changed or was read for the first time."""
        for position in self._tracked:
            changed = self._changes.cells.get(position, {})
            if "state" not in changed:
                continue
            columns = self._inventory.columns
            before = self._inventory.state_read_at(position)
            is_still_dark = changed["state"] in Onu.DARK and columns["state"][position] in Onu.DARK
            if before is None or not is_still_dark:
                values = {name: columns[name][position] for name in STATE_STARTS if name in self._read.columns}
                changed["state_since"] = self._since(values | changed, before)

    def _since(self, values: Mapping[str, Any], before: datetime | None = None) -> datetime:
        """Return the start of a state: the time that the device reports, if it fits, else that of this run.

        `before` is when the state was last read. An earlier time is that of another change, or of a wrong clock.
        """
        state = values["state"]
        began, ended = map(values.get, STATE_STARTS if state in Onu.DARK else reversed(STATE_STARTS))
        if began is None or not (state in Onu.DARK or state == Onu.State.ONLINE):
            return self._now
        if ended is not None and ended > began:
            return self._now
        earliest = NEVER if before is None else before - CLOCK_SLACK
        return min(began, self._now) if earliest <= began <= self._now + CLOCK_SLACK else self._now

    def _make_events(self) -> None:
        """Create an event for each change of presence, place, serial, MAC, state and down cause, and power steps."""
        columns = self._inventory.columns
        for position in sorted(self._tracked):
            changed = self._changes.cells.get(position, {})
            if "missing_since" in changed or "place_taken" in changed:
                self._presence_event(position, changed)
            if position in self._placed or "index" in changed:
                self._place_event(position, changed)
            for name in ("serial", "mac", "state", "down_cause"):
                if name in changed and not self._is_first(position, name, changed):
                    old, new = columns[name][position], changed[name]
                    cause = self._down_cause(position) if name == "state" and new != Onu.State.ONLINE else ""
                    self._event(position, name, old or "", new or "", cause)
        for position, changed in self._changes.cells.items():
            if "rx_dbm" in changed and is_step(old := columns["rx_dbm"][position], new := changed["rx_dbm"]):
                self._event(position, Field.RX_DBM, str(old), str(new))

    def _is_first(self, position: int, name: str, changed: Mapping[str, Any]) -> bool:
        """Return whether a value is the first of its kind, and so not a change.

        A first down cause is a change if the state changed too; otherwise it belongs to an outage before Facho knew
        the ONU.
        """
        was_state_read = self._inventory.state_read_at(position) is not None
        if name == "state":
            return not was_state_read
        came_with_state = name == "down_cause" and was_state_read and "state" in changed
        return not self._inventory.columns[name][position] and not came_with_state

    def _event(self, onu: int, name: str, old: str, new: str, cause: str = "") -> None:
        if old != new:
            self._changes.events.append(OnuChange(onu, name, old, new, cause))

    def _presence_event(self, position: int, changed: Mapping[str, Any]) -> None:
        names = ("missing_since", "place_taken")
        before = [self._inventory.columns[name][position] for name in names]
        old = presence(*before)
        new = presence(*(changed.get(name, value) for name, value in zip(names, before, strict=True)))
        cause = ""
        if new is Presence.PRESENT:
            # A found ONU at another place also has an event for its place.
            index = self._inventory.columns["index"][position]
            is_elsewhere = changed.get("index", index) != index
            cause = FOUND_AGAIN if is_elsewhere else self._arrival(index, FOUND_AGAIN)
        elif position in self._changes.replaced:
            cause = REPLACED_BY + self._identity(self._changes.replaced[position])
        elif old is Presence.PRESENT:
            # Not replaced: an ONU of replaced hardware has no place of its own.
            new, cause = Presence.MISSING, NOT_FOUND
        self._event(position, Field.PRESENCE, old, new, cause)

    def _place_event(self, position: int, changed: Mapping[str, Any]) -> None:
        names = ("slot", "port", "onu", "index")
        before = [self._inventory.columns[name][position] for name in names]
        after = [changed.get(name, value) for name, value in zip(names, before, strict=True)]
        if before != after:
            old, new = place_name(*before), place_name(*after)
            # The index may change while the place does not.
            old, new = (before[3], after[3]) if old == new else (old, new)
            cause = self._arrival(after[3], MOVED) if before[3] != after[3] else ""
            self._event(position, Field.PLACE, old, new, cause)

    def _arrival(self, index: str, otherwise: str) -> str:
        """Return the cause of an event of an ONU that now has this index."""
        return REPLACES + self._replaced_at[index] if index in self._replaced_at else otherwise

    def _down_cause(self, position: int) -> str:
        """Return the down cause, if this run read it: an older one may belong to an earlier outage."""
        if position not in self._entry_of or "down_cause" not in self._read.columns:
            return ""
        value = self._read.columns["down_cause"][self._entry_of[position]]
        return "" if value is UNREAD else normal(FILLED["down_cause"], value) or ""

    @cached_property
    def _entry_of(self) -> dict[int, int]:
        return {position: entry for entry, position in enumerate(self._positions) if position is not None}

    def _identity(self, index: str) -> str:
        """Return the serial of the ONU that has an index now, or its MAC, or its index."""
        entry = self._read.indexes.index(index)
        values = (self._read.columns.get(name) for name in ("serial", "mac"))
        read = (column[entry] for column in values if column is not None)
        return str(next((value for value in read if value and value is not UNREAD), index))


def is_weak(rx_dbm: float | None) -> bool:
    return rx_dbm is not None and rx_dbm < RX_WEAK


def is_step(old: float | None, new: float | None) -> bool:
    """Return whether a power fell or rose suddenly. An ONU without light has no power."""
    return old is not None and new is not None and abs(new - old) >= POWER_STEP


def presence(missing_since: datetime | None, place_taken: bool) -> OnuEvent.Presence:
    if missing_since is None:
        return Presence.PRESENT
    return Presence.REPLACED if place_taken else Presence.MISSING


def place_name(slot: int | None, port: int | None, onu: int | None, index: str) -> str:
    """Return the place of an ONU for display, or its index if the place is unknown."""
    return index if None in (slot, port, onu) else f"{slot}/{port}/{onu}"


def _stored(name: str, values: Iterable[Any]) -> list[Any]:
    """Return values in the form of the table. The state is never empty."""
    stored = normals(FILLED[name], values)
    return [value or Onu.State.UNKNOWN.value for value in stored] if name == "state" else stored


def _entries(read: Columns, fields: Collection[str]) -> Iterable[int]:
    """Return the entries that have one of the fields; without fields all of them."""
    if not fields:
        return range(len(read.indexes))
    columns = [read.columns[name] for name in fields if name in read.columns]
    if any(UNREAD not in column for column in columns):
        return range(len(read.indexes))
    return {entry for column in columns for entry, value in enumerate(column) if value is not UNREAD}


# Columns that every comparison needs.
ALWAYS = (
    "index", "place_taken", "slot", "port", "onu", "state", "rx_dbm", "misses", "missing_since",
    *(f"own_{time}" for time in TIMES),
)  # fmt: skip

# Fields of a `KnownOnu`, and the columns that decide which ONUs are known.
KNOWN = ("index", "state", "slot", "port", "onu", "serial", "mac", "misses")
OF_KNOWN = frozenset({*KNOWN, "place_taken", "missing_since"})

# Columns whose values must be converted for the driver.
ADAPTED = {
    str(field.column)
    for field in Onu._meta.concrete_fields
    if isinstance(field, models.DateTimeField | models.JSONField)
}


class Inventory:
    """ONUs of one OLT: entry p of `ids`, `port_of` and each column is the same ONU.

    Valid as long as only `apply` writes ONUs of the OLT. After a failed transaction it must be loaded again.
    """

    def __init__(self, olt_id: int) -> None:
        self.olt_id = olt_id
        # Value of `olts.inventory_version` when these rows were read or written.
        self.version: int | None = None
        # Start and reason of a suspicion.
        self.suspect_since: datetime | None = None
        self.suspicion: Suspicion | None = None
        self._known: list[KnownOnu] | None = None
        self._unplaced: list[int] | None = None
        self.ids: list[int] = []
        self.columns: dict[str, list[Any]] = {}
        # Position of the holder of each index.
        self.positions: dict[str, int] = {}
        # Indexes of the last run in its order, and their positions: mostly the next run has the same.
        self._last: tuple[Sequence[str], Sequence[int | None]] = ((), ())
        # Ports by number: ids and times.
        self.port_numbers: dict[Port, int] = {}
        self.port_ids: list[int] = []
        self.port_times: dict[str, list[datetime | None]] = {time: [] for time in TIMES}
        self.port_of: list[int] = []
        self._counters = PortCounters()

    @classmethod
    def load(cls, olt_id: int, fields: Collection[str] = ()) -> "Inventory":
        """Load the ONUs and ports of an OLT with three queries: the columns of every comparison, and `fields`.

        The ONUs are counted again, so the first run corrects counters that are wrong in the database.
        """
        self = cls(olt_id)
        self.suspect_since, reason = Olt.objects.values_list("suspect_since", "suspect_reason").get(pk=olt_id)
        self.suspicion = Suspicion(reason) if reason else None
        stored = ("pk", "slot", "port", *TIMES, *COUNTERS)
        ports = PonPort.objects.filter(olt_id=olt_id).order_by("pk").values_list(*stored)
        numbers: dict[int | None, int] = {None: NO_PORT}
        for pk, slot, port, *rest in ports:
            numbers[pk] = self._add_port(pk, (slot, port), rest[: len(TIMES)], tuple(rest[len(TIMES) :]))
        names = list(dict.fromkeys((*ALWAYS, *_stored_in(fields))))
        rows = list(Onu.objects.filter(olt_id=olt_id).order_by("pk").values_list("pk", "pon_port_id", *names))
        ids, of, *columns = map(list, zip(*rows, strict=True)) if rows else [[] for _ in range(len(names) + 2)]
        self.ids, self.port_of = ids, [numbers[pk] for pk in of]
        self.columns = dict(zip(names, columns, strict=True))
        self._count(range(len(self.ids)), 1)
        self._index()
        return self

    def ensure(self, fields: Collection[str]) -> None:
        """Load missing columns."""
        names = [name for name in _stored_in(fields) if name not in self.columns]
        if names:
            rows = Onu.objects.filter(olt_id=self.olt_id).values_list("pk", *names)
            by_id = {pk: values for pk, *values in rows}
            for number, name in enumerate(names):
                self.columns[name] = [by_id[pk][number] for pk in self.ids]

    def time_of(self, time: str, number: int) -> datetime | None:
        """Return a time of a port; None if it has none or is new."""
        return self.port_times[time][number] if 0 <= number < len(self.port_ids) else None

    def state_read_at(self, position: int) -> datetime | None:
        """Return when the state of an ONU was last read."""
        at: datetime | None = self.columns["own_state_at"][position] or self.time_of("state_at", self.port_of[position])
        return None if at == NEVER else at

    def is_settled(self, kind: JobKind, read: Columns, absent: Sequence[str]) -> bool:
        """Return whether a run finds every ONU at its index with its serial: then there is nothing to decide.

        This is the case in most runs, and saves checking each ONU.
        """
        if self.unplaced:
            return False
        named = [name for name in ("serial", "mac") if name in read.columns]
        if kind is not JobKind.DISCOVERY and not named:
            return True
        positions = self.positions_of(read.indexes)
        if absent or self.suspect_since is not None or None in positions:
            return False
        self.ensure(named)
        if kind is JobKind.DISCOVERY and any(any(self.column_at(name, positions)) for name in ABSENCE):
            return False
        return all(self.column_at(name, positions) == read.columns[name] for name in named)

    @property
    def unplaced(self) -> list[int]:
        """Return the ONUs that have no place since the hardware was replaced, and are not missing."""
        if self._unplaced is None:
            taken, missing = self.columns["place_taken"], self.columns["missing_since"]
            self._unplaced = [each for each in compress(count(), taken) if missing[each] is None]
        return self._unplaced

    def has_room(self, indexes: Sequence[str], most: int) -> bool:
        """Return whether the new ones among these ONUs fit."""
        room = most - len(self.ids)
        return len(indexes) <= room or sum(each is None for each in self.positions_of(indexes)) <= room

    def known(self) -> list[KnownOnu]:
        """Return the ONUs that can be polled. The same list object while nothing changes.

        An ONU whose index belongs to another one cannot be polled until a run finds it elsewhere.
        """
        if self._known is None:
            self.ensure(KNOWN)
            taken = self.columns["place_taken"]
            self._known = [self._known_onu(each) for each in range(len(self.ids)) if not taken[each]]
        return self._known

    def _known_onu(self, position: int) -> KnownOnu:
        values = {name: self.columns[name][position] for name in KNOWN}
        return KnownOnu(**values, is_missing=self.columns["missing_since"][position] is not None)

    def _renew_known(self, changes: InventoryChanges) -> None:
        """Update the known ONUs after a change: some of them, or all if others can be polled now."""
        changed = [position for position, cells in changes.cells.items() if not OF_KNOWN.isdisjoint(cells)]
        if changes.found or changes.leaving or (changed and any(self.columns["place_taken"])):
            self._known = None
        elif self._known is not None and changed:
            # A copy, because a run in progress uses the old list.
            self._known = self._known.copy()
            for position in changed:
                self._known[position] = self._known_onu(position)

    def apply(self, changes: InventoryChanges) -> None:
        """Write the changes of a run in the open transaction, and keep the new values."""
        known = len(self.ids)
        self._unplaced = None
        self._count(changes.counted, -1)
        self._write_ports(changes)
        for position, number in changes.port_of.items():
            changes.cells[position]["pon_port_id"] = self.port_ids[number]
            self.port_of[position] = number
        # Release indexes first: two ONUs that swap places would violate the unique index.
        Onu.objects.filter(pk__in=[self.ids[each] for each in changes.leaving]).update(place_taken=True)
        self._write_cells(changes.cells)
        self._insert(changes)
        self._count((*changes.counted, *range(known, len(self.ids))), 1)
        self._counters.write(self.port_ids)
        self._write_texts(changes)
        if changes.leaving or changes.found:
            self._index()
        links = [(self.ids[self.positions[index]], self.ids[each]) for each, index in changes.replaced.items()]
        sql.update(Onu, ("replaced_by_id",), links)
        self._renew_known(changes)
        self._write_events(changes)

    def counts_of_read_ports(self, changes: InventoryChanges) -> list[list[int | None]]:
        """Return slot, port and counters of the ports that an applied run read; without counters if not their states.

        None are returned for a run that read a single ONU.
        """
        read, counted = (changes.moved_times.get(time, set()) for time in ("read_at", "state_at"))
        places = {number: place for place, number in self.port_numbers.items()}
        return [[*places[each], *(self._counters.of(each) if each in counted else ())] for each in sorted(read)]

    def _count(self, positions: Iterable[int], step: int) -> None:
        """Add ONUs to the counters of their ports, or remove them with a step of -1."""
        for each in positions:
            if self.port_of[each] != NO_PORT:
                self._counters.add(self.port_of[each], self._counted_as(each), step)

    def _counted_as(self, position: int) -> tuple[str, ...]:
        """Return the counters that include an ONU."""
        columns = self.columns
        # The last values of a missing ONU do not count: it is neither online nor dark.
        if columns["missing_since"][position] is not None:
            return "total", "missing"
        state: str = columns["state"][position]
        held = ("held",) if columns["misses"][position] else ()
        # A dark ONU may still have an old power value.
        weak = ("weak",) if is_weak(columns["rx_dbm"][position]) and state not in Onu.DARK else ()
        return "total", state, *held, *weak

    def _add_port(self, pk: int, port: Port, times: Iterable[datetime | None], counts: tuple[int, ...]) -> int:
        self._counters.add_port(counts)
        for kept, at in zip(self.port_times.values(), times, strict=True):
            kept.append(at)
        self.port_ids.append(pk)
        return self.port_numbers.setdefault(port, len(self.port_numbers))

    def positions_of(self, indexes: Sequence[str]) -> Sequence[int | None]:
        """Return the position of the ONU at each index; None where there is none. All of them in order are a range."""
        last, positions = self._last
        if last is not indexes:
            positions = list(map(self.positions.get, indexes))
            everyone = range(len(self.ids))
            positions = everyone if len(positions) == len(everyone) and all(map(eq, positions, everyone)) else positions
            self._last = indexes, positions
        return positions

    def ids_of(self, indexes: Sequence[str]) -> list[int]:
        """Return the ids of the ONUs at these indexes, all of which are known."""
        positions = self.positions_of(indexes)
        return self.ids if isinstance(positions, range) else [self.ids[each] for each in positions if each is not None]

    def column_at(self, name: str, positions: Sequence[Any]) -> list[Any]:
        """Return a column for the ONUs at these positions. It must not be changed."""
        column = self.columns[name]
        return column if isinstance(positions, range) else list(map(column.__getitem__, positions))

    def _index(self) -> None:
        self._last = (), ()
        taken = self.columns["place_taken"]
        self.positions = {index: each for each, index in enumerate(self.columns["index"]) if not taken[each]}

    def _write_ports(self, changes: InventoryChanges) -> None:
        new = PonPort.objects.bulk_create(
            PonPort(olt_id=self.olt_id, slot=slot, port=port) for slot, port in changes.new_ports
        )
        for row in new:
            self._add_port(row.pk, (row.slot, row.port), [None] * len(TIMES), (0,) * len(COUNTERS))
        moving: defaultdict[int, list[str]] = defaultdict(list)
        for time, numbers in changes.moved_times.items():
            for number in numbers:
                self.port_times[time][number] = changes.at
                moving[number].append(time)
        together: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, times in moving.items():
            together[tuple(times)].append(self.port_ids[number])
        for names, ids in together.items():
            sql.set_columns(PonPort, ids, **dict.fromkeys(names, changes.at))

    def _write_cells(self, cells: dict[int, dict[str, Any]]) -> None:
        """Write rows with the same changed columns together, each row once."""
        groups: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for position, changed in cells.items():
            if changed:
                groups[tuple(changed)].append(position)
        for names, positions in groups.items():
            if ADAPTED.isdisjoint(names):
                rows = [(*cells[each].values(), self.ids[each]) for each in positions]
            else:
                changed = {name: [cells[each][name] for each in positions] for name in names}
                rows = list(zip(*_written(changed), [self.ids[each] for each in positions], strict=True))
            sql.update(Onu, names, rows)
            for name in names:
                if name in self.columns:
                    column = self.columns[name]
                    for each in positions:
                        column[each] = cells[each][name]

    def _insert(self, changes: InventoryChanges) -> None:
        if not changes.found:
            return
        count = len(changes.found_ports)
        row = {"olt_id": self.olt_id, "misses": 0, "moved_from": "", "place_taken": False}
        found: dict[str, list[Any]] = {
            **{name: [value] * count for name, value in row.items()},
            "pon_port_id": [self.port_ids[number] for number in changes.found_ports],
            **changes.found,
        }
        sql.write(Onu, tuple(found), list(zip(*_written(found), strict=True)))
        held = Onu.objects.filter(olt_id=self.olt_id, place_taken=False, pk__gt=max(self.ids, default=0))
        ids = dict(held.values_list("index", "pk"))
        self.ids += map(ids.__getitem__, found["index"])
        self.port_of += changes.found_ports
        for name, column in self.columns.items():
            column += found.get(name, [None] * count)

    def _write_texts(self, changes: InventoryChanges) -> None:
        """Write the texts for the search: of new ONUs, and of those of which one of its fields changed."""
        if changes.found:
            nothing = [None] * len(changes.found_ports)
            texts = map(text_of, *(changes.found.get(name, nothing) for name in TEXT_FIELDS))
            ids = self.ids[-len(nothing) :]
            rows = [(pk, self.olt_id, text) for pk, text in zip(ids, texts, strict=True)]
            sql.write(OnuSearch, ("onu_id", "olt_id", "text"), rows)
        changed = [self.ids[each] for each, cells in changes.cells.items() if not cells.keys().isdisjoint(TEXT_FIELDS)]
        for start in range(0, len(changed), TEXTS_AT_ONCE):
            onus = Onu.objects.filter(pk__in=changed[start : start + TEXTS_AT_ONCE])
            sql.upsert_texts(
                (pk, self.olt_id, text_of(*values)) for pk, *values in onus.values_list("pk", *TEXT_FIELDS)
            )

    def _write_events(self, changes: InventoryChanges) -> None:
        at = timestamp(changes.at)
        values = [
            (
                self.ids[self.positions[event.onu] if isinstance(event.onu, str) else event.onu],
                self.olt_id,
                at,
                str(event.field),
                event.old[:120],
                event.new[:120],
                event.cause[:160],
            )
            for event in changes.events
        ]
        columns = ("onu_id", "olt_id", "at", "field", "old", "new", "cause")
        sql.write(OnuEvent, columns, values)


def _written(columns: Mapping[str, list[Any]]) -> list[list[Any]]:
    """Return columns for the driver."""
    return [list(map(adapted, column)) if name in ADAPTED else column for name, column in columns.items()]


def _stored_in(fields: Collection[str]) -> list[str]:
    """Return the table columns of these fields."""
    names = [name for name in fields if name in FILLED]
    return names if len(names) == len(fields) else [*names, "extra"]


# Maximum number of ONUs in memory: about 1 kB each.
MOST_ONUS = 2_000_000


class Inventories:
    """Inventories by OLT, the least recently used first.

    An inventory is valid while the database has its version: each result with readings raises
    `olts.inventory_version`. The lease of the OLT prevents two runs from using one inventory.
    """

    def __init__(self, most_onus: int = MOST_ONUS) -> None:
        self._most_onus = most_onus
        self._kept: OrderedDict[int, Inventory] = OrderedDict()

    def get(self, olt_id: int, version: int) -> Inventory:
        """Return the inventory of an OLT at this version; loaded if it is not in memory."""
        inventory = self._kept.get(olt_id)
        if inventory is None or inventory.version != version:
            # A new entry is the last, so it is not dropped to make room.
            self._kept.pop(olt_id, None)
            inventory = self._kept[olt_id] = Inventory.load(olt_id)
            inventory.version = version
            held = sum(len(each.ids) for each in self._kept.values())
            while held > self._most_onus and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                held -= len(dropped.ids)
        self._kept.move_to_end(olt_id)
        return inventory

    def known(self, olt_id: int) -> list[KnownOnu]:
        """Return the ONUs of an OLT that can be polled."""
        found = sql.fetch("SELECT inventory_version FROM olts WHERE id = %s", olt_id)
        return self.get(olt_id, found[0][0]).known() if found else []

    def drop(self, olt_id: int) -> None:
        """Drop an inventory after a failed transaction."""
        self._kept.pop(olt_id, None)
