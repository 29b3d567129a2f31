"""`facho forecast`: whether jobs, OLTs and pollers fit, computed by the engine on a virtual clock."""

import argparse
import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from facho.engine.forecast.fleet import Fleet
from facho.engine.quota.pollers_needed import pollers_needed
from facho.runtime import forecasting
from facho.runtime.commands import report, screen
from facho.runtime.commands.screen import CommandError, ProgressBar, note, out, plural, span, table
from facho.runtime.config import AUTOMATIC_POLLERS, MOST_POLLERS, Config, ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--olts",
        type=int,
        metavar="N",
        help="number of OLTs of an imaginary fleet (default: use the OLTs of the database)",
    )
    parser.add_argument(
        "--pollers",
        type=int,
        metavar="N",
        help="number of pollers (default: FACHO_POLLERS, or as many as the fleet needs)",
    )
    parser.add_argument(
        "--hours", type=float, default=24.0, metavar="H", help="hours to simulate (default %(default)g)"
    )
    parser.add_argument(
        "--dead", type=float, default=0.0, metavar="PERCENT", help="percentage of OLTs that do not answer"
    )
    parser.add_argument(
        "--job",
        action="append",
        default=[],
        metavar="NAME:INTERVAL:SECONDS[:PRIORITY]",
        help="a job of the imaginary fleet instead of the default ones, or an additional job on every OLT of "
        "the database; times as 300, 5min or 6h",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    for name, least, most in (("olts", 1, 100_000), ("pollers", 1, MOST_POLLERS), ("hours", 1 / 60, 24 * 31)):
        value = getattr(options, name)
        if value is not None and not least <= value <= most:
            raise CommandError(f"--{name} must be between {least:g} and {most:g}, not {value:g}")
    if not 0 <= options.dead <= 100:
        raise CommandError(f"--dead must be a percentage, not {options.dead:g}")
    wish = _wish(options)
    if not wish.fleet.nodes:
        raise CommandError("There is nothing to poll: no job is enabled on an enabled OLT. Try --olts 100.")
    began = time.monotonic()
    minutes = math.ceil(wish.hours * 60)
    with ProgressBar() as progress:
        result = forecasting.forecast(
            wish, lambda hours: progress.show("forecast", int(hours * 60), minutes, "minutes")
        )
    result["took_seconds"] = round(time.monotonic() - began, 1)
    if options.json:
        out(report.dump(result))
    else:
        _print(result)
    return screen.COMPLETE


def _wish(options: argparse.Namespace) -> forecasting.Wish:
    # The engine does not run in this process, so the system clock is used.
    now = datetime.fromtimestamp(time.time(), UTC)  # noqa: TID251  # see above
    start = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    jobs = _jobs(options.job)
    if options.olts is None:
        fleet, config = _of_the_database(jobs, options.dead, now, start)
        least, most = AUTOMATIC_POLLERS
        return forecasting.Wish(
            fleet,
            options.pollers or config.pollers or min(max(_enough(fleet, start), least), most),
            options.hours,
            start,
            options.seed,
            config.breaker_after,
            config.auto_recover,
        )
    dead = round(options.olts * options.dead / 100)
    fleet = forecasting.made_up(options.olts, jobs or forecasting.usual_jobs(), start, dead=dead, seed=options.seed)
    return forecasting.Wish(fleet, options.pollers or _enough(fleet, start), options.hours, start, options.seed)


def _jobs(texts: Sequence[str]) -> list[forecasting.JobWish]:
    try:
        jobs = [forecasting.parse_job(text) for text in texts]
    except ValueError as error:
        raise CommandError(str(error)) from error
    if len({job.name for job in jobs}) < len(jobs):
        raise CommandError("two jobs have the same name")
    return jobs


def _of_the_database(
    jobs: Sequence[forecasting.JobWish], dead: float, now: datetime, start: datetime
) -> tuple[Fleet, Config]:
    """Return the OLTs of this installation with their learned durations and failures, and its settings."""
    from facho.runtime import cli

    try:
        config = cli.prepare()
        cli.refuse_on_errors()
    except ConfigError as error:
        raise CommandError(str(error)) from error
    from django.db import DatabaseError

    from facho.store import measured_runs

    try:
        fleet = forecasting.with_jobs(measured_runs.fleet(now), jobs, start)
    except DatabaseError as error:
        raise CommandError(f"The database is not up to date ({error}). Run `facho migrate`.") from error
    return forecasting.with_dead(fleet, dead), config


def _enough(fleet: Fleet, start: datetime) -> int:
    return min(pollers_needed(forecasting.works(forecasting.asked(fleet), fleet, start), start).pollers, MOST_POLLERS)


def _print(result: dict[str, Any]) -> None:
    dead = f", {result['dead']} not answering" if result["dead"] else ""
    out(
        f"{plural(result['olts'], 'OLT')}{dead}, {plural(result['nodes'], 'node')}, "
        f"{plural(result['pollers'], 'poller')}, {result['hours']:g} h"
    )
    out()
    late, violations = result["lateness"], result["violations"]
    told = ", ".join(f"{count} {severity}" for severity, count in violations.items()) or "none"
    lost = ", ".join(f"{count} {cause}" for cause, count in result["lost"].items()) or "none"
    answering = ", counting only OLTs that answer" if result["dead"] else ""
    rows = [
        ("quota", f"{result['compliance']:g} % ({result['completed']:,} of {result['required']:,} slots)"),
        ("violations", told),
        ("not completed", lost),
        ("on time", f"{result['on_time']:g} % start within 5 s of their slot{answering}"),
        ("lateness", f"50 %: {late['p50']} s, 95 %: {late['p95']} s, 99 %: {late['p99']} s, at most {late['max']} s"),
        ("pollers busy", f"{result['busy']:g} %, saturated for {span(60 * result['saturated_minutes'])}"),
    ]
    for name, text in rows:
        out(f"{name:<14} {text}")
    out()
    # The learned failures, which are part of the forecast.
    for each in result["failures"]:
        errors = f", {each['failed']} of them with an error" if each["failed"] else ""
        out(f"{each['olt']} answered {each['answered']} of {plural(each['runs'], 'run')}{errors}")
    if result["failures"]:
        out("Runs fail in this forecast at the rate of the last 24 hours.")
        out()
    names = ["required", "completed", "failed", "skipped", "compliance"]
    titles = ["required", "completed", "failed", "skipped", "quota %"]
    jobs = [[job["task"], *(job[name] for name in names), job["on_time"], job["p95"]] for job in result["jobs"]]
    out("\n".join(table(["job", *titles, "on time %", "95 % late s"], jobs)))
    out()
    if result["worst_olts"]:
        worst = [[olt["olt"], *(olt[name] for name in names)] for olt in result["worst_olts"]]
        out("\n".join(table(["worst OLTs", *titles], worst)))
        out()
    pool = result["pool"]
    if pool["pollers"] > result["pollers"]:
        out(f"{pool['pollers']} pollers are needed to start {pool['on_time']:g} % of the slots within 5 s.")
    else:
        out(
            f"{plural(pool['pollers'], 'poller')} would be enough "
            f"to start {pool['on_time']:g} % of the slots within 5 s."
        )
    if pool["reachable"] < 95:
        out(f"More pollers cannot exceed {pool['reachable']:g} %: OLTs are busy with one job when the next one is due.")
    note(f"forecast in {span(result['took_seconds'])}")
