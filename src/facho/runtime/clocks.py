"""Whether another machine's clock agrees with ours."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.checks import CheckMessage, Error, Warning

from facho.engine.ports import Clock

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

    def messages(self, whose: str, *, error: str, warning: str) -> list[CheckMessage]:
        """Say how far the clocks are apart, if that is more than is good."""
        if not self.is_noticeable:
            return []
        seconds = self.ahead.total_seconds()
        said = f"The clock of {whose} is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} ours."
        hint = "Let all machines take their time from the same NTP servers: slots are counted by the clock of this one."
        return [Error(said, hint=hint, id=error) if self.is_harmful else Warning(said, hint=hint, id=warning)]


def measure(ask: Callable[[], datetime], clock: Clock) -> Skew:
    """Ask another clock. It was read at some moment between our question and its answer: the nearest one counts."""
    began = clock.now()
    told = ask()
    ended = clock.now()
    return Skew(told - min(max(told, began), ended))
