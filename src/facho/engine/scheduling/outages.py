"""Outages of the database or the broker, so that slots lost to them are not blamed on busy pollers."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.engine.model import Cause
from facho.engine.ports import Clock

# A call that takes longer is an outage from its start: a locked database does not fail, it blocks.
SLOW = timedelta(seconds=5)

# Number of outages to remember.
REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Outage:
    """Start and end of an outage. No end: still unavailable."""

    cause: Cause
    since: datetime
    until: datetime | None = None

    def moved(self, by: timedelta) -> "Outage":
        return Outage(self.cause, self.since + by, None if self.until is None else self.until + by)


class Outages:
    """Time spans in which a required service was unavailable.

    A span belongs to a source, such as writes of the scheduler. It starts with the first call that fails or hangs and
    ends with the next successful call of the same source.
    """

    def __init__(self, is_unavailable: Callable[[BaseException], bool] = lambda error: True) -> None:
        self._is_unavailable = is_unavailable
        # By source.
        self._open: dict[str, Outage] = {}
        # Calls in progress, by number. A call becomes an outage when it takes too long.
        self._calls: dict[int, Outage] = {}
        self._count = 0
        self._past: deque[Outage] = deque(maxlen=REMEMBERED)

    @contextmanager
    def watch(self, source: str, clock: Clock) -> Iterator[None]:
        """Watch a database call."""
        self._count += 1
        number = self._count
        self._calls[number] = Outage(Cause.DATABASE_UNAVAILABLE, clock.now())
        try:
            yield
        except Exception as error:
            if self._is_unavailable(error):
                self._open.setdefault(source, self._calls[number])
            raise
        else:
            now, call = clock.now(), self._calls[number]
            if now - call.since > SLOW:
                self._past.append(Outage(call.cause, call.since, now))
            self._end(source, now)
        finally:
            del self._calls[number]

    def note(self, source: str, cause: Cause | None, now: datetime) -> None:
        """Record the cause of an outage of a source. None: available."""
        known = self._open.get(source)
        if known is not None and known.cause is not cause:
            self._end(source, now)
        if cause is not None and source not in self._open:
            self._open[source] = Outage(cause, now)

    def _end(self, source: str, now: datetime) -> None:
        ended = self._open.pop(source, None)
        if ended is not None:
            self._past.append(Outage(ended.cause, ended.since, now))

    def clock_set(self, by: timedelta) -> None:
        """Shift the times after the clock was set, so that the age of an outage stays the same."""
        self._open = {source: outage.moved(by) for source, outage in self._open.items()}
        self._calls = {number: call.moved(by) for number, call in self._calls.items()}
        self._past = deque((outage.moved(by) for outage in self._past), maxlen=REMEMBERED)

    def present(self, now: datetime) -> Cause | None:
        """Return the cause of the current outage."""
        return next((each.cause for each in self._lasting(now)), None)

    def _lasting(self, now: datetime) -> Iterator[Outage]:
        yield from self._open.values()
        yield from (call for call in self._calls.values() if now - call.since > SLOW)

    def within(self, start: datetime, end: datetime) -> dict[Cause, float]:
        """Return the seconds of outage within a time span, by cause. Overlaps count once."""
        seconds: dict[Cause, float] = {}
        at = start
        recent = [each for each in self._past if each.until is not None and each.until > start]
        for each in sorted((*recent, *self._lasting(end)), key=lambda outage: outage.since):
            since, until = max(each.since, at), min(each.until or end, end)
            if since < until:
                seconds[each.cause] = seconds.get(each.cause, 0.0) + (until - since).total_seconds()
                at = until
        return seconds

    def main_cause(self, start: datetime, end: datetime) -> Cause | None:
        """Return the cause of an outage that covers at least half of a time span."""
        seconds = self.within(start, end)
        longest = max(seconds, key=lambda cause: seconds[cause], default=None)
        is_main = longest is not None and 2 * seconds[longest] >= (end - start).total_seconds()
        return longest if is_main else None


# Default when nothing is watched.
NO_OUTAGES = Outages()
