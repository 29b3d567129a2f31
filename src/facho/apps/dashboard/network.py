"""The network on one page: its OLTs with the worst port of each, and the totals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from facho.apps.dashboard.queries import REACHABILITY_ORDER, OnuCounts, olt_rows, total
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import restrict
from facho.apps.telemetry.models import PonPort
from facho.apps.telemetry.port_levels import DARK, Level, level, total_of

TONES = {"unreachable": "bad", "slow": "warn", "reachable": "ok"}
TONES_OF_PORTS = {Level.DARK: "bad", Level.DEGRADED: "warn"}


@dataclass(frozen=True, slots=True)
class OltTile:
    """An OLT, its ONU counters, and its worst port if one is down or degraded."""

    olt: Olt
    onus: OnuCounts
    worst: PonPort | None = None

    @property
    def tone(self) -> str:
        """Return the colour: of the OLT, or of a port that is worse."""
        own = TONES.get(self.olt.state, "quiet")
        if self.worst is None or own in ("bad", "quiet"):
            return "warn" if own == "ok" and self.olt.suspect_since else own
        return TONES_OF_PORTS[self.worst.level]


@dataclass(frozen=True, slots=True)
class Network:
    """The OLTs that a user sees, the worst first, and their totals."""

    tiles: Sequence[OltTile]
    onus: OnuCounts
    ports_down: int
    ports_degraded: int

    @property
    def enabled(self) -> int:
        return sum(tile.olt.enabled for tile in self.tiles)

    @property
    def answering(self) -> int:
        return sum(tile.olt.state in ("reachable", "slow") for tile in self.tiles)

    @property
    def unreachable(self) -> int:
        return sum(tile.olt.state == "unreachable" for tile in self.tiles)

    @property
    def breakers(self) -> list[Olt]:
        """Return the OLTs that are only probed."""
        return [tile.olt for tile in self.tiles if tile.olt.enabled and tile.olt.breaker_opened_at]


def network_of(user: Any) -> Network:
    """Return the network that a user sees, with three queries."""
    worst: dict[int, PonPort] = {}
    down = degraded = 0
    for port in _bad_ports(user):
        worst.setdefault(port.olt_id, port)
        down += port.level == Level.DARK
        degraded += port.level == Level.DEGRADED
    tiles = [OltTile(row.olt, row.onus, worst.get(row.olt.pk)) for row in olt_rows(user)]
    return Network(sorted(tiles, key=_worst_first), total(tile.onus for tile in tiles), down, degraded)


def _bad_ports(user: Any) -> Any:
    """Return the ports that are down or degraded, those with most ONUs down first."""
    # As a dictionary: the type checker takes keywords for attributes, which exist.
    numbers: dict[str, Any] = {"level": level(), "dark": total_of(DARK)}
    ports: Any = PonPort.objects.alias(**numbers)
    # In alphabetical order, "dark" comes before "degraded".
    found = ports.filter(level__in=(Level.DARK, Level.DEGRADED)).order_by("level", "-dark", "slot", "port")
    return restrict(found, user)


def _worst_first(tile: OltTile) -> tuple[int, bool, str, int, str]:
    worst = tile.worst
    rank = (False, worst.level.value, -worst.dark) if worst else (True, "", 0)
    return (REACHABILITY_ORDER[tile.olt.state], *rank, tile.olt.name)
