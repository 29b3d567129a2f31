"""Setting of positions of ONUs, from files and the API: all of a request in one transaction, and one change."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.inventory.search import Word
from facho.apps.telemetry.models import Onu, OnuPosition
from facho.apps.telemetry.search import PLACE, places

# Values of a statement.
BATCH = 500

# Latitude and longitude; None: the position is removed.
Position = tuple[float, float] | None
Positions = Mapping[int, Position]


def batched(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield values in lists that are short enough for a statement."""
    each = iter(values)
    while some := list(islice(each, BATCH)):
        yield some


@dataclass(frozen=True, slots=True)
class Row:
    """An ONU, by id, by serial, or by OLT and place, and its position. An OLT beside a serial narrows it."""

    line: int
    latitude: Any
    longitude: Any
    onu: int | None = None
    serial: str = ""
    olt: str = ""
    place: str = ""


@dataclass(slots=True)
class Reading:
    """Positions by ONU, and the refused rows with their lines."""

    positions: dict[int, Position] = field(default_factory=dict)
    errors: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Effect:
    """What positions change: numbers of ONUs."""

    added: int
    moved: int
    removed: int
    unchanged: int

    @property
    def changed(self) -> int:
        return self.added + self.moved + self.removed


def read(rows: Sequence[Row], user: Any) -> Reading:
    """Find the ONUs of rows among those that a user sees."""
    finder, found, lines = _Finder(rows, user), Reading(), dict[int, int]()
    for row in rows:
        try:
            onu, position = finder.onu_of(row), position_of(row.latitude, row.longitude)
            if onu in lines:
                raise ValidationError(_("The ONU is also in line %(line)d.") % {"line": lines[onu]})
        except ValidationError as error:
            found.errors.append((row.line, " ".join(error.messages)))
        else:
            lines[onu] = row.line
            found.positions[onu] = position
    return found


def position_of(latitude: Any, longitude: Any) -> Position:
    """Return a position as written in a file; None if both cells are empty."""
    texts = [str(each if each is not None else "").strip() for each in (latitude, longitude)]
    if not any(texts):
        return None
    if not all(texts):
        raise ValidationError(_("Write latitude and longitude, or leave both empty."))
    found = _degrees(texts[0], 90, _("latitude")), _degrees(texts[1], 180, _("longitude"))
    if found == (0, 0):
        # Many programs write it for an unknown position.
        raise ValidationError(_("0, 0 is in the ocean. Leave both empty if the position is not known."))
    return found


def _degrees(text: str, most: int, name: str) -> float:
    try:
        # A comma, as in many countries.
        value = float(text.replace(",", "."))
    except ValueError:
        value = float("nan")
    if not -most <= value <= most:
        said = _("“%(value)s” is not a %(name)s. Write degrees from -%(most)d to %(most)d, such as -12.0464.")
        raise ValidationError(said % {"value": text[:40], "name": name, "most": most})
    return value


class _Finder:
    """Finds the ONUs of rows with few queries for any number of rows."""

    def __init__(self, rows: Sequence[Row], user: Any) -> None:
        self._rows, self._user = rows, user

    def onu_of(self, row: Row) -> int:
        if row.onu is not None:
            if row.onu not in self._ids:
                raise ValidationError(_("There is no ONU %(id)d, or it is outside your scope.") % {"id": row.onu})
            return row.onu
        if row.serial:
            return self._by_serial(row)
        if not (row.olt and row.place):
            raise ValidationError(_("Write a serial, or an OLT and a place."))
        return self._by_place(row)

    def _by_serial(self, row: Row) -> int:
        found = {pk: is_missing for each in spellings(row.serial) for pk, is_missing in self._serials.get(each, ())}
        if row.olt:
            olt = self._olt(row.olt)
            found = {pk: is_missing for pk, is_missing in found.items() if self._olt_of[pk] == olt}
        # An ONU that was found on another OLT is missing on the first one.
        onus = [pk for pk, is_missing in found.items() if not is_missing] or list(found)
        if not onus:
            said = _("There is no ONU with the serial “%(serial)s”, or it is outside your scope.")
            raise ValidationError(said % {"serial": row.serial[:60]})
        if len(onus) > 1:
            said = _("Several ONUs have the serial “%(serial)s”. Write the OLT beside it.")
            raise ValidationError(said % {"serial": row.serial[:60]})
        return onus[0]

    def _by_place(self, row: Row) -> int:
        olt = self._olt(row.olt)
        onu = next((self._places[olt, place] for place in _places(row.place) if (olt, place) in self._places), None)
        if onu is None:
            said = _("There is no ONU at “%(place)s” of %(olt)s. Write slot/port/ONU, such as 1/9/23.")
            raise ValidationError(said % {"place": row.place[:40], "olt": row.olt[:100]})
        return onu

    def _olt(self, name: str) -> int:
        if (olt := self._olts.get(name.casefold())) is None:
            said = _("There is no OLT “%(olt)s”, or it is outside your scope.")
            raise ValidationError(said % {"olt": name[:100]})
        return olt

    @cached_property
    def _olts(self) -> dict[str, int]:
        return {name.casefold(): pk for pk, name in visible_olts(self._user).values_list("pk", "name")}

    @cached_property
    def _ids(self) -> set[int]:
        wanted = {row.onu for row in self._rows if row.onu is not None}
        onus = restrict(Onu.objects.order_by(), self._user)
        return {pk for some in batched(wanted) for pk in onus.filter(pk__in=some).values_list("pk", flat=True)}

    @cached_property
    def _serials(self) -> dict[str, list[tuple[int, bool]]]:
        """Return the ONUs by serial, each with whether it is missing."""
        wanted = {each for row in self._rows if row.serial for each in spellings(row.serial)}
        onus = restrict(Onu.objects.order_by(), self._user)
        found: dict[str, list[tuple[int, bool]]] = {}
        self._olt_of: dict[int, int] = {}
        for some in batched(wanted):
            rows = onus.filter(serial__in=some).values_list("serial", "pk", "olt_id", "missing_since")
            for serial, pk, olt, missing_since in rows:
                found.setdefault(str(serial), []).append((pk, missing_since is not None))
                self._olt_of[pk] = olt
        return found

    @cached_property
    def _places(self) -> dict[tuple[int, tuple[Any, ...]], int]:
        named = {self._olts.get(row.olt.casefold()) for row in self._rows if row.olt and not row.serial}
        onus = Onu.objects.filter(olt__in=named - {None}, missing_since__isnull=True, onu__isnull=False).order_by()
        rows = onus.values_list("pk", "olt_id", "slot", "port", "onu")
        return {(olt, (slot, port, onu)): pk for pk, olt, slot, port, onu in rows}


def spellings(serial: str) -> list[str]:
    """Return how devices may write a serial: as given, in upper and lower case, and as text if it is in hex."""
    text = serial.strip()
    found = [text, text.upper(), text.lower(), text.replace("-", "").replace(":", "").upper()]
    try:
        vendor = bytes.fromhex(text[:8]).decode("ascii")
    except ValueError:
        vendor = ""
    if len(text) == 16 and vendor.isalnum():
        found.append(vendor.upper() + text[8:].upper())
    return list(dict.fromkeys(found))


def _places(text: str) -> Iterator[tuple[int | None, int, int]]:
    """Return the places that a text may mean: slot, port and ONU; an OLT without slots has port and ONU."""
    match = PLACE.fullmatch(text.strip())
    if match is None:
        return
    for place in places(Word.of(text.strip())):
        if place.onu is not None:
            yield place.slot, place.port, place.onu
        else:
            yield None, place.slot, place.port


def effect_of(positions: Positions) -> Effect:
    """Return what positions would change."""
    numbers = Counter(_kind(now.get(pk), position) for pk, position, now in _with_present(positions))
    return Effect(*(numbers[kind] for kind in ("added", "moved", "removed", "unchanged")))


def _with_present(positions: Positions) -> Iterator[tuple[int, Position, dict[int, Position]]]:
    for some in batched(positions.items()):
        rows = OnuPosition.objects.filter(pk__in=[pk for pk, _position in some])
        present: dict[int, Position] = {
            pk: (lat, long) for pk, lat, long in rows.values_list("pk", "latitude", "longitude")
        }
        for pk, position in some:
            yield pk, position, present


def _kind(before: Position, after: Position) -> str:
    if before == after:
        return "unchanged"
    if before is None:
        return "added"
    return "moved" if after is not None else "removed"


@transaction.atomic
def set_positions(positions: Positions, user: Any, *, source: str = "") -> Effect:
    """Set the positions of those ONUs that a user still sees, and record it as one change."""
    onus = restrict(Onu.objects.order_by(), user)
    olts = {pk: olt for some in batched(positions) for pk, olt in onus.filter(pk__in=some).values_list("pk", "olt_id")}
    wanted = {pk: position for pk, position in positions.items() if pk in olts}
    effect = effect_of(wanted)
    OnuPosition.objects.bulk_create(
        [OnuPosition.at(pk, olts[pk], *position) for pk, position in wanted.items() if position is not None],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["onu"],
        update_fields=["latitude", "longitude", "x", "y"],
    )
    for some in batched([pk for pk, position in wanted.items() if position is None]):
        OnuPosition.objects.filter(pk__in=some).delete()
    if effect.changed:
        _record(effect, set(olts.values()), source)
    return effect


def _record(effect: Effect, olts: set[int], source: str) -> None:
    numbers = {"added": effect.added, "moved": effect.moved, "removed": effect.removed}
    fields: dict[str, Any] = {name: [None, number] for name, number in numbers.items() if number}
    if source:
        fields["file"] = [None, source[:200]]
    olt = Olt.objects.only("name").get(pk=olts.pop()) if len(olts) == 1 else None
    record(Change.Action.POSITIONS_SET, olt, fields)
