"""Answers to a question about the fleet: a forecast of today, one with the change, and what would have to change."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from facho.engine.forecast.fleet import Fleet
from facho.engine.forecast.question import FleetQuestion, asked_fleet
from facho.engine.forecast.remedies import Remedies, Search, simulated_hour, unlimited, works_of
from facho.engine.forecast.verdict import ForecastFigures, judge
from facho.engine.quota.hour_plan import HOUR
from facho.runtime.config import AUTOMATIC_POLLERS
from facho.runtime.forecasting import Progress, Wish, forecast_with_figures

# A day is simulated where the fleet is small enough: slots of each of both forecasts, about 10 s of CPU.
MOST_SLOTS = 120_000
MOST_HOURS, LEAST_HOURS = 24, 1

MOST_OLTS = 5000

# Number of missed quotas in an answer.
MOST_MISSED = 20

# Share of the progress that belongs to the two forecasts. The rest is the search for a change.
FORECASTS = 0.9


@dataclass(frozen=True, slots=True)
class Pool:
    """The pollers of today. An automatic pool grows with the fleet; one of a fixed size does not."""

    pollers: int
    is_automatic: bool = False

    def for_question(self, question: FleetQuestion, fleet: Fleet, start: datetime) -> int:
        """Return the number of pollers that a fleet would have."""
        if question.more_pollers or not self.is_automatic:
            return max(self.pollers + question.more_pollers, 1)
        return max(self.pollers, automatic_pool(fleet, start))


def automatic_pool(fleet: Fleet, start: datetime) -> int:
    """Return the size to which an automatic pool grows: see `PoolSize`."""
    works, (least, most) = works_of(fleet, start), AUTOMATIC_POLLERS
    busiest = simulated_hour(works, unlimited(works), start).busiest
    return min(max(least, -(-4 * busiest // 3)), most)


def hours_for(fleet: Fleet, question: FleetQuestion, start: datetime) -> int:
    """Return how many hours are simulated: fewer of a large fleet, or of one that is polled often."""
    works = works_of(asked_fleet(fleet, question, start).fleet, start)
    slots = sum(len(work.predictions) * (HOUR / work.interval) for work in works)
    return min(max(int(MOST_SLOTS / max(slots, 1)), LEAST_HOURS), MOST_HOURS)


def answer(
    today: Wish, question: FleetQuestion, pool: Pool, progress: Callable[[float], None] = lambda share: None
) -> dict[str, Any]:
    """Return the forecast of the changed fleet, with `answer` and, as `today`, the forecast of the present one."""
    asked = asked_fleet(today.fleet, question, today.start)
    changed = replace(
        today, fleet=asked.fleet, pollers=pool.for_question(question, asked.fleet, today.start), hours=today.hours
    )
    runs = 1 if question.changes_nothing else 2

    def part(number: int) -> Progress:
        return lambda hours: progress(FORECASTS * (number + hours / today.hours) / runs)

    present, figures_today = forecast_with_figures(today, part(0))
    result, figures = present, figures_today
    if not question.changes_nothing:
        result, figures = forecast_with_figures(changed, part(1))
    verdict = judge(figures_today, figures, changed=question.node_ids, copies=asked.copies)
    remedies = Remedies()
    if not verdict.fits:
        remedies = Search(today.fleet, question, today.pollers, today.start).remedies(changed.pollers)
    predictions = [today.fleet.durations(node, today.start) for node in today.fleet.nodes]
    missed = [{**asdict(each), "percent": round(each.percent, 1)} for each in verdict.missed]
    return {
        **result,
        "answer": {
            "fits": verdict.fits,
            "reasons": [reason.value for reason in verdict.reasons],
            "missed": missed[:MOST_MISSED],
            "missed_total": len(missed),
            "pool_is_automatic": pool.is_automatic and not question.more_pollers,
            "changes": _changes(remedies),
            "unmeasured": sum(not each.samples for each in predictions),
        },
        "today": {**present, **_shares(figures_today)},
        **_shares(figures),
    }


def _shares(figures: ForecastFigures) -> dict[str, Any]:
    return {"saturated": round(figures.saturated, 1), "missed_quotas": len(figures.missed)}


def _changes(remedies: Remedies) -> dict[str, Any]:
    return {
        "pollers": remedies.pollers,
        "interval_seconds": remedies.interval and round(remedies.interval.total_seconds()),
        "more_olts": remedies.olts,
        "advice": [
            {"olt": each.node.olt_name, "job": each.node.name, "interval_seconds": each.minutes * 60}
            for each in remedies.advice
        ],
    }
