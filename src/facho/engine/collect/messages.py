"""Error messages of a run. They name the column, the ONU and the reason."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from facho.engine.errors import NoAnswer, SnmpError
from facho.engine.snmp import ErrorStatus

# Maximum number of messages of a run.
MAX_SENTENCES = 20

# Maximum number of columns or ONUs that a message names. Of more, it tells the number; the coverage has the names.
MAX_NAMES = 3


def describe_failure(error: SnmpError) -> str:
    """Return the reason for which a request was given up."""
    return "no answer" if isinstance(error, NoAnswer) else "no usable answer"


def describe_status(status: int) -> str:
    """Return the error status of an answer, by its name in the standards."""
    try:
        first, *rest = ErrorStatus(status).name.lower().split("_")
    except ValueError:
        return f"the agent answered error {status}"
    return "the agent answered " + first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True, slots=True)
class Stop:
    """A column that was not read to its end. `where` is the last row; None: it never started."""

    field: str
    reason: str
    where: str | None = None
    rows: int = 0


def describe_stops(stops: Iterable[Stop], cut: str = "") -> list[str]:
    """Return where columns stopped; those that stopped together in one sentence.

    `cut` is the reason for which the whole run ended: it stopped every column that was not complete, wherever it was.
    """
    together: dict[tuple[str, str | None], list[Stop]] = {}
    for stop in stops:
        together.setdefault((stop.reason, None if stop.reason == cut else stop.where), []).append(stop)
    return [_describe_stop(reason, alike) for (reason, _where), alike in together.items()]


def _describe_stop(reason: str, stops: Sequence[Stop]) -> str:
    fields = _named(dict.fromkeys(stop.field for stop in stops))
    last = next((stop for stop in reversed(stops) if stop.where is not None), None)
    if last is None:
        return f"{fields}: {reason} before the first row"
    if len(stops) > 1:
        return f"{fields}: {reason} after {last.where}"
    kept = "1 row" if last.rows == 1 else f"{last.rows:,} rows"
    return f"{fields}: {reason} after {last.where}, {kept} kept"


# A column, a row and the reason why the row could not be read.
Gap = tuple[str, str, str]


def describe_gaps(gaps: Iterable[Gap]) -> list[str]:
    """Return the unreadable rows: all columns of an ONU, and all ONUs with the same columns, in one sentence."""
    alike: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for (where, reason), columns in _by_row(gaps).items():
        alike.setdefault((tuple(columns), reason), []).append(where)
    said = []
    for (fields, reason), rows in alike.items():
        onus = ", ".join(rows) if len(rows) <= MAX_NAMES else f"{len(rows):,} ONUs, the first {rows[0]}"
        said.append(f"{_named(fields)} of {onus}: {reason}")
    return said


def describe_left(gaps: Iterable[Gap]) -> list[str]:
    """Return the rows after which the rest of their port was given up."""
    return [
        f"{_named(fields)}: {reason} after {where}, the rest of the port was skipped"
        for (where, reason), fields in _by_row(gaps).items()
    ]


def _by_row(gaps: Iterable[Gap]) -> dict[tuple[str, str], list[str]]:
    together: dict[tuple[str, str], list[str]] = {}
    for field, where, reason in gaps:
        together.setdefault((where, reason), []).append(field)
    return together


def _named(columns: Collection[str]) -> str:
    """Return the names of a few columns, or the number of many."""
    return ", ".join(columns) if len(columns) <= MAX_NAMES else f"{len(columns)} columns"


def describe_rest(fields: Sequence[str], reason: str, unread: int, wanted: int) -> str:
    """Return the number of known ONUs that a run did not reach."""
    return f"{', '.join(fields)}: {reason} with {unread:,} of {wanted:,} ONUs not read yet"


def limited(sentences: Sequence[str]) -> list[str]:
    """Return the first messages and the number of the others."""
    more = len(sentences) - MAX_SENTENCES
    if more <= 1:
        return list(sentences)
    return [*sentences[:MAX_SENTENCES], f"and {more:,} more like these"]
