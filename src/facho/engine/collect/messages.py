"""Error messages of a run. They name the column, the ONU and the reason."""

from collections.abc import Iterable, Sequence

from facho.engine.errors import NoAnswer, SnmpError
from facho.engine.snmp import ErrorStatus

# Maximum number of messages of a run.
MAX_SENTENCES = 20


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


def describe_stop(field: str, reason: str, where: str | None, rows: int) -> str:
    """Return the position at which a column stopped; `where` None: it never started."""
    if where is None:
        return f"{field}: {reason} before the first row"
    kept = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"{field}: {reason} after {where}, {kept} kept"


def describe_gaps(gaps: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return the unreadable rows, given as (field, ONU, reason): all columns of an ONU in one sentence."""
    together: dict[tuple[str, str], list[str]] = {}
    for field, where, reason in gaps:
        together.setdefault((where, reason), []).append(field)
    return [f"{', '.join(fields)} of {where}: {reason}" for (where, reason), fields in together.items()]


def describe_left(field: str, reason: str, where: str) -> str:
    """Return the row after which the rest of a port was given up."""
    return f"{field}: {reason} after {where}, the rest of the port was skipped"


def describe_rest(fields: Sequence[str], reason: str, unread: int, wanted: int) -> str:
    """Return the number of known ONUs that a run did not reach."""
    return f"{', '.join(fields)}: {reason} with {unread:,} of {wanted:,} ONUs not read yet"


def limited(sentences: Sequence[str]) -> list[str]:
    """Return the first messages and the number of the others."""
    more = len(sentences) - MAX_SENTENCES
    if more <= 1:
        return list(sentences)
    return [*sentences[:MAX_SENTENCES], f"and {more:,} more like these"]
