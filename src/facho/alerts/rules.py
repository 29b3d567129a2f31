"""Who is told what, and when: alerts open, repeat and recover here. Only values: no clock, no I/O.

A rule finds things that are wrong now (`Firing`). Each has a key, and a key has at most one open alert; that alert
recovers once, after the thing has been absent for a while.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

HOUR = timedelta(hours=1)

# A delivery that failed is tried again after this long, then after twice as long, and so on.
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = HOUR

# A channel that could not be reached this often gets this message no more.
MOST_ATTEMPTS = 8


class AlertSeverity(StrEnum):
    """How much an alert matters. A critical one is told at night too."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class News(StrEnum):
    """What a message is about."""

    RAISED = "raised"
    REPEATED = "repeated"
    RECOVERED = "recovered"
    TEST = "test"


class Silence(StrEnum):
    """Why a message is not sent."""

    QUIET_HOURS = "quiet_hours"
    RATE_LIMIT = "rate_limit"
    # It was over before anybody was told, so nobody has to be told that it is over.
    UNTOLD = "untold"
    # The rule, or the OLT, was disabled or taken away: whether it is over nobody knows.
    UNWATCHED = "unwatched"
    # The rule does not want this kind of message.
    UNWANTED = "unwanted"
    CHANNEL_DISABLED = "channel_disabled"


@dataclass(frozen=True, slots=True)
class Firing:
    """Something that a rule finds wrong now. `code` and `params` can be said in any language."""

    key: str
    code: str
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
    # Since when it is not firing; None: it is.
    absent_since: datetime | None = None
    # When it was first and last told, or will be: a message that is held counts by the time it is held until.
    first_told_at: datetime | None = None
    last_told_at: datetime | None = None
    is_acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A part of each day in which only what is critical is told. It may reach over midnight."""

    start: time
    end: time
    zone: ZoneInfo

    def until(self, now: datetime) -> datetime | None:
        """Return when the quiet hours end that `now` lies in, or None outside of them."""
        local = now.astimezone(self.zone)
        at = local.time()
        is_quiet = self.start <= at < self.end if self.start < self.end else at >= self.start or at < self.end
        if not is_quiet or self.start == self.end:
            return None
        day = local.date() if at < self.end else local.date() + timedelta(days=1)
        # In the night when clocks go back the end comes twice, and the first time may be over.
        ends = (datetime.combine(day, self.end, self.zone).replace(fold=fold).astimezone(now.tzinfo) for fold in (0, 1))
        return next((end for end in ends if end > now), None)


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    """How a rule wants its messages."""

    severity: AlertSeverity = AlertSeverity.WARNING
    # None: once is enough.
    repeat_every: timedelta | None = None
    # None: as many as there are.
    most_per_hour: int | None = None
    quiet: QuietHours | None = None
    # Whether what comes up in quiet hours is told when they end, or never.
    holds: bool = True
    tells_recovery: bool = True
    # What comes back within this time was never gone.
    recover_after: timedelta = timedelta(seconds=60)

    def when(self, news: News, now: datetime, said: Sequence[datetime]) -> "AlertVerdict":
        """Return when a message of now may be told, given when others of the rule were and will be.

        Above the limit, that something is over is told later: who was told
        that it began would believe in it for ever. Repetitions have half of
        the limit, so that they do not keep anybody from hearing of what is new.
        """
        until = self._quiet_until(now)
        if until is not None and not self.holds:
            return AlertVerdict(silence=Silence.QUIET_HOURS)
        at, most = until or now, self.most_per_hour
        if most is None or fits(at, said, max(most // 2, 1) if news is News.REPEATED else most):
            return AlertVerdict(at=at)
        if news is News.RECOVERED:
            return AlertVerdict(at=self._later(at, said, most))
        return AlertVerdict(silence=Silence.RATE_LIMIT)

    def _quiet_until(self, at: datetime) -> datetime | None:
        return self.quiet.until(at) if self.quiet and self.severity is not AlertSeverity.CRITICAL else None

    def _later(self, at: datetime, said: Sequence[datetime], most: int) -> datetime:
        """Return the first time that is not quiet and has room for one more; there is some an hour after the last."""
        free = [self._quiet_until(each + HOUR) or each + HOUR for each in sorted(said) if each + HOUR > at]
        return next(time for time in free if fits(time, said, most))


@dataclass(frozen=True, slots=True)
class AlertVerdict:
    """When a message is told, or why never."""

    at: datetime | None = None
    silence: Silence | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one key. Without `news` the alert is only looked at, without a verdict's time nobody is told."""

    key: str
    alert: OpenAlert | None
    firing: Firing | None
    news: News | None = None
    verdict: AlertVerdict = field(default_factory=AlertVerdict)


def decide(
    firings: Iterable[Firing],
    open_alerts: Iterable[OpenAlert],
    policy: AlertPolicy,
    said: Sequence[datetime],
    now: datetime,
) -> list[Decision]:
    """Return what to do about everything that fires or has an open alert, by one rule.

    `said` are the times at which messages of the rule were told in the last
    hour, or are held until. What is raised comes before what recovers, since
    both share the limit.
    """
    told = list(said)
    standing = {alert.key: alert for alert in open_alerts}
    decisions = []
    for key, firing in {firing.key: firing for firing in firings}.items():
        decisions.append(_on_firing(firing, standing.pop(key, None), policy, told, now))
    for alert in standing.values():
        decisions.append(_on_absence(alert, policy, told, now))
    return decisions


def _on_firing(
    firing: Firing, alert: OpenAlert | None, policy: AlertPolicy, told: list[datetime], now: datetime
) -> Decision:
    if alert is None:
        return Decision(firing.key, None, firing, News.RAISED, _say(policy, News.RAISED, told, now))
    if _repeat_is_due(alert, policy, now):
        verdict = _say(policy, News.REPEATED, told, now)
        # One that may not be told now is simply not due yet: it leaves no trace every few seconds.
        if verdict.at is not None:
            return Decision(firing.key, alert, firing, News.REPEATED, verdict)
    return Decision(firing.key, alert, firing)


def _repeat_is_due(alert: OpenAlert, policy: AlertPolicy, now: datetime) -> bool:
    if policy.repeat_every is None or alert.is_acknowledged:
        return False
    return now >= (alert.last_told_at or alert.opened_at) + policy.repeat_every


def _on_absence(alert: OpenAlert, policy: AlertPolicy, told: list[datetime], now: datetime) -> Decision:
    if alert.absent_since is None or now - alert.absent_since < policy.recover_after:
        return Decision(alert.key, alert, None)
    if alert.first_told_at is None or alert.first_told_at > now:
        return Decision(alert.key, alert, None, News.RECOVERED, AlertVerdict(silence=Silence.UNTOLD))
    if not policy.tells_recovery:
        return Decision(alert.key, alert, None, News.RECOVERED, AlertVerdict(silence=Silence.UNWANTED))
    return Decision(alert.key, alert, None, News.RECOVERED, _say(policy, News.RECOVERED, told, now))


def _say(policy: AlertPolicy, news: News, told: list[datetime], now: datetime) -> AlertVerdict:
    verdict = policy.when(news, now, told)
    if verdict.at is not None:
        told.append(verdict.at)
    return verdict


def fits(at: datetime, said: Iterable[datetime], most: int) -> bool:
    """Return whether one more message leaves at most so many in every hour, wherever that hour begins."""
    near = sorted([at, *(each for each in said if abs(each - at) < HOUR)])
    return all(later - earlier >= HOUR for earlier, later in zip(near, near[most:], strict=False))


def next_try(attempts: int, now: datetime, retry_after: float | None = None) -> datetime:
    """Return when a delivery is tried again after so many attempts; later if the channel asked for that."""
    wait = min(FIRST_WAIT * (1 << min(attempts - 1, 20)), LONGEST_WAIT)
    asked = timedelta(seconds=min(max(retry_after or 0.0, 0.0), LONGEST_WAIT.total_seconds()))
    return now + max(wait, asked)


@dataclass(frozen=True, slots=True)
class Message:
    """What a channel is given to send, in its language. The details are for machines."""

    news: News
    # The same for every attempt at one delivery, so that whoever gets it twice can tell.
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
    # Where a person sees more of it; empty if nobody said where Facho is reached.
    url: str = ""
