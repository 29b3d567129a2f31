"""What would turn a No into a Yes: simulated hours with more pollers, fewer OLTs, or a longer interval.

A simulated hour has no failures and costs a hundredth of a forecast, so several can be tried. The search halves its
range and stops when its budget is used up; then it returns nothing rather than a guess.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from typing import TypeVar

from facho.engine.forecast.fleet import Fleet, asked, works
from facho.engine.forecast.question import AskedFleet, FleetQuestion, asked_fleet
from facho.engine.forecast.verdict import IN_TIME, ForecastFigures, Missed, judge
from facho.engine.model import CompositeNode
from facho.engine.quota.hour_plan import HOUR, ROUND_MINUTES, Advice, Work, needed_seconds, plan_hour
from facho.engine.quota.pollers_needed import NEARLY
from facho.engine.quota.quota import ENOUGH
from facho.engine.scheduling.grid import DELAYED_AFTER, GOLDEN_RATIO
from facho.engine.scheduling.pollers import SATURATED_ABOVE, SATURATED_UNTIL
from facho.engine.scheduling.simulation import Simulation

# The queue is empty at the start, so the first half hour does not count.
WARM_UP = timedelta(minutes=30)

# Slots of all simulated hours of one search: about 15 s of CPU.
BUDGET = 1_000_000

# OLTs with an advice of their own.
MOST_ADVICE = 5

MOST_POLLERS = 1000

# An interval is not made longer than this many times the wish, unless it is that long today.
LONGEST_FACTOR = 16

MINUTE = 60.0

Found = TypeVar("Found")


class BudgetSpent(Exception):
    """The search simulated as many slots as it may."""


@dataclass(frozen=True, slots=True)
class Remedies:
    """Changes, each of which is enough alone. None: there is none, or it was not found within the budget."""

    pollers: int | None = None
    interval: timedelta | None = None
    olts: int | None = None
    # Longer intervals on OLTs that have more work than an hour has seconds.
    advice: tuple[Advice, ...] = ()


def works_of(fleet: Fleet, start: datetime) -> Sequence[Work]:
    return works(asked(fleet), fleet, start)


def unlimited(works: Sequence[Work]) -> int:
    """Return a pool that is as good as any larger one: an OLT has one run at a time."""
    return max(len({work.composite.olt_id for work in works}), 1)


@dataclass(frozen=True, slots=True)
class SimulatedHour:
    """The figures of an hour, and the largest number of runs at once."""

    figures: ForecastFigures
    busiest: int


def simulated_hour(works: Sequence[Work], pollers: int, hour: datetime) -> SimulatedHour:
    """Return what a pool makes of an hour in which each OLT answers."""
    begin, end = hour - WARM_UP, hour + HOUR
    due = [work.due_at(_slot_from(work, begin)) for work in works]
    by_id = {work.composite.id: work for work in works}
    required = {
        (id_, slot) for id_, work in by_id.items() for slot in _slots(_slot_from(work, hour), work.interval, end)
    }
    numbers: dict[tuple[int, datetime], float] = {}

    def seconds(run: CompositeNode) -> float:
        key = (run.id, run.slot)
        if key not in numbers:
            chance = min(max(len(numbers) * GOLDEN_RATIO % 1, 0.001), 0.999)
            numbers[key] = sum(each.at(chance) for each in by_id[run.id].predictions)
        return numbers[key]

    begun: dict[int, int] = {}
    on_time = busiest = 0
    minutes = [0.0] * 60
    simulation = Simulation(due, pollers=pollers, seconds=seconds)
    for fate in simulation.run():
        # Composites that are still waiting have missed their time.
        if fate.at > end + DELAYED_AFTER:
            break
        busiest = max(busiest, simulation.busy_pollers)
        if fate.start is not None:
            _fill(minutes, (fate.at - hour).total_seconds(), seconds(fate.composite))
            if (fate.composite.id, fate.slot) in required:
                begun[fate.composite.id] = begun.get(fate.composite.id, 0) + 1
                on_time += fate.at - fate.slot <= DELAYED_AFTER
    figures = ForecastFigures(
        pollers,
        on_time=100 * on_time / len(required) if required else 100.0,
        runs=len(required),
        busy=100 * sum(minutes) / (HOUR.total_seconds() * pollers),
        saturated=_saturated(minutes, pollers),
        missed=_missed(by_id, required, begun),
    )
    return SimulatedHour(figures, busiest)


def _slot_from(work: Work, begin: datetime) -> datetime:
    """Return the first slot of its grid from a time on."""
    return begin + (work.composite.slot - begin) % work.interval


def _slots(slot: datetime, interval: timedelta, end: datetime) -> list[datetime]:
    return [slot + number * interval for number in range(max(ceil((end - slot) / interval), 0))]


def _fill(minutes: list[float], start: float, seconds: float) -> None:
    """Add a run to the seconds that pollers are busy in each minute."""
    end = min(start + seconds, MINUTE * len(minutes))
    start = max(start, 0.0)
    while start < end:
        place = int(start // MINUTE)
        until = min(end, MINUTE * (place + 1))
        minutes[place] += until - start
        start = until


def _saturated(minutes: Sequence[float], pollers: int) -> float:
    """Return the saturated share of the minutes, in percent."""
    is_saturated, count = False, 0
    for seconds in minutes:
        load = 100 * seconds / (MINUTE * pollers)
        is_saturated = load > SATURATED_ABOVE or (is_saturated and load >= SATURATED_UNTIL)
        count += is_saturated
    return 100 * count / len(minutes)


def _missed(
    works: Mapping[int, Work], required: Collection[tuple[int, datetime]], begun: Mapping[int, int]
) -> dict[int, Missed]:
    owed: dict[int, int] = {}
    for id_, _slot in required:
        owed[id_] = owed.get(id_, 0) + 1
    found = {}
    for id_, slots in owed.items():
        # One run that begins after the hour is late, and not lost.
        done = begun.get(id_, 0) + (begun.get(id_, 0) < slots)
        if 100 * done < ENOUGH * slots:
            master = works[id_].composite.master
            found[id_] = Missed(id_, master.olt_name, master.name, 100 * begun.get(id_, 0) / slots)
    return found


class Search:
    """Simulated hours of one question, within a budget of slots."""

    def __init__(
        self, fleet: Fleet, question: FleetQuestion, pollers: int, hour: datetime, budget: int = BUDGET
    ) -> None:
        self._fleet = fleet
        self._question = question
        self._hour = hour
        self._left = budget
        self._today_works = works_of(fleet, hour)
        self._today_pollers = pollers
        self._today: ForecastFigures | None = None

    def remedies(self, pollers: int) -> Remedies:
        """Return what would turn the No into a Yes. `pollers`: those that the question has."""
        asked = asked_fleet(self._fleet, self._question, self._hour)
        return Remedies(
            self._tried(lambda: self._pollers(asked, pollers)),
            self._tried(lambda: self._interval(pollers)),
            self._tried(lambda: self._olts(pollers)),
            self._advice(asked),
        )

    def _tried(self, search: Callable[[], Found | None]) -> Found | None:
        try:
            return search()
        except BudgetSpent:
            return None

    def _pollers(self, asked: AskedFleet, pollers: int) -> int | None:
        most = min(unlimited(works_of(asked.fleet, self._hour)), MOST_POLLERS)
        return first(range(pollers + 1, most + 1), lambda number: self._fits(asked, number))

    def _interval(self, pollers: int) -> timedelta | None:
        wish = self._question.interval
        if wish is None:
            return None
        now = max((node.interval for node in self._fleet.nodes if node.id in self._question.node_ids), default=wish)
        usual = [timedelta(minutes=minutes) for minutes in ROUND_MINUTES]
        longer = sorted({now, *usual} - {wish})
        return first(
            [each for each in longer if wish < each <= max(now, LONGEST_FACTOR * wish)],
            lambda interval: self._fits(self._ask(replace(self._question, interval=interval)), pollers),
        )

    def _olts(self, pollers: int) -> int | None:
        return first(
            range(self._question.more_olts - 1, -1, -1),
            lambda number: self._fits(self._ask(replace(self._question, more_olts=number)), pollers),
        )

    def _advice(self, asked: AskedFleet) -> tuple[Advice, ...]:
        """Return longer intervals for OLTs with more work than an hour has seconds, the fullest first."""
        by_olt: dict[int, list[Work]] = {}
        for work in works_of(asked.fleet, self._hour):
            if work.composite.id not in asked.copies:
                by_olt.setdefault(work.composite.olt_id, []).append(work)
        full = [works for works in by_olt.values() if needed_seconds(works, self._hour) > HOUR.total_seconds()]
        full.sort(key=lambda works: -needed_seconds(works, self._hour))
        return tuple(advice for works in full[:MOST_ADVICE] for advice in plan_hour(works, self._hour).advice)

    def _ask(self, question: FleetQuestion) -> AskedFleet:
        return asked_fleet(self._fleet, question, self._hour)

    def _fits(self, asked: AskedFleet, pollers: int) -> bool:
        if self._today is None:
            self._today = self._figures(self._today_works, self._today_pollers)
        figures = self._figures(works_of(asked.fleet, self._hour), pollers)
        return judge(self._today, figures, changed=self._question.node_ids, copies=asked.copies).fits

    def _figures(self, works: Sequence[Work], pollers: int) -> ForecastFigures:
        figures = self._simulated(works, pollers)
        if figures.on_time >= IN_TIME:
            return figures
        best = self._simulated(works, unlimited(works)).on_time
        return replace(figures, is_short=figures.on_time < min(IN_TIME, best - 100 * NEARLY))

    def _simulated(self, works: Sequence[Work], pollers: int) -> ForecastFigures:
        self._left -= round(sum((HOUR + WARM_UP) / work.interval for work in works))
        if self._left < 0:
            raise BudgetSpent
        return simulated_hour(works, pollers, self._hour).figures


def first(choices: Sequence[Found], holds: Callable[[Found], bool]) -> Found | None:
    """Return the first choice that holds, if all after it hold too; None if the last one does not."""
    if not choices or not holds(choices[-1]):
        return None
    low, high = 0, len(choices) - 1
    while low < high:
        middle = (low + high) // 2
        if holds(choices[middle]):
            high = middle
        else:
            low = middle + 1
    return choices[high]
