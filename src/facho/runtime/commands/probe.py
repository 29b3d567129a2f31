"""`facho probe`: brand of an OLT, tables that answer, and possible intervals."""

import argparse
from dataclasses import replace

from facho.engine.brand import Brand
from facho.engine.detect.cost import Allowed, Measured, TableCost, measure
from facho.engine.detect.detect import Identity
from facho.runtime.commands import report, screen, target
from facho.runtime.commands.screen import ProgressBar, note, out, plural, printable, span, table
from facho.runtime.commands.target import OltSession, ask_identity

TIMEOUT = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target.add_arguments(parser, timeout=TIMEOUT)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a report")


def run(options: argparse.Namespace) -> int:
    target.load()
    agent = target.agent_of(options)
    named = target.chosen(options)
    try:
        return target.run(agent, options.timeout, lambda session: _work(session, options, named))
    except screen.CommandError as error:
        if options.json:
            out(report.failure(agent, str(error)))
        raise


async def _work(session: OltSession, options: argparse.Namespace, named: Brand | None) -> int:
    progress = ProgressBar()
    identity = await ask_identity(session, progress)
    if named is not None:
        # With a given brand, remarks about other brands are not shown.
        identity = replace(identity, brand=named, remark="")
    brand = identity.brand
    measured = None
    if brand is not None:
        with progress:
            progress.show(f"{options.host}: reading its tables")
            measured = await measure(
                session.agent, brand, snmp=session.snmp, clock=session.clock, deadline=session.deadline
            )
    if options.json:
        out(report.probing(session.agent, identity, measured))
    else:
        _print(options.host, identity, measured)
    # The brand is unknown, or a table gave no usable answer.
    if measured is None or any(each.problem for each in measured.tables):
        return screen.PARTIAL
    return screen.COMPLETE


def _print(host: str, identity: Identity, measured: Measured | None) -> None:
    brand = identity.brand
    facts = [("OLT", f"{identity.sys_name or 'without a name'} ({host})")]
    if brand is not None:
        facts.append(("brand", f"{brand.label} [{brand.id}]{' (experimental)' if brand.experimental else ''}"))
    facts.append(("says", identity.sys_descr or "not reported"))
    facts.append(("object id", identity.sys_object_id or "none"))
    facts.append(("uptime", span(identity.uptime)))
    if measured is not None:
        facts.append(("ONUs", describe_onus(measured)))
    for title, value in facts:
        out(f"{title:<10} {printable(value)}")
    if identity.remark:
        note(identity.remark)
    if measured is None:
        return
    out()
    rows = [describe_table(each) for each in measured.tables]
    out("\n".join(table(["table", "answers", "a row", "columns"], rows)))
    if measured.allowed:
        out()
        jobs = [describe_job(each) for each in measured.allowed]
        out("\n".join(table(["job", "takes", "can run every", "because"], jobs)))


def describe_onus(measured: Measured) -> str:
    """Return the number of ONUs, as far as it is known."""
    if measured.onus is None:
        return "unknown"
    return f"more than {measured.onus:,}" if measured.onus_are_more else f"{measured.onus:,}"


def describe_table(cost: TableCost) -> list[str]:
    """Return a line about a table."""
    answers = cost.problem or (plural(cost.rows, "row") if cost.rows else "no rows")
    there = ", ".join(name for name in cost.fields if name not in cost.missing)
    missing = f"; not there: {', '.join(cost.missing)}" if there and cost.missing else ""
    return [
        cost.oid + (" (optics)" if cost.optical else ""),
        answers,
        span(cost.seconds_a_row) if cost.rows else "",
        (there or ", ".join(cost.fields)) + missing,
    ]


def describe_job(job: Allowed) -> list[str]:
    """Return a line about the interval of a job."""
    because = f"OLTs of this brand become slow below {span(job.floor)}" if job.floor == job.interval else ""
    every = span(job.interval) if job.interval else "less than daily"
    return [job.name, f"about {span(job.seconds)}", every, because]
