"""Columns of a job, and the intervals that OLTs of its brand support."""

from collections.abc import Collection, Iterable

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.inventory import labels
from facho.brands import BRANDS
from facho.brands.decode import RAW_DECODERS
from facho.engine import oid
from facho.engine.model import JobKind

MINUTE, HOUR = 60, 3600


# Jobs of these kinds read only the columns they name. A discovery without columns reads its brand's defaults.
READS_WHAT_IT_NAMES = frozenset({JobKind.GET.value, JobKind.WALK.value, JobKind.TABLE.value})


def reads_nothing(kind: str, columns: Collection[str], oids: Collection[object]) -> bool:
    """Return whether such a job reads nothing, and so would fail in every slot."""
    return kind in READS_WHAT_IT_NAMES and not columns and not oids


def reads_nothing_refusal() -> str:
    return _("Choose at least one column or add a raw OID. A job of this type reads only what it names.")


def raw_decoder_choices() -> list[tuple[str, str]]:
    """Return the decoders of a raw OID."""
    return [(decoder.name, _(decoder.label)) for decoder in RAW_DECODERS.values()]


def validate_oid(text: str) -> None:
    """Refuse an invalid OID, with the reason."""
    try:
        oid.parse(text)
    except ValueError as error:
        raise ValidationError(str(error)) from error


def columns_read(brand_id: str, kind: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of a run of such a job. A discovery without columns reads its brand's defaults."""
    brand = BRANDS.get(brand_id)
    if brand is None:
        return tuple(columns)
    named = tuple(columns) or (brand.discovery if kind == JobKind.DISCOVERY else ())
    return brand.with_needed(name for name in named if name in brand.columns)


def floor_warnings(brand_id: str, kind: str, columns: Iterable[str], interval_seconds: int) -> list[str]:
    """Return a message for each interval that is too short for the brand's OLTs, with its columns."""
    brand = BRANDS.get(brand_id)
    if brand is None:
        return []
    too_fast: dict[int, list[str]] = {}
    for name in columns_read(brand_id, kind, columns):
        floor = brand.columns[name].floor
        if floor is not None and floor.total_seconds() > interval_seconds:
            too_fast.setdefault(round(floor.total_seconds()), []).append(name)
    return [
        _(
            "An interval of %(interval)s is too short for these columns of %(brand)s: %(columns)s. "
            "Use at least %(floor)s."
        )
        % {
            "brand": brand.label,
            "columns": labels.columns(names),
            "floor": span(floor),
            "interval": span(interval_seconds),
        }
        for floor, names in sorted(too_fast.items())
    ]


def span(seconds: int) -> str:
    """Return an interval in the largest unit without remainder."""
    if seconds % HOUR == 0:
        hours = seconds // HOUR
        return ngettext("%(n)d hour", "%(n)d hours", hours) % {"n": hours}
    if seconds % MINUTE == 0:
        minutes = seconds // MINUTE
        return ngettext("%(n)d minute", "%(n)d minutes", minutes) % {"n": minutes}
    return ngettext("%(n)d second", "%(n)d seconds", seconds) % {"n": seconds}
