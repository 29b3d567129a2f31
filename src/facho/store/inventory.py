"""Inventory: the ONUs of an OLT in columns, as in the database, kept between runs."""

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from operator import eq
from typing import Any

from django.db import models

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import NEVER, Onu, OnuEvent, PonPort
from facho.engine.model import KnownOnu
from facho.store import sql
from facho.store.compare import NO_PORT, TIMES, InventoryChanges, Port
from facho.store.sql import FILLED, Rows, adapted, timestamp

# Columns that every comparison needs.
ALWAYS = (
    "index", "place_taken", "slot", "port", "onu", "misses", "missing_since", *(f"own_{time}" for time in TIMES),
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
        # Start of an unconfirmed mass disappearance.
        self.suspect_since: datetime | None = None
        self._known: list[KnownOnu] | None = None
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

    @property
    def is_suspect(self) -> bool:
        return self.suspect_since is not None

    @classmethod
    def load(cls, olt_id: int, fields: Collection[str] = ()) -> "Inventory":
        """Load the ONUs and ports of an OLT with three queries: the columns of every comparison, and `fields`."""
        self = cls(olt_id)
        self.suspect_since = Olt.objects.values_list("suspect_since", flat=True).get(pk=olt_id)
        ports = PonPort.objects.filter(olt_id=olt_id).order_by("pk").values_list("pk", "slot", "port", *TIMES)
        numbers: dict[int | None, int] = {None: NO_PORT}
        for pk, slot, port, *times in ports:
            numbers[pk] = self._add_port(pk, (slot, port), times)
        names = list(dict.fromkeys((*ALWAYS, *_stored_in(fields))))
        rows = list(Onu.objects.filter(olt_id=olt_id).order_by("pk").values_list("pk", "pon_port_id", *names))
        ids, of, *columns = map(list, zip(*rows, strict=True)) if rows else [[] for _ in range(len(names) + 2)]
        self.ids, self.port_of = ids, [numbers[pk] for pk in of]
        self.columns = dict(zip(names, columns, strict=True))
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

    def was_state_read(self, position: int) -> bool:
        own = self.columns["own_state_at"][position] or self.time_of("state_at", self.port_of[position])
        return own is not None and own != NEVER

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
        self._write_ports(changes)
        for position, number in changes.port_of.items():
            changes.cells[position]["pon_port_id"] = self.port_ids[number]
            self.port_of[position] = number
        # Release indexes first: two ONUs that swap places would violate the unique index.
        Onu.objects.filter(pk__in=[self.ids[each] for each in changes.leaving]).update(place_taken=True)
        self._write_cells(changes.cells)
        self._insert(changes)
        if changes.leaving or changes.found:
            self._index()
        links = [(self.ids[self.positions[index]], self.ids[each]) for each, index in changes.replaced.items()]
        sql.update(Onu, ("replaced_by_id",), links)
        self._renew_known(changes)
        self._write_events(changes)

    def _add_port(self, pk: int, port: Port, times: Iterable[datetime | None]) -> int:
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
            self._add_port(row.pk, (row.slot, row.port), [None] * len(TIMES))
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
                rows = [(*map(adapted, cells[each].values()), self.ids[each]) for each in positions]
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
        written = [list(map(adapted, column)) if name in ADAPTED else column for name, column in found.items()]
        sql.write(Rows(Onu._meta.db_table, tuple(found), list(zip(*written, strict=True))))
        held = Onu.objects.filter(olt_id=self.olt_id, place_taken=False, pk__gt=max(self.ids, default=0))
        ids = dict(held.values_list("index", "pk"))
        self.ids += map(ids.__getitem__, found["index"])
        self.port_of += changes.found_ports
        for name, column in self.columns.items():
            column += found.get(name, [None] * count)

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
        sql.write(Rows(OnuEvent._meta.db_table, columns, values))


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
            inventory = self._kept[olt_id] = Inventory.load(olt_id)
            inventory.version = version
            self._make_room()
        self._kept.move_to_end(olt_id)
        return inventory

    def known(self, olt_id: int) -> list[KnownOnu]:
        """Return the ONUs of an OLT that can be polled."""
        found = sql.fetch("SELECT inventory_version FROM olts WHERE id = %s", olt_id)
        return self.get(olt_id, found[0][0]).known() if found else []

    def drop(self, olt_id: int) -> None:
        """Drop an inventory after a failed transaction."""
        self._kept.pop(olt_id, None)

    def _make_room(self) -> None:
        held = sum(len(each.ids) for each in self._kept.values())
        while held > self._most_onus and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            held -= len(dropped.ids)
