"""Maintenance: when its windows are, when a reminder is due, and until when alerts are held. No clock, no I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum

# A window at least this long gets a reminder before its end.
LONG = timedelta(hours=4)
REMINDER_BEFORE = timedelta(minutes=30)

# After a window without polling, the stored values are old. Alerts wait until the OLTs were read again.
READ_AGAIN = timedelta(minutes=5)


class Recurrence(StrEnum):
    """How often a maintenance is repeated."""

    NONE = "none"
    DAILY = "daily"
    WEEKLY = "weekly"


STEPS: Mapping[str, timedelta] = {Recurrence.DAILY: timedelta(days=1), Recurrence.WEEKLY: timedelta(days=7)}


@dataclass(frozen=True, slots=True)
class Window:
    """A time of maintenance, from `start` to before `end`."""

    start: datetime
    end: datetime
    polls: bool = True

    def covers(self, at: datetime) -> bool:
        return self.start <= at < self.end

    @property
    def reminder_at(self) -> datetime | None:
        """Return when to remind of its end; None if it is short."""
        return self.end - REMINDER_BEFORE if self.end - self.start >= LONG else None

    @property
    def held_until(self) -> datetime:
        """Return until when alerts are held."""
        return self.end if self.polls else self.end + READ_AGAIN


@dataclass(frozen=True, slots=True)
class Schedule:
    """First window of a maintenance, and its repetitions at the same local time."""

    start: datetime
    end: datetime
    recurrence: Recurrence = Recurrence.NONE
    zone: tzinfo = UTC
    # No window starts later.
    until: datetime | None = None

    def next_window(self, now: datetime, after: datetime | None = None) -> tuple[datetime, datetime] | None:
        """Return the first window that is not over at `now` and starts after `after`, or None."""
        for start, end in self._windows(now):
            if self.until is not None and start > self.until:
                return None
            if end > now and (after is None or start > after):
                return start, end
        return None

    def _windows(self, now: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield the windows in order, without most of those that are over."""
        step = STEPS.get(self.recurrence)
        if step is None:
            yield self.start, self.end
            return
        first, last = self.start.astimezone(self.zone), self.end.astimezone(self.zone)
        number = max((now - self.end) // step - 1, 0)
        while True:
            yield self._at(first, last, number * step)
            number += 1

    def _at(self, first: datetime, last: datetime, shift: timedelta) -> tuple[datetime, datetime]:
        """Return a window at the same local times, some days later.

        A local time that occurs twice is the earlier one for the start and the later one for the end. If the clock
        jumps over the whole window, it keeps its duration.
        """
        if not shift:
            return self.start, self.end
        utc = self.start.tzinfo
        start = (first.replace(tzinfo=None, fold=0) + shift).replace(tzinfo=self.zone).astimezone(utc)
        end = (last.replace(tzinfo=None) + shift).replace(tzinfo=self.zone, fold=1).astimezone(utc)
        return start, end if end > start else start + (self.end - self.start)
