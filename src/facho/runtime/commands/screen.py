"""Terminal output of the commands: tables, durations, progress, and exit statuses."""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TextIO

from facho.engine.escapes import escape, escape_lines

if TYPE_CHECKING:
    from rich.progress import Progress

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


# Minimum width of a table column.
NARROWEST = 8
GAP = "  "
# Seconds between updates of a progress bar.
BETWEEN_UPDATES = 0.1
SPANS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def out(text: str = "") -> None:
    """Write lines of the result, with escapes for control characters: a device may send any text."""
    sys.stdout.write(escape_lines(text) + "\n")


def note(text: str) -> None:
    """Write a line that is not the result: a remark or an error."""
    sys.stderr.write(escape(text) + "\n")


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None) -> list[str]:
    """Return aligned lines; the widest columns are cut so that a line fits. Numbers are right-aligned.

    Only the widths of characters come from rich: its tables take half a second for 1,000 ONUs, 40 times as long.
    """
    # Imported late: most commands print no table.
    from rich.cells import cell_len, set_cell_size

    cells = [[printable(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(titles, *cells, strict=True)]
    if width is None:
        # Output to a file or a pipe is not cut.
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    room = width - len(GAP) * (len(titles) - 1)
    while sum(widths) > room and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    is_right = [any(isinstance(row[place], int | float) for row in rows) for place in range(len(titles))]

    def fitted(cell: str, place: int) -> str:
        space = widths[place] - cell_len(cell)
        if space < 0:
            return set_cell_size(cell, widths[place] - 1) + "…"
        return " " * space + cell if is_right[place] else cell + " " * space

    return [GAP.join(fitted(cell, place) for place, cell in enumerate(line)).rstrip() for line in (titles, *cells)]


def printable(value: object) -> str:
    """Return a value for the terminal, with escapes for line ends and other control characters."""
    return "-" if value is None else escape(str(value))


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


class ProgressBar:
    """A line with a bar on a terminal, which is removed at the end; nothing elsewhere.

    The cursor is hidden while the line is shown, so `clear` must be called in every case, or `with` used.
    """

    def __init__(self, stream: TextIO | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._now = now
        self.is_shown = self._stream.isatty()
        self._bar: Progress | None = None
        self._next = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, text: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
        """Show a text and, if the total is known, how many units are done."""
        if not self.is_shown or (self._bar is not None and self._now() < self._next):
            return
        if self._bar is None:
            self._bar = self._start()
        self._next = self._now() + BETWEEN_UPDATES
        description = printable(f"{text}, {done:,} of {total:,} {unit}" if total else text)
        (task,) = self._bar.task_ids
        self._bar.update(task, description=description, completed=done, total=total or None, visible=True, refresh=True)

    def _start(self) -> "Progress":
        # Imported late: only terminals need it.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(24), TimeRemainingColumn(compact=True), TextColumn("{task.description}", markup=False))
        console = Console(file=self._stream)
        bar = Progress(*columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False)
        bar.add_task("", visible=False)
        bar.start()
        return bar

    def clear(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
