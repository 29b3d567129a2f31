"""A rule tried on the past: the decisions of `rules.py` on a virtual clock. Values only: no clock, no I/O."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count

from facho.alerts.rules import HOUR, STABLE_AFTER, AlertPolicy, Firing, News, OpenAlert, Said, decide


@dataclass(frozen=True, slots=True)
class Span:
    """A problem of the past. Without an end it still lasts."""

    firing: Firing
    start: datetime
    end: datetime | None = None


@dataclass(slots=True)
class PastAlert:
    """An alert that a rule would have opened."""

    firing: Firing
    opened_at: datetime
    recovered_at: datetime | None = None


@dataclass(slots=True)
class Rehearsal:
    """Alerts that a rule would have opened, and the messages to each channel."""

    alerts: list[PastAlert] = field(default_factory=list)
    messages: set[Said] = field(default_factory=set)


def rehearse(spans: Iterable[Span], policy: AlertPolicy, until: datetime, *, flap_times: int = 0) -> Rehearsal:
    """Run the decisions of a rule over problems of the past. Nobody acknowledges anything, and nothing is repeated."""
    stage = _Stage(replace(policy, repeat_every=None, escalate_after=None), flap_times)
    for span in spans:
        stage.plan(span.start, span.firing.key, span.firing, 1)
        if span.end is not None:
            stage.plan(span.end, span.firing.key, span.firing, -1)
    return stage.run(until)


class _Stage:
    """State of one rule. A key is looked at only when something about it changes."""

    def __init__(self, policy: AlertPolicy, flap_times: int) -> None:
        self._policy = policy
        self._flap_times = flap_times
        self._sequence = count()
        self._agenda: list[tuple[datetime, int, str, Firing | None, int]] = []
        self._active: Counter[str] = Counter()
        self._firing: dict[str, Firing] = {}
        self._open: dict[str, OpenAlert] = {}
        self._ended: dict[str, list[datetime]] = defaultdict(list)
        self._recent: set[Said] = set()
        self._result = Rehearsal()

    def plan(self, at: datetime, key: str, firing: Firing | None = None, change: int = 0) -> None:
        heapq.heappush(self._agenda, (at, next(self._sequence), key, firing, change))

    def run(self, until: datetime) -> Rehearsal:
        while self._agenda and self._agenda[0][0] <= until:
            now, keys = self._agenda[0][0], dict[str, None]()
            while self._agenda and self._agenda[0][0] == now:
                _at, _sequence, key, firing, change = heapq.heappop(self._agenda)
                keys[key] = None
                self._active[key] += change
                if firing is not None and change > 0:
                    self._firing[key] = firing
            self._step(keys, now)
        return self._result

    def _step(self, keys: Iterable[str], now: datetime) -> None:
        firings = [self._firing[key] for key in keys if self._active[key] > 0]
        standing = [self._open[key] for key in keys if key in self._open]
        self._recent = {said for said in self._recent if said.at > now - HOUR}
        for decision in decide(firings, standing, self._policy, self._recent, now):
            if decision.verdict.at is not None and decision.news is not None:
                said = Said(decision.news, decision.verdict.at)
                self._recent.add(said)
                self._result.messages.add(said)
            if decision.alert is None and decision.firing is not None:
                self._raise(decision.firing, decision.verdict.at, now)
            elif decision.alert is not None:
                self._continue(decision.alert, decision.news, now)

    def _raise(self, firing: Firing, told_at: datetime | None, now: datetime) -> None:
        ended = self._ended[firing.key] = [at for at in self._ended[firing.key] if at > now - HOUR]
        self._open[firing.key] = OpenAlert(
            id=len(self._result.alerts),
            key=firing.key,
            opened_at=now,
            first_told_at=told_at,
            last_told_at=told_at,
            is_unstable=0 < self._flap_times <= len(ended) + 1,
        )
        self._result.alerts.append(PastAlert(firing, now))

    def _continue(self, alert: OpenAlert, news: News | None, now: datetime) -> None:
        if news is News.RECOVERED:
            self._result.alerts[alert.id].recovered_at = alert.absent_since
            self._ended[alert.key].append(alert.absent_since or now)
            del self._open[alert.key]
        elif self._active[alert.key] > 0:
            self._open[alert.key] = replace(alert, absent_since=None)
        elif alert.absent_since is None:
            self._open[alert.key] = replace(alert, absent_since=now)
            wait = self._policy.recover_after
            self.plan(now + (max(wait, STABLE_AFTER) if alert.is_unstable else wait), alert.key)
