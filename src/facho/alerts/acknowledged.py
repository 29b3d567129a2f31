"""Alerts whose problem somebody acknowledged on the page of problems: they are acknowledged with it."""

from collections.abc import Iterable, Mapping

from django.db import transaction

from facho.alerts.kinds import RuleKind
from facho.alerts.models import Alert
from facho.problems.models import Problem

# Alerts of a kind, and the problems that are about the same thing.
SAME: Mapping[str, tuple[str, ...]] = {
    RuleKind.OLT_UNREACHABLE: (Problem.Kind.OLT_DOWN,),
    RuleKind.PORT_DARK: (
        Problem.Kind.PORT_DOWN,
        Problem.Kind.PORT_DEGRADED,
        Problem.Kind.CARD_DOWN,
        Problem.Kind.ONUS_DOWN,
        Problem.Kind.POWER_CUT,
    ),
    RuleKind.LOW_POWER: (Problem.Kind.LOW_POWER,),
    RuleKind.MASS_VANISHING: (Problem.Kind.OLT_SUSPECT,),
}


def acknowledge_with_problems(alerts: Iterable[Alert]) -> None:
    """Acknowledge open alerts with the open problem of their port, card or OLT."""
    waiting = [alert for alert in alerts if alert.acknowledged_at is None and alert.kind in SAME]
    if not waiting:
        return
    seen = Problem.objects.open().filter(acknowledged_at__isnull=False, olt__isnull=False)
    by_place = {
        (kind, olt_id, slot, port): (at, user_id)
        for kind, olt_id, slot, port, at, user_id in seen.values_list(
            "kind", "olt_id", "slot", "port", "acknowledged_at", "acknowledged_by_id"
        )
    }
    for alert in waiting:
        places = ((alert.slot, alert.port), (alert.slot, None), (None, None))
        keys = [(kind, alert.olt_id, *place) for kind in SAME[alert.kind] for place in places]
        found = next((by_place[key] for key in keys if key in by_place), None)
        if found is not None:
            alert.acknowledged_at, alert.acknowledged_by_id = found
            with transaction.atomic():
                mine = Alert.objects.filter(pk=alert.pk, acknowledged_at__isnull=True)
                mine.update(acknowledged_at=alert.acknowledged_at, acknowledged_by=alert.acknowledged_by_id)
                alert.stop_reminders()
