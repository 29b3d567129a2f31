"""Learned facts about an agent: sizes and windows that suit it, and values it cannot read."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from facho.engine.collect.flow import Pace, Size
from facho.engine.oid import Oid, parse, text

# An OLT with more poisoned values has another problem.
MAX_POISONED = 200


class Learned:
    """Loaded from `olts.learned` and stored there again. Unknown entries are dropped."""

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self._stored = {key: rows for key, rows in _mapping(stored, "sizes").items() if isinstance(rows, int)}
        self._sizes: dict[str, Size] = {}
        self._stored_paces = _mapping(stored, "pace")
        self._paces: dict[str, Pace] = {}
        self._poisoned: dict[Oid, None] = {}
        for oid in _strings(stored.get("poisoned")):
            with suppress(ValueError):
                self._poisoned[parse(oid)] = None
        self._unordered = dict.fromkeys(_strings(stored.get("unordered")))

    def size(self, table: str, rows: int, columns: int = 1) -> Size:
        """Return the request size of a table; `rows` is the start value of the brand."""
        if table not in self._sizes:
            known = self._stored.get(table)
            self._sizes[table] = Size(known or rows, columns, is_proven=known is not None)
        return self._sizes[table]

    def pace(self, kind: str, limit: int) -> Pace:
        """Return the window of one kind of request, as in the last run."""
        return self._paces.setdefault(kind, Pace(limit, _mapping(self._stored_paces, kind)))

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes at the end of this run."""
        return {table: size.proven_rows for table, size in self._sizes.items()}

    @property
    def poisoned(self) -> Iterable[Oid]:
        """Return the values that make requests with others fail."""
        return self._poisoned.keys()

    def poison(self, oid: Oid) -> None:
        """Record a value that makes its requests fail. The latest one is last."""
        if self._poisoned.pop(oid, oid) is None or len(self._poisoned) < MAX_POISONED:
            self._poisoned[oid] = None

    def cure(self, oid: Oid) -> None:
        """Record that this value could be read."""
        self._poisoned.pop(oid, None)

    def is_ordered(self, table: str) -> bool:
        """Return whether a table can be read in parts: not if its rows were out of order."""
        return table not in self._unordered

    def note_disorder(self, table: str) -> None:
        self._unordered[table] = None

    def as_json(self) -> dict[str, Any]:
        """Return the facts for the next run."""
        return {
            "sizes": {**self._stored, **self.sizes},
            "poisoned": [text(oid) for oid in self._poisoned],
            "unordered": list(self._unordered),
            "pace": {kind: pace for kind, each in self._paces.items() if (pace := each.as_json())},
        }


def _mapping(stored: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = stored.get(key)
    return value if isinstance(value, Mapping) else {}


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
