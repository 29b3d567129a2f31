"""Evaluation of rules: alerts open, last, repeat and recover, each evaluation in one transaction."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import F, Prefetch
from django.utils import translation

from facho.alerts.kinds import RuleKind
from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.alerts.rules import (
    HOUR,
    AlertPolicy,
    AlertSeverity,
    AlertVerdict,
    Decision,
    Firing,
    News,
    OpenAlert,
    QuietHours,
    Said,
    Silence,
    decide,
)
from facho.alerts.sources import World, firings
from facho.apps.changes.actor import acting, engine
from facho.apps.changes.record import recorded
from facho.apps.coordinator.models import QuotaViolation
from facho.apps.inventory.models import Olt
from facho.engine.events import Event, log_event

logger = logging.getLogger(__name__)

# An alert whose OLT or rule was deleted ends without a message.
UNWATCHED = AlertVerdict(silence=Silence.UNWATCHED)


@dataclass(slots=True)
class Changes:
    """Changes of one evaluation."""

    now: datetime
    opened: list[Alert] = field(default_factory=list)
    seen: list[Alert] = field(default_factory=list)
    # Known alerts with a change besides the time.
    changed: list[Alert] = field(default_factory=list)
    absent: list[Alert] = field(default_factory=list)
    recovered: list[tuple[Alert, AlertVerdict]] = field(default_factory=list)
    messages: list[tuple[Alert, News, AlertVerdict, Sequence[Channel]]] = field(default_factory=list)
    # Violations for which a message was created.
    notified: set[int] = field(default_factory=set)


def evaluate(now: datetime, snapshot: Mapping[str, Any], since: datetime) -> None:
    """Evaluate every enabled rule once. `since` is the start of the evaluations: an earlier silence proves nothing."""
    rules = _watching_rules()
    standing: dict[int | None, list[Alert]] = defaultdict(list)
    for alert in Alert.objects.filter(recovered_at__isnull=True).order_by("id"):
        standing[alert.rule_id].append(alert)
    if not rules and not standing:
        return
    open_keys = {rule_id: {alert.key for alert in alerts} for rule_id, alerts in standing.items() if rule_id}
    world = World(now, snapshot, since, open_keys)
    found = firings(rules.values(), world)
    said = _said(now)
    changes = Changes(now)
    for alerts in standing.values():
        changes.recovered += [(alert, UNWATCHED) for alert in alerts if not _is_watched(alert, rules, world)]
    for rule in rules.values():
        firing = found[rule.pk]
        if firing is not None:
            watched = [alert for alert in standing.get(rule.pk, ()) if _is_watched(alert, rules, world)]
            _evaluate_rule(rule, firing, watched, said[rule.pk], changes)
    _write(changes)
    _log(changes)


def _watching_rules() -> dict[int, Rule]:
    """Return enabled rules by id, except those whose OLTs were all deleted: they must not apply to all OLTs."""
    channels = Prefetch("channels", Channel.objects.filter(enabled=True).only("name"))
    enabled = Rule.objects.filter(enabled=True)
    rules = list(enabled.prefetch_related(Prefetch("olts", Olt.objects.only("id")), channels))
    lost = [rule for rule in rules if rule.has_lost_its_olts]
    for rule in lost:
        # A user may have chosen other OLTs at this moment.
        still = Rule.objects.filter(pk=rule.pk, enabled=True, is_narrowed=True, olts__isnull=True)
        with acting(engine()), recorded(still, "enabled"):
            is_disabled = still.update(enabled=False)
        if is_disabled:
            log_event(logger, Event.RULE_DISABLED, rule=rule.name)
    # OLTs that were chosen without a form or the API did not set the flag.
    chosen = [rule.pk for rule in rules if not rule.is_narrowed and rule.olts.all()]
    if chosen:
        Rule.objects.filter(pk__in=chosen).update(is_narrowed=True)
    return {rule.pk: rule for rule in rules if rule not in lost}


def _said(now: datetime) -> Mapping[int, set[Said]]:
    """Return each rule's messages in the last hour, including held ones; channels do not matter."""
    rows = Delivery.objects.filter(due_at__gt=now - HOUR, alert__rule__isnull=False)
    rows = rows.exclude(status=Delivery.Status.SUPPRESSED)
    said = defaultdict(set)
    for rule_id, news, due_at in rows.order_by().values_list("alert__rule_id", "news", "due_at").distinct():
        said[rule_id].add(Said(News(news), due_at))
    return said


def _is_watched(alert: Alert, rules: Mapping[int, Rule], world: World) -> bool:
    rule = rules.get(alert.rule_id or 0)
    # A rule whose kind changed does not continue its old alerts.
    return rule is not None and rule.kind == alert.kind and (alert.olt_id is None or world.watches(rule, alert.olt_id))


def policy(rule: Rule) -> AlertPolicy:
    """Return the message policy of a rule."""
    quiet = None
    if rule.quiet_from is not None and rule.quiet_to is not None:
        quiet = QuietHours(rule.quiet_from, rule.quiet_to, ZoneInfo(rule.quiet_zone))
    return AlertPolicy(
        severity=AlertSeverity(rule.severity),
        repeat_every=timedelta(minutes=rule.repeat_minutes) if rule.repeat_minutes else None,
        most_per_hour=rule.most_per_hour or None,
        quiet=quiet,
        holds=rule.quiet_mode == Rule.Quiet.HOLD,
        # The end of an event is not reported.
        tells_recovery=rule.tells_recovery and rule.kind != RuleKind.EVENT,
        recover_after=timedelta(seconds=rule.recover_after_seconds),
    )


def _evaluate_rule(
    rule: Rule, firing: Sequence[Firing], alerts: Sequence[Alert], said: Collection[Said], changes: Changes
) -> None:
    rows = {alert.pk: alert for alert in alerts}
    standing = [
        OpenAlert(
            id=alert.pk,
            key=alert.key,
            opened_at=alert.opened_at,
            absent_since=alert.absent_since,
            first_told_at=alert.first_told_at,
            last_told_at=alert.last_told_at,
            is_acknowledged=alert.acknowledged_at is not None,
        )
        for alert in alerts
    ]
    channels = list(rule.channels.all())
    for decision in decide(firing, standing, policy(rule), said, changes.now):
        if decision.alert is not None:
            alert = rows[decision.alert.id]
            _continue(alert, decision, changes)
        elif decision.firing is not None:
            alert = Alert(
                rule=rule,
                rule_name=rule.name,
                kind=rule.kind,
                severity=rule.severity,
                key=decision.firing.key,
                olt_id=decision.firing.olt_id,
                slot=decision.firing.slot,
                port=decision.firing.port,
                params=dict(decision.firing.params),
                opened_at=changes.now,
                last_seen_at=changes.now,
            )
            changes.opened.append(alert)
        if decision.news in (News.RAISED, News.REPEATED) and channels:
            if decision.verdict.at is not None:
                alert.first_told_at = alert.first_told_at or decision.verdict.at
                alert.last_told_at = decision.verdict.at
            changes.messages.append((alert, decision.news, decision.verdict, channels))
    if rule.kind == RuleKind.VIOLATION and channels:
        changes.notified |= {each.params["violation"] for each in firing}


def _continue(alert: Alert, decision: Decision, changes: Changes) -> None:
    if decision.news is News.RECOVERED:
        changes.recovered.append((alert, decision.verdict))
    elif decision.firing is None:
        if alert.absent_since is None:
            changes.absent.append(alert)
    else:
        changes.seen.append(alert)
        if alert.absent_since or decision.news or alert.params != dict(decision.firing.params):
            alert.count += alert.absent_since is not None
            alert.absent_since = None
            alert.params = dict(decision.firing.params)
            changes.changed.append(alert)


@transaction.atomic
def _write(changes: Changes) -> None:
    now = changes.now
    Alert.objects.bulk_create(changes.opened)
    _rows(changes.seen).update(last_seen_at=now)
    Alert.objects.bulk_update(
        changes.changed, ["params", "absent_since", "count", "first_told_at", "last_told_at"], batch_size=200
    )
    _rows(changes.absent).update(absent_since=now)
    # A repetition is not queued behind an unsent message about the same alert.
    repeated = [alert.pk for alert, news, *_rest in changes.messages if news is News.REPEATED]
    pending = Delivery.objects.filter(alert__in=repeated, status=Delivery.Status.PENDING)
    unsent = set(pending.order_by().values_list("alert_id", "channel_id"))
    messages = [
        _delivery(alert, news, verdict, channel.pk, channel.name, now)
        for alert, news, verdict, channels in changes.messages
        for channel in channels
        if news is not News.REPEATED or (alert.pk, channel.pk) not in unsent
    ]
    Delivery.objects.bulk_create(messages + _recover(changes))
    QuotaViolation.objects.filter(pk__in=changes.notified, notified=False).update(notified=True, notified_at=now)


def _rows(alerts: Iterable[Alert]) -> Any:
    return Alert.objects.filter(pk__in=[alert.pk for alert in alerts])


def _recover(changes: Changes) -> list[Delivery]:
    """End alerts, cancel held messages about them, and return the recoveries to report."""
    now, verdicts = changes.now, {alert.pk: (alert, verdict) for alert, verdict in changes.recovered}
    if not verdicts:
        return []
    rows = Alert.objects.filter(pk__in=verdicts, recovered_at__isnull=True)
    rows.filter(absent_since__isnull=True).update(absent_since=now)
    rows.update(recovered_at=F("absent_since"))
    about = Delivery.objects.filter(alert__in=verdicts, status=Delivery.Status.PENDING)
    about.filter(attempts=0, due_at__gt=now).update(
        status=Delivery.Status.SUPPRESSED, reason=Silence.UNTOLD.value, next_try_at=None
    )
    # Recorded as a delivery, even if it is not sent.
    recorded = (None, Silence.QUIET_HOURS, Silence.RATE_LIMIT)
    told = Delivery.objects.filter(
        alert__in=[pk for pk, (_alert, verdict) in verdicts.items() if verdict.silence in recorded],
        status__in=[Delivery.Status.PENDING, Delivery.Status.SENT],
        channel__enabled=True,
    )
    return [
        _delivery(verdicts[alert_id][0], News.RECOVERED, verdicts[alert_id][1], channel_id, name, now)
        for alert_id, channel_id, name in told.order_by("channel_id")
        .values_list("alert_id", "channel_id", "channel__name")
        .distinct()
    ]


def _delivery(
    alert: Alert, news: News, verdict: AlertVerdict, channel_id: int | None, channel_name: str, now: datetime
) -> Delivery:
    is_sent = verdict.at is not None
    return Delivery(
        alert=alert,
        channel_id=channel_id,
        channel_name=channel_name,
        news=news.value,
        status=Delivery.Status.PENDING if is_sent else Delivery.Status.SUPPRESSED,
        reason=verdict.silence.value if verdict.silence else "",
        created_at=now,
        due_at=verdict.at or now,
        next_try_at=verdict.at,
    )


def _log(changes: Changes) -> None:
    """Log alerts in English, with the subject in each other language as a detail for pages."""
    told = [(Event.ALERT_RAISED, alert) for alert in changes.opened]
    told += [(Event.ALERT_RECOVERED, alert) for alert, _verdict in changes.recovered]
    for event, alert in told:
        subjects: dict[str, Any] = {}
        for language, _name in settings.LANGUAGES:
            with translation.override(language):
                subjects[f"subject_{language}"] = alert.subject
        subject = subjects.pop("subject_en")
        log_event(logger, event, olt_id=alert.olt_id, rule=alert.rule_name, subject=subject, **subjects)
