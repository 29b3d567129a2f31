"""A rule tried on the past: it does what it would have done, and no more."""

from datetime import timedelta

import pytest
from builders import HOUR, MIN, T0
from hypothesis import given
from hypothesis import strategies as st

from facho.alerts.rehearsal import Span, rehearse
from facho.alerts.rules import AlertPolicy, Firing, News

POLICY = AlertPolicy(recover_after=MIN)
NOW = T0 + 100 * HOUR


def span(start, end, key="olt:3"):
    return Span(Firing(key), T0 + start * MIN, None if end is None else T0 + end * MIN)


def lives(found):
    """Return the start and the end of each alert in minutes."""
    return [tuple(at and (at - T0) / MIN for at in (alert.opened_at, alert.recovered_at)) for alert in found.alerts]


@pytest.mark.parametrize(
    ("spans", "alerts", "messages"),
    [
        pytest.param([], [], 0, id="nothing happened"),
        pytest.param([span(0, 30)], [(0, 30)], 2, id="raised and resolved"),
        pytest.param([span(0, None)], [(0, None)], 1, id="it lasts"),
        pytest.param([span(0, 30), span(30.5, 40)], [(0, 40)], 2, id="back within a minute: one"),
        pytest.param([span(0, 30), span(32, 40)], [(0, 30), (32, 40)], 4, id="back later: two"),
        pytest.param([span(0, 70), span(60, 130)], [(0, 130)], 2, id="one hour after the other"),
        pytest.param([span(0, 30, f"port:{n}") for n in range(33)], [(0, 30)] * 33, 2, id="33 ports are one message"),
    ],
)
def test_a_rule_tried_on_the_past(spans, alerts, messages):
    found = rehearse(spans, POLICY, NOW)

    assert lives(found) == alerts
    assert len(found.messages) == messages


def test_what_flaps_is_one_alert_from_the_third_time_on():
    spans = [span(10 * number, 10 * number + 3) for number in range(12)]

    found = rehearse(spans, POLICY, NOW, flap_times=3)

    assert lives(found) == [(0, 3), (10, 13), (20, 113)]
    assert len(rehearse(spans, POLICY, NOW).alerts) == 12


def test_the_future_is_not_rehearsed():
    found = rehearse([span(0, 30), span(60, 90)], POLICY, T0 + 30 * MIN)

    assert lives(found) == [(0, None)]


spans = st.lists(
    st.builds(
        lambda start, length, key: span(start, start + length, key),
        st.integers(0, 3000),
        st.integers(1, 300),
        st.sampled_from(["olt:1", "olt:2"]),
    ),
    max_size=40,
)


@given(spans)
def test_an_alert_of_the_past_covers_its_problem_and_ends_with_it(happened):
    found = rehearse(happened, POLICY, NOW)

    for each in happened:
        assert any(
            alert.firing.key == each.firing.key and alert.opened_at <= each.start and each.end <= alert.recovered_at
            for alert in found.alerts
        )
    assert {alert.recovered_at for alert in found.alerts} <= {each.end for each in happened}
    assert timedelta(0) not in {alert.recovered_at - alert.opened_at for alert in found.alerts}
    assert sum(each.news is News.RAISED for each in found.messages) <= len(found.alerts)
