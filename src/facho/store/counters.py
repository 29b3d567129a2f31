"""Counters of PON ports: kept in memory beside the ONUs, and written where a run changed them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from facho.apps.telemetry.models import COUNTERS, RX_WEAK, Onu, PonPort
from facho.store import sql

# Port number of an ONU without a port.
NO_PORT = -1

# Columns of an ONU that decide how it is counted.
OF_COUNTERS = ("state", "missing_since", "misses", "rx_dbm")


def is_weak(rx_dbm: float | None) -> bool:
    return rx_dbm is not None and rx_dbm < RX_WEAK


class PortCounters:
    """Counters of an OLT's ports, by port number.

    They always equal a count of the ONUs in memory. Counters that differ in the database are written by the next run.
    """

    def __init__(self) -> None:
        self._counts: list[Counter[str]] = []
        self._stored: list[tuple[int, ...]] = []
        # Ports that were counted since the last write.
        self._touched: set[int] = set()

    def add_port(self, stored: tuple[int, ...]) -> None:
        self._counts.append(Counter())
        self._stored.append(stored)

    def count(
        self, columns: Mapping[str, Sequence[Any]], port_of: Sequence[int], positions: Iterable[int], step: int
    ) -> None:
        """Add ONUs to the counters of their ports, or remove them with a step of -1."""
        states, missing_since, misses, powers = (columns[name] for name in OF_COUNTERS)
        for each in positions:
            if (number := port_of[each]) == NO_PORT:
                continue
            self._touched.add(number)
            counts = self._counts[number]
            counts["total"] += step
            # The last values of a missing ONU do not count: it is neither online nor dark.
            if missing_since[each] is not None:
                counts["missing"] += step
                continue
            counts[states[each]] += step
            if misses[each]:
                counts["held"] += step
            # A dark ONU may still have an old power value.
            if is_weak(powers[each]) and states[each] not in Onu.DARK:
                counts["weak"] += step

    def write(self, port_ids: Sequence[int]) -> None:
        """Write the counters that changed, in the open transaction."""
        rows = []
        for number in self._touched:
            counts = tuple(self._counts[number][name] for name in COUNTERS)
            if counts != self._stored[number]:
                self._stored[number] = counts
                rows.append((*counts, port_ids[number]))
        self._touched.clear()
        sql.update(PonPort, COUNTERS, rows)
