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
    ENGINE_STOPPED = INFO, gettext_noop("the engine is stopping")
    EXECUTIONS_RECOVERED = (
        WARNING,
        ngettext_lazy(
            "%(executions)d execution of an engine that ended abnormally was marked as interrupted",
            "%(executions)d executions of an engine that ended abnormally were marked as interrupted",
        ),
        "executions",
    )
    CLOCK_SET_FORWARD = (
        WARNING,
        gettext_noop("%(process)s: the machine's clock was set forward by %(seconds).1f s; the schedule was adjusted"),
    )
    CLOCK_SET_BACK = (
        WARNING,
        gettext_noop("%(process)s: the machine's clock was set back by %(seconds).1f s; the schedule was adjusted"),
    )
    SCHEDULER_TOOK_OVER = INFO, gettext_noop("%(holder)s is now the active scheduler")
    SCHEDULER_LOST_TURN = (
        WARNING,
        gettext_noop("%(holder)s is no longer the active scheduler; it is on standby"),
    )
    EXECUTIONS_REAPED = (
        WARNING,
        ngettext_lazy(
            "%(executions)d execution had no owner left and was marked as interrupted",
            "%(executions)d executions had no owner left and were marked as interrupted",
        ),
        "executions",
    )
    LEASE_LOST = WARNING, gettext_noop("%(holder)s lost the lease of an OLT and stopped polling it")
    WORKER_JOINED = (
        INFO,
        ngettext_lazy(
            "worker %(worker)s joined with %(pollers)d poller",
            "worker %(worker)s joined with %(pollers)d pollers",
        ),
        "pollers",
    )
    WORKER_LEFT = (
        WARNING,
        gettext_noop("worker %(worker)s has not reported for %(seconds)d s; it gets no more work"),
    )
    WORKER_DRAINED = (
        INFO,
        gettext_noop("worker %(worker)s is draining: it finishes its current runs and accepts no new ones"),
    )
    WORKER_CUT_OFF = (
        WARNING,
        gettext_noop("worker %(worker)s cannot use the database; it gets no work until it can"),
    )
    WORKER_BACK = INFO, gettext_noop("worker %(worker)s can use the database again")
    CHORE_FAILED = ERROR, gettext_noop("maintenance task %(chore)s failed: %(error)s")
    EVENTS_DROPPED = (
        WARNING,
        ngettext_lazy(
            "%(events)d event was dropped while the database was unavailable; it is only in the log file",
            "%(events)d events were dropped while the database was unavailable; they are only in the log file",
        ),
        "events",
    )

    # A database that is unavailable.
    SPOOLING = WARNING, gettext_noop("the database is unavailable, results are kept on disk: %(error)s")
    SPOOL_LANDED = (
        INFO,
        ngettext_lazy(
            "the database is available again, %(entries)d result was stored from disk",
            "the database is available again, %(entries)d results were stored from disk",
        ),
        "entries",
    )
    SPOOL_DROPPED = (
        WARNING,
        ngettext_lazy(
            "%(entries)d result from disk was discarded: its execution had already ended",
            "%(entries)d results from disk were discarded: their executions had already ended",
        ),
        "entries",
    )
    SPOOL_FULL = (
        ERROR,
        gettext_noop("the spool is full at %(size).0f MB, readings are being lost: %(error)s"),
    )
    SPOOL_REFUSED = (
        ERROR,
        gettext_noop("%(entry)s could not be stored and was moved to the rejected results of the spool: %(error)s"),
    )

    # A time series store.
    PUSH_INTERRUPTED = (
        WARNING,
        gettext_noop("the time series store is unavailable, runs are kept for it: %(error)s"),
    )
    PUSH_REFUSED = (
        ERROR,
        gettext_noop("the time series store refuses runs (%(error)s): check FACHO_TSDB_URL and FACHO_TSDB_TOKEN"),
    )
    PUSH_RESUMED = INFO, gettext_noop("the time series store accepts runs again")
    PUSH_REJECTED = (
        ERROR,
        ngettext_lazy(
            "the time series store rejected %(runs)d run, of %(olt)s at %(at)s; it is not sent again: %(error)s",
            "the time series store rejected %(runs)d runs, the last one of %(olt)s at %(at)s; they are not sent again: "
            "%(error)s",
        ),
        "runs",
    )
    PUSH_EXPIRED = (
        ERROR,
        ngettext_lazy(
            "%(runs)d run waited for the time series store longer than %(hours)d h and is not sent",
            "%(runs)d runs waited for the time series store longer than %(hours)d h and are not sent",
        ),
        "runs",
    )

    # The pool.
    POOL_SATURATED = (
        WARNING,
        gettext_noop("the pollers were busy %(busy).0f %% of the last minute: more pollers are needed"),
    )
    POOL_RELIEVED = INFO, gettext_noop("the pollers were busy %(busy).0f %% of the last minute: no longer saturated")

    # What a person changed.
    TASK_ADDED = INFO, gettext_noop("%(olt)s: polling of %(task)s started")
    TASK_REMOVED = INFO, gettext_noop("%(olt)s: polling of %(task)s stopped")
    TASK_INTERVAL_CHANGED = (
        INFO,
        gettext_noop("%(olt)s: the interval of %(task)s changed from %(before).0f s to %(after).0f s"),
    )
    TASK_CHANGED = INFO, gettext_noop("%(olt)s: %(task)s was changed")
    OLT_ENABLED = (
        INFO,
        ngettext_lazy(
            "%(olt)s: polling started, %(nodes)d node runs within two minutes",
            "%(olt)s: polling started, %(nodes)d nodes run within two minutes",
        ),
        "nodes",
    )
    OLT_DISABLED = INFO, gettext_noop("%(olt)s: polling stopped")
    ADDRESS_CHANGED = INFO, gettext_noop("%(olt)s: the address changed from %(before)s to %(after)s")
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
            "%(olt)s and %(others)s are the same device, %(device)s: only one of them is polled at a time. "
            "Delete one of them or correct its address"
        ),
    )
    DEVICE_NOT_SHARED = INFO, gettext_noop("%(device)s belongs to one OLT again")
    DEVICE_MOVED = INFO, gettext_noop("%(olt)s: the address of %(host)s changed from %(before)s to %(after)s")

    # Slots and runs.
    SLOTS_LOST = (
        WARNING,
        ngettext_lazy(
            "%(olt)s: %(task)s missed %(slots)d slot, at %(slot)s (%(cause)s)",
            "%(olt)s: %(task)s missed %(slots)d slots, the first at %(slot)s (%(cause)s)",
        ),
        "slots",
    )
    RUN_FAILED = WARNING, gettext_noop("%(olt)s: %(task)s failed: %(error)s")
    RETRY_PLANNED = INFO, gettext_noop("%(olt)s: %(task)s failed, next attempt at %(at)s: %(error)s")

    # OLTs that do not answer.
    OLT_UNREACHABLE = WARNING, gettext_noop("%(olt)s did not answer %(task)s: %(error)s")
    BREAKER_OPENED = (
        WARNING,
        ngettext_lazy(
            "%(olt)s did not answer %(failures)d attempt: breaker opened, probing once a minute",
            "%(olt)s did not answer %(failures)d attempts in a row: breaker opened, probing once a minute",
        ),
        "failures",
    )
    BREAKER_CLOSED = INFO, gettext_noop("%(olt)s answers again: polling resumed")
    BREAKER_WAITS = INFO, gettext_noop("%(olt)s answers again: close its breaker to resume polling")
    BREAKER_FORGIVEN = (
        INFO,
        gettext_noop("%(olt)s: the breaker was closed because the address or the credentials changed"),
    )
    BREAKER_CLOSED_BY_HAND = INFO, gettext_noop("%(olt)s: %(by)s closed the breaker")

    # Quotas and plans.
    QUOTA_VIOLATED = (
        WARNING,
        ngettext_lazy(
            "%(olt)s: %(task)s completed %(completed)d of %(required)d run in the hour from %(hour)s (%(severity)s)",
            "%(olt)s: %(task)s completed %(completed)d of %(required)d runs in the hour from %(hour)s (%(severity)s)",
        ),
        "required",
    )
    QUOTA_INTERRUPTED = INFO, gettext_noop("%(olt)s: the quotas of this hour were interrupted")
    HOUR_INFEASIBLE = (
        WARNING,
        ngettext_lazy(
            "%(olt)s needs %(needed).0f of 60 minutes: increase the interval of %(task)s to %(minutes)d min",
            "%(olt)s needs %(needed).0f of 60 minutes: increase the interval of %(task)s to %(minutes)d min, "
            "and also %(others)s",
        ),
        "jobs",
    )
    PLAN_ADJUSTED = (
        INFO,
        ngettext_lazy(
            "%(olt)s: new plan for this hour, %(slots)d slot (%(reason)s)",
            "%(olt)s: new plan for this hour, %(slots)d slots (%(reason)s)",
        ),
        "slots",
    )
    EMERGENCY_REPLAN = (
        WARNING,
        gettext_noop("%(olt)s: %(failures)d runs failed in a row; new plan for the rest of the hour"),
    )

    # Identification and presence.
    OLT_IDENTIFIED = INFO, gettext_noop("%(olt)s was identified as %(brand)s; jobs applied: %(tasks)s")
    ONUS_MOVED = (
        INFO,
        ngettext_lazy("%(olt)s: %(count)d ONU moved: %(names)s", "%(olt)s: %(count)d ONUs moved: %(names)s"),
        "count",
    )
    ONUS_MISSING = (
        WARNING,
        ngettext_lazy("%(olt)s: %(count)d ONU is missing: %(names)s", "%(olt)s: %(count)d ONUs are missing: %(names)s"),
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
        gettext_noop(
            "%(olt)s: %(missed)d of %(present)d ONUs disappeared at once; waiting for the next discovery to confirm it"
        ),
    )
    VANISHING_CONFIRMED = (
        WARNING,
        gettext_noop(
            "%(olt)s: a second discovery confirmed that %(missed)d of %(present)d ONUs disappeared; they were "
            "marked as missing"
        ),
    )
    VANISHING_OVER = (
        INFO,
        gettext_noop(
            "%(olt)s: the ONUs that seemed to have disappeared were found again; %(missed)d of %(present)d are "
            "still missing"
        ),
    )

    ONUS_OVER_LIMIT = (
        WARNING,
        gettext_noop(
            "%(olt)s reports more ONUs than the limit: %(left_out)d new ones were left out. Check the OLT, or increase "
            "FACHO_MAX_ONUS"
        ),
    )
    ONUS_WITHIN_LIMIT = INFO, gettext_noop("%(olt)s: the number of ONUs is within the limit again")

    # Maintenance, which users plan.
    MAINTENANCE_STARTED = INFO, gettext_noop("maintenance of %(target)s started; it ends at %(at)s")
    MAINTENANCE_ENDS_SOON = (
        WARNING,
        gettext_noop("maintenance of %(target)s ends at %(at)s: extend it if the work takes longer"),
    )
    MAINTENANCE_ENDED = INFO, gettext_noop("maintenance of %(target)s ended")

    # Alerts and housekeeping.
    ALERT_RAISED = WARNING, gettext_noop("alert %(rule)s: %(subject)s")
    ALERT_RECOVERED = INFO, gettext_noop("alert resolved: %(rule)s: %(subject)s")
    ALERT_CLOSED = INFO, gettext_noop("alert closed, state unknown: %(rule)s: %(subject)s")
    RULE_DISABLED = WARNING, gettext_noop("alert %(rule)s was disabled: all its OLTs were deleted")
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
            "%(rows)d row of %(table)s older than %(days)d d was deleted",
            "%(rows)d rows of %(table)s older than %(days)d d were deleted",
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


def log_event(
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
