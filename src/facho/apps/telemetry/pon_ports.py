"""Queries of PON ports, for pages and API: by counters, so that a list reads no ONUs but those of its page."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from django.db.models import Avg, Case, Count, F, FloatField, IntegerField, Min, Q, QuerySet, Value, When
from django.db.models.functions import Cast, Coalesce, Greatest

from facho.apps.telemetry.models import Onu, PonPort
from facho.apps.telemetry.port_levels import DARK, Level, level, present, total_of
from facho.brands import BRANDS
from facho.engine.brand import ONUS_PER_PORT

# A statement with more conditions is slow to plan, and SQLite refuses a thousand.
PORTS_PER_QUERY = 100

PLACE = re.compile(r"(?:(\d{1,9})/)?(\d{1,9})")

# Rank of each level, the worst first.
RANKS = {each: rank for rank, each in enumerate(Level)}


def with_numbers(ports: QuerySet[PonPort]) -> QuerySet[PonPort]:
    """Add OLT names, and the numbers of a port that follow from its counters, to filter and order by them."""
    columns = (field.attname for field in PonPort._meta.concrete_fields)
    ranks = (When(level=each, then=rank) for each, rank in RANKS.items())
    # Of the same names and values as the properties of a port.
    numbers: dict[str, Any] = {
        "level": level(),
        "level_rank": Case(*ranks, output_field=IntegerField()),
        "present": present(),
        "dark": total_of(DARK),
        "effective_capacity": _capacity(),
        "free": Greatest(F("effective_capacity") - F("present"), 0),
        "used_percent": _percent("present", "effective_capacity"),
        "online_percent": _percent("online", "present"),
        "dark_percent": _percent("dark", "present"),
        "weak_percent": _percent("weak", "present"),
    }
    names = ("olt__name", "olt__brand", "olt__site__name")
    return ports.select_related("olt__site").only(*columns, *names).alias(**numbers)


def _capacity() -> Coalesce:
    brands: dict[int, list[str]] = {}
    for brand in BRANDS.values():
        brands.setdefault(brand.onus_per_port, []).append(brand.id)
    by_brand = [When(olt__brand__in=ids, then=Value(capacity)) for capacity, ids in brands.items()]
    return Coalesce(F("capacity"), Case(*by_brand, default=Value(ONUS_PER_PORT)), output_field=IntegerField())


def _percent(part: str, whole: str) -> Case:
    share = Cast(F(part), FloatField()) * 100 / F(whole)
    return Case(When(**{f"{whole}__gt": 0}, then=share), default=None, output_field=FloatField())


def matching(ports: QuerySet[PonPort], terms: Iterable[str]) -> QuerySet[PonPort]:
    """Return the ports that match each term: a part of the name of the OLT, or a place such as 1/9."""
    for term in terms:
        found = Q(olt__name__icontains=term)
        if match := PLACE.fullmatch(term):
            slot, port = match.groups()
            # A port without a slot is called by its number.
            found |= Q(slot=slot, port=port) if slot else Q(slot=None, port=port)
        ports = ports.filter(found)
    return ports


def onus_at(ports: Iterable[PonPort]) -> Q:
    """Return the condition of being on one of these ports, by the index of places."""
    return reduce(or_, (Q(olt=port.olt_id, slot=port.slot, port=port.port) for port in ports))


@dataclass(frozen=True, slots=True)
class Power:
    """Received power of the ONUs of a port that have light and a value, in dBm."""

    count: int
    mean: float
    worst: float


# ONUs whose power is a current one.
WITH_POWER = Q(rx_dbm__isnull=False, missing_since__isnull=True) & ~Q(state__in=Onu.DARK)


def power_of(ports: Sequence[PonPort]) -> dict[int, Power]:
    """Return the power of each of some ports by id. Ports without any power are left out."""
    by_place = {(port.olt_id, port.slot, port.port): port.pk for port in ports}
    found = {}
    for start in range(0, len(ports), PORTS_PER_QUERY):
        some = onus_at(ports[start : start + PORTS_PER_QUERY])
        rows = Onu.objects.filter(some, WITH_POWER).order_by().values_list("olt_id", "slot", "port")
        for olt_id, slot, port, *numbers in rows.annotate(Count("pk"), Avg("rx_dbm"), Min("rx_dbm")):
            found[by_place[olt_id, slot, port]] = Power(*numbers)
    return found


@dataclass(frozen=True, slots=True)
class PortRow:
    """A port with its power, for lists."""

    port: PonPort
    power: Power | None


def port_rows(ports: Sequence[PonPort]) -> list[PortRow]:
    """Return ports with their power, with one query for up to a hundred of them."""
    powers = power_of(ports)
    return [PortRow(port, powers.get(port.pk)) for port in ports]


def ports_of(olt_id: int) -> list[PortRow]:
    """Return the ports of an OLT by place."""
    return port_rows(list(with_numbers(PonPort.objects.filter(olt_id=olt_id)).order_by("slot", "port")))


# First and last id.
Span = tuple[int, int]


def free_spans(first: int, capacity: int, taken: Collection[int]) -> list[Span]:
    """Return the spans of ids that nobody has, of `capacity` ids from `first` on."""
    end = first + capacity
    edges = [first - 1, *sorted(each for each in set(taken) if first <= each < end), end]
    return [(before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1]


def spans_of(ids: Iterable[int]) -> list[Span]:
    """Return ids as spans without gaps."""
    spans: list[Span] = []
    for each in sorted(set(ids)):
        if spans and each == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], each)
        else:
            spans.append((each, each))
    return spans


@dataclass(frozen=True, slots=True)
class OnuIds:
    """ONU ids of a port: free ones, and those of ONUs that are missing. None if its ONUs have no ids."""

    free: list[Span]
    reserved: list[Span]


def onu_ids(port: PonPort, onus: Iterable[Any]) -> OnuIds | None:
    """Return the ids of a port from its ONUs. An id that was given to another ONU is not reserved."""
    onus = [onu for onu in onus if onu.onu is not None]
    if port.present and not onus:
        return None
    used = {onu.onu for onu in onus if onu.missing_since is None}
    reserved = {onu.onu for onu in onus} - used
    return OnuIds(free_spans(port.first_onu, port.effective_capacity, used | reserved), spans_of(reserved))
