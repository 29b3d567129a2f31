"""How hard an OLT is asked: requests in flight, time-outs and request sizes. Pure arithmetic on measured answers."""

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


# How much one measurement counts for the mean, and for the deviation from it.
GAIN = 1 / 8
DEVIATION_GAIN = 1 / 4

# An answer may take this many times as long as usual before it counts as lost: a request for
# twice as many rows takes twice the time.
TIMEOUT_FACTOR = 3.0


class Timer:
    """Knows the round trips of one kind of request. Until one is measured it waits as long as the maker says.

    After a silence it doubles its patience until an answer comes, so an agent
    that has become slow is not asked again and again for what it is working on.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = min(shortest, longest)
        self._longest = longest
        self._mean: float | None = None
        self._deviation = 0.0
        self._backoff = 1.0

    @property
    def is_measured(self) -> bool:
        """Return whether an answer has shown how long one takes."""
        return self._mean is not None

    @property
    def timeout(self) -> float:
        """Return how long to wait for the next answer."""
        if self._mean is None:
            return self._longest
        usual = max(self._mean * TIMEOUT_FACTOR, self._mean + 4 * self._deviation, self._shortest)
        return min(usual * self._backoff, self._longest)

    def has_room(self, round_trip: float) -> bool:
        """Say whether requests may become dearer: not if twice as much work would come near the longest wait."""
        return round_trip < self._longest / 4

    def measured(self, round_trip: float) -> None:
        """Note how long an answer took."""
        self._backoff = 1.0
        if self._mean is None:
            self._mean, self._deviation = round_trip, round_trip / 2
            return
        self._deviation += DEVIATION_GAIN * (abs(round_trip - self._mean) - self._deviation)
        self._mean += GAIN * (round_trip - self._mean)

    def expired(self) -> None:
        """Note that no answer came in time."""
        self._backoff = min(self._backoff * 2, 64.0)


# Successes in a row before more is tried.
SIZE_PATIENCE = 4
MAX_SIZE_PATIENCE = 4096

# Bytes of an answer that fits one datagram on any network. Many agents send no larger one, and where they do
# all of it is lost with any piece: a size beyond this has to wait so many times as long before it is tried.
ONE_DATAGRAM = 1400
CAUTION = 8

# More than these in one request gain nothing: an answer of one datagram is full by then.
MAX_COLUMNS = 16
# Above 50 rows there are agents that leave some out.
MAX_ROWS = 50
MAX_VARIABLES = 256


class Size:
    """Rows and columns of the next request. Both are always at least 1: asked for 0 rows, some agents hang.

    It begins where the maker or an earlier run says, and grows while answers
    succeed. A failure halves the rows, and then the columns; from there it goes
    halfway back towards what failed, until it stands right below. A size that
    fails again soon after it was tried is tried less and less often.
    """

    def __init__(self, rows: int, columns: int, *, is_proven: bool = False) -> None:
        self._most_rows = MAX_ROWS
        self._most_columns = max(1, min(columns, MAX_COLUMNS))
        self._rows = max(1, min(rows, self._most_rows))
        self.columns = self._most_columns
        # The fewest rows that failed, as far as anybody remembers. What an earlier run ended up with
        # is taken to be the most that fits, and is only felt for.
        self._ceiling: int | None = self._rows + 1 if is_proven else None
        self._patience = SIZE_PATIENCE
        self._successes = 0
        self._has_grown = False
        # How many rows the last answer had, if it was cut short.
        self._cut: int | None = None
        # What it was before it grew, until the new size has been answered once.
        self._before_trial: int | None = None

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def is_on_trial(self) -> bool:
        """Say whether nobody knows yet that the agent can answer so much."""
        return self._before_trial is not None

    @property
    def proven_rows(self) -> int:
        """Return the most rows that were answered, as far as anybody asked."""
        return self._rows if self._before_trial is None else self._before_trial

    def rows_for(self, columns: int) -> int:
        """Return how many rows of so many columns to ask for."""
        return max(1, min(self._rows, MAX_VARIABLES // max(1, columns)))

    def shrink(self, rows: int, columns: int, *, fitting: int = 0, costly: bool = False) -> bool:
        """Ask for less after a request of this size failed; False if there is nothing left to halve.

        `fitting` is how many rows an answer that was cut short did have.
        `costly` says that the failure took timeouts to notice, and not just an answer.
        """
        if self._has_grown:
            self._patience = min(self._patience * (8 if costly else 2), MAX_SIZE_PATIENCE)
            self._has_grown = False
        self._successes = 0
        self._before_trial = None
        if rows > 1:
            # Others may have met the same, and halved it already.
            self._rows = min(self._rows, max(1, fitting or rows // 2))
            self._ceiling = fitting + 1 if fitting else min(rows, self._ceiling or rows)
            return True
        if columns > 1:
            self.columns = min(self.columns, max(1, columns // 2))
            return True
        return False

    def cut_short(self, rows: int, columns: int, fitting: int) -> None:
        """Ask for no more than fits, once two answers in a row were cut short. One may be chance, and costs nothing."""
        if self._cut is None:
            self._cut = fitting
            return
        fitting, self._cut = max(fitting, self._cut), None
        self.shrink(rows, columns, fitting=fitting)

    def succeeded(self, *, may_grow: bool = True, fitting: int = 0) -> None:
        """Note a success, and grow when there were enough of them.

        `fitting` is how many rows like these should fit one datagram; 0 if nobody knows.
        """
        self._before_trial = self._cut = None
        if self._rows == self._most_rows and self.columns == self._most_columns:
            return
        self._successes += 1
        patience = self._patience * (CAUTION if 0 < fitting <= self._rows else 1)
        if self._successes >= patience and may_grow:
            self._successes = 0
            self._grow(fitting)

    def _grow(self, fitting: int) -> None:
        self._has_grown = True
        if self.columns < self._most_columns:
            self.columns = min(self.columns * 2, self._most_columns)
            return
        wanted = self._rows * 2 if self._ceiling is None else (self._rows + self._ceiling) // 2
        if self._rows < fitting:
            wanted = min(wanted, fitting)
        if wanted <= self._rows:
            # Right below what failed. It may fit by now: only one more, and only once in a while.
            self._ceiling = None
            wanted = self._rows + 1
        self._before_trial = self._rows
        self._rows = min(wanted, self._most_rows)
