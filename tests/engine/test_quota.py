"""What an hour owes, how bad it is when it did not get it, and what to do then: tables."""

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone

import pytest
from builders import HOUR, MIN, SEC, T0
from hypothesis import given, settings
from hypothesis import strategies as st

from facho.engine.model import Cause, Status
from facho.engine.quota.quota import (
    ADVICE,
    CURES,
    SHARES,
    Count,
    CountedRun,
    Severity,
    Share,
    Verdict,
    advice,
    by_hour,
    hour_of,
    percent,
    report,
    severity,
    slots_between,
    verdict,
)

DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param(T0, T0, id="on the hour"),
        pytest.param(T0 + 59 * MIN + 59.999999 * SEC, T0, id="the last instant"),
        pytest.param(T0 - 0.000001 * SEC, T0 - HOUR, id="the instant before"),
        pytest.param(
            datetime(2026, 3, 1, 15, 45, tzinfo=timezone(timedelta(hours=5, minutes=45))), T0, id="Nepal: 5:45 ahead"
        ),
    ],
)
def test_hours_are_those_of_utc(at, expected):
    assert hour_of(at) == expected
    assert hour_of(at).tzinfo is UTC


@pytest.mark.parametrize(
    ("due", "interval", "slots"),
    [
        pytest.param(T0, 5 * MIN, 12, id="twelve an hour"),
        pytest.param(T0 + 3 * MIN, 5 * MIN, 12, id="wherever they lie"),
        pytest.param(T0 + 37 * MIN, 5 * MIN, 5, id="from when it was put on the grid"),
        pytest.param(T0 + 55 * MIN, 5 * MIN, 1, id="the last one"),
        pytest.param(T0 + 60 * MIN, 5 * MIN, 0, id="due in the next hour"),
        pytest.param(T0 - 7 * MIN, 5 * MIN, 12, id="due before, and still waiting"),
        pytest.param(T0 - 30 * DAY, 5 * MIN, 12, id="due a month ago"),
        pytest.param(T0 + 7 * SEC, 7 * MIN, 9, id="an interval that does not divide the hour"),
        pytest.param(T0 + 5 * MIN, 7 * MIN, 8, id="the same, in another hour"),
        pytest.param(T0 + 10 * MIN, HOUR, 1, id="once an hour"),
        pytest.param(T0 - 30 * MIN, HOUR, 1, id="once an hour, due before"),
        pytest.param(T0 - 1 * HOUR, DAY, 0, id="once a day, not now"),
        pytest.param(T0 - 3 * DAY + 5 * MIN, DAY, 1, id="once a day, now"),
        pytest.param(T0, 10 * SEC, 360, id="every ten seconds"),
    ],
)
def test_an_hour_owes_the_slots_that_lie_in_it(due, interval, slots):
    assert slots_between(due, interval, T0, T0 + HOUR) == slots


@settings(deadline=None)
@given(
    due=st.integers(-100_000, 100_000),
    interval=st.integers(1, 20_000),
    start=st.integers(-50_000, 50_000),
    length=st.integers(0, 10_000),
)
def test_slots_are_counted_as_one_would_count_them(due, interval, start, length):
    counted = [at for at in range(due, start + length, interval) if start <= at < start + length]

    assert slots_between(T0 + due * SEC, interval * SEC, T0 + start * SEC, T0 + (start + length) * SEC) == len(counted)


@pytest.mark.parametrize(
    ("slot", "interval", "slots", "expected"),
    [
        pytest.param(T0, 5 * MIN, 0, [], id="none"),
        pytest.param(T0 + 5 * MIN, 5 * MIN, 3, [(T0, 3)], id="within an hour"),
        pytest.param(T0 + 50 * MIN, 5 * MIN, 4, [(T0, 2), (T0 + HOUR, 2)], id="over the turn of an hour"),
        pytest.param(T0 + 1 * MIN, 90 * MIN, 2, [(T0, 1), (T0 + HOUR, 1)], id="one and a half hours apart"),
        pytest.param(T0, 3 * HOUR, 2, [(T0, 1), (T0 + 3 * HOUR, 1)], id="hours without a slot have no share"),
        pytest.param(
            T0 + 30 * MIN,
            5 * MIN,
            6 + 71 * 12 + 6,
            [(T0, 6), *((T0 + n * HOUR, 12) for n in range(1, 72)), (T0 + 72 * HOUR, 6)],
            id="an outage of three days",
        ),
    ],
)
def test_slots_are_shared_out_to_their_hours(slot, interval, slots, expected):
    assert list(by_hour(slot, interval, slots)) == expected


@settings(deadline=None)
@given(offset=st.integers(0, 10_000), interval=st.integers(10, 50_000), slots=st.integers(0, 300))
def test_no_slot_is_lost_or_doubled_between_hours(offset, interval, slots):
    counted = Counter(hour_of(T0 + (offset + number * interval) * SEC) for number in range(slots))

    shares = list(by_hour(T0 + offset * SEC, interval * SEC, slots))

    assert shares == sorted(counted.items())


@pytest.mark.parametrize(
    ("completed", "required", "expected"),
    [
        pytest.param(12, 12, None, id="all"),
        pytest.param(10, 12, None, id="83 %"),
        pytest.param(4, 5, None, id="80 % is enough"),
        pytest.param(0, 0, None, id="nothing was required"),
        pytest.param(9, 12, Severity.LOW, id="75 %"),
        pytest.param(3, 5, Severity.LOW, id="60 %"),
        pytest.param(7, 12, Severity.MEDIUM, id="58 %"),
        pytest.param(51, 100, Severity.MEDIUM, id="51 %"),
        pytest.param(2, 4, Severity.HIGH, id="two of four discoveries"),
        pytest.param(3, 12, Severity.HIGH, id="25 %"),
        pytest.param(2, 12, Severity.CRITICAL, id="17 %"),
        pytest.param(0, 1, Severity.CRITICAL, id="nothing of one"),
        pytest.param(0, 12, Severity.CRITICAL, id="nothing"),
    ],
)
def test_the_less_was_completed_the_worse_it_is(completed, required, expected):
    assert severity(completed, required) is expected


@pytest.mark.parametrize(
    ("completed", "required", "expected"),
    [
        pytest.param(12, 12, Verdict.COMPLETED, id="all"),
        pytest.param(0, 0, Verdict.COMPLETED, id="nothing was required"),
        pytest.param(10, 12, Verdict.PARTIAL, id="enough"),
        pytest.param(9, 12, Verdict.QUOTA_NOT_MET, id="not enough"),
        pytest.param(0, 12, Verdict.FAILED, id="nothing"),
    ],
)
def test_an_hour_gets_its_verdict(completed, required, expected):
    assert verdict(completed, required) is expected


def test_every_end_of_an_execution_is_counted_somewhere():
    ended = set(Status) - {Status.PENDING, Status.RUNNING}

    assert SHARES.keys() == ended
    assert {status for status, share in SHARES.items() if share is Share.COMPLETED} == {Status.SUCCESS, Status.PARTIAL}
    assert SHARES[Status.INTERRUPTED] is Share.FAILED


def test_what_a_person_disabled_is_missing_for_nobody():
    count = Count(completed=5, failed=1, skipped=6, causes={Cause.DISABLED.value: 7})

    assert (count.required, count.wanted) == (12, 5)
    assert severity(count.completed, count.wanted) is None


@pytest.mark.parametrize(
    ("completed", "required", "expected"),
    [
        pytest.param(2, 3, 66.7, id="rounded"),
        pytest.param(0, 0, 100.0, id="nothing was required"),
    ],
)
def test_percent(completed, required, expected):
    assert percent(completed, required) == expected


@pytest.mark.parametrize(
    ("causes", "codes"),
    [
        pytest.param({}, [], id="nothing is known"),
        pytest.param({"disabled": 9}, [], id="a person wanted it so"),
        pytest.param({"unreachable": 3, "breaker_open": 9}, ["check_reachability"], id="a mute OLT is said once"),
        pytest.param({"olt_busy": 2}, ["relieve_olt"], id="the OLT had too much to do"),
        pytest.param({"no_free_poller": 2}, ["more_pollers"], id="too few pollers"),
        pytest.param({"engine_down": 2, "stopped": 1}, ["check_service"], id="the engine was down"),
        pytest.param({"scheduler_late": 2}, ["check_load"], id="the scheduler was late"),
        pytest.param({"lease_lost": 2}, ["check_holders"], id="somebody else held it"),
        pytest.param({"database_unavailable": 2}, ["check_database"], id="the database did not answer"),
        pytest.param({"broker_unavailable": 2}, ["check_broker"], id="Redis did not answer"),
        pytest.param({"Refused": 2}, ["check_credentials"], id="it does not accept us"),
        pytest.param({"BadAnswer": 2}, ["check_answers"], id="it cannot be understood"),
        pytest.param({"OSError": 1, "KeyError": 2}, ["check_error"], id="anything else is said once"),
        pytest.param(
            {"olt_busy": 1, "unreachable": 4, "no_free_poller": 2},
            ["check_reachability", "more_pollers", "relieve_olt"],
            id="what cures most comes first",
        ),
        pytest.param(
            {"olt_busy": 5, "unreachable": 3, "breaker_open": 3},
            ["check_reachability", "relieve_olt"],
            id="causes with one cure weigh together",
        ),
    ],
)
def test_advice_follows_from_the_causes(causes, codes):
    given_advice = advice("OLT-NORTE-02", "Discovery", causes, ["Optical power", "Names"])

    assert [each["code"] for each in given_advice] == codes


def test_advice_names_what_to_lengthen_and_what_to_drop():
    (busy,) = advice("OLT-NORTE-02", "Discovery", {"olt_busy": 3}, ["Optical power", "State", "Names"])
    (alone,) = advice("OLT-NORTE-02", "Discovery", {"olt_busy": 3}, ["Discovery"])
    (error,) = advice("OLT-NORTE-02", "Discovery", {"KeyError": 1, "OSError": 3}, [])

    assert busy["sentence"] == (
        "OLT-NORTE-02 was busy: increase the interval of Optical power, or remove Names from this OLT."
    )
    assert busy["params"] == {"olt": "OLT-NORTE-02", "lengthen": "Optical power", "drop": "Names"}
    assert (alone["code"], alone["params"]) == ("lengthen_interval", {"olt": "OLT-NORTE-02", "lengthen": "Discovery"})
    assert error["sentence"].startswith("Discovery failed with OSError")


def test_every_cause_has_its_advice_and_every_advice_can_be_said():
    known = {"olt": "OLT-SUR-03", "task": "Discovery", "error": "KeyError", "lengthen": "Names", "drop": "State"}

    assert {cause.value for cause in Cause} - CURES.keys() == {"disabled", "maintenance"}
    assert set(CURES.values()) <= ADVICE.keys()
    assert all(sentence % known for sentence in ADVICE.values())


def test_a_report_says_the_numbers_and_where_the_time_went():
    runs = [
        CountedRun("Discovery", T0, 20.0, 0.1, {"starting": 0.1}),
        CountedRun("Discovery", T0 + 15 * MIN, 30.0, 71.4, {"olt_busy": 71.0, "starting": 0.4}),
        CountedRun("Optical power", T0, 300.0, 400.0, {"olt_busy": 400.0}),
        CountedRun("Discovery", T0 + 30 * MIN),
    ]
    count = Count(completed=2, skipped=2, causes={"olt_busy": 2})

    said = report("OLT-NORTE-02", "Discovery", count, runs)

    assert (said["required"], said["completed"], said["skipped"], said["percent"]) == (4, 2, 2, 50.0)
    assert (said["failed"], said["pending"], said["causes"]) == (0, 0, {"olt_busy": 2})
    assert said["slowest"] == [
        {"task": "Optical power", "mean_seconds": 300.0, "max_seconds": 300.0, "runs": 1},
        {"task": "Discovery", "mean_seconds": 25.0, "max_seconds": 30.0, "runs": 2},
    ]
    assert said["worst_lateness"] == {
        "task": "Discovery",
        "slot": (T0 + 15 * MIN).isoformat(),
        "seconds": 71.4,
        "parts": {"olt_busy": 71.0, "starting": 0.4},
    }
    assert [each["code"] for each in said["advice"]] == ["relieve_olt"]


def test_a_report_of_an_hour_in_which_nothing_ran_reports_it():
    said = report("OLT-SUR-03", "Discovery", Count(skipped=12, causes={"engine_down": 12}), [])

    assert (said["percent"], said["slowest"], said["worst_lateness"]) == (0.0, [], None)
