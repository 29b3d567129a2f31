"""What was found out about one agent, from run to run: sizes and windows that suit it, and values it cannot read."""

from collections.abc import Iterable, Mapping
from typing import Any

from facho.engine.collect.flow import Pace, Size
from facho.engine.oid import Oid, parse, text

# An OLT with more poisoned values than this has another trouble.
MAX_POISONED = 200


class Learned:
    """Begins with what is stored of an OLT, and ends as what to store. Whatever is not understood is forgotten."""

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self._stored = {key: rows for key, rows in _mapping(stored, "sizes").items() if isinstance(rows, int)}
        self._sizes: dict[str, Size] = {}
        self._stored_paces = _mapping(stored, "pace")
        self._paces: dict[str, Pace] = {}
        self._poisoned = dict.fromkeys(_oids(stored.get("poisoned")))
        self._unordered = dict.fromkeys(_strings(stored.get("unordered")))

    def size(self, table: str, rows: int, columns: int = 1) -> Size:
        """Return the size of requests to a table; `rows` is where the maker would begin."""
        if table not in self._sizes:
            known = self._stored.get(table)
            self._sizes[table] = Size(known or rows, columns, is_proven=known is not None)
        return self._sizes[table]

    def pace(self, kind: str, limit: int) -> Pace:
        """Return the window of one kind of request, where the last run left it."""
        return self._paces.setdefault(kind, Pace(limit, _mapping(self._stored_paces, kind)))

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes that this run ended up with."""
        return {table: size.proven_rows for table, size in self._sizes.items()}

    @property
    def poisoned(self) -> Iterable[Oid]:
        """Return the values that an agent cannot be asked for together with others."""
        return self._poisoned.keys()

    def poison(self, oid: Oid) -> None:
        """Note that this value spoils whatever request it is in. The one that did so last stands last."""
        if self._poisoned.pop(oid, oid) is None or len(self._poisoned) < MAX_POISONED:
            self._poisoned[oid] = None

    def cure(self, oid: Oid) -> None:
        """Note that this value could be read."""
        self._poisoned.pop(oid, None)

    def is_ordered(self, table: str) -> bool:
        """Say whether a table can be read in parts: not if its rows were seen out of order."""
        return table not in self._unordered

    def note_disorder(self, table: str) -> None:
        self._unordered[table] = None

    def as_json(self) -> dict[str, Any]:
        """Return what the next run should know."""
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


def _oids(value: object) -> list[Oid]:
    oids = []
    for each in _strings(value):
        try:
            oids.append(parse(each))
        except ValueError:
            continue
    return oids
