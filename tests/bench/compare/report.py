"""The figures as text: tables for the terminal, and the page of the documentation in two languages."""

from collections.abc import Sequence
from dataclasses import dataclass

from cases import Row
from collectors import WALK
from stored import Stored

US = 1e6

# The largest CPU per value, as a share of that of snmpbulkwalk in the same run.
LIMITS = {"collect": 0.3, "stored-sqlite": 0.5, "stored-postgres": 0.7, "scale-out": 0.8}
# The longest wall time in seconds. The third run counts: it knows what the first two learned.
WALLS = {
    ("latency", "facho, third run"): 0.35,
    ("latency", "facho, 16 in flight, third run"): 0.16,
    ("serial", "facho, third run"): 2.2,
}
HISTORY_LIMIT = 6.0


@dataclass(frozen=True)
class Verdict:
    """A target and what was measured; `figure` None: there is nothing to compare with."""

    subject: str
    figure: float | None
    limit: float
    unit: str = ""

    @property
    def is_met(self) -> bool | None:
        return None if self.figure is None else self.figure <= self.limit

    def as_json(self) -> dict[str, object]:
        return {"subject": self.subject, "figure": self.figure, "limit": self.limit, "is_met": self.is_met}


def verdicts(rows: Sequence[Row], stored: Sequence[Stored]) -> list[Verdict]:
    found = []
    for row in rows:
        if row.case == "collect" and row.collector.startswith("facho"):
            walk = beside(rows, row)
            share = row.cpu_per_value / walk.cpu_per_value if walk else None
            found.append(Verdict("collect", share, LIMITS["collect"]))
    found += [Verdict(each.mode, each.ratio, LIMITS[each.mode]) for each in stored]
    for row in rows:
        if (row.case, row.collector) in WALLS:
            found.append(Verdict(f"{row.case}: {row.collector}", row.wall, WALLS[row.case, row.collector], "s"))
    found += [Verdict(f"{each.mode}: history", each.history_per_reading, HISTORY_LIMIT, "bytes") for each in stored]
    return found


def beside(rows: Sequence[Row], row: Row) -> Row | None:
    """Return what snmpbulkwalk needed in the same case."""
    return next((other for other in rows if other.case == row.case and other.collector == WALK), None)


Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def collection_table(rows: Sequence[Row]) -> Table:
    head = ("case", "collector", "wall", "x walk", "CPU/value", "/ walk", "requests", "runs")
    cells = []
    for row in rows:
        walk = beside(rows, row)
        cells.append(
            (
                row.case,
                row.collector,
                f"{row.wall:.3f} s",
                f"{walk.wall / row.wall:.2f}" if walk else "",
                f"{row.cpu_per_value * US:.2f} us",
                f"{row.cpu_per_value / walk.cpu_per_value:.2f}" if walk else "",
                "" if row.requests is None else f"{row.requests:,}",
                str(row.repetitions),
            )
        )
    return head, cells


def stored_table(stored: Sequence[Stored]) -> Table:
    head = (
        "mode",
        "CPU/value",
        "Facho",
        "servers",
        WALK,
        "/ walk",
        "values/s",
        "most values/s",
        "late, 99 %",
        "memory",
    )
    cells = [
        (
            each.mode,
            f"{each.total_cpu_per_value * US:.2f} us",
            f"{each.cpu_per_value * US:.2f} us",
            f"{each.server_cpu_per_value * US:.2f} us",
            f"{each.walk_cpu_per_value * US:.2f} us" if each.walk_cpu_per_value else "",
            f"{each.ratio:.2f}" if each.ratio else "",
            f"{each.values_per_second:,.0f}",
            f"{each.most_values_per_second:,.0f}",
            "" if each.late_p99 is None else f"{each.late_p99:.2f} s",
            f"{each.megabytes:.0f} MB",
        )
        for each in stored
    ]
    return head, cells


def load_table(stored: Sequence[Stored]) -> Table:
    head = ("mode", "OLTs", "ONUs each", "interval", "load", "load at most values/s", "other programs", "failed runs")
    cells = [
        (
            each.mode,
            str(each.olts),
            f"{each.onus:,}",
            f"{each.interval:.1f} s",
            f"{each.load:.0%}",
            f"{each.full_speed_load:.0%}",
            f"{each.other_load:.0%}",
            str(sum(each.troubles.values())),
        )
        for each in stored
    ]
    return head, cells


def size_table(stored: Sequence[Stored]) -> Table:
    head = ("mode", "history: bytes/reading", "history: bytes/value", "all tables: bytes/value")
    cells = [
        (
            each.mode,
            f"{each.history_per_reading:.1f}",
            f"{each.history_per_value:.2f}",
            f"{each.database_per_value:.2f}",
        )
        for each in stored
    ]
    return head, cells


WORDS = {True: "met", False: "NOT met", None: "not measured"}


def target_table(found: Sequence[Verdict], words: dict[bool | None, str] = WORDS) -> Table:
    head = ("target", "measured", "limit", "")
    cells = [
        (
            each.subject,
            "" if each.figure is None else f"{each.figure:.2f} {each.unit}".strip(),
            f"{each.limit:g} {each.unit}".strip(),
            words[each.is_met],
        )
        for each in found
    ]
    return head, cells


def plain(table: Table) -> str:
    """Return a table for the terminal."""
    head, cells = table
    lines = [head, *cells]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    texts = (
        "  ".join(
            cell.ljust(width) if place < 1 or not _is_number(cell) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    return "\n".join(text.rstrip() for text in texts)


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() or cell[:1] == "-"


def markdown(table: Table) -> str:
    head, cells = table
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *cells))
