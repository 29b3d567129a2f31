"""Flow control: requests in flight, time-outs and request sizes. Pure arithmetic on measured answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# Minimum answers per comparison, or two windows if that is more, because answers come in bursts.
STRETCH = 3

# A doubled window is kept if the rate grows by the first factor and the round trip by less than the second. The factors
# belong together: if a serial agent gains 1.1 times the rate by hiding the network, each answer takes 1.82 times as
# long.
WORTHWHILE = 1.1
TOLERABLE = 1.85

# An agent is slow if the round trip grows by the first factor and the rate falls by the second.
SLOWER = 1.7
LESS = 0.75

# A loss of one in this many requests means overload; less is chance.
LOST_ONE_IN = 5

# Maximum stretches to wait before a larger window is tried again. The wait doubles with each useless try.
MAX_PATIENCE = 64
# A try that caused time-outs counts this many times.
COSTLY = 4


class Why(StrEnum):
    """Reasons for the size of a window."""

    UNTRIED = "untried"
    LIMIT = "limit"
    NO_GAIN = "no_gain"
    LOST = "lost"
    SLOWER = "slower"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Measurement of a stretch of answers: values per second, and the mean round trip in seconds."""

    rate: float
    round_trip: float

    def mean(self, other: "Stretch") -> "Stretch":
        """Return the mean of two stretches."""
        return Stretch((self.rate + other.rate) / 2, (self.round_trip + other.round_trip) / 2)


class Pace:
    """Window of one kind of request to one OLT. It never exceeds `limit` and changes at the end of a stretch.

    A parallel agent answers twice as many requests with twice the window in the same time. A serial agent only queues
    them: its round trip doubles and its rate does not, so the window shrinks again.

    It starts from the last run (`stored`, from `as_json`), else at 1. The first stretch is compared with that run, so
    a slower agent gets less at once.
    """

    def __init__(self, limit: int, stored: Mapping[str, Any] | None = None) -> None:
        self.limit = max(1, limit)
        stored = stored or {}
        window = _number(stored, "window", 1)
        rate, round_trip = _number(stored, "rate"), _number(stored, "round_trip")
        self.window = min(int(window or 1), self.limit)
        # Last stretch at the current window, the base of comparison; None after the window shrank.
        self.measured = Stretch(rate, round_trip) if window and rate and round_trip else None
        self._usual = self.measured
        # Window and stretch before the doubling; None if no try is in progress.
        self._before: tuple[int, Stretch] | None = None
        self._hold = min(int(_number(stored, "hold") or 0), MAX_PATIENCE * COSTLY)
        self._patience = min(int(_number(stored, "patience", 1) or 1), MAX_PATIENCE)
        why = stored.get("why")
        self._why = Why(why) if why in tuple(Why) else Why.UNTRIED
        # A learned window is verified after one window of answers.
        self._is_unchecked = self.window > 1
        # The first request of a run goes alone, so its answer says nothing about the window.
        self._begin(None, settle=1 if self._is_unchecked else 0)

    @property
    def why(self) -> Why:
        """Return the reason why the window is not larger."""
        return Why.LIMIT if self.proven >= self.limit else self._why

    @property
    def proven(self) -> int:
        """Return the window without the current try."""
        return self.window if self._before is None else self._before[0]

    def as_json(self) -> dict[str, Any]:
        """Return the start values of the next run; empty if nothing was measured."""
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
        """Start a stretch after the requests of the previous window."""
        self._started = now
        self._settle = settle
        self._answers = self._losses = 0
        self._work = self._round_trips = 0.0
        self._is_full = True
        # Number of answers to compare.
        if self.window == 1:
            # Nothing overlaps yet, so few answers are enough.
            self._length = STRETCH - 1
        else:
            # One window is enough to judge a doubling.
            windows = 1 if self._before is not None or self._is_unchecked else 2
            self._length = max(STRETCH, windows * self.window if self.window > 2 else 0)

    def answered(self, now: float, round_trip: float, work: int, in_flight: int, *, is_full: bool = True) -> None:
        """Record an answer: time, round trip, number of values, requests still in flight.

        `is_full`: enough requests were pending to fill the window. Otherwise the stretch is not judged.
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
        if self._answers + self._losses >= self._length:
            self._end_stretch(now, in_flight)

    def lost(self, now: float, in_flight: int) -> None:
        """Record a request without an answer."""
        if self._settle:
            self._settle -= 1
            return
        self._losses += 1
        self._end_stretch(now, in_flight)

    def _end_stretch(self, now: float, in_flight: int) -> None:
        window = self.window
        if window > 1 and self._losses > 1 and self._losses * LOST_ONE_IN >= self._length:
            self._narrow(Why.LOST, times=COSTLY)
        elif self._answers + self._losses < self._length:
            return
        elif self._answers and self._is_full:
            elapsed = now - (self._started or 0.0)
            self._judge(Stretch(self._work / max(elapsed, 1e-6), self._round_trips / self._answers))
            self._is_unchecked = False
        # Requests in flight belong to the old window, and the first ones of a larger window meet an empty queue.
        self._begin(now, settle=max(in_flight, self.window - 1) if self.window != window else 0)

    def _judge(self, now: Stretch) -> None:
        usual = self._usual
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
        elif (
            self.window > 1
            and usual is not None
            and now.round_trip > usual.round_trip * SLOWER
            and now.rate < usual.rate * LESS
        ):
            # The agent changed, so earlier measurements do not apply.
            self._patience = 1
            self.measured = now
            self._narrow(Why.SLOWER)
            return
        self.measured = now
        # A stretch in which the agent slows down must not become the base.
        self._usual = now if self._usual is None else self._usual.mean(now)
        if self._hold:
            self._hold -= 1
        elif self.window < self.limit:
            self._before = self.window, now
            self.window = min(self.window * 2, self.limit)

    def _narrow(self, why: Why, *, times: int = 1) -> None:
        self.window = max(1, self.window // 2)
        self._usual = self._before = None
        self._wait(why, times)

    def _wait(self, why: Why, times: int = 1) -> None:
        self._why = why
        self._hold = self._patience * times
        self._patience = min(self._patience * 2 * times, MAX_PATIENCE)


def _number(stored: Mapping[str, Any], key: str, least: float = 0.0) -> float | None:
    """Return a stored number; None if it is invalid."""
    value = stored.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e12:
        return None
    return value


# Weight of one measurement in the mean and in the deviation.
GAIN = 1 / 8
DEVIATION_GAIN = 1 / 4

# An answer may take this many times the usual time: a request for twice as many rows takes twice as long.
TIMEOUT_FACTOR = 3.0


class Timer:
    """Time-out of one kind of request. Until the first measurement it is the brand's default.

    It doubles after each time-out until an answer arrives, so a slow agent does not get repeated requests.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = min(shortest, longest)
        self._longest = longest
        # Of the round trips so far; None before the first.
        self.mean: float | None = None
        self._deviation = 0.0
        self._backoff = 1.0

    @property
    def timeout(self) -> float:
        """Return how long to wait for the next answer."""
        if self.mean is None:
            return self._longest
        usual = max(self.mean * TIMEOUT_FACTOR, self.mean + 4 * self._deviation, self._shortest)
        return min(usual * self._backoff, self._longest)

    def has_room(self, round_trip: float) -> bool:
        """Return whether requests may become larger: not if twice the work would come near the longest time-out."""
        return round_trip < self._longest / 4

    def measured(self, round_trip: float) -> None:
        """Note how long an answer took."""
        self._backoff = 1.0
        if self.mean is None:
            self.mean, self._deviation = round_trip, round_trip / 2
            return
        self._deviation += DEVIATION_GAIN * (abs(round_trip - self.mean) - self._deviation)
        self.mean += GAIN * (round_trip - self.mean)

    def expired(self) -> None:
        """Record a time-out."""
        self._backoff = min(self._backoff * 2, 64.0)


# Successes in a row before a larger size is tried.
SIZE_PATIENCE = 4
MAX_SIZE_PATIENCE = 4096

# Bytes of an answer that fits into one datagram on any network. Many agents send no more, and a lost fragment loses the
# whole answer. A larger size must wait this many times longer before it is tried.
ONE_DATAGRAM = 1400
CAUTION = 8

# More columns do not help: one datagram is full by then.
MAX_COLUMNS = 16
# Some agents leave out rows above 50.
MAX_ROWS = 50
MAX_VARIABLES = 256


class Size:
    """Rows and columns of the next request, each at least 1: some agents hang when asked for 0 rows.

    It starts with the value of the brand or of an earlier run and grows while answers succeed. A failure halves the
    rows, then the columns. Then it grows halfway towards the failed size. A size that fails again is tried less and
    less often.
    """

    def __init__(self, rows: int, columns: int, *, is_proven: bool = False) -> None:
        self._most_columns = max(1, min(columns, MAX_COLUMNS))
        self.rows = max(1, min(rows, MAX_ROWS))
        self.columns = self._most_columns
        # Smallest known failing number of rows. The size of an earlier run counts as the largest that fits and is only
        # tested slowly.
        self._ceiling: int | None = self.rows + 1 if is_proven else None
        self._patience = SIZE_PATIENCE
        self._successes = 0
        self._has_grown = False
        # Rows of the last answer, if it was truncated.
        self._cut: int | None = None
        # Size before the last growth, until the new size has succeeded once.
        self._before_trial: int | None = None

    @property
    def is_on_trial(self) -> bool:
        """Return whether the current size has not succeeded yet."""
        return self._before_trial is not None

    @property
    def proven_rows(self) -> int:
        """Return the largest number of rows that succeeded."""
        return self.rows if self._before_trial is None else self._before_trial

    def rows_for(self, columns: int) -> int:
        """Return the number of rows to request for this many columns."""
        return max(1, min(self.rows, MAX_VARIABLES // max(1, columns)))

    def shrink(self, rows: int, columns: int, *, fitting: int = 0, costly: bool = False) -> bool:
        """Reduce the size after a failure. Returns False if it cannot be reduced.

        `fitting` is the number of rows in a truncated answer. `costly`: the failure was a time-out and not an answer.
        """
        if self._has_grown:
            self._patience = min(self._patience * (8 if costly else 2), MAX_SIZE_PATIENCE)
            self._has_grown = False
        self._successes = 0
        self._before_trial = None
        if rows > 1:
            # Another request may have halved it already.
            self.rows = min(self.rows, max(1, fitting or rows // 2))
            self._ceiling = fitting + 1 if fitting else min(rows, self._ceiling or rows)
            return True
        if columns > 1:
            self.columns = min(self.columns, max(1, columns // 2))
            return True
        return False

    def cut_short(self, rows: int, columns: int, fitting: int) -> None:
        """Reduce the size to the rows that fit after two truncated answers in a row. A single one may be chance."""
        if self._cut is None:
            self._cut = fitting
            return
        fitting, self._cut = max(fitting, self._cut), None
        self.shrink(rows, columns, fitting=fitting)

    def succeeded(self, *, may_grow: bool = True, fitting: int = 0) -> None:
        """Record a success, and grow after enough of them.

        `fitting` is the number of rows that should fit into one datagram; 0 if unknown.
        """
        self._before_trial = self._cut = None
        if self.rows == MAX_ROWS and self.columns == self._most_columns:
            return
        self._successes += 1
        patience = self._patience * (CAUTION if 0 < fitting <= self.rows else 1)
        if self._successes < patience or not may_grow:
            return
        self._successes = 0
        self._has_grown = True
        if self.columns < self._most_columns:
            self.columns = min(self.columns * 2, self._most_columns)
            return
        wanted = self.rows * 2 if self._ceiling is None else (self.rows + self._ceiling) // 2
        if self.rows < fitting:
            wanted = min(wanted, fitting)
        if wanted <= self.rows:
            # Just below the failed size. It may fit by now: try one row more, rarely.
            self._ceiling = None
            wanted = self.rows + 1
        self._before_trial = self.rows
        self.rows = min(wanted, MAX_ROWS)
