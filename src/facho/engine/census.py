"""Who is there: what a discovery says of the ONUs that were known before it. Only decisions: no clock, no I/O.

Absence is what the engine's `absent` names and nothing else: an ONU whose port
was not read to its end is neither there nor gone. An ONU that is there under
another index is recognised by its serial, so that its history goes with it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from facho.engine.model import KnownOnu, Reading


class Vanishing(StrEnum):
    """What a run says about many ONUs that vanished at once."""

    NONE = "none"
    # Too many at once to be believed: nobody of them goes missing before a second discovery says the same.
    SUSPECTED = "suspected"
    # It was suspected, and this run could say neither yes nor no.
    HELD = "held"
    CONFIRMED = "confirmed"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Rules:
    """When an ONU counts as missing."""

    # Discoveries in a row that did not find it.
    misses: int = 2
    # In percent of an OLT's ONUs: when more than this vanish at once, that is suspect. 100 suspects nothing.
    mass: int = 30

    def is_mass(self, part: int, whole: int) -> bool:
        return part * 100 > self.mass * whole


USUAL_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Move:
    """An ONU that has another index now."""

    known: KnownOnu
    reading: Reading


@dataclass(frozen=True, slots=True)
class Census:
    """What becomes of the ONUs that were known. Each is named by the index it had before."""

    moved: tuple[Move, ...] = ()
    # Their index belongs to another one now, and they were found nowhere yet.
    displaced: tuple[str, ...] = ()
    # Found after having been missed: they start again at no misses.
    found: tuple[str, ...] = ()
    # Those of the found that had gone missing.
    back: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    # Those of the missed that go missing now.
    gone: tuple[str, ...] = ()
    vanishing: Vanishing = Vanishing.NONE
    # How many had not been missing before: those that were missed are a part of them.
    present: int = 0

    @property
    def is_suspect(self) -> bool:
        return self.vanishing in (Vanishing.SUSPECTED, Vanishing.HELD)


def take_census(
    known: Sequence[KnownOnu],
    readings: Sequence[Reading],
    absent: Collection[str],
    *,
    was_suspect: bool,
    rules: Rules,
) -> Census:
    """Decide what a discovery means for the ONUs known before it."""
    read = {reading.index: reading for reading in readings}
    moved = _moves(known, read)
    movers = {move.known.index for move in moved}
    displaced = {move.reading.index for move in moved} - movers
    not_seen = set(absent) - read.keys() - movers
    found = [onu for onu in known if onu.index in movers or (onu.index in read and onu.index not in displaced)]
    missed = [onu for onu in known if onu.index in not_seen and not onu.is_missing]
    seen = {onu.index for onu in found} | displaced
    unsaid = [onu for onu in known if not (onu.is_missing or onu.index in not_seen or onu.index in seen)]
    present = sum(not onu.is_missing for onu in known)
    vanishing, gone = _judge(missed, unsaid, present, was_suspect=was_suspect, rules=rules)
    return Census(
        moved=moved,
        displaced=tuple(onu.index for onu in known if onu.index in displaced),
        found=tuple(onu.index for onu in found if onu.misses or onu.is_missing),
        back=tuple(onu.index for onu in found if onu.is_missing),
        missed=tuple(onu.index for onu in missed),
        gone=gone,
        vanishing=vanishing,
        present=present,
    )


def find_moves(known: Sequence[KnownOnu], readings: Sequence[Reading]) -> Census:
    """Decide who moved, by a run that is no discovery: who is there, it does not say."""
    moved = _moves(known, {reading.index: reading for reading in readings})
    displaced = {move.reading.index for move in moved} - {move.known.index for move in moved}
    return Census(moved=moved, displaced=tuple(onu.index for onu in known if onu.index in displaced))


def _judge(
    missed: Sequence[KnownOnu], unsaid: Sequence[KnownOnu], present: int, *, was_suspect: bool, rules: Rules
) -> tuple[Vanishing, tuple[str, ...]]:
    """Judge the vanishing of those who were missed, and return who of them goes missing.

    Under a suspicion the ones that are gone again are its confirmation; only
    those that vanished since can be a new one.
    """
    again = [onu for onu in missed if was_suspect and onu.misses]
    new = [onu for onu in missed if not (was_suspect and onu.misses)]
    is_confirmed = rules.is_mass(len(again), present)
    gone = [onu for onu in again if is_confirmed or onu.misses + 1 >= rules.misses]
    if rules.is_mass(len(new), present):
        return Vanishing.SUSPECTED, _indexes(gone)
    gone += [onu for onu in new if onu.misses + 1 >= rules.misses]
    if not was_suspect:
        return Vanishing.NONE, _indexes(gone)
    if is_confirmed:
        return Vanishing.CONFIRMED, _indexes(gone)
    still_open = rules.is_mass(sum(onu.misses > 0 for onu in unsaid), present)
    return Vanishing.HELD if still_open else Vanishing.OVER, _indexes(gone)


def _indexes(onus: Sequence[KnownOnu]) -> tuple[str, ...]:
    return tuple(onu.index for onu in onus)


def _moves(known: Sequence[KnownOnu], read: Mapping[str, Reading]) -> tuple[Move, ...]:
    """Return who is read under an index that was not theirs: by serial, and by MAC where there is no serial."""
    at_home = {onu.index for onu in known if onu.index in read and _is_same(onu, read[onu.index])}
    moves: dict[str, Move] = {}
    arrived = set(at_home)
    for name in ("serial", "mac"):
        once = _once(read.values(), name)
        for value, candidates in _by(known, name).items():
            reading = once.get(value)
            if reading is None or reading.index in arrived:
                continue
            free = [onu for onu in candidates if onu.index not in moves and onu.index not in at_home]
            mover = _mover(free, reading, read, name)
            if mover is not None:
                moves[mover.index] = Move(mover, reading)
                arrived.add(reading.index)
    return tuple(moves.values())


def _is_same(onu: KnownOnu, reading: Reading) -> bool:
    """Return whether an ONU was read for certain: by its serial, or by its MAC where either has no serial."""
    serial, mac = reading.values.get("serial"), reading.values.get("mac")
    if onu.serial and serial:
        return bool(onu.serial == serial)
    return bool(onu.mac and onu.mac == mac)


def _mover(candidates: Sequence[KnownOnu], reading: Reading, read: Mapping[str, Reading], name: str) -> KnownOnu | None:
    """Return which of the ONUs with one serial is the one that was read elsewhere; None where that is not sure."""
    left = [onu for onu in candidates if _is_same(onu, reading) and _has_left(onu, read.get(onu.index), name)]
    # A row that has long been missing may carry the serial too: the one that was there last is meant.
    chosen = [onu for onu in left if not onu.is_missing] or left
    return chosen[0] if len(chosen) == 1 else None


def _has_left(onu: KnownOnu, reading: Reading | None, name: str) -> bool:
    """Return whether an index is not this ONU's any more: nothing was read there, or somebody else for certain."""
    if reading is None:
        return True
    there = reading.values.get(name)
    return bool(there) and there != getattr(onu, name)


def _once(readings: Collection[Reading], name: str) -> dict[str, Reading]:
    """Return readings by a value that none of the others has."""
    counts = Counter(reading.values.get(name) for reading in readings)
    return {value: each for each in readings if (value := each.values.get(name)) and counts[value] == 1}


def _by(known: Sequence[KnownOnu], name: str) -> dict[str, list[KnownOnu]]:
    groups: dict[str, list[KnownOnu]] = {}
    for onu in known:
        if value := getattr(onu, name):
            groups.setdefault(value, []).append(onu)
    return groups
