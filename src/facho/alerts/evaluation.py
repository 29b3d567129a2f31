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
from django.db.models import Count, F, Prefetch
from django.utils import translation

from facho.alerts.acknowledged import acknowledge_with_problems
from facho.alerts.holding import Explained
from facho.alerts.kinds import RuleKind
from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.alerts.rules import (
    HOUR,
    AlertPolicy,
    AlertSeverity,
    AlertVerdict,
    Decision,
    Firing,
    Hold,
    News,
    OpenAlert,
    QuietHours,
    Said,
    Silence,
    decide,
    due_times,
    ending,
)
from facho.alerts.sources import Firings, World, firings
from facho.apps.changes.actor import acting, engine
from facho.apps.changes.record import recorded
from facho.apps.coordinator.models import QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.maintenance.models import MaintenanceWindow
from facho.apps.maintenance.queries import Maintained, held_at
from facho.engine.events import Event, log_event

logger = logging.getLogger(__name__)

# An alert whose OLT or rule was deleted ends without a message.
UNWATCHED = AlertVerdict(silence=Silence.UNWATCHED)


# Columns of a channel that the evaluation needs.
CHANNEL_COLUMNS = ("name", "zone", "on_call_days", "on_call_from", "on_call_to")


@dataclass(frozen=True, slots=True)
class Letter:
    """Messages about an alert, one to each channel, or the reason why not."""

    alert: Alert
    news: News
    silence: Silence | None
    # Time on each channel.
    due: Mapping[Channel, datetime]


@dataclass(frozen=True, slots=True)
class Seen:
    """What an evaluation found about one rule."""

    rule: Rule
    firing: Sequence[Firing]
    open: Sequence[Alert]
    said: Collection[Said]
    # Alerts that are only listed, by key.
    held: Mapping[str, Hold]
    # Keys that were open so often in the last hour that they are unstable.
    unstable: Collection[str]


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
    # Alerts whose state is unknown from now on.
    closed: list[tuple[Alert, AlertVerdict]] = field(default_factory=list)
    # Windows of maintenance whose alerts are reported now.
    over: Maintained = field(default_factory=Maintained)
    messages: list["Letter"] = field(default_factory=list)
    # Violations for which a message was created.
    notified: set[int] = field(default_factory=set)


def evaluate(now: datetime, snapshot: Mapping[str, Any], since: datetime) -> None:
    """Evaluate every enabled rule once. `since` is the start of the evaluations: an earlier silence proves nothing."""
    rules = _watching_rules()
    standing: dict[int | None, list[Alert]] = defaultdict(list)
    for alert in Alert.objects.filter(recovered_at__isnull=True).order_by("id"):
        standing[alert.rule_id].append(alert)
    held, over = held_at(now)
    if not rules and not standing and not over:
        return
    open_keys = {rule_id: {alert.key for alert in alerts} for rule_id, alerts in standing.items() if rule_id}
    acknowledge_with_problems(alert for alerts in standing.values() for alert in alerts)
    world = World(now, snapshot, since, open_keys)
    found = firings(rules.values(), world)
    said = _said(now)
    changes = Changes(now, over=over)
    for rule_id, alerts in standing.items():
        for alert in alerts:
            alert.params |= _closing(alert, rules, world, held)
        changes.closed += [
            (alert, _closing_verdict(alert, rules, said[rule_id or 0], now)) for alert in alerts if alert.is_unknown
        ]
    watched = {rule_id: [alert for alert in standing.get(rule_id, ()) if not alert.is_unknown] for rule_id in rules}
    explained = _explained(rules, found, watched)
    is_new = any(
        firing.key not in open_keys.get(rule_id, ()) for rule_id, some in found.items() for firing in some or ()
    )
    ended = _recently_ended(now) if is_new else {}
    for rule in rules.values():
        if found[rule.pk] is not None:
            firing = [each for each in found[rule.pk] or () if not holding_windows(held, rule, each)]
            holds = {each.key: explained.hold(rule.kind, each) for each in firing}
            listed = {key: hold for key, hold in holds.items() if hold is not None}
            unstable = {key for key, times in ended.get(rule.pk, {}).items() if 0 < rule.flap_times <= times + 1}
            _evaluate_rule(Seen(rule, firing, watched[rule.pk], said[rule.pk], listed, unstable), changes)
    _summarise(changes, rules)
    _write(changes)
    _log(changes)


def _watching_rules() -> dict[int, Rule]:
    """Return enabled rules by id, except those whose OLTs were all deleted: they must not apply to all OLTs."""
    enabled_channels = Channel.objects.filter(enabled=True).only(*CHANNEL_COLUMNS)
    related = [Prefetch(name, enabled_channels) for name in ("channels", "escalation_channels")]
    enabled = Rule.objects.filter(enabled=True)
    rules = list(enabled.prefetch_related(Prefetch("olts", Olt.objects.only("id")), *related))
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


def _explained(rules: Mapping[int, Rule], found: Firings, watched: Mapping[int, Sequence[Alert]]) -> Explained:
    """Return the OLTs and ports whose alerts explain others. Those that nobody is told of explain nothing."""
    explained = Explained()
    for rule_id, rule in rules.items():
        if rule.channels.all():
            problems = [*(found[rule_id] or ()), *watched[rule_id]]
            explained.add(rule.kind, [(each.olt_id, each.slot, each.port) for each in problems])
    return explained


def _recently_ended(now: datetime) -> Mapping[int, Mapping[str, int]]:
    """Return how often each key of each rule was resolved in the last hour. One that was only closed may last."""
    rows = Alert.objects.filter(recovered_at__gt=now - HOUR, rule__isnull=False, params__closed__isnull=True)
    times: dict[int, dict[str, int]] = defaultdict(dict)
    for rule_id, key, count in rows.order_by().values_list("rule_id", "key").annotate(times=Count("id")):
        times[rule_id][key] = count
    return times


def holding_windows(maintained: Maintained, rule: Rule, about: Firing | Alert) -> list[MaintenanceWindow]:
    """Return the windows of maintenance that hold an alert. Events of maintenance itself are not held."""
    is_own = rule.kind == RuleKind.EVENT and str(about.params.get("event")).startswith("MAINTENANCE_")
    return [] if is_own else maintained.of(about.olt_id, about.slot, about.port)


def _closing(alert: Alert, rules: Mapping[int, Rule], world: World, held: Maintained) -> dict[str, Any]:
    """Return why an open alert is closed, as params for its texts; empty if it is watched."""
    rule = rules.get(alert.rule_id or 0)
    # A rule whose kind changed does not continue its old alerts.
    if rule is None or rule.kind != alert.kind:
        return {"closed": {"by": "rule"}}
    if alert.olt_id is not None and not world.watches(rule, alert.olt_id):
        return {"closed": {"by": "rule" if alert.olt_id in world.olts else "disabled"}}
    for window in holding_windows(held, rule, alert):
        alert.window, plan = window, window.maintenance
        end = {"at": window.ends_at.isoformat(timespec="seconds"), "reason": plan.reason}
        return {"closed": {"by": "maintenance", "target": plan.target, **end}}
    return {}


def _closing_verdict(alert: Alert, rules: Mapping[int, Rule], said: set[Said], now: datetime) -> AlertVerdict:
    """Return when the recipients of an alert learn that it was closed; never if that follows from the rule."""
    rule = rules.get(alert.rule_id or 0)
    if rule is None or alert.params["closed"]["by"] == "rule":
        return UNWATCHED
    return ending(News.CLOSED, alert.first_told_at, policy(rule), said, now)


def _summarise(changes: Changes, rules: Mapping[int, Rule]) -> None:
    """Report the alerts that a maintenance held, and those that it closed and that do not fire any more.

    All that a channel gets at one time is one message.
    """
    opened = {(alert.rule_id, alert.key) for alert in changes.opened}
    closed = Alert.objects.filter(window__in=changes.over.windows, rule__in=rules, recovered_at__isnull=False)
    for alert in closed.order_by("id"):
        rule = rules[alert.rule_id or 0]
        is_told = alert.first_told_at and alert.recovered_at and alert.first_told_at <= alert.recovered_at
        if is_told and alert.is_unknown and (alert.rule_id, alert.key) not in opened:
            opened.add((alert.rule_id, alert.key))
            verdict = policy(rule).when(News.SUMMARY, changes.now, ())
            changes.messages.append(_letter(alert, rule, News.SUMMARY, verdict, changes.now))


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
        escalate_after=timedelta(minutes=rule.escalate_minutes)
        if rule.escalate_minutes and rule.escalation_channels.all()
        else None,
    )


def _evaluate_rule(seen: Seen, changes: Changes) -> None:
    rule = seen.rule
    rows = {alert.pk: alert for alert in seen.open}
    standing = [
        OpenAlert(
            id=alert.pk,
            key=alert.key,
            opened_at=alert.opened_at,
            absent_since=alert.absent_since,
            first_told_at=alert.first_told_at,
            last_told_at=alert.last_told_at,
            is_acknowledged=alert.acknowledged_at is not None,
            is_held=bool(alert.held),
            is_unstable=alert.is_unstable,
            is_escalated=alert.escalated_at is not None,
        )
        for alert in seen.open
    ]
    for decision in decide(seen.firing, standing, policy(rule), seen.said, changes.now, seen.held):
        if decision.alert is not None:
            alert = rows[decision.alert.id]
            _continue(alert, decision, seen.held, changes)
        elif decision.firing is not None:
            alert = _open(rule, decision.firing, seen, changes)
            changes.opened.append(alert)
        if decision.news not in (None, News.RECOVERED):
            _send(alert, rule, decision, changes)
    if rule.kind == RuleKind.VIOLATION and rule.channels.all():
        changes.notified |= {each.params["violation"] for each in seen.firing if each.key not in seen.held}


def _open(rule: Rule, firing: Firing, seen: Seen, changes: Changes) -> Alert:
    return Alert(
        rule=rule,
        rule_name=rule.name,
        kind=rule.kind,
        severity=rule.severity,
        key=firing.key,
        olt_id=firing.olt_id,
        slot=firing.slot,
        port=firing.port,
        params=dict(firing.params),
        opened_at=changes.now,
        last_seen_at=changes.now,
        window=next(iter(holding_windows(changes.over, rule, firing)), None),
        held=seen.held.get(firing.key, ""),
        is_unstable=firing.key in seen.unstable,
    )


def _send(alert: Alert, rule: Rule, decision: Decision, changes: Changes) -> None:
    """Plan the messages of a decision."""
    news, verdict = News(str(decision.news)), decision.verdict
    if decision.alert is None and alert.window is not None:
        news, verdict = News.SUMMARY, policy(rule).when(News.SUMMARY, changes.now, ())
    letter = _letter(alert, rule, news, verdict, changes.now)
    if not letter.due:
        return
    if verdict.at is not None:
        alert.last_told_at = min(letter.due.values())
        alert.first_told_at = alert.first_told_at or alert.last_told_at
        if news is News.ESCALATED:
            alert.escalated_at = alert.last_told_at
    changes.messages.append(letter)


def _letter(alert: Alert, rule: Rule, news: News, verdict: AlertVerdict, now: datetime) -> Letter:
    """Return the messages about an alert, each at the time at which its channel is on call."""
    related = rule.escalation_channels if news is News.ESCALATED else rule.channels
    channels = {channel.pk: channel for channel in related.all()}
    due = dict.fromkeys(channels, now)
    if verdict.at is not None:
        on_call = {pk: channel.on_call for pk, channel in channels.items()}
        due = due_times(verdict.at, on_call, AlertSeverity(rule.severity))
    return Letter(alert, news, verdict.silence, {channels[pk]: at for pk, at in due.items()})


def _continue(alert: Alert, decision: Decision, held: Mapping[str, Hold], changes: Changes) -> None:
    if decision.news is News.RECOVERED:
        changes.recovered.append((alert, decision.verdict))
    elif decision.firing is None:
        if alert.absent_since is None:
            changes.absent.append(alert)
    else:
        changes.seen.append(alert)
        hold, params = held.get(alert.key, ""), dict(decision.firing.params)
        if alert.absent_since or decision.news or alert.params != params or alert.held != hold:
            alert.count += alert.absent_since is not None
            alert.absent_since = None
            alert.params = params
            alert.held = hold
            changes.changed.append(alert)


# Columns of alerts that go on.
CHANGED = ["params", "absent_since", "count", "held", "first_told_at", "last_told_at", "escalated_at"]


@transaction.atomic
def _write(changes: Changes) -> None:
    now = changes.now
    Alert.objects.bulk_create(changes.opened)
    _rows(changes.seen).update(last_seen_at=now)
    Alert.objects.bulk_update(changes.changed, CHANGED, batch_size=200)
    _rows(changes.absent).update(absent_since=now)
    # A repetition is not queued behind an unsent message about the same alert.
    repeated = [letter.alert.pk for letter in changes.messages if letter.news is News.REPEATED]
    pending = Delivery.objects.filter(alert__in=repeated, status=Delivery.Status.PENDING)
    unsent = set(pending.order_by().values_list("alert_id", "channel_id"))
    messages = [
        _delivery(letter.alert, letter.news, channel, at, letter.silence, now)
        for letter in changes.messages
        for channel, at in letter.due.items()
        if letter.news is not News.REPEATED or (letter.alert.pk, channel.pk) not in unsent
    ]
    Alert.objects.bulk_update([alert for alert, _ in changes.closed], ["params", "window"], batch_size=200)
    ended = _end(News.RECOVERED, changes.recovered, now) + _end(News.CLOSED, changes.closed, now)
    Delivery.objects.bulk_create(messages + ended)
    over = MaintenanceWindow.objects.filter(pk__in=[window.pk for window in changes.over.windows])
    over.update(summarised_at=now)
    QuotaViolation.objects.filter(pk__in=changes.notified, notified=False).update(notified=True, notified_at=now)


def _rows(alerts: Iterable[Alert]) -> Any:
    return Alert.objects.filter(pk__in=[alert.pk for alert in alerts])


def _end(news: News, ended: Iterable[tuple[Alert, AlertVerdict]], now: datetime) -> list[Delivery]:
    """End alerts, cancel held messages about them, and return the messages about their end."""
    verdicts = {alert.pk: (alert, verdict) for alert, verdict in ended}
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
    pairs = list(told.order_by("channel_id", "alert_id").values_list("alert_id", "channel_id").distinct())
    channels = Channel.objects.only(*CHANNEL_COLUMNS).in_bulk({channel_id for _alert_id, channel_id in pairs})
    return [
        _delivery(alert, news, channel, channel.on_call.next(verdict.at) if verdict.at else now, verdict.silence, now)
        for (alert, verdict), channel in ((verdicts[alert_id], channels[channel_id]) for alert_id, channel_id in pairs)
    ]


def _delivery(
    alert: Alert, news: News, channel: Channel, due_at: datetime, silence: Silence | None, now: datetime
) -> Delivery:
    return Delivery(
        alert=alert,
        channel=channel,
        channel_name=channel.name,
        news=news.value,
        status=Delivery.Status.SUPPRESSED if silence else Delivery.Status.PENDING,
        reason=silence.value if silence else "",
        created_at=now,
        due_at=due_at,
        next_try_at=None if silence else due_at,
    )


def _log(changes: Changes) -> None:
    """Log alerts in English, with the subject in each other language as a detail for pages."""
    told = [(Event.ALERT_RAISED, alert) for alert in changes.opened]
    told += [(Event.ALERT_RECOVERED, alert) for alert, _verdict in changes.recovered]
    told += [(Event.ALERT_CLOSED, alert) for alert, _verdict in changes.closed]
    for event, alert in told:
        subjects: dict[str, Any] = {}
        for language, _name in settings.LANGUAGES:
            with translation.override(language):
                subjects[f"subject_{language}"] = alert.subject
        subject = subjects.pop("subject_en")
        log_event(logger, event, olt_id=alert.olt_id, rule=alert.rule_name, subject=subject, **subjects)
