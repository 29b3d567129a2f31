"""`facho collect`: reads the ONUs of one OLT once, and prints them."""

import argparse
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from facho.brands.decode import RAW_DECODERS
from facho.engine.brand import Brand
from facho.engine.collect import Progress, collect
from facho.engine.model import Collected, JobKind, Node, Olt, Reading
from facho.runtime.commands import report, screen, session, target
from facho.runtime.commands.screen import ProgressBar, note, out, plural, printable, span, table
from facho.runtime.commands.session import STOPPED_EARLY, OltSession
from facho.runtime.commands.target import find_brand

# Seconds. A slow OLT with 800 ONUs takes up to 13 minutes for its optical values alone.
TIMEOUT = 1800

# Columns of the table. The rest is in the JSON.
SHOWN = ("name", "serial", "mac", "state", "rx_dbm", "olt_rx_dbm", "tx_dbm", "distance_m", "model", "down_cause")


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of the collection, without the brand detection."""

    seconds: float
    cpu_seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target.add_arguments(parser, timeout=TIMEOUT)
    parser.add_argument(
        "--columns", type=_names, default=(), metavar="A,B,…", help="columns to read of each ONU (default: all)"
    )
    parser.add_argument(
        "--window",
        type=_window,
        metavar="N",
        help="maximum number of requests in flight (default: adapted to the OLT, up to the limit of its brand)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _window(text: str) -> int:
    number = target.whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1 request must be in flight")
    return number


def run(options: argparse.Namespace) -> int:
    target.load()
    agent = target.agent_of(options)

    async def work(session: OltSession) -> int:
        return await _work(session, options)

    try:
        return session.run(agent, options.timeout, work)
    except screen.CommandError as error:
        if options.json:
            out(report.failure(agent, str(error)))
        raise


async def _work(session: OltSession, options: argparse.Namespace) -> int:
    progress = ProgressBar()
    brand, identity = await find_brand(session, options, progress)
    columns = _columns(brand, options.columns)
    collected, cost = await _collect(session, options, brand, columns, progress)
    if session.is_stopped:
        # To the engine it looked like an OLT that stopped answering, in every column.
        collected = replace(collected, errors=(STOPPED_EARLY,), coverage=())
    if options.json:
        out(report.collection(session.agent, identity, brand, collected, asdict(cost)))
    else:
        _print(identity.sys_name or options.host, brand, collected, cost)
    return screen.of(collected.completeness)


def _columns(brand: Brand, wanted: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in wanted if name not in brand.columns]
    if unknown:
        raise screen.CommandError(
            f"{brand.label} has no column {', '.join(unknown)}; it has {', '.join(sorted(brand.columns))}"
        )
    return wanted or tuple(brand.columns)


async def _collect(
    session: OltSession, options: argparse.Namespace, brand: Brand, columns: tuple[str, ...], progress: ProgressBar
) -> tuple[Collected, Cost]:
    name = options.host
    node = Node(0, 0, name, JobKind.DISCOVERY, timedelta(seconds=options.timeout), name, columns=columns)
    olt = Olt(0, name, brand.id, session.agent, max_in_flight=options.window)

    def watch(seen: Progress) -> None:
        text = f"{name}: {seen.rows:,} rows, {seen.pdus:,} PDUs"
        progress.show(text, seen.ports_done, seen.ports, "ports")

    started, cpu = time.perf_counter(), time.process_time()
    try:
        collected = await collect(
            node,
            olt,
            brand,
            snmp=session.snmp,
            clock=session.clock,
            deadline=session.deadline,
            known=(),
            raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
            watch=watch if progress.is_shown else None,
        )
        return collected, Cost(time.perf_counter() - started, time.process_time() - cpu)
    finally:
        progress.clear()


def _print(name: str, brand: Brand, collected: Collected, cost: Cost) -> None:
    """Print the ONUs, then a summary, then the errors."""
    rows = [report.onu(reading) for reading in sorted(collected.readings, key=_place)]
    shown = [each for each in SHOWN if any(row.get(each) is not None for row in rows)]
    if rows:
        cells = [
            [f"{_number(row['slot'])}/{_number(row['port'])}/{_number(row['onu'])}", *(row.get(each) for each in shown)]
            for row in rows
        ]
        out("\n".join(table(["onu", *shown], cells)))
    out(describe(name, brand, collected, cost))
    for error in collected.errors:
        note(f"  {error}")


def _place(reading: Reading) -> tuple[int, int, int, str]:
    return (reading.slot or 0, reading.port or 0, reading.onu or 0, reading.index)


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def describe(name: str, brand: Brand, collected: Collected, cost: Cost) -> str:
    """Return a summary of a collection in one line."""
    states = Counter(reading.values.get("state") for reading in collected.readings)
    counts = ", ".join(f"{count:,} {state}" for state, count in states.most_common() if state)
    onus = plural(len(collected.readings), "ONU") + (f" ({counts})" if counts else "")
    traffic = collected.traffic
    again = f", {traffic.retransmissions:,} retransmitted" if traffic.retransmissions else ""
    return (
        f"{printable(name)}, {brand.label}: {collected.completeness.value}, {onus} in {span(cost.seconds)}, "
        f"{plural(traffic.pdus, 'PDU')}{again}, {span(cost.cpu_seconds)} of CPU"
    )
