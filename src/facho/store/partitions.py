"""The history of ONUs on PostgreSQL: a partition for each day of UTC, made ahead, and dropped whole when it is too old.

A reading whose day has no partition goes into the default one, so none is ever lost for want of one. It stays there:
to move it would keep others from writing for as long as that takes. A day that began there also ends there, and its
readings go one by one when they are too old, like those from before there were partitions.

SQLite has no partitions; there everything here does nothing.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db import IntegrityError, OperationalError, connection, transaction

from facho.apps.telemetry.models import Onu, OnuHistory

logger = logging.getLogger(__name__)

PARENT = OnuHistory._meta.db_table
DEFAULT = f"{PARENT}_default"

DAY = timedelta(days=1)

# As long as nobody makes partitions, readings have theirs for so many days.
DAYS_AHEAD = 3

# Milliseconds that a change of the table waits for those who use it; whoever comes behind it waits as long. Less
# than PostgreSQL takes to look for a deadlock, so that it is always the change that gives way, and is tried later.
LOCK_TIMEOUT = 500

# Readings of a larger partition, in bytes, are not counted but estimated: to count them would take seconds.
LARGE = 32 * 2**20

BOUND = re.compile(r"FROM \((?:'(?P<start>[^']+)'|MINVALUE)\) TO \('(?P<end>[^']+)'\)")


@dataclass(frozen=True, slots=True)
class Partition:
    """A table that holds the readings from one time until just before another."""

    table: str
    start: datetime
    end: datetime

    def holds(self, at: datetime) -> bool:
        return self.start <= at < self.end


def are_used() -> bool:
    return connection.vendor == "postgresql"


def start_of_day(at: datetime) -> datetime:
    """Return the time at which the day of UTC began, and so its partition."""
    return _midnight(at.astimezone(UTC).date())


def partitions() -> list[Partition]:
    """Return the partitions but the default one, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i "
            "JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass",
            [PARENT],
        )
        bounds = [(table, BOUND.search(bound)) for table, bound in cursor.fetchall()]
    found = [Partition(table, _time(bound["start"]), _time(bound["end"])) for table, bound in bounds if bound]
    return sorted(found, key=lambda partition: partition.end)


def make_ahead(now: datetime) -> list[date]:
    """Make the partitions of today and the days to come as far as there are none, and return those days.

    If others use the table all the time that is for the next try, until it becomes urgent.
    """
    today = start_of_day(now).date()
    try:
        return make(today + ahead * DAY for ahead in range(DAYS_AHEAD + 1))
    except OperationalError as error:
        if not any(partition.holds(_midnight(today + DAY)) for partition in partitions()):
            raise
        logger.info("the next days of %s have no partition yet: %s", PARENT, error)
        return []


def make(days: Iterable[date]) -> list[date]:
    """Make the partitions of these days, and return for which of them there was none, nor any reading."""
    if not are_used():
        return []
    there = partitions()
    missing = [day for day in days if not any(each.holds(_midnight(day)) for each in there)]
    return [day for day in missing if not _has_strays(day) and _make(day)]


def _has_strays(day: date) -> bool:
    """Return whether readings of that day are in the default partition."""
    begin = _midnight(day)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {DEFAULT} WHERE at >= %s AND at < %s)", [begin, begin + DAY])  # noqa: S608 - names are ours
        (found,) = cursor.fetchone()
    return bool(found)


def _make(day: date) -> bool:
    """Make the partition of a day. Made beside the table and then attached, it keeps no reader from the others."""
    table, begin = f"{PARENT}_{day:%Y%m%d}", _midnight(day)
    bounds = f"FROM ('{begin.isoformat()}') TO ('{(begin + DAY).isoformat()}')"

    try:
        with _soon():
            # Needed for the foreign key. Whoever writes readings takes the two tables in this order.
            _execute(f"LOCK TABLE {Onu._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")
            if _is_there(table):
                return False
            _execute(f"CREATE TABLE {table} (LIKE {PARENT} INCLUDING DEFAULTS INCLUDING STORAGE)")
            _execute(f"ALTER TABLE {PARENT} ATTACH PARTITION {table} FOR VALUES {bounds}")
    except IntegrityError:
        # The first reading of the day was quicker.
        return False
    logger.info("the partition %s is there", table)
    return True


def _is_there(table: str) -> bool:
    """Return whether another process was quicker to make it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [table])
        (found,) = cursor.fetchone()
    return bool(found)


def drop_oldest(before: datetime) -> int | None:
    """Drop the oldest partition that has only readings from before that time, and return how many those were.

    Empty ones go with it. 0: there is none any more; None: there is one, and others used it all the time.
    """
    for partition in partitions():
        if partition.end <= before:
            rows = _drop(partition)
            if rows != 0:
                return rows
    return 0


def oldest_strays(before: datetime, size: int) -> list[tuple[int, datetime]]:
    """Return id and time of the oldest readings from before that time, for when whole partitions cannot be dropped."""
    old = OnuHistory.objects.filter(at__lt=before).order_by("at")
    return list(old.values_list("pk", "at")[:size])


def delete_strays(strays: Sequence[tuple[int, datetime]]) -> int:
    """Delete readings, and return how many that were. With their time they are not looked for in every partition."""
    newest = max(at for _, at in strays)
    _, deleted = OnuHistory.objects.filter(pk__in=[pk for pk, _ in strays], at__lte=newest).delete()
    return deleted.get(OnuHistory._meta.label, 0)


def _drop(partition: Partition) -> int | None:
    """Drop a partition, and return how many readings it had; None if others used it all the time."""
    rows = _count(partition.table)
    try:
        with _soon():
            _execute(f"DROP TABLE {partition.table}")
    except OperationalError as error:
        logger.info("the partition %s is too old and will be dropped later: %s", partition.table, error)
        return None
    logger.info("the partition %s is gone with its %d readings", partition.table, rows)
    return rows


def _count(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_size(oid), reltuples FROM pg_class WHERE oid = %s::regclass", [table])
        size, estimated = cursor.fetchone()
        if size > LARGE and estimated > 0:
            return int(estimated)
        cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - its name is ours
        (counted,) = cursor.fetchone()
    return int(counted)


@contextmanager
def _soon() -> Iterator[None]:
    """Do something in a transaction that gives up where it has to wait for a lock."""
    with transaction.atomic():
        _execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT}")
        yield


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _time(bound: str | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if bound is None else datetime.fromisoformat(bound)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)
