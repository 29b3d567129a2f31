"""What the engine has to tell, beyond its ledger. An event is a log record that knows its kind and its OLT."""

import logging
from enum import StrEnum


class Event(StrEnum):
    """Kinds of events, as `coordinator_logs` keeps them."""

    ENGINE_STARTED = "ENGINE_STARTED"
    ENGINE_STOPPED = "ENGINE_STOPPED"
    EXECUTIONS_RECOVERED = "EXECUTIONS_RECOVERED"
    SLOTS_LOST = "SLOTS_LOST"
    NODES_SCHEDULED = "NODES_SCHEDULED"
    NODES_REMOVED = "NODES_REMOVED"
    OLT_UNREACHABLE = "OLT_UNREACHABLE"
    RUN_FAILED = "RUN_FAILED"
    POOL_SATURATED = "POOL_SATURATED"
    POOL_RELIEVED = "POOL_RELIEVED"
    OLT_IDENTIFIED = "OLT_IDENTIFIED"
    ONUS_MOVED = "ONUS_MOVED"
    ONUS_MISSING = "ONUS_MISSING"
    ONUS_BACK = "ONUS_BACK"
    VANISHING_SUSPECTED = "VANISHING_SUSPECTED"
    VANISHING_CONFIRMED = "VANISHING_CONFIRMED"
    VANISHING_OVER = "VANISHING_OVER"


def tell(
    logger: logging.Logger, level: int, event: Event, message: str, *args: object, olt_id: int | None = None
) -> None:
    """Log a sentence that is also an event."""
    logger.log(level, message, *args, extra={"event": event.value, "olt_id": olt_id}, stacklevel=2)
