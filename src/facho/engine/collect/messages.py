"""How a run says what went wrong. An operator reads these; they name the column, the ONU and the reason."""

from collections.abc import Iterable, Sequence

from facho.engine.errors import NoAnswer, SnmpError
from facho.engine.snmp import ErrorStatus

# A run that failed in a thousand places says so in this many sentences.
MAX_SENTENCES = 20


def describe_failure(error: SnmpError) -> str:
    """Return why a request was given up."""
    return "no answer" if isinstance(error, NoAnswer) else "no usable answer"


def describe_status(status: int) -> str:
    """Return what an agent answered instead of values, by the name that manuals use."""
    try:
        first, *rest = ErrorStatus(status).name.lower().split("_")
    except ValueError:
        return f"the agent answered error {status}"
    return "the agent answered " + first + "".join(word.capitalize() for word in rest)


def describe_stop(field: str, reason: str, where: str | None, rows: int) -> str:
    """Return where a column stopped; `where` None says that it never began."""
    if where is None:
        return f"{field}: {reason} before the first row"
    kept = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"{field}: {reason} after {where}, {kept} kept"


def describe_gaps(gaps: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return which rows could not be read, of (field, ONU, reason): all columns of an ONU in one sentence."""
    together: dict[tuple[str, str], list[str]] = {}
    for field, where, reason in gaps:
        together.setdefault((where, reason), []).append(field)
    return [f"{', '.join(fields)} of {where}: {reason}" for (where, reason), fields in together.items()]


def describe_left(field: str, reason: str, where: str) -> str:
    """Return behind which row the rest of a port was given up."""
    return f"{field}: {reason} after {where}, the rest of its port was left out"


def describe_rest(fields: Sequence[str], reason: str, unread: int, wanted: int) -> str:
    """Return how many of the known ONUs a run did not come to."""
    return f"{', '.join(fields)}: {reason} with {unread:,} of {wanted:,} ONUs still to ask"


def limited(sentences: Sequence[str]) -> list[str]:
    """Return as many as anybody reads, and how many more there are."""
    more = len(sentences) - MAX_SENTENCES
    if more <= 1:
        return list(sentences)
    return [*sentences[:MAX_SENTENCES], f"and {more:,} more like these"]
