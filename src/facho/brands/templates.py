"""Usual jobs for all brands. Intervals that depend on the speed of a brand are in its profile."""

from dataclasses import replace
from datetime import timedelta

from facho.engine.brand import Brand, JobTemplate
from facho.engine.model import JobKind

DISCOVERY = JobTemplate("Discovery", JobKind.DISCOVERY, timedelta(minutes=15), priority=90)

STATE = JobTemplate(
    "State",
    JobKind.TABLE,
    timedelta(minutes=5),
    ("state", "admin_state", "down_cause", "distance_m", "last_up", "last_down"),
    priority=60,
)

# After the state, to distinguish a restarted counter from an ONU that came back.
TRAFFIC = JobTemplate(
    "Traffic", JobKind.TABLE, timedelta(minutes=5), ("in_octets", "out_octets"), priority=50, follows="State"
)

OPTICS = JobTemplate("Optical power", JobKind.GET, timedelta(minutes=30))

INVENTORY = JobTemplate("Inventory", JobKind.TABLE, timedelta(hours=6), priority=20, timeout=timedelta(minutes=20))


def standard(brand: Brand) -> tuple[JobTemplate, ...]:
    """Return the jobs that the columns of a brand allow: discovery, state, traffic, optical power, inventory."""
    optical = tuple(name for name, column in brand.columns.items() if column.optical)
    seen = {*brand.discovery, *STATE.columns, *TRAFFIC.columns, *optical}
    rest = tuple(name for name, column in brand.columns.items() if name not in seen and not column.places)
    interval = max([OPTICS.interval, *(floor for name in optical if (floor := brand.columns[name].floor))])
    jobs = [DISCOVERY]
    for job in (
        STATE,
        TRAFFIC,
        # A run may take most of its interval, because the OLT reads one ONU after the other.
        replace(OPTICS, columns=optical, interval=interval, timeout=interval * 5 / 6),
        replace(INVENTORY, columns=rest),
    ):
        # The columns that the brand has, and those they need.
        columns = brand.with_needed([name for name in job.columns if name in brand.columns])
        if columns:
            jobs.append(replace(job, columns=columns))
    return tuple(jobs)
