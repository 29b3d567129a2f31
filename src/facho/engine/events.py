"""What the engine has to tell, beyond its ledger: one vocabulary, where each event knows its level and its sentence.

An event is a log record. `coordinator_logs` keeps its name, its level, its English sentence and the details that fill
it, so that a page can say the same in the reader's language. Details never hold a secret.
"""

import logging
import re
from enum import Enum, unique
from logging import ERROR, INFO, WARNING
from typing import Any

# Where a detail goes in a sentence. A percent sign that is meant as one is written twice.
PLACEHOLDER = re.compile(r"%\((\w+)\)")


def gettext_noop(sentence: str) -> str:
    """Mark a sentence for translation; pages translate it, the log file has it as it is."""
    return sentence


@unique
class Event(Enum):
    """Kinds of events. `olt` in a sentence is the name of the OLT, and whoever tells of one gives its id as well."""

    # The engine itself.
    ENGINE_STARTED = INFO, gettext_noop("the engine started with %(pollers)d pollers")
    ENGINE_STOPPED = INFO, gettext_noop("the engine stops")
    EXECUTIONS_RECOVERED = (
        WARNING,
        gettext_noop("%(executions)d executions were left open by an engine that died; they are interrupted now"),
    )
    CHORE_FAILED = ERROR, gettext_noop("the chore %(chore)s failed: %(error)s")
    EVENTS_DROPPED = (
        WARNING,
        gettext_noop("%(events)d events were too many to keep while the database was away; only the log file has them"),
    )

    # The pool.
    POOL_SATURATED = WARNING, gettext_noop("the pollers were busy %(busy).0f %% of the last minute: there are too few")
    POOL_RELIEVED = INFO, gettext_noop("the pollers are busy %(busy).0f %% again: there are enough")

    # What a person changed.
    TASK_ADDED = INFO, gettext_noop("%(olt)s: %(task)s is polled now")
    TASK_REMOVED = INFO, gettext_noop("%(olt)s: %(task)s is not polled any more")
    TASK_INTERVAL_CHANGED = INFO, gettext_noop("%(olt)s: %(task)s runs every %(after).0f s now, not %(before).0f s")
    TASK_CHANGED = INFO, gettext_noop("%(olt)s: %(task)s was changed")
    OLT_ENABLED = INFO, gettext_noop("%(olt)s is polled now: %(nodes)d nodes start within two minutes")
    OLT_DISABLED = INFO, gettext_noop("%(olt)s is not polled any more")
    ADDRESS_CHANGED = INFO, gettext_noop("%(olt)s: the address is %(after)s now, not %(before)s")
    CREDENTIALS_CHANGED = INFO, gettext_noop("%(olt)s: the credentials were changed")
    EXECUTIONS_ABORTED = INFO, gettext_noop("%(executions)d executions were interrupted by the change")

    # Slots and runs.
    SLOTS_LOST = WARNING, gettext_noop("%(olt)s: %(task)s missed %(slots)d slots from %(slot)s on (%(cause)s)")
    RUN_FAILED = WARNING, gettext_noop("%(olt)s: %(task)s failed: %(error)s")
    RETRY_PLANNED = INFO, gettext_noop("%(olt)s: %(task)s failed, and is tried again at %(at)s: %(error)s")

    # OLTs that do not answer.
    OLT_UNREACHABLE = WARNING, gettext_noop("%(olt)s gave no answer to %(task)s: %(error)s")
    BREAKER_OPENED = (
        WARNING,
        gettext_noop("%(olt)s did not answer in %(failures)d executions: it is only probed once a minute now"),
    )
    BREAKER_CLOSED = INFO, gettext_noop("%(olt)s answers again: it is polled as before")
    BREAKER_WAITS = INFO, gettext_noop("%(olt)s answers again, and waits for a person to close its breaker")
    BREAKER_CLOSED_BY_HAND = INFO, gettext_noop("%(olt)s: %(by)s closed the breaker")

    # Quotas and plans.
    QUOTA_VIOLATED = (
        WARNING,
        gettext_noop("%(olt)s: %(task)s got %(completed)d of %(required)d runs from %(hour)s on (%(severity)s)"),
    )
    QUOTA_INTERRUPTED = INFO, gettext_noop("%(olt)s: the quotas of the hour are interrupted")
    HOUR_INFEASIBLE = (
        WARNING,
        gettext_noop("%(olt)s needs %(needed).0f of 60 minutes: lengthen %(task)s to %(minutes)d min"),
    )
    PLAN_ADJUSTED = INFO, gettext_noop("%(olt)s: the plan of the hour was made anew: %(slots)d slots")

    # Who is there.
    OLT_IDENTIFIED = INFO, gettext_noop("%(olt)s is a %(brand)s; applied to it: %(tasks)s")
    ONUS_MOVED = INFO, gettext_noop("%(olt)s: %(count)d ONUs moved: %(names)s")
    ONUS_MISSING = WARNING, gettext_noop("%(olt)s: %(count)d ONUs are missing now: %(names)s")
    ONUS_BACK = INFO, gettext_noop("%(olt)s: %(count)d ONUs are back: %(names)s")
    VANISHING_SUSPECTED = (
        WARNING,
        gettext_noop("%(olt)s: %(missed)d of %(present)d ONUs vanished at once; the next discovery must confirm it"),
    )
    VANISHING_CONFIRMED = (
        WARNING,
        gettext_noop(
            "%(olt)s: %(missed)d of %(present)d ONUs are gone in a second discovery too; they are missing now"
        ),
    )
    VANISHING_OVER = (
        INFO,
        gettext_noop("%(olt)s: the ONUs that seemed to have vanished are there, all but %(missed)d of %(present)d"),
    )

    # Alerts and housekeeping.
    ALERT_RAISED = WARNING, gettext_noop("alert %(rule)s: %(subject)s")
    ALERT_RECOVERED = INFO, gettext_noop("over: alert %(rule)s: %(subject)s")
    DELIVERY_FAILED = WARNING, gettext_noop("%(channel)s could not be reached after %(attempts)d attempts: %(error)s")
    ROWS_EXPIRED = INFO, gettext_noop("%(rows)d rows of %(table)s were older than %(days)d days and are gone")

    def __init__(self, level: int, sentence: str) -> None:
        self.level = level
        self.sentence = sentence

    @property
    def names(self) -> frozenset[str]:
        """Return the details without which its sentence cannot be said."""
        return frozenset(PLACEHOLDER.findall(self.sentence))


def tell(
    logger: logging.Logger,
    event: Event,
    *,
    olt_id: int | None = None,
    exc_info: Any = None,
    **details: object,
) -> None:
    """Log a sentence that is also an event. The traceback of an error is for the log file, not for the event."""
    extra = {"event": event, "olt_id": olt_id, "details": details}
    arguments = [details] if details else []
    logger.log(event.level, event.sentence, *arguments, exc_info=exc_info, extra=extra, stacklevel=2)
