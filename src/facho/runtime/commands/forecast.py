"""`facho forecast`: whether jobs, OLTs and pollers fit, computed by the engine on a virtual clock."""

import argparse
import math
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from facho.engine.forecast.fleet import Fleet, asked, works
from facho.engine.forecast.question import FleetQuestion
from facho.engine.quota.pollers_needed import pollers_needed
from facho.runtime import fleet_questions, forecasting
from facho.runtime.commands import report, screen
from facho.runtime.commands.screen import CommandError, ProgressBar, note, out, plural, span, table
from facho.runtime.config import AUTOMATIC_POLLERS, MOST_POLLERS, Config, ConfigError

DAY = 24.0

# A worker reports its pollers more often than this.
ALIVE = timedelta(minutes=1)


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
        "--hours",
        type=float,
        metavar="H",
        help="hours to simulate (default: 24; for a question fewer if the fleet is large)",
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
    parser.add_argument("--report-progress", action="store_true", help=argparse.SUPPRESS)
    question = parser.add_argument_group(
        "questions",
        "Whether a change fits: Yes or No, what to do, and the forecast. Only for the OLTs of the database.",
    )
    question.add_argument("--answer", action="store_true", help="answer whether the fleet fits as it is")
    question.add_argument("--more-olts", type=int, default=0, metavar="N", help="N more OLTs like the present ones")
    question.add_argument(
        "--more-pollers", type=int, default=0, metavar="N", help="N more pollers; --more-pollers=-1 for one fewer"
    )
    question.add_argument(
        "--interval", metavar="JOB:INTERVAL", help="another interval of a job, by its name or id, as State:2min"
    )
    question.add_argument(
        "--only-olts", metavar="IDS", help="the OLTs with the other interval, as 3,7,12 (default: all with the job)"
    )


def run(options: argparse.Namespace) -> int:
    for name, least, most in (("olts", 1, 100_000), ("pollers", 1, MOST_POLLERS), ("hours", 1 / 60, 24 * 31)):
        value = getattr(options, name)
        if value is not None and not least <= value <= most:
            raise CommandError(f"--{name} must be between {least:g} and {most:g}, not {value:g}")
    if not 0 <= options.dead <= 100:
        raise CommandError(f"--dead must be a percentage, not {options.dead:g}")
    if options.answer or options.more_olts or options.more_pollers or options.interval:
        return _answer(options)
    wish = _wish(options)
    if not wish.fleet.nodes:
        raise CommandError("There is nothing to poll: no job is enabled on an enabled OLT. Try --olts 100.")
    began = time.monotonic()
    minutes = math.ceil(wish.hours * 60)
    report_percent = _percent_reporter(options)
    with ProgressBar() as progress:

        def show(hours: float) -> None:
            progress.show("forecast", int(hours * 60), minutes, "minutes")
            report_percent(hours / wish.hours)

        result = forecasting.forecast(wish, show)
    result["took_seconds"] = round(time.monotonic() - began, 1)
    if options.json:
        out(report.dump(result))
    else:
        _print(result)
    return screen.COMPLETE


def _answer(options: argparse.Namespace) -> int:
    """Answer a question about the OLTs of the database."""
    if options.olts is not None or options.pollers is not None or options.job or options.dead:
        raise CommandError("A question is about this installation: leave out --olts, --pollers, --job and --dead.")
    if options.only_olts and not options.interval:
        raise CommandError("--only-olts needs --interval")
    if (
        not -MOST_POLLERS < options.more_pollers < MOST_POLLERS
        or not 0 <= options.more_olts <= fleet_questions.MOST_OLTS
    ):
        raise CommandError(
            f"--more-pollers must be below {MOST_POLLERS}, and --more-olts between 0 and {fleet_questions.MOST_OLTS}"
        )
    now, start = _now_and_start()
    fleet, config = _of_the_database([], 0, now, start)
    if not fleet.nodes:
        raise CommandError("There is nothing to poll: no job is enabled on an enabled OLT.")
    if not any(fleet.durations(node, start).samples for node in fleet.nodes):
        raise CommandError("No run has been measured yet. Ask again when the first runs have ended.")
    question = _question(options)
    pool = _pool(config, fleet, now, start)
    if pool.pollers + question.more_pollers < 1:
        raise CommandError(f"There are {plural(pool.pollers, 'poller')}, and at least one must remain.")
    hours = options.hours or fleet_questions.hours_for(fleet, question, start)
    today = forecasting.Wish(fleet, pool.pollers, hours, start, options.seed, config.breaker_after, config.auto_recover)
    began = time.monotonic()
    report_percent = _percent_reporter(options)
    with ProgressBar() as progress:

        def show(share: float) -> None:
            progress.show("forecast", int(share * 100), 100, "%")
            report_percent(share)

        result = fleet_questions.answer(today, question, pool, show)
    result["took_seconds"] = round(time.monotonic() - began, 1)
    if options.json:
        out(report.dump(result))
        return screen.COMPLETE
    from facho.apps.coordinator.answers import FleetAnswer

    told = FleetAnswer(_params(options), result)
    out("\n".join([told.word, *told.reasons, *told.changes, *told.notes, ""]))
    _print(result)
    return screen.COMPLETE


def _params(options: argparse.Namespace) -> dict[str, Any]:
    """Return the question as the API would store it."""
    question: dict[str, Any] = {"more_olts": options.more_olts, "more_pollers": options.more_pollers}
    if options.interval:
        job, _, text = options.interval.rpartition(":")
        question["interval"] = {"name": job, "seconds": forecasting.parse_seconds(text, options.interval)}
    return {"question": question}


def _percent_reporter(options: argparse.Namespace) -> Callable[[float], None]:
    """Return a function that writes the progress as lines, each percentage once, if that was requested."""
    shown = 0

    def report_percent(share: float) -> None:
        nonlocal shown
        if options.report_progress and int(share * 100) > shown:
            shown = int(share * 100)
            note(f"{forecasting.PROGRESS}{shown}")

    return report_percent


def _question(options: argparse.Namespace) -> FleetQuestion:
    """Return the question of the options. Only nodes that are polled can change."""
    if not options.interval:
        return FleetQuestion(options.more_olts, options.more_pollers)
    job, _, text = options.interval.rpartition(":")
    try:
        seconds = forecasting.parse_seconds(text, options.interval) if job else 0
    except ValueError as error:
        raise CommandError(str(error)) from error
    if seconds < 10:
        raise CommandError(f"--interval must be JOB:INTERVAL with at least 10 seconds, not {options.interval!r}")
    from facho.apps.jobs.models import WorkflowNode

    nodes = WorkflowNode.objects.polled().filter(master__isnull=True)
    nodes = nodes.filter(job=int(job)) if job.isdecimal() else nodes.filter(job__name__iexact=job)
    if options.only_olts:
        parts = options.only_olts.split(",")
        if not all(each.strip().isdecimal() for each in parts):
            raise CommandError(f"--only-olts must be ids separated by commas, not {options.only_olts!r}")
        nodes = nodes.filter(olt__in=[int(each) for each in parts])
    ids = frozenset(nodes.values_list("pk", flat=True))
    if not ids:
        raise CommandError(
            "The job of the question runs on none of these OLTs with a schedule of its own: it is not applied, it is "
            "disabled, or it follows another job."
        )
    return FleetQuestion(options.more_olts, options.more_pollers, timedelta(seconds=seconds), ids)


def _pool(config: Config, fleet: Fleet, now: datetime, start: datetime) -> fleet_questions.Pool:
    """Return the present pollers: those of the workers, those of the settings, or as many as the fleet makes grow."""
    from facho.apps.polling.models import Poller

    if config.is_scale:
        known = Poller.objects.filter(updated_at__gte=now - ALIVE).count()
        return fleet_questions.Pool(known or config.pollers or AUTOMATIC_POLLERS[0])
    if config.pollers:
        return fleet_questions.Pool(config.pollers)
    return fleet_questions.Pool(fleet_questions.automatic_pool(fleet, start), is_automatic=True)


def _now_and_start() -> tuple[datetime, datetime]:
    # The engine does not run in this process, so the system clock is used.
    now = datetime.fromtimestamp(time.time(), UTC)  # noqa: TID251  # see above
    return now, now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def _wish(options: argparse.Namespace) -> forecasting.Wish:
    now, start = _now_and_start()
    jobs = _jobs(options.job)
    if options.olts is None:
        fleet, config = _of_the_database(jobs, options.dead, now, start)
        least, most = AUTOMATIC_POLLERS
        return forecasting.Wish(
            fleet,
            options.pollers or config.pollers or min(max(_enough(fleet, start), least), most),
            options.hours or DAY,
            start,
            options.seed,
            config.breaker_after,
            config.auto_recover,
        )
    dead = round(options.olts * options.dead / 100)
    fleet = forecasting.made_up(options.olts, jobs or forecasting.usual_jobs(), start, dead=dead, seed=options.seed)
    return forecasting.Wish(fleet, options.pollers or _enough(fleet, start), options.hours or DAY, start, options.seed)


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
    return min(pollers_needed(works(asked(fleet), fleet, start), start).pollers, MOST_POLLERS)


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
