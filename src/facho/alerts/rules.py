"""Alert logic: opening, repetition and recovery. Values only: no clock, no I/O.

A rule finds current problems (`Firing`). Each has a key, and a key has at most one open alert. The alert recovers
once, after the problem has been absent for a while. Alerts of a rule whose messages have the same news and the same
time are one message.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

HOUR = timedelta(hours=1)

# Messages of a rule with the same news are at least this far apart. What happens in between is told together.
DIGEST_EVERY = timedelta(minutes=1)

# An unstable alert is resolved after this time without the problem.
STABLE_AFTER = timedelta(minutes=30)

# Delay of the first retry of a delivery; it doubles with each attempt.
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = HOUR

# Attempts before a message is given up.
MOST_ATTEMPTS = 8


class AlertSeverity(StrEnum):
    """Severity of an alert. A critical one is also sent at night."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class News(StrEnum):
    """Subject of a message."""

    RAISED = "raised"
    REPEATED = "repeated"
    # To other channels, because nobody acknowledged it.
    ESCALATED = "escalated"
    RECOVERED = "recovered"
    # It is no longer watched, so its state is unknown.
    CLOSED = "closed"
    # A maintenance is over.
    SUMMARY = "summary"
    TEST = "test"


class Silence(StrEnum):
    """Reasons for not sending a message."""

    QUIET_HOURS = "quiet_hours"
    # A repetition above the limit. Earlier versions also dropped other messages.
    RATE_LIMIT = "rate_limit"
    # It ended before it was reported, so its end is not reported either.
    UNTOLD = "untold"
    # The rule or OLT was disabled or deleted, so the end is unknown.
    UNWATCHED = "unwatched"
    # The rule does not want this kind of message.
    UNWANTED = "unwanted"
    CHANNEL_DISABLED = "channel_disabled"
    ACKNOWLEDGED = "acknowledged"


class Hold(StrEnum):
    """Reasons for which an alert is only listed. When the reason is gone and the problem is not, it is reported."""

    OLT_UNREACHABLE = "olt_unreachable"
    PORT_DARK = "port_dark"


@dataclass(frozen=True, slots=True)
class Firing:
    """A current problem found by a rule. Its params can be shown in any language."""

    key: str
    params: Mapping[str, Any] = field(default_factory=dict)
    olt_id: int | None = None
    slot: int | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert that has not recovered."""

    id: int
    key: str
    opened_at: datetime
    # Time since which it is not firing; None: it is firing.
    absent_since: datetime | None = None
    # Times of the first and last message; a held message counts at the time it is held until.
    first_told_at: datetime | None = None
    last_told_at: datetime | None = None
    is_acknowledged: bool = False
    is_held: bool = False
    is_unstable: bool = False
    is_escalated: bool = False


@dataclass(frozen=True, slots=True)
class OnCall:
    """Days and hours in which a channel gets messages. Hours may cross midnight: the day is that of their start."""

    zone: ZoneInfo
    # Weekdays, 0 is Monday. Empty: every day.
    days: frozenset[int] = frozenset()
    # The same time twice is the whole day.
    start: time = time(0)
    end: time = time(0)

    def next(self, at: datetime) -> datetime:
        """Return `at` if it is within these hours, otherwise their next start."""
        today = at.astimezone(self.zone).date()
        for day in (today + timedelta(days=number) for number in range(-1, 8)):
            if not self.days or day.weekday() in self.days:
                last = day if self.start < self.end else day + timedelta(days=1)
                if at < self._utc(last, self.end):
                    return max(at, self._utc(day, self.start))
        return at

    def _utc(self, day: date, at: time) -> datetime:
        return datetime.combine(day, at, self.zone).astimezone(UTC)


def due_times(at: datetime, on_call: Mapping[int, OnCall], severity: AlertSeverity) -> dict[int, datetime]:
    """Return the time of a message on each channel. A critical one goes to all if nobody is on call."""
    due = {channel: each.next(at) for channel, each in on_call.items()}
    if severity is AlertSeverity.CRITICAL and at not in due.values():
        return dict.fromkeys(on_call, at)
    return due


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A daily time span in which only critical alerts are sent. It may cross midnight."""

    start: time
    end: time
    zone: ZoneInfo

    def until(self, now: datetime) -> datetime | None:
        """Return the end of the quiet hours at `now`, or None outside of them."""
        local = now.astimezone(self.zone)
        at = local.time()
        is_quiet = self.start <= at < self.end if self.start < self.end else at >= self.start or at < self.end
        if not is_quiet or self.start == self.end:
            return None
        day = local.date() if at < self.end else local.date() + timedelta(days=1)
        # When clocks go back, the end occurs twice, and the first one may be over.
        ends = (datetime.combine(day, self.end, self.zone).replace(fold=fold).astimezone(now.tzinfo) for fold in (0, 1))
        return next((end for end in ends if end > now), None)


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a rule that was sent, or is still to be sent."""

    news: News
    at: datetime


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    """Message policy of a rule."""

    severity: AlertSeverity = AlertSeverity.WARNING
    # None: no repetition.
    repeat_every: timedelta | None = None
    # None: no limit.
    most_per_hour: int | None = None
    quiet: QuietHours | None = None
    # Whether messages in quiet hours are sent at their end, or never.
    holds: bool = True
    tells_recovery: bool = True
    # A problem that returns within this time was never gone.
    recover_after: timedelta = timedelta(seconds=60)
    # None: never.
    escalate_after: timedelta | None = None

    def when(self, news: News, now: datetime, said: Collection[Said]) -> "AlertVerdict":
        """Return the time of a message, given the other messages of the rule.

        Above the limit and within a minute of a message with the same news, it is sent later, or with a message that
        is still to be sent. Repetitions are not sent later, and may use half of the limit. Critical alerts have no
        limit.
        """
        until = self._quiet_until(now)
        if until is not None and not self.holds:
            return AlertVerdict(silence=Silence.QUIET_HOURS)
        earliest = until or now
        same = [each.at for each in said if each.news is news]
        most = None if self.severity is AlertSeverity.CRITICAL else self.most_per_hour
        if news is News.REPEATED:
            times, most = [earliest], most and max(most // 2, 1)
        else:
            later = {*same, *(at + DIGEST_EVERY for at in same), *(each.at + HOUR for each in said)}
            # The last one is an hour after all messages, so one of them is free.
            times = [earliest, *(self._quiet_until(at) or at for at in sorted(later) if at > earliest)]
        for at in times:
            is_apart = all(abs(each - at) >= DIGEST_EVERY for each in same)
            if at in same or (is_apart and (most is None or fits(at, [each.at for each in said], most))):
                return AlertVerdict(at=at)
        return AlertVerdict(silence=Silence.RATE_LIMIT)

    def _quiet_until(self, at: datetime) -> datetime | None:
        return self.quiet.until(at) if self.quiet and self.severity is not AlertSeverity.CRITICAL else None


@dataclass(frozen=True, slots=True)
class AlertVerdict:
    """Time at which a message is sent, or the reason why not."""

    at: datetime | None = None
    silence: Silence | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Action for one key. Without `news` the alert is only updated; without a time nothing is sent."""

    alert: OpenAlert | None
    firing: Firing | None
    news: News | None = None
    verdict: AlertVerdict = field(default_factory=AlertVerdict)


def decide(
    firings: Iterable[Firing],
    open_alerts: Iterable[OpenAlert],
    policy: AlertPolicy,
    said: Collection[Said],
    now: datetime,
    held: Collection[str] = (),
) -> list[Decision]:
    """Return the actions of one rule for everything that fires or has an open alert.

    `said` are the rule's messages in the last hour, including held ones. New alerts come before recoveries, because
    both share the limit. `held` are the keys of alerts that are only listed.
    """
    told = set(said)
    standing = {alert.key: alert for alert in open_alerts}
    decisions = []
    for key, firing in {firing.key: firing for firing in firings}.items():
        alert = standing.pop(key, None)
        if key in held:
            decisions.append(Decision(alert, firing))
        else:
            decisions.append(_on_firing(firing, alert, policy, told, now))
    for alert in standing.values():
        decisions.append(_on_absence(alert, policy, told, now))
    return decisions


def _on_firing(
    firing: Firing, alert: OpenAlert | None, policy: AlertPolicy, told: set[Said], now: datetime
) -> Decision:
    if alert is None or (alert.is_held and alert.first_told_at is None):
        return Decision(alert, firing, News.RAISED, _say(policy, News.RAISED, told, now))
    news = _reminder(alert, policy, now)
    if news is not None:
        verdict = _say(policy, news, told, now)
        # A reminder that may not be sent now is simply not due, and leaves no record.
        if verdict.at is not None:
            return Decision(alert, firing, news, verdict)
    return Decision(alert, firing)


def _reminder(alert: OpenAlert, policy: AlertPolicy, now: datetime) -> News | None:
    """Return the reminder that is due because nobody acknowledged an alert."""
    if alert.is_acknowledged:
        return None
    told_at = alert.first_told_at or alert.opened_at
    if policy.escalate_after is not None and not alert.is_escalated and now >= told_at + policy.escalate_after:
        return News.ESCALATED
    if policy.repeat_every is not None and now >= (alert.last_told_at or alert.opened_at) + policy.repeat_every:
        return News.REPEATED
    return None


def _on_absence(alert: OpenAlert, policy: AlertPolicy, told: set[Said], now: datetime) -> Decision:
    recover_after = max(policy.recover_after, STABLE_AFTER) if alert.is_unstable else policy.recover_after
    if alert.absent_since is None or now - alert.absent_since < recover_after:
        return Decision(alert, None)
    return Decision(alert, None, News.RECOVERED, ending(News.RECOVERED, alert.first_told_at, policy, told, now))


def ending(
    news: News, first_told_at: datetime | None, policy: AlertPolicy, told: set[Said], now: datetime
) -> AlertVerdict:
    """Decide about the message that an alert has ended."""
    if first_told_at is None or first_told_at > now:
        return AlertVerdict(silence=Silence.UNTOLD)
    if not policy.tells_recovery:
        return AlertVerdict(silence=Silence.UNWANTED)
    return _say(policy, news, told, now)


def _say(policy: AlertPolicy, news: News, told: set[Said], now: datetime) -> AlertVerdict:
    verdict = policy.when(news, now, told)
    if verdict.at is not None:
        told.add(Said(news, verdict.at))
    return verdict


def fits(at: datetime, said: Iterable[datetime], most: int) -> bool:
    """Return whether one more message keeps the limit in every hour, wherever that hour starts."""
    near = sorted([at, *(each for each in said if abs(each - at) < HOUR)])
    return all(later - earlier >= HOUR for earlier, later in zip(near, near[most:], strict=False))


def next_try(attempts: int, now: datetime, retry_after: float | None = None) -> datetime:
    """Return the time of the next attempt of a delivery; later if the channel asked for that."""
    wait = min(FIRST_WAIT * (1 << min(attempts - 1, 20)), LONGEST_WAIT)
    asked = timedelta(seconds=min(max(retry_after or 0.0, 0.0), LONGEST_WAIT.total_seconds()))
    return now + max(wait, asked)


@dataclass(frozen=True, slots=True)
class Message:
    """A message for a channel, in its language. The details are for programs."""

    news: News
    # Number of the first delivery.
    delivery_id: str
    subject: str
    text: str
    severity: AlertSeverity = AlertSeverity.INFO
    rule: str = ""
    alert_id: int | None = None
    olt: str | None = None
    opened_at: datetime | None = None
    recovered_at: datetime | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    # All alerts of the message; the values above are those of the first.
    alerts: Sequence[Mapping[str, Any]] = ()
    # Page with details; empty if the URL of Facho is not set.
    url: str = ""
    # The same for every attempt, so that a receiver can detect duplicates. No other message has it, also not one of
    # another installation, or after a backup was restored, when numbers are used again.
    key: str = ""
