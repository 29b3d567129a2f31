"""Who is told what, and when: once for each thing, not at night, not too often, and once more when it is over."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from builders import HOUR, MIN, SEC, T0
from hypothesis import given
from hypothesis import strategies as st

from facho.alerts.rules import (
    DIGEST_EVERY,
    STABLE_AFTER,
    AlertPolicy,
    AlertSeverity,
    Firing,
    News,
    OnCall,
    OpenAlert,
    QuietHours,
    Said,
    Silence,
    decide,
    due_times,
    fits,
    next_try,
)

LIMA = ZoneInfo("America/Lima")
MADRID = ZoneInfo("Europe/Madrid")
NIGHT = QuietHours(time(22), time(7), ZoneInfo("UTC"))
MIDNIGHT = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)
SUR = Firing("olt:3", {"olt": "OLT-SUR-03"}, olt_id=3)


def open_alert(**more):
    return OpenAlert(**{"id": 7, "key": SUR.key, "opened_at": T0, "first_told_at": T0, "last_told_at": T0} | more)


def only(decisions):
    [decision] = decisions
    return decision


class Story:
    """Evaluations of one rule one after the other, with what was told in between."""

    def __init__(self, policy, start=T0):
        self.policy = policy
        self.now = start
        self.open = {}
        self.alerts = 0
        # (news, key, when it is told)
        self.told = []
        self.decisions = []

    def see(self, *keys, after=timedelta(0)):
        self.now += after
        firings = [Firing(key) for key in keys]
        said = {Said(news, at) for news, _key, at in self.told}
        for decision in decide(firings, self.open.values(), self.policy, said, self.now):
            self._keep(decision)

    def _keep(self, decision):
        self.decisions.append(decision)
        alert, key = decision.alert, (decision.alert or decision.firing).key
        if alert is None:
            self.alerts += 1
            assert key not in self.open
            alert = OpenAlert(self.alerts, key, self.now)
        if decision.firing is None:
            alert = replace(alert, absent_since=alert.absent_since or self.now)
        else:
            alert = replace(alert, absent_since=None)
        if decision.verdict.at is not None:
            at = decision.verdict.at
            alert = replace(alert, first_told_at=alert.first_told_at or at, last_told_at=at)
            alert = replace(alert, is_escalated=alert.is_escalated or decision.news is News.ESCALATED)
            self.told.append((decision.news, key, at))
        self.open[key] = alert
        if decision.news is News.RECOVERED:
            del self.open[key]

    def news(self):
        return [news for news, _key, _at in self.told]

    def messages(self):
        """Return what was sent: the keys by news and time."""
        sent = {}
        for news, key, at in self.told:
            sent.setdefault((news, at - T0), []).append(key)
        return sent


def raised(*times):
    return [Said(News.RAISED, at) for at in times]


def test_what_fires_for_the_first_time_is_raised_at_once():
    decision = only(decide([SUR], [], AlertPolicy(), [], T0))

    assert (decision.news, decision.firing, decision.alert) == (News.RAISED, SUR, None)
    assert decision.verdict.at == T0


def test_what_goes_on_firing_is_told_once():
    story = Story(AlertPolicy())

    for _ in range(100):
        story.see("olt:3", after=10 * SEC)

    assert story.news() == [News.RAISED]


def test_two_firings_of_one_key_are_one_alert():
    twice = [SUR, replace(SUR, params={"olt": "OLT-SUR-03", "again": True})]

    assert len(decide(twice, [], AlertPolicy(), [], T0)) == 1


def test_it_recovers_once_when_it_has_been_absent_long_enough():
    story = Story(AlertPolicy(recover_after=60 * SEC))
    story.see("olt:3")

    for _ in range(30):
        story.see(after=10 * SEC)

    assert [(news, at - T0) for news, _key, at in story.told] == [
        (News.RAISED, timedelta(0)),
        # Absent since the first evaluation without it, at 10 s.
        (News.RECOVERED, 70 * SEC),
    ]
    assert story.open == {}


def test_flapping_is_one_alert_and_no_recovery():
    story = Story(AlertPolicy(recover_after=60 * SEC))

    for round_ in range(100):
        story.see(*["olt:3"] * (round_ % 3 == 0), after=20 * SEC)

    assert story.news() == [News.RAISED]
    assert len(story.open) == 1


def test_what_comes_back_after_its_recovery_is_another_alert():
    story = Story(AlertPolicy(recover_after=60 * SEC))
    story.see("olt:3")
    story.see(after=10 * SEC)
    story.see(after=60 * SEC)

    story.see("olt:3", after=10 * SEC)

    assert story.news() == [News.RAISED, News.RECOVERED, News.RAISED]
    assert story.alerts == 2


@pytest.mark.parametrize(
    ("alert", "now", "news"),
    [
        pytest.param({}, T0 + 59 * MIN, None, id="not yet"),
        pytest.param({}, T0 + HOUR, News.REPEATED, id="an hour after it was told"),
        pytest.param({"last_told_at": T0 + 30 * MIN}, T0 + HOUR, None, id="counted from the last time"),
        pytest.param({"is_acknowledged": True}, T0 + 5 * HOUR, None, id="somebody looks after it"),
        pytest.param({"first_told_at": None, "last_told_at": None}, T0 + HOUR, News.REPEATED, id="nobody was told yet"),
    ],
)
def test_an_alert_is_repeated_until_somebody_looks_after_it(alert, now, news):
    policy = AlertPolicy(repeat_every=HOUR)

    assert only(decide([SUR], [open_alert(**alert)], policy, [], now)).news is news


@pytest.mark.parametrize(
    ("alert", "now", "news"),
    [
        pytest.param({}, T0 + 14 * MIN, None, id="not yet"),
        pytest.param({}, T0 + 15 * MIN, News.ESCALATED, id="nobody acknowledged it"),
        pytest.param({"first_told_at": T0 + 5 * MIN}, T0 + 15 * MIN, None, id="counted from the first message"),
        pytest.param({"is_acknowledged": True}, T0 + HOUR, None, id="somebody looks after it"),
        pytest.param({"is_escalated": True}, T0 + HOUR, None, id="once"),
    ],
)
def test_an_alert_that_nobody_acknowledges_is_escalated_once(alert, now, news):
    policy = AlertPolicy(escalate_after=15 * MIN)

    assert only(decide([SUR], [open_alert(**alert)], policy, [], now)).news is news


def test_a_held_alert_is_only_listed():
    policy = AlertPolicy(repeat_every=MIN, escalate_after=MIN)

    new = only(decide([SUR], [], policy, [], T0, held={SUR.key}))
    known = only(decide([SUR], [open_alert()], policy, [], T0 + HOUR, held={SUR.key}))

    assert (new.firing, new.news) == (SUR, None)
    assert known.news is None


@pytest.mark.parametrize(
    ("told", "news"), [pytest.param(None, News.RAISED, id="never told"), pytest.param(T0, None, id="told before")]
)
def test_what_still_fires_when_it_is_not_held_any_more_is_told_once(told, news):
    held = open_alert(is_held=True, first_told_at=told, last_told_at=told)

    assert only(decide([SUR], [held], AlertPolicy(), [], T0 + HOUR)).news is news
    assert only(decide([SUR], [replace(held, is_held=False)], AlertPolicy(), [], T0 + HOUR)).news is None


@pytest.mark.parametrize(
    ("absent", "news"), [(STABLE_AFTER - SEC, None), (STABLE_AFTER, News.RECOVERED)], ids=["still in doubt", "stable"]
)
def test_an_unstable_alert_is_over_when_it_has_been_gone_for_long(absent, news):
    unstable = open_alert(is_unstable=True, absent_since=T0)

    assert only(decide([], [unstable], AlertPolicy(recover_after=60 * SEC), [], T0 + absent)).news is news


# 2026-03-02 is a Monday.
OFFICE = OnCall(LIMA, frozenset(range(5)), time(8), time(18))
NIGHT_SHIFT = OnCall(LIMA, frozenset({4}), time(22), time(6))


def in_lima(day, hour, minute=0):
    return datetime(2026, 3, day, hour, minute, tzinfo=LIMA)


@pytest.mark.parametrize(
    ("on_call", "at", "when"),
    [
        pytest.param(OnCall(LIMA), in_lima(2, 3), in_lima(2, 3), id="always"),
        pytest.param(OFFICE, in_lima(2, 8), in_lima(2, 8), id="as it begins"),
        pytest.param(OFFICE, in_lima(2, 7, 59), in_lima(2, 8), id="before it begins"),
        pytest.param(OFFICE, in_lima(2, 18), in_lima(3, 8), id="as it ends: tomorrow"),
        pytest.param(OFFICE, in_lima(6, 19), in_lima(9, 8), id="Friday evening: Monday"),
        pytest.param(NIGHT_SHIFT, in_lima(7, 5), in_lima(7, 5), id="Saturday morning is the night of Friday"),
        pytest.param(NIGHT_SHIFT, in_lima(7, 6), in_lima(13, 22), id="next Friday"),
        pytest.param(NIGHT_SHIFT, in_lima(6, 5), in_lima(6, 22), id="not the night of Thursday"),
        pytest.param(OnCall(LIMA, frozenset({5, 6})), in_lima(6, 12), in_lima(7, 0), id="whole days of a weekend"),
        pytest.param(
            OnCall(MADRID, frozenset(), time(2, 30), time(4)),
            datetime(2026, 3, 29, 0, 45, tzinfo=UTC),
            datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
            id="half past two does not exist",
        ),
    ],
)
def test_a_message_waits_until_its_channel_is_on_call(on_call, at, when):
    assert on_call.next(at.astimezone(UTC)) == when


ALWAYS = OnCall(LIMA)


@pytest.mark.parametrize(
    ("channels", "severity", "due"),
    [
        pytest.param({1: OFFICE, 2: ALWAYS}, "warning", {1: in_lima(9, 8), 2: in_lima(7, 3)}, id="each in its time"),
        pytest.param({1: OFFICE, 2: ALWAYS}, "critical", {1: in_lima(9, 8), 2: in_lima(7, 3)}, id="one is on call"),
        pytest.param({1: OFFICE}, "warning", {1: in_lima(9, 8)}, id="nobody is on call: it waits"),
        pytest.param({1: OFFICE}, "critical", {1: in_lima(7, 3)}, id="nobody is on call: a critical one does not wait"),
    ],
)
def test_a_critical_message_reaches_somebody_at_once(channels, severity, due):
    assert due_times(in_lima(7, 3).astimezone(UTC), channels, AlertSeverity(severity)) == due


def test_once_is_enough_unless_a_rule_says_otherwise():
    assert only(decide([SUR], [open_alert()], AlertPolicy(), [], T0 + 100 * HOUR)).news is None


def test_a_repetition_that_may_not_be_told_leaves_no_trace():
    policy = AlertPolicy(repeat_every=HOUR, most_per_hour=1)

    decision = only(decide([SUR], [open_alert()], policy, [Said(News.REPEATED, T0 + HOUR - MIN)], T0 + HOUR))

    assert (decision.news, decision.verdict.silence) == (None, None)


@pytest.mark.parametrize(
    ("alert", "policy", "silence"),
    [
        pytest.param({}, AlertPolicy(), None, id="who was told that it began is told that it ended"),
        pytest.param(
            {"first_told_at": None, "last_told_at": None}, AlertPolicy(), Silence.UNTOLD, id="nobody was ever told"
        ),
        pytest.param({"first_told_at": T0 + 9 * HOUR}, AlertPolicy(), Silence.UNTOLD, id="it is still held back"),
        pytest.param({"last_told_at": T0 + 9 * HOUR}, AlertPolicy(), None, id="only its repetition is held back"),
        pytest.param({}, AlertPolicy(tells_recovery=False), Silence.UNWANTED, id="the rule does not want it"),
        pytest.param({}, AlertPolicy(quiet=QuietHours(time(9), time(12), ZoneInfo("UTC")), holds=False),
                     Silence.QUIET_HOURS, id="not in quiet hours"),
    ],
)  # fmt: skip
def test_recovery_is_told_to_those_who_know_of_it(alert, policy, silence):
    gone = open_alert(absent_since=T0, **alert)

    decision = only(decide([], [gone], policy, [], T0 + 60 * SEC))

    assert decision.news is News.RECOVERED
    assert decision.verdict.silence is silence
    assert (decision.verdict.at is None) == (silence is not None)


@pytest.mark.parametrize(
    ("quiet", "now", "until"),
    [
        pytest.param(NIGHT, MIDNIGHT, MIDNIGHT + 7 * HOUR, id="in the middle of the night"),
        pytest.param(NIGHT, MIDNIGHT - 2 * HOUR, MIDNIGHT + 7 * HOUR, id="as it begins, before midnight"),
        pytest.param(NIGHT, MIDNIGHT + 7 * HOUR, None, id="as it ends"),
        pytest.param(NIGHT, MIDNIGHT + 12 * HOUR, None, id="at noon"),
        pytest.param(
            QuietHours(time(1), time(5), LIMA), MIDNIGHT + 9 * HOUR, MIDNIGHT + 10 * HOUR, id="4 in the morning in Lima"
        ),
        pytest.param(QuietHours(time(1), time(5), LIMA), MIDNIGHT + 4 * HOUR, None, id="still evening in Lima"),
        pytest.param(QuietHours(time(7), time(7), LIMA), MIDNIGHT + 12 * HOUR, None, id="no time at all"),
        pytest.param(
            QuietHours(time(22), time(7), MADRID),
            datetime(2026, 3, 28, 22, 0, tzinfo=UTC),
            datetime(2026, 3, 29, 5, 0, tzinfo=UTC),
            id="the short night",
        ),
        pytest.param(
            QuietHours(time(22), time(2, 30), MADRID),
            datetime(2026, 10, 25, 1, 15, tzinfo=UTC),
            datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
            id="half past two, the second time",
        ),
    ],
)
def test_quiet_hours_end_by_the_local_clock(quiet, now, until):
    assert quiet.until(now) == until


@pytest.mark.parametrize(
    ("policy", "at", "silence"),
    [
        pytest.param(AlertPolicy(quiet=NIGHT), MIDNIGHT + 7 * HOUR, None, id="held until morning"),
        pytest.param(AlertPolicy(quiet=NIGHT, holds=False), None, Silence.QUIET_HOURS, id="dropped"),
        pytest.param(AlertPolicy(quiet=NIGHT, severity=AlertSeverity.CRITICAL), MIDNIGHT, None, id="critical: at once"),
        pytest.param(AlertPolicy(), MIDNIGHT, None, id="no quiet hours"),
    ],
)
def test_at_night_only_what_is_critical_is_told(policy, at, silence):
    verdict = only(decide([SUR], [], policy, [], MIDNIGHT)).verdict

    assert (verdict.at, verdict.silence) == (at, silence)


def test_that_it_is_over_is_told_later_rather_than_never_where_the_limit_is_reached():
    over = open_alert(absent_since=T0 + 20 * MIN)

    decision = only(decide([], [over], AlertPolicy(most_per_hour=2), raised(T0, T0 + 10 * MIN), T0 + 30 * MIN))

    assert decision.news is News.RECOVERED
    assert (decision.verdict.at, decision.verdict.silence) == (T0 + HOUR, None)


def test_what_is_told_later_because_of_the_limit_is_not_told_at_night():
    over = open_alert(opened_at=MIDNIGHT - 3 * HOUR, absent_since=MIDNIGHT - 140 * MIN)
    policy, began = AlertPolicy(most_per_hour=1, quiet=NIGHT), MIDNIGHT - 150 * MIN

    decision = only(decide([], [replace(over, first_told_at=began)], policy, raised(began), MIDNIGHT - 130 * MIN))

    assert decision.verdict.at == MIDNIGHT + 7 * HOUR


def test_repetitions_leave_half_of_the_limit_to_what_is_new():
    policy = AlertPolicy(most_per_hour=4, repeat_every=10 * MIN)
    told = open_alert(last_told_at=T0 - 10 * MIN)
    new = Firing("olt:2", {"olt": "OLT-NORTE-02"}, olt_id=2)

    again, first = decide([SUR, new], [told], policy, raised(T0 - 20 * MIN, T0 - 10 * MIN), T0)

    assert again.news is None
    assert (first.news, first.verdict.at) == (News.RAISED, T0)


def ports(count):
    return [f"port:3:1/{number}" for number in range(count)]


def test_what_happens_within_a_minute_is_one_message():
    story = Story(AlertPolicy())

    story.see(*ports(21))
    story.see(*ports(25), after=10 * SEC)
    story.see(*ports(33), after=10 * SEC)

    assert {when: len(keys) for when, keys in story.messages().items()} == {
        # The first at once, the rest together.
        (News.RAISED, 0 * SEC): 21,
        (News.RAISED, DIGEST_EVERY): 12,
    }


def test_what_is_above_the_limit_is_told_together_when_the_limit_allows_it():
    policy, said = AlertPolicy(most_per_hour=3), raised(T0 - 50 * MIN, T0 - 30 * MIN, T0 - 10 * MIN)

    decisions = decide([Firing(key) for key in ports(5)], [], policy, said, T0)

    assert {(decision.news, decision.verdict.at) for decision in decisions} == {(News.RAISED, T0 + 10 * MIN)}


def test_a_limit_does_not_hold_back_what_is_critical():
    policy = AlertPolicy(most_per_hour=1, severity=AlertSeverity.CRITICAL)

    decision = only(decide([SUR], [], policy, raised(T0 - 10 * MIN, T0 - 5 * MIN), T0))

    assert decision.verdict.at == T0


def test_what_is_critical_does_not_wait_for_what_was_held_until_morning():
    """The rule became critical in the night."""
    policy = AlertPolicy(severity=AlertSeverity.CRITICAL, quiet=NIGHT)

    decision = only(decide([SUR], [], policy, raised(MIDNIGHT + 7 * HOUR), MIDNIGHT))

    assert decision.verdict.at == MIDNIGHT


def test_a_night_is_one_message_in_the_morning():
    story = Story(AlertPolicy(quiet=NIGHT, most_per_hour=1), start=MIDNIGHT)

    for count in range(1, 30):
        story.see(*ports(count), after=10 * MIN)

    assert {when: len(keys) for when, keys in story.messages().items()} == {(News.RAISED, MIDNIGHT + 7 * HOUR - T0): 29}


@pytest.mark.parametrize(
    ("said", "is_free"),
    [
        pytest.param([], True, id="nothing was said"),
        pytest.param([T0, T0 - 59 * MIN], False, id="two within the hour"),
        pytest.param([T0, T0 - 60 * MIN], True, id="one of them an hour ago"),
        pytest.param([T0 + 1 * MIN, T0 + 59 * MIN], False, id="two are held until soon"),
        pytest.param([T0 - 40 * MIN, T0 + 40 * MIN], True, id="one before and one after, in no hour together"),
    ],
)
def test_the_limit_is_counted_in_every_hour_that_a_message_is_in(said, is_free):
    assert fits(T0, said, 2) is is_free


@pytest.mark.parametrize(
    ("attempts", "retry_after", "wait"),
    [
        pytest.param(1, None, 30 * SEC, id="first"),
        pytest.param(2, None, 60 * SEC, id="twice as long"),
        pytest.param(7, None, 32 * MIN, id="seventh"),
        pytest.param(8, None, HOUR, id="never longer than an hour"),
        pytest.param(500, None, HOUR, id="however often"),
        pytest.param(1, 120.0, 120 * SEC, id="the channel asked for more"),
        pytest.param(3, 5.0, 120 * SEC, id="the channel asked for less"),
        pytest.param(1, 86400.0, HOUR, id="the channel asked for a day"),
        pytest.param(1, -5.0, 30 * SEC, id="the channel asked for the past"),
    ],
)
def test_a_failed_delivery_waits_longer_each_time(attempts, retry_after, wait):
    assert next_try(attempts, T0, retry_after) - T0 == wait


policies = st.builds(
    AlertPolicy,
    severity=st.sampled_from(AlertSeverity),
    repeat_every=st.sampled_from([None, 5 * MIN, 60 * MIN]),
    most_per_hour=st.sampled_from([None, 1, 3]),
    quiet=st.sampled_from([None, QuietHours(time(10, 30), time(11, 15), ZoneInfo("UTC")), NIGHT]),
    holds=st.booleans(),
    tells_recovery=st.booleans(),
    recover_after=st.sampled_from([0 * SEC, 60 * SEC]),
    escalate_after=st.sampled_from([None, 10 * MIN]),
)
evaluations = st.lists(
    st.tuples(st.sets(st.sampled_from(["olt:1", "olt:2", "olt:3"])), st.sampled_from([10, 70, 600, 2700])),
    max_size=60,
)


def lived(policy, seen):
    """Return a story of evaluations. That a key never has two open alerts it sees to itself."""
    story = Story(policy)
    for keys, seconds in seen:
        story.see(*sorted(keys), after=seconds * SEC)
    return story


@given(policies, evaluations)
def test_each_alert_recovers_once_at_most_and_only_after_it_was_raised(policy, seen):
    story = lived(policy, seen)

    ended = [decision for decision in story.decisions if decision.news is News.RECOVERED]
    raised = [decision for decision in story.decisions if decision.news is News.RAISED]
    assert len({decision.alert.id for decision in ended}) == len(ended)
    assert len(raised) == len(ended) + len(story.open)


@given(policies, evaluations)
def test_nothing_but_what_is_critical_is_told_in_quiet_hours(policy, seen):
    story = lived(policy, seen)

    at_night = [at for _news, _key, at in story.told if policy.quiet and policy.quiet.until(at)]
    assert policy.severity is AlertSeverity.CRITICAL or at_night == []


@given(policies, evaluations)
def test_no_hour_has_more_messages_than_the_limit(policy, seen):
    story = lived(policy, seen)

    times = [at for _news, at in story.messages()]
    most = max((sum(first <= at < first + HOUR for at in times) for first in times), default=0)
    is_limited = policy.most_per_hour is not None and policy.severity is not AlertSeverity.CRITICAL
    assert not is_limited or most <= policy.most_per_hour


@given(policies, evaluations)
def test_messages_with_the_same_news_are_a_minute_apart(policy, seen):
    story = lived(policy, seen)

    for news in News:
        times = sorted(at for each, at in story.messages() if each is news)
        assert all(later - earlier >= DIGEST_EVERY for earlier, later in pairwise(times))


@given(policies, evaluations)
def test_no_alert_is_dropped_because_of_a_limit(policy, seen):
    story = lived(policy, seen)

    assert Silence.RATE_LIMIT not in {decision.verdict.silence for decision in story.decisions}


@given(policies, evaluations)
def test_who_is_told_that_it_ended_was_told_that_it_began(policy, seen):
    story = lived(policy, seen)

    begun = set()
    for news, key, _at in story.told:
        assert news is not News.RECOVERED or key in begun
        if news is News.RECOVERED:
            begun.discard(key)
        else:
            begun.add(key)
