"""Effect of a run on the presence of ONUs, decided by `engine/presence.py` from the inventory."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.engine.events import Event, log_event
from facho.engine.limits import admit
from facho.engine.model import Collected, JobKind, KnownOnu, Node, Reading
from facho.engine.presence import Census, Move, Rules, Suspicion, Vanishing, find_moves, take_census
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
    # Number of new ONUs that were not stored, and whether the OLT is suspect for them now and before.
    left_out: int = 0
    has_too_many: bool = False
    had_too_many: bool = False


def take_discovery(inventory: Inventory, collected: Collected, rules: Rules, now: datetime) -> PresenceVerdict:
    """Decide from a discovery which ONUs moved, were replaced, are missing or are back."""
    known = KnownOnus.of(inventory)
    was_suspect = inventory.suspicion is Suspicion.VANISHING
    unplaced = {f"{NO_INDEX}{position}" for position in inventory.unplaced} if collected.is_whole else ()
    census = take_census(
        known.onus, collected.readings, collected.absent, was_suspect=was_suspect, rules=rules, unplaced=unplaced
    )
    verdict = _admitted(inventory, PresenceVerdict(census, known, collected.readings), collected.excess, rules)
    suspicion = Suspicion.TOO_MANY if verdict.left_out else None
    if census.is_suspect:
        suspicion = Suspicion.VANISHING
    is_new = suspicion is not inventory.suspicion or census.vanishing is Vanishing.SUSPECTED
    return _suspected(inventory, verdict, suspicion, now if is_new else inventory.suspect_since)


def follow_moves(inventory: Inventory, collected: Collected, rules: Rules, now: datetime) -> PresenceVerdict:
    """Move rows with their ONUs if a run other than a discovery reads serials.

    Otherwise its readings would write the serial of one ONU to the row of another.
    """
    known = KnownOnus.of(inventory)
    census = find_moves(known.onus, collected.readings)
    readings = _without_strangers(inventory, census, collected.readings) if inventory.unplaced else collected.readings
    verdict = _admitted(inventory, PresenceVerdict(census, known, readings), collected.excess, rules)
    if not verdict.left_out or inventory.suspicion is not None:
        # Only a discovery ends a suspicion.
        return verdict
    return _suspected(inventory, verdict, Suspicion.TOO_MANY, now)


def _without_strangers(inventory: Inventory, census: Census, readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return the readings of known ONUs only, while known ONUs of replaced hardware have no place.

    A reading without a serial could be of any of them. The discovery knows.
    """
    if not WorkflowNode.objects.filter(olt=inventory.olt_id, job__kind=JobKind.DISCOVERY).exists():
        return readings
    held = inventory.positions.keys() | {move.reading.index for move in census.moved}
    return tuple(each for each in readings if each.index in held)


def _admitted(inventory: Inventory, verdict: PresenceVerdict, excess: int, rules: Rules) -> PresenceVerdict:
    """Return a verdict without new ONUs beyond the limit, and without serials that prove nothing.

    An ONU that would replace another one beyond the limit is not believed: the known one keeps its row.
    """
    census, readings = verdict.census, verdict.readings
    if len(inventory.ids) + len(readings) > rules.most_onus:
        arrived = {move.reading.index for move in census.moved}
        held = inventory.positions.keys() | arrived
        unknown = [each.index for each in readings if each.index not in held]
        replacing = [index for index in census.replaced if index not in arrived]
        admitted = admit(len(inventory.ids), unknown, replacing, rules.most_onus)
        refused, kept = set(unknown) - admitted.unknown, set(replacing) - admitted.replacing
        readings = [each for each in readings if each.index not in refused]
        replaced = tuple(index for index in census.replaced if index not in kept)
        census = replace(census, replaced=replaced, unproven=(*census.unproven, *kept))
        excess += len(refused) + len(kept)
    return replace(verdict, census=census, readings=_proven(census, readings), left_out=excess)


def _suspected(
    inventory: Inventory, verdict: PresenceVerdict, suspicion: Suspicion | None, since: datetime | None
) -> PresenceVerdict:
    """Store whether and why the OLT is suspect."""
    before, since = inventory.suspicion, since if suspicion else None
    if (since, suspicion) != (inventory.suspect_since, before):
        Olt.objects.filter(pk=inventory.olt_id).update(suspect_since=since, suspect_reason=suspicion or "")
        inventory.suspect_since, inventory.suspicion = since, suspicion
    too_many = Suspicion.TOO_MANY
    return replace(verdict, has_too_many=suspicion is too_many, had_too_many=before is too_many)


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
    _tell_limit(node, verdict)
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


def _tell_limit(node: Node, verdict: PresenceVerdict) -> None:
    """Log once that there are too many ONUs, and once that there are not any more."""
    if verdict.has_too_many and not verdict.had_too_many:
        left_out = verdict.left_out
        log_event(logger, Event.ONUS_OVER_LIMIT, olt_id=node.olt_id, olt=node.olt_name, left_out=left_out)
    elif verdict.had_too_many and not verdict.has_too_many:
        log_event(logger, Event.ONUS_WITHIN_LIMIT, olt_id=node.olt_id, olt=node.olt_name)


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
