"""Clocks: difference from other machines, and steps of our own."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.core.checks import CheckMessage, Error, Warning
from django.db import connection

from facho.adapters.clock import SystemClock
from facho.engine.events import Event, log_event
from facho.engine.ports import Clock

logger = logging.getLogger(__name__)

# Seconds between readings of the system clock.
WATCH_EVERY = 1.0

# Clocks under NTP agree to milliseconds. The first difference is reported; the second is harmful: slots move, messages
# seem too old, and fresh data looks stale.
NOTICEABLE = timedelta(seconds=2)
HARMFUL = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Skew:
    """Minimum lead of another clock over ours, without the time of the query."""

    ahead: timedelta

    @property
    def is_harmful(self) -> bool:
        return abs(self.ahead) > HARMFUL

    @property
    def described(self) -> str:
        seconds = self.ahead.total_seconds()
        return f"{abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} the clock of this machine"

    def messages(self, whose: str, *, error: str, warning: str) -> list[CheckMessage]:
        """Return a message if the clocks differ too much."""
        if abs(self.ahead) <= NOTICEABLE:
            return []
        said = f"The clock of {whose} is {self.described}."
        hint = "Synchronise all machines with the same NTP servers: slots use the clock of this machine."
        return [Error(said, hint=hint, id=error) if self.is_harmful else Warning(said, hint=hint, id=warning)]


def measure(ask: Callable[[], datetime], clock: Clock) -> Skew:
    """Query another clock. It was read between request and answer; the nearest time counts."""
    began = clock.now()
    told = ask()
    ended = clock.now()
    return Skew(told - min(max(told, began), ended))


def skew_of_database() -> Skew:
    """Query the time of PostgreSQL. Uses the system clock, because the process clock may have a pending step."""

    def now() -> datetime:
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            (found,) = cursor.fetchone()
        return found.astimezone(UTC)  # type: ignore[no-any-return]  # the driver gives a datetime

    # Before the measurement, because connecting takes time.
    connection.ensure_connection()
    return measure(now, SystemClock())


class ClockWatch:
    """Follows the system clock. One per process: `now` of its clock steps only here.

    `on_set` is called at the same moment, so that no other task sees times of both clocks.
    """

    def __init__(self, clock: SystemClock, process: str, on_set: Callable[[timedelta], None]) -> None:
        self._clock = clock
        self._process = process
        self._on_set = on_set

    async def run(self) -> None:
        """Watch forever."""
        while True:
            self.step()
            await self._clock.sleep(WATCH_EVERY)

    def step(self) -> None:
        by = self._clock.follow()
        if by:
            self._on_set(by)
            event = Event.CLOCK_SET_FORWARD if by > timedelta(0) else Event.CLOCK_SET_BACK
            log_event(logger, event, process=self._process, seconds=abs(by.total_seconds()))
