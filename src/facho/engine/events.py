"""Events of the engine, each with its level and message.

An event is a log record. `coordinator_logs` keeps its name, level, English message and details, so that a page can
show it in the user's language. Details never hold a secret.
"""

import logging
import re
from collections.abc import Mapping
from enum import Enum, unique
from logging import ERROR, INFO, WARNING
from typing import Any

# Placeholder of a detail in a message. A literal percent sign is doubled.
PLACEHOLDER = re.compile(r"%\((\w+)\)")


def gettext_noop(sentence: str) -> str:
    """Mark a message for translation. Pages translate it; the log file is in English."""
    return sentence


def ngettext_lazy(one: str, many: str) -> tuple[str, str]:
    """Mark a message with singular and plural for translation by the pages."""
    return one, many


@unique
class Event(Enum):
    """Kinds of events. `olt` in a message is the name of the OLT; the caller also passes its id.

    A message with a count has two forms, and names the detail that decides.
    """

    # The engine itself.
    ENGINE_STARTED = (
        INFO,
        ngettext_lazy("the engine started with %(pollers)d poller", "the engine started with %(pollers)d pollers"),
        "pollers",
    )
    ENGINE_STOPPED = INFO, gettext_noop("the engine stops")
    EXECUTIONS_RECOVERED = (
        WARNING,
        ngettext_lazy(
            "%(executions)d execution was left open by an engine that died; it is interrupted now",
            "%(executions)d executions were left open by an engine that died; they are interrupted now",
        ),
        "executions",
    )
    CLOCK_SET_FORWARD = (
        WARNING,
        gettext_noop("%(process)s: the machine's clock was set forward by %(seconds).1f s; the schedule follows it"),
    )
    CLOCK_SET_BACK = (
        WARNING,
        gettext_noop("%(process)s: the machine's clock was set back by %(seconds).1f s; the schedule follows it"),
    )
    SCHEDULER_TOOK_OVER = INFO, gettext_noop("%(holder)s is the scheduler now")
    SCHEDULER_LOST_TURN = (
        WARNING,
        gettext_noop("%(holder)s is no longer the scheduler; it stands by until the turn is free"),
    )
    EXECUTIONS_REAPED = (
        WARNING,
        ngettext_lazy(
            "%(executions)d execution was held by nobody any more; it is interrupted now",
            "%(executions)d executions were held by nobody any more; they are interrupted now",
        ),
        "executions",
    )
    LEASE_LOST = WARNING, gettext_noop("%(holder)s lost the lease of an OLT, and stops asking it")
    WORKER_JOINED = (
        INFO,
        ngettext_lazy(
            "the worker %(worker)s has come, with %(pollers)d poller",
            "the worker %(worker)s has come, with %(pollers)d pollers",
        ),
        "pollers",
    )
    WORKER_LEFT = (
        WARNING,
        gettext_noop("nothing was heard of the worker %(worker)s for %(seconds)d s; it is not counted on"),
    )
    WORKER_DRAINED = INFO, gettext_noop("the worker %(worker)s finishes what it has, and takes nothing new")
    WORKER_CUT_OFF = (
        WARNING,
        gettext_noop("the worker %(worker)s cannot work with the database; it is given nothing until it can"),
    )
    WORKER_BACK = INFO, gettext_noop("the worker %(worker)s can work with the database again")
    CHORE_FAILED = ERROR, gettext_noop("the chore %(chore)s failed: %(error)s")
    EVENTS_DROPPED = (
        WARNING,
        ngettext_lazy(
            "%(events)d event was too much to keep while the database was away; only the log file has it",
            "%(events)d events were too many to keep while the database was away; only the log file has them",
        ),
        "events",
    )

    # A database that is unavailable.
    SPOOLING = WARNING, gettext_noop("the database is unavailable, results wait on disk: %(error)s")
    SPOOL_LANDED = (
        INFO,
        ngettext_lazy(
            "the database is available again, %(entries)d result from disk is stored",
            "the database is available again, %(entries)d results from disk are stored",
        ),
        "entries",
    )
    SPOOL_DROPPED = (
        WARNING,
        ngettext_lazy(
            "%(entries)d result from disk came too late: its execution had ended",
            "%(entries)d results from disk came too late: their executions had ended",
        ),
        "entries",
    )
    SPOOL_FULL = (
        ERROR,
        gettext_noop("the spool is full at %(size).0f MB, readings are being lost: %(error)s"),
    )
    SPOOL_REFUSED = ERROR, gettext_noop("%(entry)s could not be stored and was set aside in the spool: %(error)s")

    # The pool.
    POOL_SATURATED = WARNING, gettext_noop("the pollers were busy %(busy).0f %% of the last minute: there are too few")
    POOL_RELIEVED = INFO, gettext_noop("the pollers are busy %(busy).0f %% again: there are enough")

    # What a person changed.
    TASK_ADDED = INFO, gettext_noop("%(olt)s: %(task)s is polled now")
    TASK_REMOVED = INFO, gettext_noop("%(olt)s: %(task)s is not polled any more")
    TASK_INTERVAL_CHANGED = INFO, gettext_noop("%(olt)s: %(task)s runs every %(after).0f s now, not %(before).0f s")
    TASK_CHANGED = INFO, gettext_noop("%(olt)s: %(task)s was changed")
    OLT_ENABLED = (
        INFO,
        ngettext_lazy(
            "%(olt)s is polled now: %(nodes)d node starts within two minutes",
            "%(olt)s is polled now: %(nodes)d nodes start within two minutes",
        ),
        "nodes",
    )
    OLT_DISABLED = INFO, gettext_noop("%(olt)s is not polled any more")
    ADDRESS_CHANGED = INFO, gettext_noop("%(olt)s: the address is %(after)s now, not %(before)s")
    CREDENTIALS_CHANGED = INFO, gettext_noop("%(olt)s: the credentials were changed")
    EXECUTIONS_ABORTED = (
        INFO,
        ngettext_lazy(
            "%(executions)d execution was interrupted by the change",
            "%(executions)d executions were interrupted by the change",
        ),
        "executions",
    )

    # OLTs that are one device.
    DEVICE_SHARED = (
        WARNING,
        gettext_noop(
            "%(olt)s and %(others)s are the same device, %(device)s: they are polled in turns. "
            "Delete one of them, or correct its address"
        ),
    )
    DEVICE_NOT_SHARED = INFO, gettext_noop("%(device)s is the device of one OLT again")
    DEVICE_MOVED = INFO, gettext_noop("%(olt)s: %(host)s has the address %(after)s now, not %(before)s")

    # Slots and runs.
    SLOTS_LOST = (
        WARNING,
        ngettext_lazy(
            "%(olt)s: %(task)s missed %(slots)d slot, that of %(slot)s (%(cause)s)",
            "%(olt)s: %(task)s missed %(slots)d slots from %(slot)s on (%(cause)s)",
        ),
        "slots",
    )
    RUN_FAILED = WARNING, gettext_noop("%(olt)s: %(task)s failed: %(error)s")
    RETRY_PLANNED = INFO, gettext_noop("%(olt)s: %(task)s failed, and is tried again at %(at)s: %(error)s")

    # OLTs that do not answer.
    OLT_UNREACHABLE = WARNING, gettext_noop("%(olt)s gave no answer to %(task)s: %(error)s")
    BREAKER_OPENED = (
        WARNING,
        ngettext_lazy(
            "%(olt)s did not answer %(failures)d attempt: it is only probed, once a minute, until it answers",
            "%(olt)s did not answer %(failures)d attempts in a row: it is only probed, once a minute, until it answers",
        ),
        "failures",
    )
    BREAKER_CLOSED = INFO, gettext_noop("%(olt)s answers again: it is polled as before")
    BREAKER_WAITS = INFO, gettext_noop("%(olt)s answers again, and waits for a person to close its breaker")
    BREAKER_FORGIVEN = (
        INFO,
        gettext_noop("%(olt)s: the breaker is closed, for it has another address or other credentials now"),
    )
    BREAKER_CLOSED_BY_HAND = INFO, gettext_noop("%(olt)s: %(by)s closed the breaker")

    # Quotas and plans.
    QUOTA_VIOLATED = (
        WARNING,
        ngettext_lazy(
            "%(olt)s: %(task)s got %(completed)d of %(required)d run from %(hour)s on (%(severity)s)",
            "%(olt)s: %(task)s got %(completed)d of %(required)d runs from %(hour)s on (%(severity)s)",
        ),
        "required",
    )
    QUOTA_INTERRUPTED = INFO, gettext_noop("%(olt)s: the quotas of the hour are interrupted")
    HOUR_INFEASIBLE = (
        WARNING,
        ngettext_lazy(
            "%(olt)s needs %(needed).0f of 60 minutes: lengthen %(task)s to %(minutes)d min",
            "%(olt)s needs %(needed).0f of 60 minutes: lengthen %(task)s to %(minutes)d min, and with it %(others)s",
        ),
        "jobs",
    )
    PLAN_ADJUSTED = (
        INFO,
        ngettext_lazy(
            "%(olt)s: the hour was planned again, %(slots)d slot (%(reason)s)",
            "%(olt)s: the hour was planned again, %(slots)d slots (%(reason)s)",
        ),
        "slots",
    )
    EMERGENCY_REPLAN = (
        WARNING,
        gettext_noop("%(olt)s: %(failures)d runs failed in a row; the rest of the hour was planned again"),
    )

    # Identification and presence.
    OLT_IDENTIFIED = INFO, gettext_noop("%(olt)s is a %(brand)s; applied to it: %(tasks)s")
    ONUS_MOVED = (
        INFO,
        ngettext_lazy("%(olt)s: %(count)d ONU moved: %(names)s", "%(olt)s: %(count)d ONUs moved: %(names)s"),
        "count",
    )
    ONUS_MISSING = (
        WARNING,
        ngettext_lazy(
            "%(olt)s: %(count)d ONU is missing now: %(names)s", "%(olt)s: %(count)d ONUs are missing now: %(names)s"
        ),
        "count",
    )
    ONUS_REPLACED = (
        INFO,
        ngettext_lazy(
            "%(olt)s: %(count)d ONU was replaced: %(names)s", "%(olt)s: %(count)d ONUs were replaced: %(names)s"
        ),
        "count",
    )
    ONUS_BACK = (
        INFO,
        ngettext_lazy("%(olt)s: %(count)d ONU is back: %(names)s", "%(olt)s: %(count)d ONUs are back: %(names)s"),
        "count",
    )
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
    RULE_DISABLED = WARNING, gettext_noop("alert %(rule)s is disabled: all the OLTs that it was about are gone")
    DELIVERY_FAILED = (
        WARNING,
        ngettext_lazy(
            "%(channel)s could not be reached after %(attempts)d attempt: %(error)s",
            "%(channel)s could not be reached after %(attempts)d attempts: %(error)s",
        ),
        "attempts",
    )
    ROWS_EXPIRED = (
        INFO,
        ngettext_lazy(
            "%(rows)d row of %(table)s was older than %(days)d d and is gone",
            "%(rows)d rows of %(table)s were older than %(days)d d and are gone",
        ),
        "rows",
    )

    def __init__(self, level: int, sentence: str | tuple[str, str], counts: str = "") -> None:
        self.level = level
        self.singular, self.sentence = (sentence, sentence) if isinstance(sentence, str) else sentence
        self.counts = counts

    @property
    def names(self) -> frozenset[str]:
        """Return the details that the message needs."""
        return frozenset(PLACEHOLDER.findall(self.sentence))

    def form(self, details: Mapping[str, object]) -> str:
        """Return the message for this count; singular if older details have no count."""
        return self.singular if details.get(self.counts, 1) == 1 else self.sentence


def tell(
    logger: logging.Logger,
    event: Event,
    *,
    olt_id: int | None = None,
    exc_info: Any = None,
    level: Any = None,
    **details: object,
) -> None:
    """Log an event, by default at the level of its kind. A traceback goes to the log file only."""
    extra = {"event": event, "olt_id": olt_id, "details": details}
    arguments = [details] if details else []
    level = event.level if level is None else level
    logger.log(level, event.form(details), *arguments, exc_info=exc_info, extra=extra, stacklevel=2)
