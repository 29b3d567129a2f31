"""Readings of a run in columns: one list per field, one entry per ONU."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, overload


class Unread:
    """The type of `UNREAD`."""

    def __repr__(self) -> str:
        return "UNREAD"

    def __reduce__(self) -> str:
        # A copy is the same object.
        return "UNREAD"


# Marks a value that was not read. None means that the device has no value.
UNREAD: Final = Unread()


@dataclass(frozen=True, slots=True)
class Reading:
    """Values of one ONU in one run. A value that the device does not have is None."""

    index: str
    slot: int | None
    port: int | None
    onu: int | None
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """ONUs of a batch, in order, as parallel tuples.

    While the inventory does not change, consecutive runs share the same object.
    """

    indexes: tuple[str, ...] = ()
    slots: tuple[int | None, ...] = ()
    ports: tuple[int | None, ...] = ()
    onus: tuple[int | None, ...] = ()

    def __len__(self) -> int:
        return len(self.indexes)


@dataclass(frozen=True, slots=True, eq=False)
class Batch(Sequence[Reading]):
    """Readings of a run over a layout of ONUs. Lists in `columns` must not be changed.

    An unchanged column is the same list as in the previous batch. As a sequence, a batch creates its readings one by
    one.
    """

    layout: BatchLayout = field(default_factory=BatchLayout)
    # By field; UNREAD for values that were not read.
    columns: Mapping[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> "Batch":
        """Return readings as columns."""
        rows = list(readings)
        layout = BatchLayout(
            tuple([row.index for row in rows]),
            tuple([row.slot for row in rows]),
            tuple([row.port for row in rows]),
            tuple([row.onu for row in rows]),
        )
        names = dict.fromkeys(name for row in rows for name in row.values)
        return cls(layout, {name: [row.values.get(name, UNREAD) for row in rows] for name in names})

    def sharing(self, earlier: "Batch") -> "Batch":
        """Return the same batch with the layout and columns of an earlier one where they are equal."""
        if self.layout != earlier.layout:
            return self
        columns = {
            name: old if (old := earlier.columns.get(name)) == values else values
            for name, values in self.columns.items()
        }
        return Batch(earlier.layout, columns)

    def __iter__(self) -> Iterator[Reading]:
        """Yield an object for each ONU, for callers that work on one at a time."""
        layout = self.layout
        names = tuple(self.columns)
        rows = zip(*self.columns.values(), strict=True) if names else iter([()] * len(layout))
        for index, slot, port, onu, values in zip(
            layout.indexes, layout.slots, layout.ports, layout.onus, rows, strict=True
        ):
            found = dict(zip(names, values, strict=True))
            if UNREAD in values:
                found = {name: value for name, value in found.items() if value is not UNREAD}
            yield Reading(index, slot, port, onu, found)

    def has_value(self, name: str) -> bool:
        """Return whether any ONU has a value of this field."""
        return any(value is not None and value is not UNREAD for value in self.columns.get(name, ()))

    def __len__(self) -> int:
        return len(self.layout.indexes)

    @overload
    def __getitem__(self, place: int) -> Reading: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Reading]: ...
    def __getitem__(self, place: int | slice) -> Reading | Sequence[Reading]:
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.layout.indexes)
