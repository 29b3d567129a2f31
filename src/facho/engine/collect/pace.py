"""How many requests may be under way at once: more while that really brings more, fewer when the agent suffers."""

from dataclasses import dataclass

# What is compared are stretches of this many answers, or of two windows where that is more: answers come in bursts.
STRETCH = 3

# Twice the window must bring this much more, and may cost this much in round-trip time, to be kept.
WORTHWHILE = 1.2
TOLERABLE = 1.6

# An agent that takes this much longer, and does this much less, has become slow.
SLOWER = 1.7
LESS = 0.75

# When one in so many requests is lost the agent has more to do than it can hold; fewer are chance.
LOST_ONE_IN = 5

# Stretches to wait before more is tried again. They double with each try that brought nothing.
MAX_PATIENCE = 64
# A try that cost timeouts was a dear one.
DEAR = 4


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a stretch of answers was like: work a second, and the mean round trip."""

    rate: float
    round_trip: float


class Pace:
    """The window of one OLT. It begins at 1, never exceeds `limit`, and decides at the end of each stretch.

    An agent that works on several requests at once answers twice as many with
    twice the window, in the same time each. A serial one only lets them wait:
    its round trip doubles and its rate does not, so the window goes back.
    """

    def __init__(self, limit: int) -> None:
        self.limit = max(1, limit)
        self.window = 1
        self._usual: Stretch | None = None
        # What it was like before the window was doubled; None while nothing is being tried.
        self._before: tuple[int, Stretch] | None = None
        self._hold = 0
        self._patience = 1
        self._begin(None, settle=0)

    def _begin(self, now: float | None, settle: int) -> None:
        """Start a stretch, after the answers that still belong to the window before."""
        self._started = now
        self._settle = settle
        self._answers = self._losses = 0
        self._work = self._round_trips = 0.0

    def answered(self, now: float, round_trip: float, work: int, under_way: int) -> None:
        """Note an answer: when it came, how long it took, how much was in it, and how many are under way still."""
        if self.limit == 1:
            return
        if self._settle:
            self._settle -= 1
            self._started = now
            return
        if self._started is None:
            self._started = now - round_trip
        self._answers += 1
        self._work += work
        self._round_trips += round_trip
        self._end_stretch(now, under_way)

    def lost(self, now: float, under_way: int) -> None:
        """Note that no answer came in time."""
        if self.limit == 1:
            return
        self._losses += 1
        self._end_stretch(now, under_way)

    def _end_stretch(self, now: float, under_way: int) -> None:
        count = self._answers + self._losses
        if count < self._stretch():
            return
        window = self.window
        if self._losses > 1 and self._losses * LOST_ONE_IN >= count and window > 1:
            self._narrow(dear=True)
        elif self._answers:
            elapsed = now - (self._started or 0.0)
            self._judge(Stretch(self._work / max(elapsed, 1e-6), self._round_trips / self._answers))
        self._begin(now, settle=under_way if self.window != window else 0)

    def _stretch(self) -> int:
        """Return how many answers are compared. One window shows well enough whether twice as many bring more."""
        if self.window == 1:
            # Nothing overlaps yet: one answer is like the next.
            return STRETCH - 1
        windows = 1 if self._before is not None else 2
        return max(STRETCH, windows * self.window if self.window > 2 else 0)

    def _judge(self, now: Stretch) -> None:
        if self._before is not None:
            window, before = self._before
            self._before = None
            if now.rate < before.rate * WORTHWHILE or now.round_trip > before.round_trip * TOLERABLE:
                self.window = window
                self._wait()
                return
            self._patience = 1
        elif self._has_become_slow(now):
            # What was found out before was found out about another agent, so to speak.
            self._patience = 1
            self._narrow()
            return
        self._usual = now
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

    def _narrow(self, *, dear: bool = False) -> None:
        self.window = max(1, self.window // 2)
        self._usual = self._before = None
        self._wait(DEAR if dear else 1)

    def _wait(self, times: int = 1) -> None:
        self._hold = self._patience * times
        self._patience = min(self._patience * 2 * times, MAX_PATIENCE)
