"""How long plans, the size of the pool and a forecast take for 1,000 OLTs. It is not a test.

python tests/bench/bench_forecast.py [olts] [hours] [percentage of dead OLTs]
"""

import sys
import time
from collections import defaultdict
from datetime import UTC, datetime

from facho.engine.forecast.fleet import asked, works
from facho.engine.quota.hour_plan import Work, plan_hour
from facho.engine.quota.pollers_needed import pollers_needed
from facho.runtime.forecasting import Wish, forecast, made_up, usual_jobs

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
DEFAULTS = ("1000", "24", "0")
# What may be needed for 1,000 OLTs, in seconds of the processor: an hour of plans, or of sizing the pool, and a day
# of a forecast.
HOUR_BUDGET = 5.0
DAY_BUDGET = 120.0


def main() -> None:
    given = sys.argv[1:4]
    olts, hours, dead = (float(word) for word in [*given, *DEFAULTS[len(given) :]])
    fleet = made_up(int(olts), usual_jobs(), START, dead=round(olts * dead / 100))
    every = works(asked(fleet), fleet, START)
    by_olt: defaultdict[int, list[Work]] = defaultdict(list)
    for work in every:
        by_olt[work.composite.olt_id].append(work)

    began = time.process_time()
    slots = sum(len(plan_hour(its, START).slots) for its in by_olt.values())
    planned = time.process_time()
    pool = pollers_needed(every, START)
    sized = time.process_time()
    result = forecast(Wish(fleet, pool.pollers, hours, START))
    # It sizes the pool as well.
    took = time.process_time() - sized - (sized - planned)

    print(f"{olts:g} OLTs, {hours:g} h, {dead:g} % dead, {pool.pollers} pollers: {result['required']:,} slots")
    print(f"the plans of an hour         {planned - began:8.2f} s, {(planned - began) / slots * 1e6:.0f} us a run")
    print(f"the size of the pool         {sized - planned:8.2f} s")
    print(f"the forecast                 {took:8.1f} s, {took / result['required'] * 1e6:.0f} us a slot")
    print(f"quota {result['compliance']} %, on time {result['on_time']} %, busy {result['busy']} %")
    if olts == 1000:
        _compare("the plans of an hour", planned - began, HOUR_BUDGET)
        _compare("the size of the pool", sized - planned, HOUR_BUDGET)
        if hours in (1, 24):
            _compare("the forecast", took, HOUR_BUDGET if hours == 1 else DAY_BUDGET)


def _compare(what: str, seconds: float, budget: float) -> None:
    print(f"{what}: {'within' if seconds < budget else 'OVER'} {budget:g} s")


if __name__ == "__main__":
    main()
