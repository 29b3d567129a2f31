"""Parts of the delay between a slot and its start. They add up exactly, in milliseconds."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from facho.engine.model import Cause

# From the claim to the first request: lease, rows, a busy thread.
STARTING = "starting"
# A link starts when the earlier links have ended.
IN_CHAIN = "in_chain"

PART_LABELS: dict[str, Any] = {
    Cause.SCHEDULER_LATE.value: _("the scheduler was late"),
    Cause.BREAKER_OPEN.value: _("the breaker of the OLT was open"),
    Cause.OLT_BUSY.value: _("the OLT was busy"),
    Cause.NO_FREE_POLLER.value: _("no poller was free"),
    Cause.DATABASE_UNAVAILABLE.value: _("the database was unavailable"),
    Cause.BROKER_UNAVAILABLE.value: _("Redis was unavailable"),
    Cause.CLOCK_SET.value: _("the clock was set forward"),
    Cause.MAINTENANCE.value: _("the OLT was in maintenance"),
    STARTING: _("it was being started"),
    IN_CHAIN: _("previous links of the chain were running"),
}


def parts(lateness: float, waits: Mapping[str, float], *, rest: str = STARTING) -> dict[str, float]:
    """Split a delay into seconds by cause; the unexplained part goes to `rest`.

    Counted in whole milliseconds, as stored, so that the sum is exact. Waits that exceed the delay, as after a clock
    step, are cut in order.
    """
    left = milliseconds(lateness)
    if left <= 0:
        return {rest: left / 1000} if left else {}
    shares: dict[str, int] = {}
    for name, seconds in waits.items():
        share = min(max(milliseconds(seconds), 0), left)
        if share:
            shares[name] = share
            left -= share
    if left:
        shares[rest] = left
    known = list(PART_LABELS)
    order = sorted(shares, key=lambda name: known.index(name) if name in known else len(known))
    return {name: shares[name] / 1000 for name in order}


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
