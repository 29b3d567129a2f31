"""Changes of a run: the inventory of an OLT compared with the readings, column by column. No I/O.

Most values repeat those of the last run, so a column is first compared as a whole, then only cells that differ. The
result contains everything to write, including events.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import compress, count
from operator import ne
from typing import TYPE_CHECKING, Any

from facho.apps.telemetry.models import (
    FOUND,
    FOUND_AGAIN,
    MOVED,
    NEVER,
    NOT_FOUND,
    REPLACED_BY,
    REPLACES,
    Onu,
    OnuEvent,
)
from facho.engine.batch import UNREAD, Batch
from facho.engine.model import Reading
from facho.engine.presence import Census
from facho.store.sql import FILLED, PLACE, POWERS, merge_twins, normal, normals, plain_value

if TYPE_CHECKING:
    from facho.store.inventory import Inventory
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


def compare(
    inventory: "Inventory", read: Columns, now: datetime, census: Census | None = None, known: "KnownOnus | None" = None
) -> InventoryChanges:
    """Return the changes of a run. The inventory must have the columns that were read."""
    return _Comparison(inventory, read, now).run(census or Census(), known)


class _Comparison:
    """One comparison, in steps. The inventory is only read."""

    def __init__(self, inventory: "Inventory", read: Columns, now: datetime) -> None:
        self._inventory = inventory
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
        self._move_times(met, new)
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
        cells = self._changes.cells
        for name, column in read.places.items():
            for position, value in self._differing(name, column):
                if (place := normal(PLACE[name], value)) not in (None, self._inventory.columns[name][position]):
                    cells[position][name] = place
                    self._placed.add(position)
        extras = {}
        for name, column in read.columns.items():
            if name not in FILLED:
                extras[name] = column
                continue
            changed = self._cells(name, column)
            for position, value in changed:
                cells[position][name] = value
            if name in TRACKED:
                self._tracked.update(position for position, _ in changed)
        self._tracked |= self._placed
        if extras:
            self._compare_extras(extras)

    def _differing(self, name: str, column: Sequence[Any]) -> list[tuple[int, Any]]:
        """Return the positions and new values where a column differs."""
        old = self._inventory.column_at(name, self._met)
        if old == column:
            return []
        entries = compress(count(), map(ne, old, column))
        return [(self._met[entry], column[entry]) for entry in entries if column[entry] is not UNREAD]

    def _cells(self, name: str, column: Sequence[Any]) -> list[tuple[int, Any]]:
        """Return the same, in the form of the table column."""
        known, differing = self._inventory.columns[name], self._differing(name, column)
        stored = _stored(name, [value for _, value in differing])
        pairs = zip([position for position, _ in differing], stored, strict=True)
        return [(position, value) for position, value in pairs if known[position] != value]

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

    def _make_events(self) -> None:
        """Create an event for each change of presence, place, serial, MAC, state and down cause."""
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

    def _is_first(self, position: int, name: str, changed: Mapping[str, Any]) -> bool:
        """Return whether a value is the first of its kind, and so not a change.

        A first down cause is a change if the state changed too; otherwise it belongs to an outage before Facho knew
        the ONU.
        """
        was_state_read = self._inventory.was_state_read(position)
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
            cause = NOT_FOUND
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
