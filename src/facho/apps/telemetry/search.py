"""Search of ONUs and ports. The rules are in `inventory/search.py`.

An ONU is found by its name, description, serial, MAC and place. Each ONU has a row with these texts in one, because an
index on `onu_data` would slow the updates of each run. A word may also name the OLT of the ONU, so that
`CENTRAL 1/9/23` finds one; but words of which none is the ONU's find it only if they are the complete name or address
of its OLT. Otherwise all ONUs of OLT-SAN-MARTIN would hide those of a customer called Martín.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import and_, or_
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL

from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.inventory.search import (
    JOINT,
    SHORTEST,
    OltText,
    Word,
    is_empty,
    normal,
    olt_texts,
    words,
)
from facho.apps.rest.filters import search_problem
from facho.apps.telemetry.models import Onu, OnuSearch, PonPort
from facho.apps.telemetry.search_index import INDEX

Rows = TypeVar("Rows", bound=QuerySet[Any])

# Fields of an ONU in its text, in the order of `text_of`.
TEXT_FIELDS = ("name", "description", "serial", "mac", "slot", "port", "onu")

# 1/9, 1/9/23, 1/9:23, and the same with a frame or shelf before it; also as in gpon-onu_1/9/3:23.
PLACE = re.compile(
    r"(?P<kind>[a-z]+[-_][a-z]+[-_])?(?P<numbers>[0-9]{1,9}(/[0-9]{1,9}){1,3})(:(?P<onu>[0-9]{1,9}))?[/:]?",
    re.IGNORECASE,
)

# Frames that devices write before the slot, and that no ONU has.
FRAMES = (0, 1)

GPON_SERIAL = re.compile(r"([!-~]{4})([0-9A-Fa-f]{8})")

# A group counts no further, and its best rows are the best of so many.
MOST_FOUND = 1000


def text_of(
    name: str | None,
    description: str | None,
    serial: str | None,
    mac: str | None,
    slot: int | None,
    port: int | None,
    onu: int | None,
) -> str:
    """Return the text of an ONU. It begins with a space: see `SHORTEST`."""
    parts = [normal(name or ""), normal(description or ""), *_serials(serial or ""), normal(mac or "").replace(" ", "")]
    text = "".join(f" {part}" for part in dict.fromkeys(filter(None, parts)))
    return text if port is None else f"{text}{_place(slot, port, onu)}"


def _serials(serial: str) -> Iterator[str]:
    """Return the spellings of a serial: as text, without separators, and the eight octets as hex digits."""
    text = normal(serial)
    yield text
    yield text.replace(" ", "")
    if match := GPON_SERIAL.fullmatch(serial):
        yield match[1].encode().hex() + match[2].lower()


def _place(slot: int | None, port: int | None, onu: int | None = None) -> str:
    """Return a place as it is in the texts; of a port, how it begins.

    The slashes keep it apart from words: a text has no others.
    """
    parts = ["" if part is None else str(part) for part in (slot, port)]
    return f"/{JOINT.join(parts)}{JOINT}" if onu is None else f"/{JOINT.join(parts)}{JOINT}{onu}/"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a search: an ONU, or a port if `onu` is None."""

    slot: int
    port: int
    onu: int | None = None


def places(word: Word, frames: Sequence[int] = (0,)) -> list[Place]:
    """Return the places that a word may mean. 0/1/9 is an ONU in slot 0, or port 1/9 in frame 0."""
    match = PLACE.fullmatch(word.typed)
    if match is None:
        return []
    numbers = [*map(int, match["numbers"].split("/"))]
    if match["onu"] is not None:
        return [Place(numbers[-2], numbers[-1], int(match["onu"]))] if len(numbers) < 4 else []
    if len(numbers) == 4:
        return [Place(*numbers[1:])]
    if len(numbers) == 2:
        return [Place(*numbers)]
    port = Place(*numbers[1:])
    if match["kind"]:
        return [port]
    return [Place(*numbers), port] if numbers[0] in frames else [Place(*numbers)]


class Search:
    """A search: its words, and the OLTs that they name. It has the limits of every search."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [] if search_problem(text) else words(text)
        self.spellings = [
            [*word.spellings, *(_place(each.slot, each.port, each.onu) for each in places(word))] for word in self.words
        ]

    @cached_property
    def olts(self) -> Mapping[int, OltText]:
        return olt_texts(Olt.objects.all())

    @cached_property
    def named(self) -> list[list[int]]:
        """Return the ids of the OLTs that each word names."""
        return [[pk for pk, each in self.olts.items() if each.is_named(word)] for word in self.words]

    @cached_property
    def meant(self) -> list[int]:
        """Return the ids of the OLTs of which the search is the complete name or address."""
        # Another spelling of an address is one of its word.
        names = {normal(self.text), *(self.spellings[0] if len(self.words) == 1 else ())}
        return [pk for pk, each in self.olts.items() if not names.isdisjoint(each.complete)]

    def texts(self) -> QuerySet[OnuSearch]:
        """Return the texts of the ONUs that it finds."""
        if not self.words:
            return OnuSearch.objects.none()
        found = _has(*(each for each, ids in zip(self.spellings, self.named, strict=True) if not ids))
        for each, ids in zip(self.spellings, self.named, strict=True):
            if 0 < len(ids) < len(self.olts):
                found &= _has(each) | Q(olt__in=ids)
        if all(self.named):
            found &= reduce(or_, map(_has, self.spellings)) | Q(olt__in=self.meant)
        return OnuSearch.objects.filter(found)

    def ports(self, ports: QuerySet[PonPort]) -> QuerySet[PonPort]:
        """Return those of the ports that it finds: by place and OLT, or all of an OLT by its complete name."""
        if not self.words:
            return ports.none()
        found, own = Q(), Q(olt__in=self.meant)
        for word, ids in zip(self.words, self.named, strict=True):
            at = [Q(slot=each.slot, port=each.port) for each in places(word, FRAMES) if each.onu is None]
            place = reduce(or_, at, Q(pk__in=[]))
            found &= place | Q(olt__in=ids)
            own |= place
        return ports.filter(found & own)

    def rank(self, text: str) -> int:
        """Return how far a text is from the words: 0 if it has each as a whole word."""
        return sum(min(map(partial(_distance, f"{text} "), each)) for each in self.spellings)

    def is_exactly(self, onu: Onu) -> bool:
        """Return whether it names an ONU by serial, MAC or place, and nothing else but its OLT."""
        own = [self._is_own(word, onu) for word in self.words]
        others = [self.olts[onu.olt_id].is_named(word) for word in self.words]
        whole = normal(self.text).replace(" ", "") in _identities(onu)
        return whole or (any(own) and all(map(or_, own, others)))

    def _is_own(self, word: Word, onu: Onu) -> bool:
        place = Place(onu.slot, onu.port, onu.onu)  # type: ignore[arg-type]  # None is no number of a search
        return not _identities(onu).isdisjoint(word.spellings) or (onu.onu is not None and place in places(word))


def _identities(onu: Onu) -> set[str]:
    return {*_serials(onu.serial or ""), normal(onu.mac or "").replace(" ", "")} - {""}


def _distance(text: str, spelling: str) -> int:
    if spelling not in text:
        return 3
    if f" {spelling.strip()} " in text or spelling.startswith("/"):
        return 0
    return 1 if f" {spelling.strip()}" in text else 2


def matching(rows: Rows, text: str, path: str = "pk") -> Rows:
    """Return the rows of ONUs that a search finds. `path` leads from a row to its ONU."""
    return rows if is_empty(text) else rows.filter(**{f"{path}__in": Search(text).texts().values("pk")})


def matching_ports(ports: QuerySet[PonPort], text: str) -> QuerySet[PonPort]:
    """Return the ports that a search finds."""
    return ports if is_empty(text) else Search(text).ports(ports)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found of a kind: the best rows, and how many there are."""

    rows: list[Any]
    count: int
    # False: there are more than `count`.
    is_counted: bool = True

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


def find_onus(search: Search, user: Any, limit: int) -> Found:
    """Return the best ONUs that a search finds: whole words first, missing ones last."""
    texts = dict(restrict(search.texts(), user).values_list("pk", "text")[: MOST_FOUND + 1])
    best = sorted(texts, key=lambda pk: (search.rank(texts[pk]), pk))[:limit]
    onus = Onu.objects.filter(pk__in=best).select_related("olt").only(*SHOWN)
    rows = sorted(onus, key=lambda onu: (search.rank(texts[onu.pk]), onu.is_missing, onu.olt.name, best.index(onu.pk)))
    return Found(rows, min(len(texts), MOST_FOUND), len(texts) <= MOST_FOUND)


# Of an ONU in the results.
SHOWN = (
    "olt__name", "index", "slot", "port", "onu", "serial", "mac", "name", "description", "state", "missing_since",
)  # fmt: skip


def find_ports(search: Search, user: Any, limit: int) -> Found:
    """Return the first ports that a search finds, by OLT."""
    ports = restrict(search.ports(PonPort.objects.filter(port__isnull=False)), user)
    shown = ports.select_related("olt").only("olt__name", "slot", "port", "total", "online", "missing")
    return Found(list(shown.order_by("olt__name", "slot", "port")[:limit]), ports.count())


def find_olts(search: Search, user: Any, limit: int) -> Found:
    """Return the first OLTs that a search finds by name, those that it names completely before all others."""
    found = [pk for pk, each in search.olts.items() if all(map(each.has, search.words))] if search.words else []
    olts = visible_olts(user).select_related("site").filter(pk__in=found)
    shown = olts.only("name", "host", "brand", "location", "enabled", "reachability", "site__name")
    rows = sorted(shown, key=lambda olt: (olt.pk not in search.meant, olt.name))
    return Found(rows[:limit], len(rows))


def find(search: Search, user: Any, limit: int) -> dict[str, Found]:
    """Return what a search finds that a user may see: so many rows of each kind."""
    has_olts = user.has_perm("inventory.view_olt")
    return {
        "onus": find_onus(search, user, limit),
        "ports": find_ports(search, user, limit),
        "olts": find_olts(search, user, limit) if has_olts else Found([], 0),
    }


def exact(search: Search, onus: Sequence[Onu]) -> Onu | None:
    """Return the one ONU that a search means, of the best that it found. A missing one gives way to a present one."""
    meant = [onu for onu in onus if search.is_exactly(onu)]
    present = [onu for onu in meant if not onu.is_missing] or meant
    return present[0] if len(present) == 1 else None


def _has(*words: Sequence[str]) -> Q:
    """Return the texts with all of these words, each of which is its spellings.

    PostgreSQL uses the index for a LIKE by itself. SQLite gets one query of its index for all words, so it reads the
    texts that may have them; words of one letter alone read all texts.
    """
    found = reduce(and_, (reduce(or_, (Q(text__contains=each) for each in spellings)) for spellings in words), Q())
    indexed = [spellings for spellings in words if all(len(each) >= SHORTEST for each in spellings)]
    if connection.vendor != "sqlite" or not indexed:
        return found
    query = _both(_either(map(_sequences, spellings)) for spellings in indexed)
    in_index = RawSQL(f"SELECT rowid FROM {INDEX} WHERE {INDEX} MATCH %s", [query])  # noqa: S608, S611 - names are ours
    return Q(pk__in=in_index) & found


def _sequences(spelling: str) -> str:
    """Return a query of the texts with all sequences of a spelling. It has no quotes, so it needs no escapes."""
    return _both(f'"{spelling[at : at + SHORTEST]}"' for at in range(len(spelling) - SHORTEST + 1))


def _both(queries: Iterable[str]) -> str:
    return f"({' AND '.join(queries)})"


def _either(queries: Iterable[str]) -> str:
    return f"({' OR '.join(queries)})"
