"""Whether a fleet fits: Yes or No, from the figures of a forecast of today and of one with the change."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from facho.engine.quota.pollers_needed import ON_TIME

# Largest share of the time in which the pool may be saturated, in percent. Discoveries of several OLTs at once may
# fill a small pool for a minute.
MOST_SATURATED = 5.0

# Percentage of runs in time from which nothing is wrong.
IN_TIME = 100 * ON_TIME

# Where OLTs are busy with another job, fewer runs are in time for any pool. Then a change may cost so many points.
LESS_IN_TIME = 2.0


class Reason(StrEnum):
    """Why something does not fit."""

    QUOTAS = "quotas"
    SATURATED = "saturated"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Missed:
    """A quota that is missed although its OLT answers, and the completed share in percent."""

    node_id: int
    olt: str
    job: str
    percent: float


@dataclass(frozen=True, slots=True)
class ForecastFigures:
    """What decides. Shares are in percent."""

    pollers: int
    on_time: float = 100.0
    # Runs with a schedule of their own that are due in an hour.
    runs: float = 100.0
    # Whether a larger pool would start more runs in time.
    is_short: bool = False
    busy: float = 0.0
    # Share of the time in which the pool is saturated.
    saturated: float = 0.0
    missed: Mapping[int, Missed] = field(default_factory=dict)

    @property
    def late(self) -> float:
        """Return the runs of an hour that are not in time."""
        return self.runs * (100 - self.on_time) / 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes without a reason, No with one or more. `missed`: the quotas that are missed because of the change."""

    reasons: tuple[Reason, ...] = ()
    missed: tuple[Missed, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.reasons


def judge(
    today: ForecastFigures,
    asked: ForecastFigures,
    *,
    changed: Collection[int] = (),
    copies: Mapping[int, int] | None = None,
) -> Verdict:
    """Return whether a change fits.

    A quota that is missed today as well does not count, unless it is one of those that change: the question is about
    the change. The same goes for copies of OLTs. The pool must fit in any case, because it is one for all.
    """
    copies = copies or {}
    missed = tuple(
        each
        for id_, each in sorted(asked.missed.items(), key=lambda item: (item[1].percent, item[0]))
        if id_ in changed or copies.get(id_, id_) not in today.missed
    )
    found = {
        Reason.QUOTAS: bool(missed),
        Reason.SATURATED: asked.saturated > MOST_SATURATED,
        Reason.LATE: _is_late(today, asked),
    }
    return Verdict(tuple(reason for reason, holds in found.items() if holds), missed)


def _is_late(today: ForecastFigures, asked: ForecastFigures) -> bool:
    if asked.on_time >= IN_TIME:
        return False
    if asked.is_short:
        return True
    # With fewer runs in time, as with a longer interval, the share falls although no run is later than today.
    has_more_late = asked.late - today.late > today.runs * LESS_IN_TIME / 100
    return has_more_late and asked.on_time < today.on_time - LESS_IN_TIME
