"""What a discovery found out about who is there, into rows: in the transaction that keeps its readings."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu
from facho.engine.census import Census, Move, Rules, Vanishing, find_moves, take_census
from facho.engine.events import Event, tell
from facho.engine.model import Collected, Completeness, KnownOnu, Node

logger = logging.getLogger(__name__)

# Stands before the index of an ONU that has none any more, because another one has it. No OID has it.
PARKED = "~"

# How many ONUs an event names.
NAMED = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """A census, and what its ONUs are called."""

    census: Census
    names: dict[str, str]


def known_onus(onus: "QuerySet[Onu]") -> list[tuple[int, KnownOnu, str]]:
    """Return id, what planning needs, and name of ONUs, by one query."""
    columns = ("id", "index", "state", "slot", "port", "onu", "serial", "mac", "misses", "missing_since", "name")
    known = []
    for pk, index, state, slot, port, onu, serial, mac, misses, missing_since, name in onus.values_list(*columns):
        is_missing = missing_since is not None
        row = KnownOnu(index, state, slot, port, onu, serial, mac, misses, is_missing)
        known.append((pk, row, name or serial or index))
    return known


def apply_census(node: Node, collected: Collected, rules: Rules, now: datetime) -> Verdict:
    """Decide by a discovery who moved, is missing or is back, and write it down. The readings come after it."""
    olt = Olt.objects.select_for_update().only("suspect_since").get(pk=node.olt_id)
    rows = known_onus(Onu.objects.filter(olt_id=node.olt_id))
    known = [onu for _, onu, _ in rows]
    absent = {*collected.absent, *_found_nowhere(known, collected)}
    was_suspect = olt.suspect_since is not None
    census = take_census(known, collected.readings, absent, was_suspect=was_suspect, rules=rules)
    ids = {onu.index: pk for pk, onu, _ in rows}
    _write_presence(census, ids, {onu.index: onu for onu in known}, now)
    _write_moves(census, ids, now)
    _write_suspicion(olt, census, now)
    return Verdict(census, {onu.index: name for _, onu, name in rows})


def apply_moves(node: Node, collected: Collected, now: datetime) -> Verdict | None:
    """Let rows follow their ONUs also where a run that is no discovery tells who is who.

    Its readings would else give the serial of one to the row of another, and no
    discovery could tell them apart any more.
    """
    if not any(reading.values.get("serial") or reading.values.get("mac") for reading in collected.readings):
        return None
    rows = known_onus(Onu.objects.filter(olt_id=node.olt_id))
    census = find_moves([onu for _, onu, _ in rows], collected.readings)
    _write_moves(census, {onu.index: pk for pk, onu, _ in rows}, now)
    return Verdict(census, {onu.index: name for _, onu, name in rows})


def _found_nowhere(known: Iterable[KnownOnu], collected: Collected) -> list[str]:
    """Return who has no index to be looked for at: only a discovery of the whole OLT can miss them."""
    is_whole = collected.completeness is Completeness.COMPLETE
    return [onu.index for onu in known if is_whole and onu.index.startswith(PARKED)]


def _write_presence(census: Census, ids: dict[str, int], known: dict[str, KnownOnu], now: datetime) -> None:
    timestamp = connection.ops.adapt_datetimefield_value(now)
    gone = set(census.gone)
    rows: list[tuple[Any, ...]] = [(0, None, ids[index]) for index in census.found]
    rows += [(known[index].misses + 1, timestamp if index in gone else None, ids[index]) for index in census.missed]
    _update("misses = %s, missing_since = %s", rows)


def _write_moves(census: Census, ids: dict[str, int], now: datetime) -> None:
    """Give movers their new index. All leave theirs first: two that have changed places would meet halfway."""
    timestamp = connection.ops.adapt_datetimefield_value(now)
    leaving = [*census.displaced, *(move.known.index for move in census.moved)]
    _update("{index} = %s", [(parked(index, ids[index]), ids[index]) for index in leaving])
    _update(
        "{index} = %s, moved_at = %s, moved_from = %s",
        [(move.reading.index, timestamp, _origin(move), ids[move.known.index]) for move in census.moved],
    )


def parked(index: str, pk: int) -> str:
    """Return an index that no device can have, for a row whose own is another's now."""
    return f"{PARKED}{pk}{PARKED}{index.split(PARKED)[-1]}"[:120]


def _origin(move: Move) -> str:
    """Return where somebody came from as people write it: the place, or the index where that is not known."""
    place = (move.known.slot, move.known.port, move.known.onu)
    return move.known.index.split(PARKED)[-1] if None in place else "/".join(map(str, place))


def _update(assignments: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    quote = connection.ops.quote_name
    table, assigned = quote(Onu._meta.db_table), assignments.format(index=quote("index"))
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {table} SET {assigned} WHERE id = %s", rows)  # noqa: S608 - names are ours


def _write_suspicion(olt: Olt, census: Census, now: datetime) -> None:
    since = now if census.vanishing is Vanishing.SUSPECTED else olt.suspect_since
    since = since if census.is_suspect else None
    if since != olt.suspect_since:
        Olt.objects.filter(pk=olt.pk).update(suspect_since=since)


def tell_census(node: Node, verdict: Verdict) -> None:
    """Tell what a discovery found, in one event of each kind. Called when it is committed."""
    census = verdict.census
    _tell_vanishing(node, census)
    for event, indexes in (
        (Event.ONUS_MISSING, census.gone),
        (Event.ONUS_BACK, census.back),
        (Event.ONUS_MOVED, [move.known.index for move in census.moved]),
    ):
        if indexes:
            named = _named(indexes, verdict.names)
            tell(logger, event, olt_id=node.olt_id, olt=node.olt_name, count=len(indexes), names=named)


def _tell_vanishing(node: Node, census: Census) -> None:
    events = {
        Vanishing.SUSPECTED: Event.VANISHING_SUSPECTED,
        Vanishing.CONFIRMED: Event.VANISHING_CONFIRMED,
        Vanishing.OVER: Event.VANISHING_OVER,
    }
    event = events.get(census.vanishing)
    if event is not None:
        counts = {"missed": len(census.missed), "present": census.present}
        tell(logger, event, olt_id=node.olt_id, olt=node.olt_name, **counts)


def _named(indexes: Iterable[str], names: dict[str, str]) -> str:
    indexes = list(indexes)
    rest = len(indexes) - NAMED
    listed = ", ".join(names[index] for index in indexes[:NAMED])
    return f"{listed} and {rest} more" if rest > 0 else listed
