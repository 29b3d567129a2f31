"""`facho export`: writes the history of ONUs as files, one for each OLT and day."""

import argparse
import csv
import fcntl
import io
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from facho.engine.batch import UNREAD
from facho.engine.chunks import FIELDS, Kind, kind_of
from facho.runtime.commands import screen
from facho.runtime.commands.screen import CommandError, ProgressBar, note, out, plural, span

if TYPE_CHECKING:
    from facho.apps.telemetry.history import Level
    from facho.apps.telemetry.history_export import Lines, Part

# ONUs whose values are in memory at once: some 70,000 lines of a day with a reading every five minutes.
ONUS_AT_ONCE = 256

# Columns between the time and the values.
IDENTITY = ("olt", "slot", "port", "onu", "serial", "name")

# Parts of a daily value that are written. The others serve to merge days.
SHOWN_PARTS = {Kind.GAUGE: ("min", "mean", "max"), Kind.COUNTER: ("sum",), Kind.WORD: ("last",)}

# Characters of a file name. `~` is not one of them, so a name that was changed cannot be that of another OLT.
UNSAFE = re.compile(r"[^\w.+-]|^[.-]")
# Characters of four bytes fit into a file name, too.
LONGEST_NAME = 50

DAY = timedelta(days=1)

EPILOG = """\
Days and times are UTC, unless a time has an offset, such as 2026-11-19T08:00-05:00. A day of --to is included, a time
is not. Files are DIRECTORY/OLT/2026-11-19.csv, by days of UTC; a day that --from or --to cuts has its times in its
name. A file gets its name when it is complete.

exit status: 0 complete, or nothing to export; 2 invalid arguments, or files exist; 3 partial: a file could not be
written, or damaged rows were left out; 4 the database is unavailable; 130 stopped by Ctrl-C. What was written stays;
continue with --resume.
"""

# The lines of some ONUs: the columns of `IDENTITY`, and cells by time.
Block = list[tuple[tuple[Any, ...], "Lines"]]


class HistoryCsv:
    """Lines with commas, as the files of lists."""

    SUFFIX = "csv"

    def __init__(self, file: IO[bytes], names: Sequence[str], *, is_daily: bool) -> None:
        from facho.apps.rest.spreadsheets import protect

        self._protect = protect
        self._file = io.TextIOWrapper(file, encoding="utf-8", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(_header(names, is_daily=is_daily))
        self._is_daily = is_daily
        # Texts of times, which are mostly the same for all ONUs.
        self._texts: dict[int, str] = {}

    @staticmethod
    def check() -> None:
        """Nothing can be missing."""

    def write(self, block: Block) -> int:
        """Write lines and return their number."""
        protect, texts = self._protect, self._texts
        count = 0
        for identity, lines in block:
            known = [protect(cell) if isinstance(cell, str) else cell for cell in identity]
            for at in sorted(lines):
                text = texts.get(at) or texts.setdefault(at, self._text(at))
                cells = ["" if cell is UNREAD else protect(cell) if type(cell) is str else cell for cell in lines[at]]
                self._writer.writerow([text, *known, *cells])
            count += len(lines)
        return count

    def _text(self, at: int) -> str:
        return time.strftime("%Y-%m-%d" if self._is_daily else "%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1_000_000))

    def close(self) -> None:
        self._file.detach().flush()


class HistoryParquet:
    """A table of Apache Parquet, with a row group for each block."""

    SUFFIX = "parquet"

    def __init__(self, file: IO[bytes], names: Sequence[str], *, is_daily: bool) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        of_kind = {Kind.GAUGE: pa.float64(), Kind.COUNTER: pa.int64(), Kind.WORD: pa.string()}
        identity = [pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.string(), pa.string()]
        time_type = pa.date32() if is_daily else pa.timestamp("us", tz="UTC")
        types = [time_type, *identity, *(of_kind[kind_of(name)] for name in names)]
        self._schema = pa.schema(list(zip(_header(names, is_daily=is_daily), types, strict=True)))
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._table, self._is_daily = pa.table, is_daily

    @staticmethod
    def check() -> None:
        """Refuse the format if its package is missing."""
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise CommandError(
                "Parquet needs the package pyarrow. Install it with `pip install 'facho[parquet]'` in the environment "
                "of Facho, or use --format csv."
            ) from None

    def write(self, block: Block) -> int:
        times: list[int] = []
        identities: list[tuple[Any, ...]] = []
        cells: list[list[Any]] = []
        for identity, lines in block:
            moments = sorted(lines)
            times += moments
            identities += [identity] * len(moments)
            cells += ([None if cell is UNREAD else cell for cell in lines[at]] for at in moments)
        if times:
            if self._is_daily:
                times = [at // 86_400_000_000 for at in times]
            columns = [times, *zip(*identities, strict=True), *zip(*cells, strict=True)]
            named = dict(zip(self._schema.names, columns, strict=True))
            self._writer.write_table(self._table(named, schema=self._schema))
        return len(times)

    def close(self) -> None:
        self._writer.close()


FileType = type[HistoryCsv] | type[HistoryParquet]
FILES: dict[str, FileType] = {"csv": HistoryCsv, "parquet": HistoryParquet}


def _header(names: Sequence[str], *, is_daily: bool) -> list[str]:
    first = "day" if is_daily else "time"
    return [first, *IDENTITY, *(name.removesuffix(":last").replace(":", "_") for name in names)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "--from", dest="since", required=True, metavar="TIME", help="first day or time: 2026-11-19, 2026-11-19T08:00"
    )
    parser.add_argument("--to", dest="until", metavar="TIME", help="last day, or end (default: now)")
    parser.add_argument(
        "--olt", action="append", default=[], metavar="NAME|ID", help="only this OLT; repeat it for several"
    )
    parser.add_argument(
        "--fields",
        type=lambda text: tuple(filter(None, map(str.strip, text.split(",")))),
        default=(),
        metavar="A,B,…",
        help=f"values to write (default: all): {', '.join(FIELDS)}",
    )
    parser.add_argument("--daily", action="store_true", help="daily minimum, mean and maximum; one file per month")
    parser.add_argument(
        "--format", choices=list(FILES), default="csv", help="format of the files (default %(default)s)"
    )
    parser.add_argument("--output", type=Path, default=Path("export"), metavar="DIRECTORY", help="(default: export)")
    again = parser.add_mutually_exclusive_group()
    again.add_argument(
        "--resume", action="store_true", help="keep complete files of an earlier export, and write the others"
    )
    again.add_argument("--overwrite", action="store_true", help="replace the files of an earlier export")


def run(options: argparse.Namespace) -> int:
    now = datetime.fromtimestamp(time.time(), UTC)  # noqa: TID251  # of this command, beside the engine
    since = _moment("--from", options.since)
    until = _moment("--to", options.until, is_end=True) if options.until else datetime.max.replace(tzinfo=UTC)
    if since >= min(until, now):
        raise CommandError("There is nothing to export: --from must be in the past, and before --to.")
    names = _names(options.fields, is_daily=options.daily)
    file_type = FILES[options.format]
    file_type.check()
    _prepare()
    from django.db import DatabaseError

    try:
        return _export(options, file_type, names, since, until)
    except DatabaseError as error:
        raise CommandError(
            f"The database is unavailable ({error}). Complete files stay; continue with --resume.", screen.UNREACHABLE
        ) from error
    except OSError as error:
        raise CommandError(
            f"{error.filename or options.output} could not be written: {error.strerror}. Complete files stay; continue "
            "with --resume.",
            screen.PARTIAL,
        ) from error


def _moment(option: str, text: str, *, is_end: bool = False) -> datetime:
    """Return the time of a text. A day as an end is included."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{option} must be a day or a time, such as 2026-11-19 or 2026-11-19T08:00.") from None
    is_day = re.fullmatch(r"\d{4}-?\d\d-?\d\d", text) is not None
    try:
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        return at + DAY if is_day and is_end else at
    except OverflowError:
        raise CommandError(f"{option} is too far away.") from None


def _names(fields: Sequence[str], *, is_daily: bool) -> list[str]:
    if unknown := [name for name in fields if name not in FIELDS]:
        raise CommandError(f"Unknown field {unknown[0]}. Valid fields: {', '.join(FIELDS)}.")
    chosen = [name for name in FIELDS if name in fields or not fields]
    if not is_daily:
        return chosen
    return [f"{name}:{part}" for name in chosen for part in SHOWN_PARTS[FIELDS[name]]]


def _prepare() -> None:
    from facho.runtime import cli
    from facho.runtime.config import ConfigError

    try:
        cli.prepare()
        cli.refuse_on_errors(outdated_too=True)
    except ConfigError as error:
        raise CommandError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Target:
    """A file to write: the values of an OLT in a day or month, or in a part of it."""

    olt: str
    path: Path
    part: "Part"
    # Ascending.
    onu_ids: Sequence[int]
    # From then on nothing more is stored that belongs into it.
    is_final_at: datetime

    def is_complete(self) -> bool:
        """Return whether the file exists and was written when nothing more could come."""
        with suppress(FileNotFoundError):
            return self.path.stat().st_mtime >= self.is_final_at.timestamp()
        return False

    def blocks(self) -> Iterator[tuple[Block, int, int]]:
        """Yield the lines of some ONUs, the number of these ONUs, and that of damaged rows."""
        from facho.apps.telemetry.models import Onu

        for start in range(0, len(self.onu_ids), ONUS_AT_ONCE):
            ids = self.onu_ids[start : start + ONUS_AT_ONCE]
            known = Onu.objects.filter(pk__in=ids).order_by("pk")
            readings = self.part.of(ids)
            block = [
                ((self.olt, *identity), readings.onus[pk])
                for pk, *identity in known.values_list("pk", "slot", "port", "onu", "serial", "name")
            ]
            yield block, len(ids), readings.damaged


def _export(
    options: argparse.Namespace, file_type: FileType, names: Sequence[str], since: datetime, until: datetime
) -> int:
    from facho.apps.telemetry.history import DAYS, RAW

    level = DAYS if options.daily else RAW
    targets = list(_targets(options, level, names, since, until))
    if not targets:
        note(_nothing(level))
        return screen.COMPLETE
    if not options.overwrite and not options.resume and (found := [each for each in targets if each.path.exists()]):
        raise CommandError(
            f"{found[0].path} exists"
            + (f", and {len(found) - 1} more" if len(found) > 1 else "")
            + ". Write to another "
            "--output, keep complete files with --resume, or replace them with --overwrite."
        )
    if options.resume:
        kept = len(targets)
        targets = [each for each in targets if not each.is_complete()]
        note(f"{plural(kept - len(targets), 'file')} of an earlier export kept.")
    return _write(options, file_type, names, targets)


def _targets(
    options: argparse.Namespace, level: "Level", names: Sequence[str], since: datetime, until: datetime
) -> Iterator[Target]:
    from facho.apps.telemetry.history_export import Part, period_starts
    from facho.apps.telemetry.models import Onu
    from facho.store.history import DAY_GRACE

    places = {name: place for place, name in enumerate(names)}
    file_type, late = FILES[options.format], DAY_GRACE + DAY if options.daily else DAY_GRACE
    for olt_id, name, folder in _olts(options.olt):
        starts = period_starts(level, olt_id, since, until)
        onu_ids = list(Onu.objects.filter(olt=olt_id).order_by("pk").values_list("pk", flat=True)) if starts else []
        for start in starts:
            end = level.start(start + (32 * DAY if options.daily else DAY))
            part = Part(level, olt_id, max(start, since), min(end, until), places)
            file_name = f"{_period(start, end, part, is_daily=options.daily)}.{file_type.SUFFIX}"
            yield Target(name, options.output / folder / file_name, part, onu_ids, part.until + late)


def _period(start: datetime, end: datetime, part: "Part", *, is_daily: bool) -> str:
    """Return the name of a day or month, with its times if it is cut."""
    if is_daily:
        name, form = f"{start:%Y-%m}-daily", "%dT%H%M%S"
    else:
        name, form = f"{start:%Y-%m-%d}", "T%H%M%S"
    if (part.since, part.until) == (start, end):
        return name
    last = "end" if part.until == end else f"{part.until:{form}}"
    return f"{name}-{part.since:{form}}-{last}"


def _olts(chosen: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return id, name and folder of the chosen OLTs, or of all."""
    from facho.apps.inventory.models import Olt

    # The history of an OLT that is being deleted is incomplete.
    rows = list(Olt.objects.filter(deleting_since=None).order_by("name", "pk").values_list("pk", "name"))
    # Some file systems do not distinguish capital letters.
    spellings = Counter(name.casefold() for _pk, name in rows)
    olts = {}
    for pk, name in rows:
        folder = UNSAFE.sub("_", name)[:LONGEST_NAME]
        is_own = folder == name and spellings[name.casefold()] == 1
        olts[pk] = (pk, name, folder if is_own else f"{folder}~{pk}")
    if not chosen:
        return list(olts.values())
    ids = {name: pk for pk, name in rows}
    wanted = set()
    for text in chosen:
        found = ids.get(text, int(text) if text.isdecimal() else 0)
        if found not in olts:
            raise CommandError(f"There is no OLT with the name or id {text}.")
        wanted.add(found)
    return [olt for pk, olt in olts.items() if pk in wanted]


def _nothing(level: "Level") -> str:
    from facho.apps.telemetry.history_export import known_span

    found = known_span(level)
    if found is None:
        return "There is no history yet. Nothing was written."
    first, last = (f"{at:%Y-%m-%d}" for at in found)
    return (
        f"There is no history in this period. Nothing was written. The history of all OLTs is from {first} to {last}."
    )


def _write(options: argparse.Namespace, file_type: FileType, names: Sequence[str], targets: Sequence[Target]) -> int:
    began = time.monotonic()
    lines = damaged = done = 0
    total = sum(len(each.onu_ids) for each in targets)
    with ProgressBar() as progress:
        for number, target in enumerate(targets, 1):
            started, count = time.monotonic(), 0
            target.path.parent.mkdir(parents=True, exist_ok=True)
            with _whole_file(target.path) as raw:
                file = file_type(raw, names, is_daily=options.daily)
                for block, onus, broken in target.blocks():
                    text = f"{target.olt} {target.path.stem}, file {number} of {len(targets)}"
                    progress.show(text, done, total, "ONUs")
                    count, damaged, done = count + file.write(block), damaged + broken, done + onus
                file.close()
            lines += count
            if not progress.is_shown:
                note(f"{target.path}: {plural(count, 'line')} in {span(time.monotonic() - started)}")
    took = span(time.monotonic() - began)
    out(f"{plural(len(targets), 'file')} with {plural(lines, 'line')} in {options.output}, {took}")
    if damaged:
        note("Damaged rows of the history were left out: see above.")
        return screen.PARTIAL
    return screen.COMPLETE


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its name at the end of the block. After an error there is no file."""
    part = path.with_name(f".{path.name}.part")
    with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"Another export writes {path}. Wait for it, or use another --output.") from None
        try:
            # Of an export that was killed.
            file.truncate(0)
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
