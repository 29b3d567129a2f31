"""`facho collect`: reads the ONUs of one OLT once, and prints them."""

import argparse
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta

from facho.brands.decode import RAW_DECODERS
from facho.engine.brand import Brand
from facho.engine.collect import Progress, collect
from facho.engine.model import Collected, Completeness, JobKind, Node, Olt
from facho.runtime.commands import report, screen, target
from facho.runtime.commands.screen import ProgressBar, note, out, plural, printable, span, table
from facho.runtime.commands.target import STOPPED_EARLY, OltSession, find_brand

# Seconds. A slow OLT with 800 ONUs takes up to 13 minutes for its optical values alone.
TIMEOUT = 1800

# Columns of the table. The rest is in the JSON.
SHOWN = ("name", "serial", "mac", "state", "rx_dbm", "olt_rx_dbm", "tx_dbm", "distance_m", "model", "down_cause")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target.add_arguments(parser, timeout=TIMEOUT)
    parser.add_argument(
        "--columns",
        type=lambda text: tuple(filter(None, map(str.strip, text.split(",")))),
        default=(),
        metavar="A,B,…",
        help="columns to read of each ONU (default: all)",
    )
    parser.add_argument(
        "--window",
        type=target.whole(1, otherwise="at least 1 request must be in flight"),
        metavar="N",
        help="maximum number of requests in flight (default: adapted to the OLT, up to the limit of its brand)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    target.load()
    agent = target.agent_of(options)
    try:
        return target.run(agent, options.timeout, lambda session: _work(session, options))
    except screen.CommandError as error:
        if options.json:
            out(report.failure(agent, str(error)))
        raise


async def _work(session: OltSession, options: argparse.Namespace) -> int:
    progress = ProgressBar()
    brand, identity = await find_brand(session, options, progress)
    unknown = [name for name in options.columns if name not in brand.columns]
    if unknown:
        raise screen.CommandError(
            f"{brand.label} has no column {', '.join(unknown)}; it has {', '.join(sorted(brand.columns))}"
        )
    collected, cost = await _collect(session, options, brand, progress)
    if session.is_stopped:
        # To the engine it looked like an OLT that stopped answering, in every column.
        collected = replace(collected, errors=(STOPPED_EARLY,), coverage=())
    if options.json:
        out(report.collection(session.agent, identity, brand, collected, cost))
    else:
        _print(identity.sys_name or options.host, brand, collected, cost)
    # An OLT that reports no ONUs was read completely.
    return screen.PARTIAL if collected.completeness is Completeness.PARTIAL else screen.COMPLETE


async def _collect(
    session: OltSession, options: argparse.Namespace, brand: Brand, progress: ProgressBar
) -> tuple[Collected, dict[str, float]]:
    """Return the collection and its cost, without the brand detection."""
    name, columns = options.host, options.columns or tuple(brand.columns)
    node = Node(0, 0, name, JobKind.DISCOVERY, timedelta(seconds=options.timeout), name, columns=columns)
    olt = Olt(0, name, brand.id, session.agent, max_in_flight=options.window)

    def watch(seen: Progress) -> None:
        text = f"{name}: {seen.rows:,} rows, {seen.pdus:,} PDUs"
        progress.show(text, seen.ports_done, seen.ports, "ports")

    started, cpu = time.perf_counter(), time.process_time()
    with progress:
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
    return collected, {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}


def _print(name: str, brand: Brand, collected: Collected, cost: dict[str, float]) -> None:
    """Print the ONUs, then a summary, then the errors."""
    readings = sorted(collected.readings, key=lambda each: (each.slot or 0, each.port or 0, each.onu or 0, each.index))
    rows = [report.onu(reading) for reading in readings]
    shown = [each for each in SHOWN if any(row.get(each) is not None for row in rows)]
    if rows:
        cells = [
            ["/".join(printable(row[each]) for each in ("slot", "port", "onu")), *(row.get(each) for each in shown)]
            for row in rows
        ]
        out("\n".join(table(["onu", *shown], cells)))
    states = Counter(reading.values.get("state") for reading in collected.readings)
    counts = ", ".join(f"{count:,} {state}" for state, count in states.most_common() if state)
    onus = plural(len(collected.readings), "ONU") + (f" ({counts})" if counts else "")
    traffic = collected.traffic
    again = f", {traffic.retransmissions:,} retransmitted" if traffic.retransmissions else ""
    out(
        f"{printable(name)}, {brand.label}: {collected.completeness.value}, {onus} in {span(cost['seconds'])}, "
        f"{plural(traffic.pdus, 'PDU')}{again}, {span(cost['cpu_seconds'])} of CPU"
    )
    for error in collected.errors:
        note(f"  {error}")
