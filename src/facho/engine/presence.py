"""Presence of ONUs after a run: present, moved, replaced or missing. Decisions only: no clock, no I/O.

Only ONUs in the collector's `absent` count as absent: an ONU whose port was not read to the end is neither present
nor missing. An ONU found at another index is recognised by its serial and keeps its history. An ONU whose index has
another serial is replaced: that is proof, so it is missing at once.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from facho.engine.limits import MOST_ONUS
from facho.engine.model import KnownOnu, Reading


class Vanishing(StrEnum):
    """Assessment of a mass disappearance."""

    NONE = "none"
    # Too many at once: none is marked as missing before a second discovery confirms it.
    SUSPECTED = "suspected"
    # It was suspected, and this run could neither confirm nor refute it.
    HELD = "held"
    CONFIRMED = "confirmed"
    OVER = "over"


class Suspicion(StrEnum):
    """Why the ONUs that an OLT reports are in doubt."""

    # A mass disappearance that is not confirmed yet.
    VANISHING = "missing"
    # More ONUs than the limit. The new ones beyond it are not stored.
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for missing and for new ONUs."""

    # Consecutive discoveries without the ONU.
    misses: int = 2
    # Percentage of an OLT's ONUs: a larger disappearance at once is suspect. 100 turns this off.
    mass: int = 30
    # Stored ONUs of an OLT, missing ones included.
    most_onus: int = MOST_ONUS

    def is_mass(self, part: int, whole: int) -> bool:
        return part * 100 > self.mass * whole


USUAL_RULES = Rules()

# Placeholders of agents for an unknown identity: blanks, all zeros, all ones, a vendor and zeros.
PLACEHOLDER = re.compile(r"\W*|[0\W]{4,}|[fF\W]{4,}|[A-Za-z]{4}0{8}")


@dataclass(frozen=True, slots=True)
class Move:
    """An ONU with a new index."""

    known: KnownOnu
    reading: Reading


@dataclass(frozen=True, slots=True)
class Census:
    """Changes of the known ONUs, by their previous index."""

    moved: tuple[Move, ...] = ()
    # Another ONU has their index, and they were not found elsewhere. They are missing from now on.
    replaced: tuple[str, ...] = ()
    # Read without a usable serial or MAC, which must not overwrite the known one.
    unproven: tuple[str, ...] = ()
    # Found after misses; their counter is reset.
    found: tuple[str, ...] = ()
    # Found ONUs that were marked as missing.
    back: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    # Missed ONUs that are marked as missing now.
    gone: tuple[str, ...] = ()
    vanishing: Vanishing = Vanishing.NONE
    # Number of ONUs that were not missing before, including the missed ones.
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
    unplaced: Collection[str] = (),
) -> Census:
    """Return the effect of a discovery on the known ONUs.

    `unplaced` are ONUs of replaced hardware without a place so far, if the discovery would have found them. Their
    absence says nothing about the others, so it is no mass disappearance.
    """
    read = {reading.index: reading for reading in readings}
    run = find_moves(known, readings)
    movers = {move.known.index for move in run.moved}
    not_seen = set(absent) - read.keys() - movers
    found = [onu for onu in known if onu.index in movers or (onu.index in read and onu.index not in run.replaced)]
    missed = [onu for onu in known if onu.index in not_seen and not onu.is_missing]
    not_placed = [onu for onu in known if onu.index in unplaced and onu.index not in movers and not onu.is_missing]
    lost = [onu for onu in not_placed if onu.misses + 1 >= rules.misses]
    seen = {onu.index for onu in found} | set(run.replaced)
    unsaid = [onu for onu in known if not (onu.is_missing or onu.index in not_seen or onu.index in seen)]
    present = sum(not onu.is_missing for onu in known)
    vanishing, gone = _judge(missed, unsaid, present, was_suspect=was_suspect, rules=rules)
    return replace(
        run,
        found=tuple(onu.index for onu in found if onu.misses or onu.is_missing),
        back=tuple(onu.index for onu in found if onu.is_missing),
        missed=tuple(onu.index for onu in (*missed, *not_placed)),
        gone=tuple(onu.index for onu in (*gone, *lost)),
        vanishing=vanishing,
        present=present,
    )


def find_moves(known: Sequence[KnownOnu], readings: Sequence[Reading]) -> Census:
    """Return moved and replaced ONUs. Any run with serials can prove a move; only a discovery proves absence."""
    read = {reading.index: reading for reading in readings}
    moved = _moves(known, read)
    movers = {move.known.index for move in moved}
    taken = {move.reading.index for move in moved}
    staying = [onu for onu in known if onu.index in read and onu.index not in movers]
    differing = []
    for onu in staying:
        values = read[onu.index].values
        is_known = values.get("serial", onu.serial) == onu.serial and values.get("mac", onu.mac) == onu.mac
        if onu.index not in taken and not is_known:
            differing.append(onu)
    if not differing:
        # The usual case: all are read as known.
        return Census(moved=moved, replaced=tuple(onu.index for onu in staying if onu.index in taken))
    proof = _Proof(known, readings)
    others = {onu.index for onu in differing if proof.is_other(onu, read[onu.index])}
    unproven = [onu for onu in differing if onu.index not in others and proof.is_worse(onu, read[onu.index])]
    return Census(
        moved=moved,
        replaced=tuple(onu.index for onu in staying if onu.index in taken or onu.index in others),
        unproven=tuple(onu.index for onu in unproven),
    )


def is_identity(value: object) -> bool:
    """Return whether a serial or MAC can identify an ONU: neither empty nor a placeholder."""
    return bool(value) and PLACEHOLDER.fullmatch(str(value)) is None


class _Proof:
    """Serials and MACs that identify one ONU: those that only one row or reading has."""

    def __init__(self, known: Sequence[KnownOnu], readings: Sequence[Reading]) -> None:
        present = [onu for onu in known if not onu.is_missing]
        self._known = {name: Counter(getattr(onu, name) for onu in present) for name in ("serial", "mac")}
        self._read = {name: _once(readings, name) for name in ("serial", "mac")}

    def is_other(self, onu: KnownOnu, reading: Reading) -> bool:
        """Return whether a reading is certainly of another ONU: by serial, or by MAC if neither has a serial."""
        serial, mac = self._known_value(onu, "serial"), self._known_value(onu, "mac")
        read_serial, read_mac = self._read_value(reading, "serial"), self._read_value(reading, "mac")
        if serial and read_serial:
            # The same MAC with another serial is one ONU whose serial was changed.
            return serial != read_serial and not (mac and mac == read_mac)
        return bool(not serial and not read_serial and mac and read_mac and mac != read_mac)

    def is_worse(self, onu: KnownOnu, reading: Reading) -> bool:
        """Return whether a reading would overwrite a valid identity with an invalid one.

        An identity that was read at another place is not kept here.
        """
        name = "serial" if self._known_value(onu, "serial") else "mac"
        value = self._known_value(onu, name)
        is_kept = value is not None and value not in self._read[name]
        return is_kept and name in reading.values and self._read_value(reading, name) is None

    def _known_value(self, onu: KnownOnu, name: str) -> str | None:
        value: str | None = getattr(onu, name)
        is_shared = self._known[name][value] > (not onu.is_missing)
        return value if is_identity(value) and not is_shared else None

    def _read_value(self, reading: Reading, name: str) -> str | None:
        value = reading.values.get(name)
        return value if value in self._read[name] else None


def _judge(
    missed: Sequence[KnownOnu], unsaid: Sequence[KnownOnu], present: int, *, was_suspect: bool, rules: Rules
) -> tuple[Vanishing, list[KnownOnu]]:
    """Assess a mass disappearance, and return the ONUs to mark as missing.

    If it is already suspected, ONUs that are absent again confirm it; only new absences can start another suspicion.
    While ONUs without information could still confirm it, all are held.
    """
    again = [onu for onu in missed if was_suspect and onu.misses]
    new = [onu for onu in missed if not (was_suspect and onu.misses)]
    is_confirmed = rules.is_mass(len(again), present)
    suspects = len(again) + sum(onu.misses > 0 for onu in unsaid)
    still_open = was_suspect and not is_confirmed and rules.is_mass(suspects, present)
    gone = [onu for onu in again if not still_open and (is_confirmed or onu.misses + 1 >= rules.misses)]
    if rules.is_mass(len(new), present):
        return Vanishing.SUSPECTED, gone
    gone += [onu for onu in new if onu.misses + 1 >= rules.misses]
    if not was_suspect:
        return Vanishing.NONE, gone
    if is_confirmed:
        return Vanishing.CONFIRMED, gone
    return Vanishing.HELD if still_open else Vanishing.OVER, gone


def _moves(known: Sequence[KnownOnu], read: Mapping[str, Reading]) -> tuple[Move, ...]:
    """Return ONUs read at another index than their own: by serial, or by MAC without a serial."""
    at_home = {onu.index for onu in known if onu.index in read and _is_same(onu, read[onu.index])}
    moves: dict[str, Move] = {}
    arrived = set(at_home)
    for name in ("serial", "mac"):
        once = _once(read.values(), name)
        by_value: dict[str, list[KnownOnu]] = {}
        for onu in known:
            if value := getattr(onu, name):
                by_value.setdefault(value, []).append(onu)
        for value, candidates in by_value.items():
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
    """Return whether an ONU was certainly read: by its serial, or by its MAC if either has no serial."""
    serial, mac = reading.values.get("serial"), reading.values.get("mac")
    if onu.serial and serial:
        return bool(onu.serial == serial)
    return bool(onu.mac and onu.mac == mac)


def _mover(candidates: Sequence[KnownOnu], reading: Reading, read: Mapping[str, Reading], name: str) -> KnownOnu | None:
    """Return which of the ONUs with one serial was read elsewhere; None if that is not certain."""
    left = [onu for onu in candidates if _is_same(onu, reading) and _has_left(onu, read.get(onu.index), name)]
    # A row that is missing for long may have the serial too: the one that was present last is meant.
    chosen = [onu for onu in left if not onu.is_missing] or left
    return chosen[0] if len(chosen) == 1 else None


def _has_left(onu: KnownOnu, reading: Reading | None, name: str) -> bool:
    """Return whether an ONU has left its index: nothing was read there, or certainly another ONU."""
    if reading is None:
        return True
    there = reading.values.get(name)
    return is_identity(there) and there != getattr(onu, name)


def _once(readings: Collection[Reading], name: str) -> dict[str, Reading]:
    """Return readings by values that occur only once."""
    counts: Counter[Any] = Counter(reading.values.get(name) for reading in readings)
    once = ((reading.values.get(name), reading) for reading in readings)
    return {value: reading for value, reading in once if value and counts[value] == 1 and is_identity(value)}
