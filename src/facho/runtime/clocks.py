"""Whether another machine's clock agrees with ours, and whether ours was set."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.core.checks import CheckMessage, Error, Warning
from django.db import connection

from facho.adapters.clock import SystemClock
from facho.engine.events import Event, tell
from facho.engine.ports import Clock

logger = logging.getLogger(__name__)

# How often the machine's clock is read, in seconds.
WATCH_EVERY = 1.0

# Clocks that are set by NTP agree to milliseconds. From here on something is wrong, and from there on it hurts:
# a slot lies elsewhere, messages seem older than they are, and what is fresh looks stale.
NOTICEABLE = timedelta(seconds=2)
HARMFUL = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Skew:
    """How far another clock is ahead of ours, at least: what the question itself took is in our favour."""

    ahead: timedelta

    @property
    def is_noticeable(self) -> bool:
        return abs(self.ahead) > NOTICEABLE

    @property
    def is_harmful(self) -> bool:
        return abs(self.ahead) > HARMFUL

    @property
    def described(self) -> str:
        seconds = self.ahead.total_seconds()
        return f"{abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} ours"

    def messages(self, whose: str, *, error: str, warning: str) -> list[CheckMessage]:
        """Say how far the clocks are apart, if that is more than is good."""
        if not self.is_noticeable:
            return []
        said = f"The clock of {whose} is {self.described}."
        hint = "Let all machines take their time from the same NTP servers: slots are counted by the clock of this one."
        return [Error(said, hint=hint, id=error) if self.is_harmful else Warning(said, hint=hint, id=warning)]


def measure(ask: Callable[[], datetime], clock: Clock) -> Skew:
    """Ask another clock. It was read at some moment between our question and its answer: the nearest one counts."""
    began = clock.now()
    told = ask()
    ended = clock.now()
    return Skew(told - min(max(told, began), ended))


def skew_of_database() -> Skew:
    """Ask PostgreSQL for its time. By a clock of its own: that of the process may have a step still to follow."""
    connection.ensure_connection()
    return measure(_now_in_database, SystemClock())


def _now_in_database() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    return now.astimezone(UTC)  # type: ignore[no-any-return]  # the driver gives a datetime


class ClockWatch:
    """Follows the machine's clock. One in a process: `now` of its clock steps here and nowhere else.

    `on_set` is called in the same moment, so that no other task sees times of both clocks.
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
            tell(logger, event, process=self._process, seconds=abs(by.total_seconds()))
