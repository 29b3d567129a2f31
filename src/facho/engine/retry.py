"""Whether a run that failed is tried again, and when. A retry never outlives its slot."""

from datetime import datetime

from facho.engine.model import Node, Outcome, Status


def retry_at(node: Node, outcome: Outcome, attempts: int, slot_end: datetime | None, now: datetime) -> datetime | None:
    """Return when a node is tried again after so many attempts, or None if that was the last.

    What a person asked for has no slot, and is not repeated behind their back.
    What was read in part is kept, and not asked for again before its next slot.
    """
    if slot_end is None or outcome.status is not Status.FAILED or not outcome.is_temporary:
        return None
    again = now + node.retry_delay
    return again if attempts <= node.retries and again < slot_end else None
