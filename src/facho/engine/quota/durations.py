"""Expected duration of a run, from earlier runs. Arithmetic on a small profile of plain JSON.

recent   the last runs since the last permanent change of speed, oldest first, in seconds
hours    the last runs by hour of day (UTC): {"7": [12.5, ...]}
errors   mean relative error of the predictions from `recent` and from `hours`, and the number of runs
strays   number of consecutive runs that `hours` predicted badly
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import NormalDist
from typing import Any

from facho.engine.model import JobKind

# Number of runs to keep. With 20, the 95th percentile is the second longest, so one hung run does not set it.
RECENT = 20
BY_HOUR = 5

# A run that is longer or shorter than expected by this factor is an outlier.
FAR = 1.4

# This many outliers, all but one in the same direction, mean a permanent change of the OLT.
REGIME = 5

# The hour of day is used after this many runs, if its error is smaller by at least this factor.
TRIED = 24
BETTER = 0.9

# Errors are averaged over this many runs: more than a day of most jobs, to keep nightly changes.
MEMORY = 200

# After this many outliers in a row the hour of day is not used until it is right again.
STRAYED = 3

NORMAL = NormalDist()
Z95 = NORMAL.inv_cdf(0.95)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Expected duration of a run in seconds: mean, and 95th percentile."""

    mean: float
    p95: float
    samples: int = 0

    def at(self, chance: float) -> float:
        """Return the duration that a run does not exceed with this probability, 0 < chance < 1."""
        if self.mean <= 0:
            return 0.0
        return self.mean * math.exp(self.spread * NORMAL.inv_cdf(chance))

    @property
    def spread(self) -> float:
        """Return the spread of the durations: the standard deviation of their logarithms."""
        return math.log(max(self.p95 / self.mean, 1.0)) / Z95 if self.mean > 0 else 0.0


# Assumed durations of a job that has never run, from OLTs with a few hundred ONUs.
USUAL = {
    JobKind.DISCOVERY: Prediction(20.0, 40.0),
    JobKind.GET: Prediction(60.0, 120.0),
    JobKind.WALK: Prediction(30.0, 60.0),
    JobKind.TABLE: Prediction(10.0, 20.0),
    JobKind.IDENTIFY: Prediction(2.0, 5.0),
}


def learn(profile: Mapping[str, Any], seconds: float, at: datetime) -> dict[str, Any]:
    """Return the profile with one more run that started at this time."""
    if not (math.isfinite(seconds) and seconds >= 0):
        return dict(profile)
    hour, recent, hours = _by_hour(profile, at)
    plain, hourly = _level(recent), _level(hours.get(hour, ()))
    took = float(f"{seconds:.4g}")
    is_far = hourly > 0 and (seconds > hourly * FAR or seconds * FAR < hourly)
    return {
        "recent": _regime([*recent, took][-RECENT:]),
        "hours": {**hours, hour: [*hours.get(hour, ()), took][-BY_HOUR:]},
        "errors": _errors(profile, plain, hourly, seconds),
        "strays": int(profile.get("strays", 0)) + 1 if is_far else 0,
    }


def expected(profile: Mapping[str, Any], at: datetime) -> Prediction | None:
    """Return the expected duration of a run that starts at this time, or None without earlier runs."""
    hour, recent, hours = _by_hour(profile, at)
    if not recent:
        return None
    mean = _level(recent)
    # The maximum only if there are very few runs.
    rank = min(math.ceil(0.95 * len(recent)), max(len(recent) - 1, 1))
    p95 = sorted(recent)[rank - 1]
    by_hour = hours.get(hour, [])
    plain_error, hourly_error, runs = _past_errors(profile)
    is_better = runs >= TRIED and hourly_error < BETTER * plain_error
    if is_better and int(profile.get("strays", 0)) < STRAYED and len(by_hour) >= STRAYED:
        hourly = _level(by_hour)
        # An hour has too few runs for its own percentile.
        p95, mean = hourly * (p95 / mean if mean > 0 else 1.0), hourly
    return Prediction(mean, max(p95, mean), len(recent))


def _regime(recent: list[float]) -> list[float]:
    """Drop the runs before a permanent change of speed. One or two hung runs are not a change."""
    before, last = recent[:-REGIME], recent[-REGIME:]
    level = _level(before)
    slower = sum(seconds > level * FAR for seconds in last)
    faster = sum(seconds * FAR < level for seconds in last)
    return last if before and max(slower, faster) >= REGIME - 1 else recent


def _level(times: Sequence[float]) -> float:
    """Return a mean without the extremes, so that one hung run does not move it; of two, the shorter."""
    ordered = sorted(times)
    if len(ordered) < 3:
        return ordered[0] if ordered else 0.0
    cut = max(1, len(ordered) // 10)
    kept = ordered[cut:-cut]
    return sum(kept) / len(kept)


def _errors(profile: Mapping[str, Any], plain: float, hourly: float, seconds: float) -> list[float]:
    """Update the error of both predictors. Only a run that both could predict counts."""
    past_plain, past_hourly, runs = _past_errors(profile)
    if plain <= 0 or hourly <= 0:
        return [past_plain, past_hourly, runs]
    runs = min(runs + 1, MEMORY)
    errors: list[float] = []
    for past, level in ((past_plain, plain), (past_hourly, hourly)):
        # At most 1, so that a hung run has limited weight.
        error = min(abs(seconds - level) / level, 1.0)
        errors.append(round(past + (error - past) / runs, 4))
    return [*errors, runs]


def _past_errors(profile: Mapping[str, Any]) -> tuple[float, float, int]:
    plain, hourly, runs = profile.get("errors") or (0.0, 0.0, 0)
    return float(plain), float(hourly), int(runs)


def _by_hour(profile: Mapping[str, Any], at: datetime) -> tuple[str, list[float], dict[str, list[float]]]:
    """Return the hour of day, the recent runs, and the runs by hour of day."""
    return str(at.astimezone(UTC).hour), list(profile.get("recent") or ()), dict(profile.get("hours") or {})
