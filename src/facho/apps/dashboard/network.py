"""The network on one page: its OLTs with the worst port of each, and the totals."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from operator import attrgetter
from typing import Any, NamedTuple

from facho.apps.dashboard.queries import OF_ROWS, REACHABILITY_ORDER, OnuCounts, onu_counts, onu_totals
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.telemetry.models import PonPort
from facho.apps.telemetry.port_levels import DARK, Level, level, total_of

TONES = {"unreachable": "bad", "slow": "warn", "reachable": "ok"}
TONES_OF_PORTS = {Level.DARK: "bad", Level.DEGRADED: "warn"}

# Columns of an OLT that its rank and the totals need.
RANKED_BY = ("pk", "name", "enabled", "reachability", "breaker_opened_at")


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
    """The totals of the OLTs that a user sees, and the worst of them."""

    tiles: Sequence[OltTile]
    olts: int
    enabled: int
    answering: int
    unreachable: int
    breakers: Sequence[Olt]
    onus: OnuCounts
    ports_down: int
    ports_degraded: int

    @property
    def other_olts(self) -> int:
        """Return how many OLTs have no tile."""
        return self.olts - len(self.tiles)


class _BadPort(NamedTuple):
    olt: int
    port: int
    level: str
    dark: int


def network_of(user: Any, most: int) -> Network:
    """Return the network that a user sees, with at most so many tiles.

    There may be a thousand OLTs with as many bad ports: they are compared as tuples, and only those with a tile
    become objects.
    """
    worst: dict[int, _BadPort] = {}
    levels: Counter[str] = Counter()
    for found in _bad_ports(user):
        worst.setdefault(found.olt, found)
        levels[found.level] += 1
    states, open_breakers, ranks = Counter[str](), [], []
    for olt_id, name, is_enabled, reachability, breaker in visible_olts(user).order_by().values_list(*RANKED_BY):
        state = reachability if is_enabled else "disabled"
        states[state] += 1
        if is_enabled and breaker:
            open_breakers.append(olt_id)
        port = worst.get(olt_id)
        rank = (False, port.level, -port.dark) if port else (True, "", 0)
        ranks.append((REACHABILITY_ORDER[state], *rank, name, olt_id))
    shown = [olt_id for *_rank, olt_id in nsmallest(most, ranks)]
    counts = onu_counts(user, shown)
    olts = visible_olts(user).select_related("site").only(*OF_ROWS).in_bulk([*shown, *open_breakers])
    shown_ports = PonPort.objects.filter(pk__in=[worst[olt_id].port for olt_id in shown if olt_id in worst])
    ports = {port.olt_id: port for port in shown_ports}
    return Network(
        tiles=[
            OltTile(olts[olt_id], counts.get(olt_id, OnuCounts()), ports.get(olt_id))
            for olt_id in shown
            if olt_id in olts
        ],
        olts=len(ranks),
        enabled=len(ranks) - states["disabled"],
        answering=states["reachable"] + states["slow"],
        unreachable=states["unreachable"],
        breakers=sorted((olts[olt_id] for olt_id in open_breakers if olt_id in olts), key=attrgetter("name")),
        onus=onu_totals(user),
        ports_down=levels[Level.DARK],
        ports_degraded=levels[Level.DEGRADED],
    )


def _bad_ports(user: Any) -> Iterator[_BadPort]:
    """Return the ports that are down or degraded, the worst first."""
    # As a dictionary: the type checker takes keywords for attributes, which exist.
    numbers: dict[str, Any] = {"level": level(), "dark": total_of(DARK)}
    ports: Any = PonPort.objects.annotate(**numbers)
    # In alphabetical order, "dark" comes before "degraded".
    found = ports.filter(level__in=(Level.DARK, Level.DEGRADED)).order_by("level", "-dark", "slot", "port")
    return map(_BadPort._make, restrict(found, user).values_list("olt_id", "pk", "level", "dark"))
