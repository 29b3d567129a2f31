"""Breakers as stored in the rows of OLTs. The rules are in `engine/scheduling/breaker.py`."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from facho.apps.changes.actor import engine
from facho.apps.changes.models import Change
from facho.apps.changes.record import write
from facho.apps.inventory.models import Olt
from facho.engine.events import Event, log_event
from facho.engine.model import Outcome
from facho.engine.scheduling.breaker import OPENS_AFTER, Heard, heard

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Number of failures that open a breaker, and whether it closes automatically."""

    opens_after: int = OPENS_AFTER
    auto_recover: bool = True


USUAL_POLICY = BreakerPolicy()


@dataclass(frozen=True, slots=True)
class Breaker:
    """Stored state of an OLT's breaker."""

    olt_id: int
    olt: str
    failures: int
    opened_at: datetime | None
    answered_at: datetime | None


# Columns of a `Breaker` in the table of OLTs.
COLUMNS = ("pk", "name", "failures", "breaker_opened_at", "breaker_answered_at")


ACTIONS = {
    Event.BREAKER_OPENED: Change.Action.BREAKER_OPENED,
    Event.BREAKER_CLOSED: Change.Action.BREAKER_CLOSED,
    Event.BREAKER_FORGIVEN: Change.Action.BREAKER_CLOSED,
}


@dataclass(frozen=True, slots=True)
class BreakerTurn:
    """Change of a breaker: columns to write, and an event to log after the commit."""

    breaker: Breaker
    columns: dict[str, Any]
    event: Event | None = None

    def record(self) -> None:
        """Add an opened or closed breaker to the record of changes, because people close breakers too."""
        if self.event in ACTIONS:
            write(engine(), ACTIONS[self.event], [(Olt(pk=self.breaker.olt_id, name=self.breaker.olt), {})])

    def log(self) -> None:
        if self.event is not None:
            more = {"failures": self.columns["failures"]} if self.event is Event.BREAKER_OPENED else {}
            log_event(logger, self.event, olt_id=self.breaker.olt_id, olt=self.breaker.olt, **more)


def turn(breaker: Breaker, outcome: Outcome, policy: BreakerPolicy, now: datetime) -> BreakerTurn:
    """Return the change of a breaker after an attempt with this result."""
    said = heard(outcome)
    if said is Heard.ANSWER:
        return _came_back(breaker, policy, now)
    if said is not Heard.SILENCE:
        return BreakerTurn(breaker, {})
    failures = breaker.failures + 1
    if breaker.opened_at is None and failures >= policy.opens_after:
        return BreakerTurn(breaker, {"failures": failures, "breaker_opened_at": now}, Event.BREAKER_OPENED)
    return BreakerTurn(breaker, {"failures": failures})


def _came_back(breaker: Breaker, policy: BreakerPolicy, now: datetime) -> BreakerTurn:
    """Close an open breaker, or record once that it could be closed."""
    if breaker.opened_at is None:
        return BreakerTurn(breaker, {"failures": 0})
    if policy.auto_recover:
        reachable = {"reachability": Olt.Reachability.REACHABLE}
        return BreakerTurn(breaker, {**Olt.CLOSED_BREAKER, **reachable}, Event.BREAKER_CLOSED)
    if breaker.answered_at is not None:
        return BreakerTurn(breaker, {})
    return BreakerTurn(breaker, {"breaker_answered_at": now}, Event.BREAKER_WAITS)


def answered(olt_id: int, policy: BreakerPolicy, now: datetime) -> bool:
    """Apply the answer to a probe, and return whether the breaker is closed now."""
    with transaction.atomic():
        row = Olt.objects.filter(pk=olt_id).select_for_update().values_list(*COLUMNS).first()
        if row is None:
            return False
        breaker = Breaker(*row)
        probed = {"breaker_probed_at": now, "last_answer_at": now}
        came_back = _came_back(breaker, policy, now)
        Olt.objects.filter(pk=olt_id).update(**probed, **came_back.columns)
        came_back.record()
    came_back.log()
    return breaker.opened_at is None or policy.auto_recover


def probed(olt_id: int, now: datetime) -> None:
    Olt.objects.filter(pk=olt_id).update(breaker_probed_at=now)


def reset(olt_ids: Collection[int]) -> None:
    """Close the breakers of OLTs whose address or credentials changed. Their reachability is unknown again."""
    held_against = Q(failures__gt=0) | Q(breaker_opened_at__isnull=False)
    with transaction.atomic():
        rows = Olt.objects.filter(held_against, pk__in=olt_ids).order_by("pk").select_for_update()
        reset_now = [Breaker(*row) for row in rows.values_list(*COLUMNS)]
        Olt.objects.filter(pk__in=[each.olt_id for each in reset_now]).update(
            **Olt.CLOSED_BREAKER, reachability=Olt.Reachability.UNKNOWN
        )
        turns = [BreakerTurn(each, {}, Event.BREAKER_FORGIVEN) for each in reset_now if each.opened_at is not None]
        for each in turns:
            each.record()
    for each in turns:
        each.log()
