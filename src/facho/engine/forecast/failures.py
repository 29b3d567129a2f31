"""Failure model of an OLT, learned from its recent attempts. Arithmetic only.

If time-outs come in bursts, the OLT was unreachable at times, and these times are kept. Any other failure belongs to
a node: a share of its attempts, with their durations.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from itertools import groupby, pairwise

from facho.engine.model import Cause, Outcome, Status
from facho.engine.scheduling.breaker import PROBE_EVERY

# Time-outs come in bursts if one follows another more often than chance explains, by this many deviations.
BURSTS = 2.0

# A node with fewer attempts uses the failure rate of its OLT.
LEAST = 3

# If this share of attempts times out anyway, an open breaker without precedent may be temporary too.
OFTEN_SILENT = 0.1

NEVER = math.inf


class Ending(Enum):
    """Result of an attempt with respect to the OLT."""

    ANSWERED = auto()
    SILENT = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a node."""

    node_id: int
    began: datetime
    ended: datetime
    ending: Ending
    # Whether a failed attempt is retried.
    is_temporary: bool = True

    @property
    def seconds(self) -> float:
        return max((self.ended - self.began).total_seconds(), 0.0)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt, as it may happen again."""

    seconds: float
    is_silent: bool
    is_temporary: bool = True


@dataclass(frozen=True, slots=True)
class Habit:
    """Failures among a number of attempts while the OLT is reachable."""

    attempts: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class OltOutages:
    """Times at which an OLT was unreachable, in order. A forecast repeats them."""

    since: datetime
    until: datetime
    spans: tuple[tuple[datetime, datetime], ...] = ()
    # Seconds until it is reachable again; 0: it is reachable.
    left: float = 0.0

    def back_at(self, at: datetime) -> datetime:
        """Return the time at which an OLT is reachable again, or `at` itself if it is reachable then.

        The observed time span is repeated.
        """
        if not self.spans:
            return at
        then = self.since + (at - self.until) % (self.until - self.since)
        place = bisect_right(self.spans, then, key=lambda span: span[0]) - 1
        end = self.spans[place][1] if place >= 0 else then
        return at + max(end - then, timedelta(0))


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Known failures of an OLT."""

    runs: int = 0
    silent: int = 0
    failed: int = 0
    # Durations of attempts without an answer, in seconds.
    silences: tuple[float, ...] = ()
    outages: OltOutages | None = None
    habits: Mapping[int, Habit] = field(default_factory=dict)
    # Failures of a node without its own record.
    usual: Habit = Habit(0, ())

    @property
    def is_dead(self) -> bool:
        """Return whether the OLT is unreachable with no sign of recovery."""
        return self.outages is not None and math.isinf(self.outages.left)

    def habit(self, node_id: int) -> Habit:
        return self.habits.get(node_id, self.usual)


def ending_of(outcome: Outcome) -> Ending | None:
    """Return the result of an attempt, or None if it was stopped and proves nothing."""
    if outcome.status is Status.FAILED:
        return Ending.SILENT if outcome.cause is Cause.UNREACHABLE else Ending.FAILED
    return Ending.ANSWERED if outcome.status in (Status.SUCCESS, Status.PARTIAL) else None


def learn(attempts: Iterable[Attempt], now: datetime, *, is_broken: bool = False) -> RunRecord:
    """Return the failures of one OLT; `is_broken`: its breaker is open now."""
    tried = sorted(attempts, key=lambda each: (each.began, each.node_id))
    streaks = _streaks(tried, is_broken)
    away = {place for streak in streaks for place in streak}
    at_home = [each for place, each in enumerate(tried) if place not in away]
    silences = tuple(each.seconds for each in tried if each.ending is Ending.SILENT)
    silent = sum(each.ending is Ending.SILENT for each in at_home) / len(at_home) if at_home else 0.0
    by_node: dict[int, list[Attempt]] = {}
    for each in at_home:
        by_node.setdefault(each.node_id, []).append(each)
    return RunRecord(
        runs=len(tried),
        silent=len(silences),
        failed=sum(each.ending is Ending.FAILED for each in tried),
        silences=silences,
        outages=_outages(tried, streaks, now, silent),
        habits={node_id: _habit(its) for node_id, its in by_node.items() if len(its) >= LEAST},
        usual=_habit(at_home),
    )


def _streaks(tried: Sequence[Attempt], is_broken: bool) -> list[range]:
    """Return the outages of an OLT as runs of consecutive attempts."""
    bursts, found = _comes_in_bursts(tried), []
    for is_silent, places in groupby(range(len(tried)), lambda place: tried[place].ending is Ending.SILENT):
        every = list(places)
        streak = range(every[0], every[-1] + 1)
        never_answered = len(streak) == len(tried)
        is_away_now = is_broken and streak.stop == len(tried)
        if is_silent and ((bursts and len(streak) > 1) or never_answered or is_away_now):
            found.append(streak)
    return found


def _comes_in_bursts(tried: Sequence[Attempt]) -> bool:
    """Return whether time-outs follow each other more often than by chance.

    Each node is compared with itself: a node that never gets an answer while others do proves nothing about the OLT.
    """
    attempts: Counter[int] = Counter(each.node_id for each in tried)
    silent: Counter[int] = Counter(each.node_id for each in tried if each.ending is Ending.SILENT)
    followers = [after for before, after in pairwise(tried) if before.ending is Ending.SILENT]
    shares = [silent[each.node_id] / attempts[each.node_id] for each in followers]
    seen = sum(each.ending is Ending.SILENT for each in followers)
    return seen - sum(shares) > BURSTS * math.sqrt(sum(share * (1 - share) for share in shares))


def _outages(tried: Sequence[Attempt], streaks: Sequence[range], now: datetime, silent: float) -> OltOutages | None:
    spans = [_span(tried, streak) for streak in streaks]
    if not spans:
        return None
    since = tried[0].began
    # Attempts from a machine whose clock is ahead may end in the future.
    until = max(now, tried[-1].ended, since + PROBE_EVERY)
    lengths = [(end - begin).total_seconds() for begin, end in spans if end is not None]
    left = 0.0
    if spans[-1][1] is None:
        age = (until - spans[-1][0]).total_seconds()
        longer = [length - age for length in lengths if length > age]
        # Longer than ever: as long again, or never if there is no sign of recovery.
        left = age if lengths or silent >= OFTEN_SILENT else NEVER
        if longer:
            left = sum(longer) / len(longer)
    return OltOutages(since, until, tuple((begin, end or until) for begin, end in spans), left)


def _span(tried: Sequence[Attempt], streak: range) -> tuple[datetime, datetime | None]:
    """Return the start and end of an outage: between the attempts around it."""
    first, last = tried[streak.start], tried[streak.stop - 1]
    begin = first.began
    if streak.start > 0:
        begin -= max(first.began - tried[streak.start - 1].ended, timedelta(0)) / 2
    if streak.stop == len(tried):
        return begin, None
    answer = tried[streak.stop].began
    # While its breaker was open, a probe found it within a minute.
    return begin, answer - min(max(answer - last.ended, timedelta(0)), PROBE_EVERY) / 2


def _habit(tried: Sequence[Attempt]) -> Habit:
    failed = [each for each in tried if each.ending is not Ending.ANSWERED]
    failures = (Failure(each.seconds, each.ending is Ending.SILENT, each.is_temporary) for each in failed)
    return Habit(len(tried), tuple(failures))
