"""How many requests may be in flight at once: more while that brings more, fewer when the agent suffers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# What is compared are stretches of this many answers, or of two windows where that is more: answers come in bursts.
STRETCH = 3

# Twice the window must bring this much more, and may cost this much in round-trip time, to be kept. The two belong
# together: where a serial agent brings 1.1 times as much, because the network is hidden, each answer takes 1.82 times
# as long.
WORTHWHILE = 1.1
TOLERABLE = 1.85

# An agent that takes this much longer, and does this much less, has become slow.
SLOWER = 1.7
LESS = 0.75

# When one in so many requests is lost the agent has more to do than it can hold; fewer are chance.
LOST_ONE_IN = 5

# Stretches to wait before a larger window is tried again. They double with each try that brought nothing.
MAX_PATIENCE = 64
# A try that cost timeouts counts as so many.
COSTLY = 4


class Why(StrEnum):
    """Why a window is not larger."""

    UNTRIED = "untried"
    LIMIT = "limit"
    NO_GAIN = "no_gain"
    LOST = "lost"
    SLOWER = "slower"


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a stretch of answers was like: values a second, and the mean round trip in seconds."""

    rate: float
    round_trip: float

    def mean(self, other: "Stretch") -> "Stretch":
        """Return what lies halfway between two."""
        return Stretch((self.rate + other.rate) / 2, (self.round_trip + other.round_trip) / 2)


class Pace:
    """The window of one kind of request to one OLT. It never exceeds `limit`, and changes at the end of a stretch.

    An agent that works on several requests at once answers twice as many with
    twice the window, in the same time each. A serial one only queues them: its
    round trip doubles and its rate does not, so the window goes back.

    It starts where the last run ended (`stored`, from `as_json`), else at 1. The
    first stretch is compared with that run, so an agent that has become slower
    is given less at once.
    """

    def __init__(self, limit: int, stored: Mapping[str, Any] | None = None) -> None:
        self.limit = max(1, limit)
        stored = stored or {}
        window = _number(stored, "window", 1)
        rate, round_trip = _number(stored, "rate"), _number(stored, "round_trip")
        self.window = min(int(window or 1), self.limit)
        # The last stretch at the window that is kept, and what it is compared with; None after the window shrank.
        self.measured = Stretch(rate, round_trip) if window and rate and round_trip else None
        self._usual = self.measured
        # The window before it was doubled, and its stretch; None while nothing is being tried.
        self._before: tuple[int, Stretch] | None = None
        self._hold = min(int(_number(stored, "hold") or 0), MAX_PATIENCE * COSTLY)
        self._patience = min(int(_number(stored, "patience", 1) or 1), MAX_PATIENCE)
        why = stored.get("why")
        self._why = Why(why) if why in tuple(Why) else Why.UNTRIED
        # A learned window is checked after one window of answers.
        self._is_unchecked = self.window > 1
        # The first request of a run goes alone, so its answer says nothing about the window.
        self._begin(None, settle=1 if self._is_unchecked else 0)

    @property
    def why(self) -> Why:
        """Why the window is not larger."""
        return Why.LIMIT if self.proven >= self.limit else self._why

    @property
    def proven(self) -> int:
        """The window without the one that is being tried."""
        return self.window if self._before is None else self._before[0]

    def as_json(self) -> dict[str, Any]:
        """Return where the next run should start; nothing if nothing was measured."""
        if self.measured is None:
            return {}
        return {
            "window": self.proven,
            "rate": round(self.measured.rate, 3),
            "round_trip": round(self.measured.round_trip, 6),
            "why": str(self._why),
            "hold": self._hold,
            "patience": self._patience,
        }

    def _begin(self, now: float | None, settle: int) -> None:
        """Start a stretch, after the requests that still belong to the window before."""
        self._started = now
        self._settle = settle
        self._answers = self._losses = 0
        self._work = self._round_trips = 0.0
        self._is_full = True

    def answered(self, now: float, round_trip: float, work: int, in_flight: int, *, is_full: bool = True) -> None:
        """Note an answer: when it came, how long it took, how much was in it, and how many are still in flight.

        `is_full`: there was enough to ask to fill the window. Otherwise a stretch says nothing about it.
        """
        if self._settle:
            self._settle -= 1
            self._started = now
            return
        if self._started is None:
            self._started = now - round_trip
        self._answers += 1
        self._work += work
        self._round_trips += round_trip
        self._is_full = self._is_full and (is_full or self.window == 1)
        self._end_stretch(now, in_flight)

    def lost(self, now: float, in_flight: int) -> None:
        """Note that no answer came in time."""
        if self._settle:
            self._settle -= 1
            return
        self._losses += 1
        self._end_stretch(now, in_flight)

    def _end_stretch(self, now: float, in_flight: int) -> None:
        window, length = self.window, self._stretch()
        if window > 1 and self._losses > 1 and self._losses * LOST_ONE_IN >= length:
            self._narrow(Why.LOST, times=COSTLY)
        elif self._answers + self._losses < length:
            return
        elif self._answers and self._is_full:
            elapsed = now - (self._started or 0.0)
            self._judge(Stretch(self._work / max(elapsed, 1e-6), self._round_trips / self._answers))
            self._is_unchecked = False
        # What is in flight belongs to the old window, and the first requests of a wider one find a queue that is not
        # full yet.
        self._begin(now, settle=max(in_flight, self.window - 1) if self.window != window else 0)

    def _stretch(self) -> int:
        """Return how many answers are compared. One window shows well enough whether twice as many bring more."""
        if self.window == 1:
            # Nothing overlaps yet: one answer is like the next.
            return STRETCH - 1
        windows = 1 if self._before is not None or self._is_unchecked else 2
        return max(STRETCH, windows * self.window if self.window > 2 else 0)

    def _judge(self, now: Stretch) -> None:
        if self._before is not None:
            window, before = self._before
            self._before = None
            has_gained = now.rate >= before.rate * WORTHWHILE
            if not has_gained or now.round_trip > before.round_trip * TOLERABLE:
                self.window = window
                self._wait(Why.SLOWER if has_gained else Why.NO_GAIN)
                return
            self._patience = 1
            self._why = Why.UNTRIED
            self._usual = None
        elif self._has_become_slow(now):
            # What was measured before was measured on another agent, so to speak.
            self._patience = 1
            self.measured = now
            self._narrow(Why.SLOWER)
            return
        self.measured = now
        # A stretch in which the agent began to slow down must not pass for the usual one.
        self._usual = now if self._usual is None else self._usual.mean(now)
        if self._hold:
            self._hold -= 1
        elif self.window < self.limit:
            self._before = self.window, now
            self.window = min(self.window * 2, self.limit)

    def _has_become_slow(self, now: Stretch) -> bool:
        usual = self._usual
        return (
            self.window > 1
            and usual is not None
            and now.round_trip > usual.round_trip * SLOWER
            and now.rate < usual.rate * LESS
        )

    def _narrow(self, why: Why, *, times: int = 1) -> None:
        self.window = max(1, self.window // 2)
        self._usual = self._before = None
        self._wait(why, times)

    def _wait(self, why: Why, times: int = 1) -> None:
        self._why = why
        self._hold = self._patience * times
        self._patience = min(self._patience * 2 * times, MAX_PATIENCE)


def _number(stored: Mapping[str, Any], key: str, least: float = 0.0) -> float | None:
    """Return a stored number; None if it is none, or cannot be meant."""
    value = stored.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e12:
        return None
    return value
