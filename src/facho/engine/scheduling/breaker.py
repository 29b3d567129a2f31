"""The circuit breaker of an OLT: after some silent attempts in a row it opens, and the OLT is only probed.

The breaker is the system's own flag, never the admin's. Attempts are counted, not executions: the three attempts of
one execution open it, and so do three runs of a job whose retries do not fit into its slot. Only silence counts: an
answer with an error is an answer, and any answer resets the count.
"""

from datetime import datetime, timedelta
from enum import Enum, auto

from facho.engine.model import Cause, Outcome, Status
from facho.engine.scheduling.due import GOLDEN_RATIO

# Silent attempts in a row that open a breaker, unless FACHO_BREAKER_AFTER says otherwise: those of one execution.
OPENS_AFTER = 3

# While it is open, one request in this time.
PROBE_EVERY = timedelta(minutes=1)

# Errors that an OLT, and not its silence, brought about.
ANSWERED_ERRORS = frozenset({"BadAnswer", "Refused"})


class Heard(Enum):
    """What an attempt shows about an OLT."""

    SILENCE = auto()
    ANSWER = auto()
    NOTHING = auto()


def heard(outcome: Outcome) -> Heard:
    """Return whether an attempt got an answer. One that was stopped, or failed on our side, shows nothing."""
    if outcome.status is Status.FAILED and outcome.cause is Cause.UNREACHABLE:
        return Heard.SILENCE
    if outcome.traffic.rtt_p50 is not None or outcome.error_class in ANSWERED_ERRORS:
        return Heard.ANSWER
    return Heard.NOTHING


def first_probe(olt_id: int, opened_at: datetime) -> datetime:
    """Return when an OLT is probed first, so that a hundred that went dark together are not probed together."""
    return opened_at + PROBE_EVERY * (0.5 + olt_id * GOLDEN_RATIO % 1 / 2)
