"""What changed on an OLT between two times: two snapshots of its ONUs in columns, compared. No clock, no I/O.

An ONU that was replaced and the one in its place count as one customer, so a new device that is dark is a customer
who lost service. A value that was not read again between the two times says nothing about the second time, so it is
not compared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

# States without light.
DARK = frozenset({"offline", "los", "dying_gasp"})
ONLINE, UNKNOWN_STATE = "online", "unknown"

# Smallest difference of power in dB that counts, if the user sets none.
USUAL_STEP = 1.0


class Presence(StrEnum):
    """Whether the OLT had an ONU at a time, as in the events of ONUs."""

    NOT_FOUND_YET = ""
    PRESENT = "present"
    MISSING = "missing"
    REPLACED = "replaced"


class Kind(StrEnum):
    """What happened to an ONU, the worst first."""

    DARK = "dark"
    GONE = "gone"
    STATE = "state"
    WEAKER = "weaker"
    UNREAD = "unread"
    REPLACED = "replaced"
    MOVED = "moved"
    STRONGER = "stronger"
    BACK = "back"
    NEW = "new"


RANKS = {kind: rank for rank, kind in enumerate(Kind)}
# The customer is worse off.
WORSE = (Kind.DARK, Kind.GONE, Kind.STATE, Kind.WEAKER)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """ONUs of an OLT at one time: entry i of each column is the same ONU in every snapshot.

    A state or power that was not read is None. Times of readings may have any unit; they are only compared.
    """

    presences: Sequence[str]
    # slot/port/onu, or the index of an ONU without a known place.
    places: Sequence[str]
    states: Sequence[str | None]
    state_times: Sequence[int]
    powers: Sequence[float | None]
    power_times: Sequence[int]

    def is_present(self, onu: int) -> bool:
        return self.presences[onu] == Presence.PRESENT

    def has_light(self, onu: int) -> bool:
        return self.is_present(onu) and self.states[onu] not in (None, UNKNOWN_STATE, *DARK)


@dataclass(frozen=True, slots=True)
class Difference:
    """What happened to a customer, the worst first."""

    # Entry of the ONU that the customer has now, or had last.
    onu: int
    # Entries before and after; None if there was no ONU.
    before: int | None
    after: int | None
    kinds: tuple[Kind, ...]
    # Change of power in dB; None if it cannot be compared.
    step: float | None = None


@dataclass(slots=True)
class Tally:
    """Numbers of customers: all, those without a difference, and those of each kind."""

    total: int = 0
    unchanged: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    # Changes of power in dB, also those below the threshold.
    steps: list[float] = field(default_factory=list)

    def add(self, difference: Difference) -> None:
        self.total += 1
        self.unchanged += not difference.kinds
        self.kinds.update(difference.kinds)
        if difference.step is not None:
            self.steps.append(difference.step)

    @property
    def worse(self) -> int:
        """Return the number of bad changes. A customer may have two of them."""
        return sum(self.kinds[kind] for kind in WORSE)

    @property
    def median_step(self) -> float | None:
        """Return the change of power that half of the ONUs exceed: that of the port, not of single ONUs."""
        return round(median(self.steps), 2) if self.steps else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result: numbers, numbers by port with the worst port first, and differences with the worst first."""

    overall: Tally
    ports: Mapping[str, Tally]
    differences: Sequence[Difference]


def compare(before: Snapshot, after: Snapshot, step: float = USUAL_STEP, port: str = "") -> Comparison:
    """Compare two snapshots. Powers count from `step` dB on. With a port: only customers there at one of the times."""
    overall, ports = Tally(), defaultdict[str, Tally](Tally)
    differences = []
    for onu, was, now in _customers(before, after):
        at = [port_of(shot.places[each]) for shot, each in ((after, now), (before, was)) if each is not None]
        if port and port not in at:
            continue
        difference = _difference(before, after, onu, was, now, step)
        overall.add(difference)
        ports[at[0]].add(difference)
        if difference.kinds:
            differences.append(difference)
    differences.sort(key=_severity)
    worst_first = sorted(ports.items(), key=lambda item: (-item[1].worse, item[1].median_step or 0, place_key(item[0])))
    return Comparison(overall, dict(worst_first), differences)


def port_of(place: str) -> str:
    """Return slot/port of a place; empty if it is not known."""
    slot_and_port, _, onu = place.rpartition("/")
    return slot_and_port if "/" in slot_and_port and onu else ""


def place_key(place: str) -> list[tuple[int, str]]:
    """Return a key that sorts places by their numbers."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in place.split("/")]


def _customers(before: Snapshot, after: Snapshot) -> Iterable[tuple[int, int | None, int | None]]:
    """Return the last ONU of each customer, and those before and after. Customers without both are left out."""
    onus = range(len(after.presences))
    holders = {after.places[onu]: onu for onu in onus if after.is_present(onu)}
    successors = {}
    for onu in onus:
        if before.is_present(onu) and after.presences[onu] == Presence.REPLACED:
            other = holders.get(after.places[onu])
            if other is not None and before.presences[other] == Presence.NOT_FOUND_YET:
                successors[onu] = other
    taken = set(successors.values())
    for onu in onus:
        if onu in taken:
            continue
        if onu in successors:
            yield successors[onu], onu, successors[onu]
        elif before.is_present(onu) or after.is_present(onu):
            was = None if before.presences[onu] == Presence.NOT_FOUND_YET else onu
            yield onu, was, (onu if after.is_present(onu) else None)


def _difference(
    before: Snapshot, after: Snapshot, onu: int, was: int | None, now: int | None, step: float
) -> Difference:
    if was is None:
        return Difference(onu, None, now, (Kind.NEW,))
    if now is None:
        is_replaced = after.presences[was] == Presence.REPLACED
        return Difference(onu, was, None, (Kind.REPLACED if is_replaced else Kind.GONE,))
    kinds = set()
    if was != now:
        kinds.add(Kind.REPLACED)
    elif before.places[was] != after.places[now]:
        kinds.add(Kind.MOVED)
    if (change := _state_change(before, after, was, now)) is not None:
        kinds.add(change)
    difference = _step(before, after, was, now)
    if difference is not None and abs(difference) >= step:
        kinds.add(Kind.WEAKER if difference < 0 else Kind.STRONGER)
    return Difference(onu, was, now, tuple(sorted(kinds, key=RANKS.__getitem__)), difference)


def _state_change(before: Snapshot, after: Snapshot, was: int, now: int) -> Kind | None:
    old, new = before.states[was], after.states[now]
    if not before.is_present(was):
        # A missing ONU had no service, whatever its last state.
        return Kind.BACK if after.has_light(now) else None
    is_same_reading = was == now and before.state_times[was] == after.state_times[now]
    if None in (old, new) or UNKNOWN_STATE in (old, new) or is_same_reading:
        return Kind.UNREAD
    # Another dark state is still the same outage.
    if old == new or (old in DARK and new in DARK):
        return None
    if new in DARK:
        return Kind.DARK
    return Kind.BACK if new == ONLINE else Kind.STATE


def _step(before: Snapshot, after: Snapshot, was: int, now: int) -> float | None:
    old, new = before.powers[was], after.powers[now]
    is_same_reading = was == now and before.power_times[was] == after.power_times[now]
    if old is None or new is None or is_same_reading or not (before.has_light(was) and after.has_light(now)):
        return None
    return round(new - old, 2)


def _severity(difference: Difference) -> tuple[int, float, int]:
    return RANKS[difference.kinds[0]], difference.step or 0, difference.onu
