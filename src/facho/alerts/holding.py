"""Alerts that are only listed: another alert explains them. The one place that decides whether an alert is held."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from facho.alerts.kinds import RuleKind
from facho.alerts.rules import Firing, Hold

# Kinds that say nothing new about an OLT that does not answer, and about a port that is down.
BEHIND_OLT = frozenset({RuleKind.PORT_DARK, RuleKind.LOW_POWER, RuleKind.VIOLATION, RuleKind.MASS_VANISHING})
BEHIND_PORT = frozenset({RuleKind.LOW_POWER})

Place = tuple[int | None, int | None, int | None]


@dataclass(slots=True)
class Explained:
    """OLTs and ports with an open alert that is reported. What is behind them is held."""

    olts: set[int | None] = field(default_factory=set)
    ports: set[Place] = field(default_factory=set)

    def add(self, kind: str, places: Iterable[Place]) -> None:
        """Add the places of a kind of alert."""
        if kind == RuleKind.OLT_UNREACHABLE:
            self.olts.update(olt for olt, _slot, _port in places)
        elif kind == RuleKind.PORT_DARK:
            self.ports.update(places)

    def hold(self, kind: str, firing: Firing) -> Hold | None:
        """Return the reason for which an alert is held; None if it is reported."""
        if kind in BEHIND_OLT and firing.olt_id in self.olts:
            return Hold.OLT_UNREACHABLE
        if kind in BEHIND_PORT and (firing.olt_id, firing.slot, firing.port) in self.ports:
            return Hold.PORT_DARK
        return None
