"""Yes or No, from the figures of two forecasts."""

import pytest

from facho.engine.forecast.verdict import ForecastFigures, Missed, Reason, judge

STATE, POWER, COPY = 1, 2, 11


def missed(*node_ids):
    return {id_: Missed(id_, f"OLT-{id_}", "State", 50.0) for id_ in node_ids}


@pytest.mark.parametrize(
    ("today", "asked", "expected"),
    [
        pytest.param({}, {}, [], id="all is well"),
        pytest.param({}, {"missed": missed(STATE)}, [Reason.QUOTAS], id="a quota is missed"),
        pytest.param({"missed": missed(STATE)}, {"missed": missed(STATE)}, [], id="missed today as well"),
        pytest.param({"missed": missed(STATE)}, {}, [], id="no longer missed"),
        pytest.param(
            {"missed": missed(POWER)}, {"missed": missed(POWER)}, [Reason.QUOTAS], id="still, after its change"
        ),
        pytest.param({"missed": missed(STATE)}, {"missed": missed(STATE, COPY)}, [], id="a copy of it, too"),
        pytest.param({}, {"missed": missed(COPY)}, [Reason.QUOTAS], id="only the copy"),
        pytest.param({}, {"saturated": 5.0}, [], id="a pool that is full now and then"),
        pytest.param({}, {"saturated": 5.1}, [Reason.SATURATED], id="a saturated pool"),
        pytest.param({"saturated": 50.0}, {"saturated": 50.0}, [Reason.SATURATED], id="saturated today as well"),
        pytest.param({}, {"on_time": 95.0, "is_short": True}, [], id="enough in time"),
        pytest.param({}, {"on_time": 94.9}, [Reason.LATE], id="later than today"),
        pytest.param({"on_time": 60.0}, {"on_time": 58.0}, [], id="busy OLTs are as late today"),
        pytest.param({"on_time": 60.0}, {"on_time": 57.9}, [Reason.LATE], id="busy OLTs get later"),
        pytest.param(
            {"on_time": 90.0, "runs": 100}, {"on_time": 80.0, "runs": 50}, [], id="a longer interval, none is later"
        ),
        pytest.param(
            {"on_time": 90.0, "runs": 100},
            {"on_time": 80.0, "runs": 200},
            [Reason.LATE],
            id="a shorter interval, more are late",
        ),
        pytest.param(
            {"on_time": 60.0}, {"on_time": 60.0, "is_short": True}, [Reason.LATE], id="late for want of pollers"
        ),
        pytest.param(
            {},
            {"missed": missed(STATE), "saturated": 100.0, "on_time": 10.0},
            [Reason.QUOTAS, Reason.SATURATED, Reason.LATE],
            id="everything",
        ),
    ],
)
def test_a_change_fits_or_does_not(today, asked, expected):
    verdict = judge(ForecastFigures(4, **today), ForecastFigures(4, **asked), changed={POWER}, copies={COPY: STATE})

    assert list(verdict.reasons) == expected
    assert verdict.fits is not bool(expected)


def test_the_worst_quota_comes_first():
    asked = ForecastFigures(4, missed={1: Missed(1, "A", "State", 70.0), 2: Missed(2, "B", "State", 10.0)})

    assert [each.olt for each in judge(ForecastFigures(4), asked).missed] == ["B", "A"]
