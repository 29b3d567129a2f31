"""Effect of a run on the presence of ONUs, decided by `engine/presence.py` from the inventory."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from facho.apps.inventory.models import Olt
from facho.engine.events import Event, log_event
from facho.engine.model import Collected, KnownOnu, Node, Reading
from facho.engine.presence import Census, Move, Rules, Vanishing, find_moves, take_census
from facho.store.inventory import Inventory, place_name

logger = logging.getLogger(__name__)

# Name of an ONU without an index in a census; all others are named by their index. No OID has it.
NO_INDEX = "~"

# Maximum number of ONU names in an event.
NAMED = 5

# Fields for a census, besides those of every comparison.
FIELDS = ("name", "state", "serial", "mac")


@dataclass(frozen=True, slots=True)
class KnownOnus:
    """ONUs of an OLT by their name in a census."""

    onus: list[KnownOnu]
    # Position in the inventory.
    positions: dict[str, int]
    # Last index on the device.
    indexes: dict[str, str]
    names: dict[str, str]

    @classmethod
    def of(cls, inventory: Inventory) -> "KnownOnus":
        inventory.ensure(FIELDS)
        known = cls([], {}, {}, {})
        names = ("index", "place_taken", "name", "state", "slot", "port", "onu", "serial", "mac", "misses")
        rows = zip(*(inventory.columns[name] for name in (*names, "missing_since")), strict=True)
        for position, (index, taken, name, state, slot, port, onu, serial, mac, misses, since) in enumerate(rows):
            key = f"{NO_INDEX}{position}" if taken else index
            known.onus.append(KnownOnu(key, state, slot, port, onu, serial, mac, misses, since is not None))
            known.positions[key], known.indexes[key], known.names[key] = position, index, name or serial or index
        return known

    def is_elsewhere(self, move: Move) -> bool:
        """Return whether a moved ONU has another index now. A replaced ONU may return to its own."""
        return self.indexes[move.known.index] != move.reading.index

    def origin(self, move: Move) -> str:
        """Return the previous place of a moved ONU."""
        return place_name(move.known.slot, move.known.port, move.known.onu, self.indexes[move.known.index])


@dataclass(frozen=True, slots=True)
class PresenceVerdict:
    """A census, the ONUs known before it, and the readings of its run."""

    census: Census
    known: KnownOnus
    readings: Sequence[Reading]


def take_discovery(inventory: Inventory, collected: Collected, rules: Rules, now: datetime) -> PresenceVerdict:
    """Decide from a discovery which ONUs moved, were replaced, are missing or are back."""
    known = KnownOnus.of(inventory)
    was_suspect = inventory.suspect_since is not None
    census = take_census(known.onus, collected.readings, collected.absent, was_suspect=was_suspect, rules=rules)
    since = now if census.vanishing is Vanishing.SUSPECTED else inventory.suspect_since
    since = since if census.is_suspect else None
    if since != inventory.suspect_since:
        Olt.objects.filter(pk=inventory.olt_id).update(suspect_since=since)
        inventory.suspect_since = since
    return PresenceVerdict(census, known, _proven(census, collected.readings))


def follow_moves(inventory: Inventory, collected: Collected) -> PresenceVerdict:
    """Move rows with their ONUs if a run other than a discovery reads serials.

    Otherwise its readings would write the serial of one ONU to the row of another.
    """
    known = KnownOnus.of(inventory)
    census = find_moves(known.onus, collected.readings)
    return PresenceVerdict(census, known, _proven(census, collected.readings))


def _proven(census: Census, readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return the readings without serials and MACs that must not overwrite known ones."""
    if not census.unproven:
        return readings
    unproven = set(census.unproven)
    proven = []
    for each in readings:
        if each.index in unproven:
            values = {name: value for name, value in each.values.items() if name not in ("serial", "mac")}
            each = replace(each, values=values)
        proven.append(each)
    return proven


def tell_census(node: Node, verdict: PresenceVerdict) -> None:
    """Log the changes found by a run, one event per kind. Called after the commit."""
    census, names = verdict.census, verdict.known.names
    _tell_vanishing(node, census)
    replaced = []
    if census.replaced:
        found = {reading.index: reading.values for reading in verdict.readings}
        for index in census.replaced:
            replaced.append(f"{names[index]} by {found[index].get('serial') or found[index].get('mac') or index}")
    moved = [move.known.index for move in census.moved if verdict.known.is_elsewhere(move)]
    for event, named in (
        (Event.ONUS_MISSING, [names[index] for index in census.gone]),
        (Event.ONUS_REPLACED, replaced),
        (Event.ONUS_BACK, [names[index] for index in census.back]),
        (Event.ONUS_MOVED, [names[index] for index in moved]),
    ):
        if named:
            listed = ", ".join(named[:NAMED])
            if len(named) > NAMED:
                listed += f" and {len(named) - NAMED} more"
            log_event(logger, event, olt_id=node.olt_id, olt=node.olt_name, count=len(named), names=listed)


def _tell_vanishing(node: Node, census: Census) -> None:
    events = {
        Vanishing.SUSPECTED: Event.VANISHING_SUSPECTED,
        Vanishing.CONFIRMED: Event.VANISHING_CONFIRMED,
        Vanishing.OVER: Event.VANISHING_OVER,
    }
    event = events.get(census.vanishing)
    if event is not None:
        missed = len(census.missed)
        if census.vanishing is Vanishing.OVER:
            # Replaced ONUs did not disappear, but are not present either.
            missed += len(census.replaced)
        log_event(logger, event, olt_id=node.olt_id, olt=node.olt_name, missed=missed, present=census.present)
