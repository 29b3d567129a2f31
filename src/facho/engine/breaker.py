"""An OLT that never answers costs nothing: after some silent executions its breaker opens, and it is only probed.

The breaker is the system's own flag, never the admin's. Only silence counts against an OLT: an answer with an error
is an answer.
"""

from datetime import datetime, timedelta
from enum import Enum, auto

from facho.engine.model import Cause, Outcome, Status
from facho.engine.schedule import GOLDEN_RATIO

# Silent executions in a row that open a breaker, unless an admin says otherwise.
OPENS_AFTER = 3

# While it is open, one request in this time.
PROBE_EVERY = timedelta(minutes=1)

# Errors that an OLT, and not its silence, brought about.
ANSWERED_ERRORS = frozenset({"BadAnswer", "Refused"})


class Heard(Enum):
    """What an outcome tells about an OLT."""

    SILENCE = auto()
    ANSWER = auto()
    NOTHING = auto()


def heard(outcome: Outcome) -> Heard:
    """Return whether an execution heard from its OLT; one that was stopped, or that failed by itself, tells nothing."""
    if outcome.status is Status.FAILED and outcome.cause is Cause.UNREACHABLE:
        return Heard.SILENCE
    if outcome.traffic.rtt_p50 is not None or outcome.error_class in ANSWERED_ERRORS:
        return Heard.ANSWER
    return Heard.NOTHING


def first_probe(olt_id: int, opened_at: datetime) -> datetime:
    """Return when an OLT is probed first, so that a hundred that went dark together are not probed together."""
    return opened_at + PROBE_EVERY * (0.5 + olt_id * GOLDEN_RATIO % 1 / 2)
