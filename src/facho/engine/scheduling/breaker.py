"""Circuit breaker of an OLT: it opens after consecutive attempts without an answer, then the OLT is only probed.

The breaker is set by the system, never by the admin. It counts attempts, not executions: three attempts of one
execution open it, and so do three runs of a job whose retries do not fit into its slot. An SNMP error is an answer,
and any answer resets the count.
"""

from datetime import datetime, timedelta
from enum import Enum, auto

from facho.engine.model import Cause, Outcome, Status
from facho.engine.scheduling.grid import GOLDEN_RATIO

# Attempts of one execution. FACHO_BREAKER_AFTER overrides it.
OPENS_AFTER = 3

# Interval between probes while the breaker is open.
PROBE_EVERY = timedelta(minutes=1)

# Errors reported by the OLT itself, so it did answer.
ANSWERED_ERRORS = frozenset({"BadAnswer", "Refused"})


class Heard(Enum):
    """Result of an attempt with respect to reachability."""

    SILENCE = auto()
    ANSWER = auto()
    NOTHING = auto()


def heard(outcome: Outcome) -> Heard:
    """Return whether an attempt got an answer. A stopped attempt or a local failure proves nothing."""
    if outcome.status is Status.FAILED and outcome.cause is Cause.UNREACHABLE:
        return Heard.SILENCE
    if outcome.traffic.rtt_p50 is not None or outcome.error_class in ANSWERED_ERRORS:
        return Heard.ANSWER
    return Heard.NOTHING


def first_probe(olt_id: int, opened_at: datetime) -> datetime:
    """Return the time of the first probe, spread so that OLTs that fail together are not probed together."""
    return opened_at + PROBE_EVERY * (0.5 + olt_id * GOLDEN_RATIO % 1 / 2)
