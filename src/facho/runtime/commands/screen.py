"""Terminal output of the commands: tables, durations, progress, and exit statuses."""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TextIO

from facho.engine.model import Completeness

COMPLETE = 0
# Invalid option or profile. argparse uses the same number.
USAGE = 2
PARTIAL = 3
UNREACHABLE = 4
# Exit status of a command stopped by Ctrl-C.
STOPPED = 130


class CommandError(Exception):
    """Ends a command with a message and an exit status."""

    def __init__(self, sentence: str, status: int = USAGE) -> None:
        super().__init__(sentence)
        self.status = status


def of(completeness: Completeness) -> int:
    """Return the status of a reading. An OLT that reports no ONUs was read completely."""
    return PARTIAL if completeness is Completeness.PARTIAL else COMPLETE


# Minimum width of a table column.
NARROWEST = 8
GAP = "  "
BAR = 24
# Seconds between updates.
BETWEEN_LINES = 0.1
SPANS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def out(text: str = "") -> None:
    """Write a line of the result."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Write a line that is not the result: a remark or an error."""
    sys.stderr.write(text + "\n")


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None) -> list[str]:
    """Return aligned lines; the widest columns are cut so that a line fits. Numbers are right-aligned."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    widths = _fit(widths, (width or terminal_width()) - len(GAP) * (len(titles) - 1))
    right = [_is_numeric([row[place] for row in rows]) for place in range(len(titles))]
    return [_line(line, widths, right) for line in (titles, *cells)]


def terminal_width() -> int:
    """Return the maximum width of a line. Output to a file or a pipe is not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000


def _cell(value: object) -> str:
    if value is None:
        return "-"
    # Names come from customers: line ends and escape sequences are not printed.
    return "".join(char if char.isprintable() else "?" for char in str(value))


def _is_numeric(values: Sequence[object]) -> bool:
    return any(isinstance(value, int | float) for value in values)


def _fit(widths: list[int], room: int) -> list[int]:
    """Shorten the widest columns until they fit."""
    widths = list(widths)
    while sum(widths) > room and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = [
        cut(cell, width).rjust(width) if is_right else cut(cell, width).ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    ]
    return GAP.join(parts).rstrip()


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def span(time: timedelta | float | None) -> str:
    """Return a time in its two largest units: `2 h 5 min`, `40 s`, `12 ms`."""
    if time is None:
        return "unknown"
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole, words = round(seconds), []
    for unit, size in SPANS:
        count, whole = divmod(whole, size)
        if count:
            words.append(f"{count} {unit}")
        elif words:
            break
    return " ".join(words[:2])


def plural(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


class ProgressLine:
    """One progress line that is overwritten on a terminal; nothing elsewhere."""

    def __init__(self, stream: TextIO | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._now = now
        self.is_shown = self._stream.isatty()
        self._last = ""
        self._next = 0.0

    def show(self, text: str) -> None:
        if not self.is_shown or self._now() < self._next:
            return
        self._next = self._now() + BETWEEN_LINES
        self._last = text
        self._stream.write(f"\r{cut(text, shutil.get_terminal_size().columns - 1)}\x1b[K")
        self._stream.flush()

    def clear(self) -> None:
        if self._last:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._last = ""
            self._next = 0.0


def bar(done: int, total: int | None) -> str:
    """Return a progress bar; empty if the total is unknown."""
    if not total:
        return ""
    filled = min(BAR, BAR * done // total)
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {done}/{total}"
