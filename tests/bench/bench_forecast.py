"""How long a forecast of 1,000 OLTs and 24 hours takes, and where the time goes. It is not a test.

python tests/bench/bench_forecast.py [olts] [hours] [percentage of dead OLTs]
"""

import resource
import sys
import time
from datetime import UTC, datetime

from facho.engine.quota.pollers_needed import pollers_needed
from facho.runtime.forecasting import Wish, asked, forecast, made_up, usual_jobs, works

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
DEFAULTS = ("1000", "24", "0")
# What 1,000 OLTs and 24 hours may take, in seconds.
BUDGET = 120.0


def main() -> None:
    given = sys.argv[1:4]
    olts, hours, dead = (float(word) for word in [*given, *DEFAULTS[len(given) :]])
    fleet = made_up(int(olts), usual_jobs(), START, dead=round(olts * dead / 100))
    began = time.perf_counter()
    pool = pollers_needed(works(asked(fleet), fleet, START), START)
    sized = time.perf_counter()
    result = forecast(Wish(fleet, pool.pollers, hours, START))
    took, cpu = time.perf_counter() - sized, sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    print(f"{olts:g} OLTs, {hours:g} h, {dead:g} % dead, {pool.pollers} pollers: {result['required']:,} slots")
    print(f"the size of the pool         {sized - began:8.1f} s")
    print(f"the forecast                 {took:8.1f} s, {took / result['required'] * 1e6:.0f} us a slot")
    print(f"time of the processor in all {cpu:8.1f} s")
    print(f"quota {result['compliance']} %, on time {result['on_time']} %, busy {result['busy']} %")
    if (olts, hours) == (1000, 24):
        print(f"this is {'within' if took < BUDGET else 'OVER'} its {BUDGET:g} s")


if __name__ == "__main__":
    main()
