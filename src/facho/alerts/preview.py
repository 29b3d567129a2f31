"""Preview of the message of a rule: with the problems of now, else with the last alert, else with an example."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone, translation

from facho.alerts.evaluation import holding_windows
from facho.alerts.kinds import EVENT_CHOICES, RuleKind
from facho.alerts.messages import compose
from facho.alerts.models import Alert, Rule
from facho.alerts.rules import Firing, Message, News
from facho.alerts.sources import World, firings
from facho.apps.inventory.models import Olt
from facho.apps.inventory.queries import OLT_HEAVY
from facho.apps.maintenance.queries import held_at
from facho.apps.telemetry.models import PonPort

NOW, LAST, EXAMPLE = "now", "last", "example"


@dataclass(frozen=True, slots=True)
class Preview:
    """A message as it would be sent, and where its values are from."""

    message: Message
    # "now", "last" or "example".
    origin: str
    # Number of alerts in it.
    alerts: int


def preview(rule: Rule, now: datetime, snapshot: Mapping[str, Any], public_url: str = "") -> Preview:
    """Return the message that a rule would send now, in the language and time zone of the user."""
    world = World(now, snapshot, now)
    held, _over = held_at(now)
    found = [each for each in firings([rule], world)[rule.pk] or [] if not holding_windows(held, rule, each)]
    if found:
        origin, alerts = NOW, _alerts(rule, found, now)
    elif last := _last(rule):
        origin, alerts = LAST, [last]
    else:
        origin, alerts = EXAMPLE, _alerts(rule, [_example(rule, world)], now)
    language = translation.get_language() or "en"
    message = compose(News.RAISED, "", alerts, language, timezone.get_current_timezone(), public_url.rstrip("/"))
    return Preview(message, origin, len(alerts))


def _last(rule: Rule) -> Alert | None:
    """Return the last alert of a rule, about its present OLTs."""
    alerts = Alert.objects.filter(rule=rule, kind=rule.kind)
    if rule.is_narrowed:
        alerts = alerts.filter(olt__in=rule.olts.all())
    return alerts.select_related("olt").defer(*OLT_HEAVY).order_by("-opened_at").first()


def _alerts(rule: Rule, found: Sequence[Firing], now: datetime) -> list[Alert]:
    olts = Olt.objects.only("name").in_bulk({firing.olt_id for firing in found if firing.olt_id is not None})
    is_open = Alert.objects.filter(rule=rule, recovered_at__isnull=True, key__in=[firing.key for firing in found])
    since = dict(is_open.values_list("key", "opened_at"))
    return [
        Alert(
            rule_name=rule.name,
            kind=rule.kind,
            severity=rule.severity,
            key=firing.key,
            olt=olts.get(firing.olt_id or 0),
            slot=firing.slot,
            port=firing.port,
            params=dict(firing.params),
            opened_at=since.get(firing.key, now),
        )
        for firing in found
    ]


def _example(rule: Rule, world: World) -> Firing:
    """Return an example with the name of a real OLT and port."""
    olt_id = next((id_ for id_ in world.olts if world.watches(rule, id_)), None)
    ports = PonPort.objects.filter(olt=olt_id, slot__isnull=False, port__isnull=False).order_by("-total")
    port = ports.first() if olt_id is not None else None
    slot, number, known = (port.slot, port.port, port.present) if port else (0, 1, 32)
    params: dict[str, Any] = {"olt": world.olts[olt_id]["name"] if olt_id is not None else "OLT"}
    of_port = {"place": f"{slot}/{number}"}
    limits = {
        name: rule.setting(name)
        for name in ("below_dbm", "minutes", "delayed", "stalled_seconds")
        if name in rule.params
    }
    match rule.kind:
        case RuleKind.PORT_DARK:
            params |= of_port | {"dark": known, "known": known, "los": known}
        case RuleKind.LOW_POWER:
            below = limits.get("below_dbm", -27.0)
            params |= of_port | {"low": 1, "below": below, "worst": [{"name": "ONU", "rx_dbm": below - 1}]}
        case RuleKind.VIOLATION:
            params |= {
                "task": "State",
                "severity": "HIGH",
                "hour": world.now.isoformat(),
                "completed": 6,
                "required": 12,
            }
        case RuleKind.POOL_SATURATED:
            params = {"busy": 90}
        case RuleKind.QUEUE_DELAYED:
            params = {"delayed": limits.get("delayed", 10) + 1, "minutes": limits.get("minutes", 5)}
        case RuleKind.SCHEDULER_STALLED:
            params = {"age": limits.get("stalled_seconds", 30) + 1}
        case RuleKind.EVENT:
            event = rule.setting("event_types")[0]
            params |= {"event": event, "details": params, "message": str(dict(EVENT_CHOICES)[event]), "times": 1}
    is_of_port = rule.kind in (RuleKind.PORT_DARK, RuleKind.LOW_POWER)
    return Firing("example", params, olt_id, slot if is_of_port else None, number if is_of_port else None)
