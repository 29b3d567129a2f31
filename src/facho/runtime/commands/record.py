"""`facho record`: writes the tables of an OLT's brand to a `.snmprec` file."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from facho.adapters.snmp.snmprec import Record, format_record
from facho.engine.brand import Brand, Manners
from facho.engine.collect.messages import describe_failure, describe_status
from facho.engine.detect.detect import SYS_UP_TIME, Asker
from facho.engine.errors import BadAnswer, NoAnswer, OltUnreachable
from facho.engine.oid import Oid, arcs, parse
from facho.engine.snmp import Answer, ErrorStatus, Tag, Version
from facho.runtime.commands import screen, target
from facho.runtime.commands.anonymise import Anonymiser
from facho.runtime.commands.screen import CommandError, ProgressBar, note, plural
from facho.runtime.commands.target import STOPPED_EARLY, OltSession, find_brand

TIMEOUT = 3600
SYSTEM_GROUP = parse("1.3.6.1.2.1.1")
# Types of a missing variable.
ABSENT = frozenset({Tag.NO_SUCH_OBJECT, Tag.NO_SUCH_INSTANCE, Tag.END_OF_MIB_VIEW})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target.add_arguments(parser, timeout=TIMEOUT)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="output file (default: standard output)")
    parser.add_argument(
        "--anonymise",
        action="store_true",
        help="replace serials, MAC addresses, names and descriptions with values of the same format",
    )


def run(options: argparse.Namespace) -> int:
    target.load()
    agent = target.agent_of(options)
    if options.output is not None and not options.output.absolute().parent.is_dir():
        raise CommandError(f"{options.output} cannot be written: there is no such folder")
    return target.run(agent, options.timeout, lambda session: _work(session, options))


async def _work(session: OltSession, options: argparse.Namespace) -> int:
    progress = ProgressBar()
    brand, _ = await find_brand(session, options, progress)
    recorder = await _record(session, options.host, brand, progress)
    records = recorder.ordered()
    _write(Anonymiser(brand)(records) if options.anonymise else records, options.output)
    for problem in recorder.problems:
        note(f"{options.host}: {problem}")
    note(
        f"{options.host}, {brand.label}: {plural(len(records), 'variable')}, "
        f"{plural(recorder.asker.traffic().pdus, 'PDU')}" + (", PARTIAL" if recorder.problems else "")
    )
    return screen.PARTIAL if recorder.problems else screen.COMPLETE


async def _record(session: OltSession, host: str, brand: Brand, progress: ProgressBar) -> "Recorder":
    manners = brand.manners
    asker = Asker(
        session.agent,
        snmp=session.snmp,
        clock=session.clock,
        deadline=session.deadline,
        timeout=manners.timeout,
        tries=manners.retries + 1,
    )
    recorder = Recorder(asker, manners)
    tables = tables_of(brand)
    try:
        with progress:
            for number, (oid, (name, optical)) in enumerate(tables.items()):
                progress.show(f"{host}: {name}, {plural(len(recorder), 'variable')}", number, len(tables), "tables")
                await recorder.walk(name, oid, optical=optical)
    except OltUnreachable as error:
        if not len(recorder):
            raise
        recorder.problems.append(STOPPED_EARLY if session.is_stopped else str(error))
    return recorder


def tables_of(brand: Brand) -> dict[Oid, tuple[str, bool]]:
    """Return the subtrees to walk, in SNMP order: name, and whether it is read from the ONUs."""
    wanted = {SYSTEM_GROUP: ("system", False)}
    if brand.ports is not None:
        wanted[brand.ports.oid] = ("ports", False)
    if brand.probe is not None:
        wanted.setdefault(brand.probe, ("probe", False))
    wanted |= {column.oid: (column.field, column.optical) for column in brand.columns.values()}
    # A subtree within another one is read with it.
    inner = {oid for oid in wanted for other in wanted if oid != other and oid.startswith(other)}
    return {oid: wanted[oid] for oid in sorted(wanted.keys() - inner, key=arcs)}


class Recorder:
    """Reads subtrees to their ends, one request at a time. Rows read before an error are kept."""

    def __init__(self, asker: Asker, manners: Manners) -> None:
        self.asker = asker
        # Messages about missing parts.
        self.problems: list[str] = []
        self._manners = manners
        self._records: dict[Oid, Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def ordered(self) -> list[Record]:
        return [self._records[oid] for oid in sorted(self._records, key=arcs)]

    async def walk(self, name: str, prefix: Oid, *, optical: bool = False) -> None:
        """Read one subtree; `OltUnreachable` if the agent stopped answering."""
        cursor: Oid | None = prefix
        repetitions = self._manners.max_repetitions
        timeout = self._manners.optical_timeout if optical else self._manners.timeout
        while cursor is not None:
            try:
                answer = await self.asker.get_bulk([cursor], repetitions, timeout=timeout)
                reason = self._error_of(answer)
            except (NoAnswer, BadAnswer) as error:
                await self._check_alive()
                reason = describe_failure(error)
            if not reason:
                cursor = self._absorb(name, prefix, answer)
            elif repetitions > 1:
                # The rows before the unreadable one come with smaller requests.
                repetitions = max(1, repetitions // 4)
            else:
                self.problems.append(f"{name}: {reason}, the rest of it is missing")
                return

    def _error_of(self, answer: Answer) -> str:
        is_end = self.asker.agent.version is Version.V1 and answer.error_status == ErrorStatus.NO_SUCH_NAME
        if answer.error_status and not is_end:
            return describe_status(answer.error_status)
        return "" if answer.oids or is_end else "an answer without variables"

    def _absorb(self, name: str, prefix: Oid, answer: Answer) -> Oid | None:
        """Keep the rows of an answer, and return the next start; None at the end."""
        if answer.error_status:
            return None
        known = len(self._records)
        for oid, value, tag in zip(answer.oids, answer.values, answer.tags, strict=True):
            if not oid.startswith(prefix) or tag in ABSENT:
                return None
            self._records.setdefault(oid, Record(oid, Tag(tag), value))
        if len(self._records) > known:
            return answer.oids[-1]
        self.problems.append(f"{name}: the agent returns the same rows again, the rest of it is missing")
        return None

    async def _check_alive(self) -> None:
        """Check that the agent is alive, because smaller requests to a dead agent only take longer."""
        try:
            await self.asker.get([SYS_UP_TIME])
        except NoAnswer:
            reason = "stopped answering" if self.asker.has_time else "did not finish in time"
            raise OltUnreachable(f"the OLT {reason}; the answers until then are kept") from None
        except BadAnswer:
            # An unreadable answer also proves that the agent is alive.
            return


def _write(records: Iterable[Record], path: Path | None) -> None:
    lines = [format_record(record) + "\n" for record in records]
    if path is None:
        sys.stdout.writelines(lines)
        return
    try:
        path.write_text("".join(lines), encoding="ascii", newline="\n")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
