"""Limits on the ONUs of one OLT. A faulty or hostile agent can report any number of them."""

from collections.abc import Sequence
from typing import NamedTuple

# Four times the largest OLTs: 16 cards with 16 ports of 64 ONUs.
MOST_ONUS = 65_536

# Rows of a column in one run. Some tables have rows that are not ONUs.
ROWS_PER_ONU = 2


class RowLimit:
    """Rows that a run reads of one table, all ports together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._read = 0

    def add(self, rows: int) -> None:
        self._read += rows

    @property
    def is_reached(self) -> bool:
        return self._read >= self._most

    @property
    def reason(self) -> str:
        return f"the limit of {self._most:,} rows was reached"


class Admitted(NamedTuple):
    """New ONUs that fit, by index: unknown ones, and those that replace another one."""

    unknown: frozenset[str]
    replacing: frozenset[str]


def admit(stored: int, unknown: Sequence[str], replacing: Sequence[str], most: int) -> Admitted:
    """Return the new ONUs of a run that an OLT with so many stored ONUs may get. Replacements come first."""
    room = max(0, most - stored)
    taken = min(room, len(replacing))
    return Admitted(frozenset(unknown[: room - taken]), frozenset(replacing[:taken]))
