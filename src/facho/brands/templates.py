"""Jobs that a brand proposes: those of its profile, or the usual ones.

Intervals that depend on the speed of a brand are in its profile.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from facho.brands import section
from facho.brands.section import REQUIRED, Section
from facho.engine.brand import Brand, JobTemplate
from facho.engine.model import JobKind, default_priority

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


KINDS = {kind.value: kind for kind in (JobKind.DISCOVERY, JobKind.GET, JobKind.WALK, JobKind.TABLE)}
USUAL_TIMEOUT = timedelta(minutes=5)


def job_templates(top: Section, brand: Brand) -> tuple[JobTemplate, ...]:
    """Return the jobs of a profile, checked against the columns of its brand."""
    written = top.take("jobs", section.list_of(lambda job: job), None)
    if written is None:
        return standard(brand)
    made = [_job(Section(each, f"jobs[{at}]", top.problems), brand) for at, each in enumerate(written, 1)]
    jobs = [job for job in made if job]
    by_name = {job.name: job for job in jobs}
    if len(by_name) < len(jobs):
        top.complain("jobs", "two of them have the same name")
    for job in jobs:
        if job.follows is None:
            continue
        master = by_name.get(job.follows)
        if master is None or master.follows:
            top.complain("jobs", f"{job.name} follows {job.follows}, which is not a job with its own schedule")
        elif master.interval != job.interval:
            top.complain("jobs", f"{job.name} follows {job.follows}, and must have the same value for `every`")
    return tuple(jobs)


def _job(part: Section, brand: Brand) -> JobTemplate | None:
    name = part.take("name", section.text, REQUIRED)
    kind = part.take("kind", _kind, REQUIRED)
    every = part.take("every", section.duration, REQUIRED)
    columns = part.take("columns", section.list_of(section.text), ())
    follows = part.take("follows", section.text, None)
    priority = part.take("priority", section.whole, default_priority(kind))
    timeout = part.take("timeout", section.duration, None)
    part.refuse_the_rest()
    if strange := [each for each in columns if each not in brand.columns]:
        part.complain("columns", f"{', '.join(strange)} is not a column of this profile")
    if not columns and kind is not JobKind.DISCOVERY:
        part.complain("columns", "a job that is not a discovery must name its columns")
    if name is None or kind is None or every is None:
        return None
    if timeout is not None and timeout > every:
        part.complain("timeout", "the time limit must be shorter than the interval")
    return JobTemplate(
        name, kind, every, brand.with_needed(columns), priority, follows, timeout or min(USUAL_TIMEOUT, every)
    )


def _kind(value: Any) -> JobKind:
    try:
        return KINDS[value]
    except (KeyError, TypeError):
        raise ValueError(f"{value!r} is not a job type; the types are {', '.join(KINDS)}") from None
