"""Counters of PON ports: kept in memory beside the ONUs, and written where a run changed them."""

from collections.abc import Iterable, Sequence

from facho.apps.telemetry.models import COUNTERS, PonPort
from facho.store import sql


class PortCounters:
    """Counters of an OLT's ports, by port number.

    They equal a count of the ONUs in memory. Those that differ in the database are written by the next run.
    """

    def __init__(self) -> None:
        self._counts: list[dict[str, int]] = []
        self._stored: list[tuple[int, ...]] = []
        # Ports that were counted since the last write.
        self._touched: set[int] = set()

    def add_port(self, stored: tuple[int, ...]) -> None:
        self._counts.append(dict.fromkeys(COUNTERS, 0))
        self._stored.append(stored)

    def add(self, port: int, names: Iterable[str], step: int) -> None:
        """Add an ONU to counters of a port, or remove it with a step of -1."""
        self._touched.add(port)
        counts = self._counts[port]
        for name in names:
            # An ONU in a state that has no counter is only in the total.
            counts[name] = counts.get(name, 0) + step

    def of(self, port: int) -> tuple[int, ...]:
        """Return the counters of a port, in the order of `COUNTERS`."""
        return tuple(map(self._counts[port].__getitem__, COUNTERS))

    def write(self, port_ids: Sequence[int]) -> None:
        """Write the counters that changed, in the open transaction."""
        rows = []
        for port in self._touched:
            counts = self.of(port)
            if counts != self._stored[port]:
                self._stored[port] = counts
                rows.append((*counts, port_ids[port]))
        self._touched.clear()
        sql.update(PonPort, COUNTERS, rows)
