"""Before and after: what changed on an OLT between two times, from the history and the events of its ONUs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from facho.apps.telemetry.history import NEVER_READ, LastCells, microseconds, moment, values_at
from facho.apps.telemetry.models import Onu, OnuEvent
from facho.engine.batch import UNREAD
from facho.engine.comparison import DARK, Comparison, Difference, Kind, Presence, Snapshot, compare, place_key

# A reading that is older at the compared time is shown with its age.
OLD_READING = timedelta(hours=2)

Field = OnuEvent.Field
# Columns of an ONU that are needed to describe it.
COLUMNS = (
    "pk", "slot", "port", "onu", "index", "name", "serial", "mac", "down_cause", "missing_since", "place_taken",
    "first_seen_at",
)  # fmt: skip

# Value of a field before the first event after a time, by ONU and field.
Earlier = dict[tuple[int, str], str]


@dataclass(frozen=True, slots=True)
class Side:
    """An ONU at one of the two times. None is a value that was not read."""

    onu: int
    serial: str
    place: str
    state: str | None
    state_at: datetime | None
    power: float | None
    power_at: datetime | None
    # Age of its oldest shown reading, if that is worth a remark.
    age: timedelta | None


@dataclass(frozen=True, slots=True)
class ComparedOnu:
    """A difference, with the values of both times. A side is None if there was no ONU."""

    onu: int
    name: str
    kinds: tuple[Kind, ...]
    before: Side | None
    after: Side | None
    step: float | None
    # Down cause of an ONU that is dark.
    cause: str

    @property
    def place(self) -> str:
        side = self.after or self.before
        return side.place if side else ""


class OltComparison:
    """Two times of an OLT, compared."""

    def __init__(self, olt_id: int, before: datetime, after: datetime, step: float, port: str = "") -> None:
        self.times = (before, after)
        rows = list(Onu.objects.filter(olt_id=olt_id).order_by("slot", "port", "onu", "pk").values_list(*COLUMNS))
        self._onus: dict[str, Sequence[Any]] = dict(
            zip(COLUMNS, zip(*rows, strict=True) if rows else [()] * len(COLUMNS), strict=True)
        )
        # OLTs that measure only their own side have no power of the ONU.
        has_power = Onu.objects.filter(olt_id=olt_id, rx_dbm__isnull=False).exists()
        self.power_field = "rx_dbm" if has_power else "olt_rx_dbm"
        self._past = tuple(_earlier(olt_id, at) for at in self.times)
        first, second = (self._snapshot(olt_id, at, past) for at, past in zip(self.times, self._past, strict=True))
        self._shots = (first, second)
        self.result: Comparison = compare(first, second, step, port)

    def newest_readings(self) -> tuple[datetime | None, datetime | None]:
        """Return the time of the last state that was read before each of the times; None if none was."""
        newest = [max(shot.state_times, default=NEVER_READ) for shot in self._shots]
        first, second = [None if at == NEVER_READ else moment(at) for at in newest]
        return first, second

    def differences(self, kinds: Iterable[str] = (), sort: str = "") -> list[Difference]:
        """Return the differences of these kinds, of all without kinds; the worst first if no order is given."""
        chosen = set(kinds)
        found = [each for each in self.result.differences if not chosen or chosen & set(each.kinds)]
        if sort in ORDERS:
            found.sort(key=lambda each: ORDERS[sort](self.described(each)))
        return found

    def described(self, difference: Difference) -> ComparedOnu:
        before, after = (
            None if onu is None else self._side(number, onu)
            for number, onu in enumerate((difference.before, difference.after))
        )
        onu = self._onus
        cause = ""
        if after is not None and after.state in DARK:
            pk = onu["pk"][difference.onu]
            cause = self._past[1].get((pk, Field.DOWN_CAUSE), onu["down_cause"][difference.onu]) or ""
        name = next(filter(None, (onu[each][difference.onu] for each in ("name", "serial", "index"))))
        return ComparedOnu(onu["pk"][difference.onu], name, difference.kinds, before, after, difference.step, cause)

    def _snapshot(self, olt_id: int, at: datetime, past: Earlier) -> Snapshot:
        onu = self._onus
        last = values_at(olt_id, onu["pk"], ("state", self.power_field), at)
        state, power = last["state"], last[self.power_field]
        seen = zip(onu["pk"], onu["first_seen_at"], onu["missing_since"], onu["place_taken"], strict=True)
        places = zip(*(onu[name] for name in ("pk", "slot", "port", "onu", "index")), strict=True)
        return Snapshot(
            presences=[
                past.get((pk, Field.PRESENCE), _presence(since, taken)) if first <= at else Presence.NOT_FOUND_YET
                for pk, first, since, taken in seen
            ],
            places=[past.get((pk, Field.PLACE)) or _place(*place) for pk, *place in places],
            states=_values(state),
            state_times=state.times,
            powers=_values(power),
            power_times=power.times,
        )

    def _side(self, number: int, onu: int) -> Side:
        shot, at = self._shots[number], microseconds(self.times[number])
        read = [time for time in (shot.state_times[onu], shot.power_times[onu]) if time != NEVER_READ]
        age = timedelta(microseconds=at - min(read)) if read else None
        return Side(
            onu=self._onus["pk"][onu],
            serial=self._onus["serial"][onu] or self._onus["mac"][onu] or "",
            place=shot.places[onu],
            state=shot.states[onu] if shot.is_present(onu) else shot.presences[onu],
            state_at=_moment(shot.state_times[onu]),
            power=shot.powers[onu] if shot.has_light(onu) else None,
            power_at=_moment(shot.power_times[onu]),
            age=age if age and age > OLD_READING else None,
        )


ORDERS: Mapping[str, Callable[[ComparedOnu], Any]] = {
    "place": lambda each: place_key(each.place),
    "name": lambda each: each.name.casefold(),
    "step": lambda each: (each.step is None, each.step or 0, place_key(each.place)),
}


def _earlier(olt_id: int, at: datetime) -> Earlier:
    """Return what the fields were at a time, for fields that changed since: the old value of the first event."""
    fields = (Field.PRESENCE, Field.PLACE, Field.DOWN_CAUSE)
    events = OnuEvent.objects.filter(olt_id=olt_id, at__gt=at, field__in=fields).order_by("at", "pk")
    found: Earlier = {}
    for onu_id, name, old in events.values_list("onu_id", "field", "old").iterator():
        found.setdefault((onu_id, name), old)
    return found


def _presence(missing_since: datetime | None, place_taken: bool) -> Presence:
    if missing_since is None:
        return Presence.PRESENT
    return Presence.REPLACED if place_taken else Presence.MISSING


def _place(slot: int | None, port: int | None, onu: int | None, index: str) -> str:
    return index if None in (slot, port, onu) else f"{slot}/{port}/{onu}"


def _values(last: LastCells) -> list[Any]:
    return [None if cell is UNREAD else cell for cell in last.cells]


def _moment(at: int) -> datetime | None:
    return None if at == NEVER_READ else moment(at)
