"""Labels of the events and levels of the log. The API and the database keep the keys."""

import logging

from django.utils.translation import gettext_lazy as _

from facho.engine.events import Event

LEVEL_LABELS = {
    logging.getLevelName(level): label
    for level, label in (
        (logging.DEBUG, _("debug")),
        (logging.INFO, _("info")),
        (logging.WARNING, _("warning")),
        (logging.ERROR, _("error")),
        (logging.CRITICAL, _("critical")),
    )
}

EVENT_LABELS = {
    Event.ENGINE_STARTED: _("engine started"),
    Event.ENGINE_STOPPED: _("engine stopped"),
    Event.EXECUTIONS_RECOVERED: _("executions of a crashed engine interrupted"),
    Event.CLOCK_SET_FORWARD: _("clock set forward"),
    Event.CLOCK_SET_BACK: _("clock set back"),
    Event.SCHEDULER_TOOK_OVER: _("scheduler active"),
    Event.SCHEDULER_LOST_TURN: _("scheduler on standby"),
    Event.EXECUTIONS_REAPED: _("executions without an owner interrupted"),
    Event.LEASE_LOST: _("lease lost"),
    Event.WORKER_JOINED: _("worker joined"),
    Event.WORKER_LEFT: _("worker not reporting"),
    Event.WORKER_DRAINED: _("worker draining"),
    Event.WORKER_CUT_OFF: _("worker without database"),
    Event.WORKER_BACK: _("worker with database again"),
    Event.CHORE_FAILED: _("maintenance task failed"),
    Event.EVENTS_DROPPED: _("events dropped"),
    Event.SPOOLING: _("results kept on disk"),
    Event.SPOOL_LANDED: _("results stored from disk"),
    Event.SPOOL_DROPPED: _("results from disk discarded"),
    Event.SPOOL_FULL: _("spool full"),
    Event.SPOOL_REFUSED: _("result rejected"),
    Event.PUSH_INTERRUPTED: _("time series store unavailable"),
    Event.PUSH_REFUSED: _("time series store refuses runs"),
    Event.PUSH_RESUMED: _("time series store available again"),
    Event.PUSH_REJECTED: _("run rejected by the time series store"),
    Event.PUSH_EXPIRED: _("run too old for the time series store"),
    Event.POOL_SATURATED: _("pollers saturated"),
    Event.POOL_RELIEVED: _("pollers no longer saturated"),
    Event.TASK_ADDED: _("job added to an OLT"),
    Event.TASK_REMOVED: _("job removed from an OLT"),
    Event.TASK_INTERVAL_CHANGED: _("interval changed"),
    Event.TASK_CHANGED: _("job changed"),
    Event.OLT_ENABLED: _("OLT enabled"),
    Event.OLT_DISABLED: _("OLT disabled"),
    Event.ADDRESS_CHANGED: _("address changed"),
    Event.CREDENTIALS_CHANGED: _("credentials changed"),
    Event.EXECUTIONS_ABORTED: _("executions interrupted by a change"),
    Event.DEVICE_SHARED: _("device shared by several OLTs"),
    Event.DEVICE_NOT_SHARED: _("device no longer shared"),
    Event.DEVICE_MOVED: _("IP address changed"),
    Event.SLOTS_LOST: _("slots missed"),
    Event.RUN_FAILED: _("run failed"),
    Event.RETRY_PLANNED: _("retry planned"),
    Event.OLT_UNREACHABLE: _("OLT unreachable"),
    Event.BREAKER_OPENED: _("breaker opened"),
    Event.BREAKER_CLOSED: _("breaker closed"),
    Event.BREAKER_WAITS: _("breaker must be closed manually"),
    Event.BREAKER_FORGIVEN: _("breaker closed after a change"),
    Event.BREAKER_CLOSED_BY_HAND: _("breaker closed manually"),
    Event.QUOTA_VIOLATED: _("quota violation"),
    Event.QUOTA_INTERRUPTED: _("quotas interrupted"),
    Event.HOUR_INFEASIBLE: _("hour does not fit"),
    Event.PLAN_ADJUSTED: _("plan adjusted"),
    Event.EMERGENCY_REPLAN: _("new plan after failures"),
    Event.OLT_IDENTIFIED: _("OLT identified"),
    Event.ONUS_MOVED: _("ONUs moved"),
    Event.ONUS_MISSING: _("ONUs missing"),
    Event.ONUS_REPLACED: _("ONUs replaced"),
    Event.ONUS_BACK: _("ONUs back"),
    Event.VANISHING_SUSPECTED: _("mass disappearance suspected"),
    Event.VANISHING_CONFIRMED: _("mass disappearance confirmed"),
    Event.VANISHING_OVER: _("mass disappearance not confirmed"),
    Event.ONUS_OVER_LIMIT: _("too many ONUs"),
    Event.ONUS_WITHIN_LIMIT: _("number of ONUs within the limit"),
    Event.MAINTENANCE_STARTED: _("maintenance started"),
    Event.MAINTENANCE_ENDS_SOON: _("maintenance ends soon"),
    Event.MAINTENANCE_ENDED: _("maintenance ended"),
    Event.ALERT_RAISED: _("alert raised"),
    Event.ALERT_RECOVERED: _("alert resolved"),
    Event.ALERT_CLOSED: _("alert closed, state unknown"),
    Event.RULE_DISABLED: _("rule disabled"),
    Event.DELIVERY_FAILED: _("delivery failed"),
    Event.ROWS_EXPIRED: _("old rows deleted"),
}


def event_label(name: str) -> str:
    """Return the label of an event; an event of another version is its name."""
    return str(EVENT_LABELS[Event[name]]) if name in Event.__members__ else name


def level_label(name: str) -> str:
    """Return the label of a level."""
    return str(LEVEL_LABELS.get(name, name))
