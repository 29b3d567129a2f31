"""Forecasts in which runs fail as they did: retries, breakers and probes do what they do in truth."""

from collections import Counter
from datetime import timedelta

import pytest
from builders import MIN, SEC, T0, make_node

from facho.engine.forecast.failures import Failure, Habit, OltOutages, RunRecord
from facho.engine.forecast.fleet import SILENCE, Chance, Fleet
from facho.engine.model import Cause, Status
from facho.engine.quota.durations import Prediction
from facho.engine.scheduling.breaker import PROBE_EVERY, first_probe
from facho.runtime.forecasting import Wish, forecast

SILENT, ERROR, REFUSED = Failure(20.0, True), Failure(200.0, False), Failure(1.0, False, is_temporary=False)


def fleet(*nodes, **more):
    """Return a fleet whose runs take ten seconds if they go well."""
    return Fleet(tuple(nodes), lambda node, at: Prediction(10.0, 10.0), **more)


def told(fleet, *, pollers=5, hours=1.0, warm_up=0 * MIN, **more):
    return forecast(Wish(fleet, pollers, hours, T0, warm_up=warm_up, **more))


def fails(*failures, of, **more):
    return RunRecord(runs=of, usual=Habit(of, failures), **more)


def away(begin, end, *, of=60, left=0.0):
    """Return the record of an OLT that was unreachable from one minute to another."""
    since = T0 - of * MIN
    return RunRecord(of, outages=OltOutages(since, T0, ((since + begin * MIN, since + end * MIN),), left))


def draws(record, number, **more):
    chance = Chance(fleet(records={1: record}, **more), T0, seed=1)
    return [chance.run(make_node(1), T0, 300.0) for _ in range(number)]


def test_the_share_of_failures_is_what_it_was_whatever_the_dice_say():
    ends = Counter(outcome.status for outcome, _ in draws(fails(ERROR, SILENT, of=6), 30))

    assert ends == {Status.SUCCESS: 20, Status.FAILED: 10}


def test_a_failure_takes_its_own_time_and_not_that_of_good_runs():
    [(outcome, seconds)] = draws(fails(ERROR, of=1), 1)

    assert (outcome.status, outcome.cause, seconds) == (Status.FAILED, None, 200.0)


@pytest.mark.parametrize(
    ("record", "seconds"),
    [
        pytest.param(RunRecord(silences=(30.0,)), 30.0, id="as long as it took before"),
        pytest.param(RunRecord(), SILENCE, id="a request and its repetitions, where nobody knows"),
    ],
)
def test_silence_takes_what_silence_took(record, seconds):
    [(outcome, took)] = draws(record, 1, dead=frozenset({1}))

    assert (outcome.cause, took) == (Cause.UNREACHABLE, seconds)


@pytest.mark.parametrize(
    ("retries", "failed"),
    [
        pytest.param(0, 6, id="every other run fails"),
        # Two failures in a row there are, but never three.
        pytest.param(2, 0, id="and none does that is tried three times"),
    ],
)
def test_a_run_that_fails_is_tried_again(retries, failed):
    node = make_node(1, next_check=T0, retries=retries, retry_delay=10 * SEC)
    every_other = fails(Failure(5.0, False), of=2)

    result = told(fleet(node, records={1: every_other}))

    assert (result["completed"], result["failed"]) == (12 - failed, failed)


def test_a_refusal_is_not_tried_again():
    result = told(fleet(make_node(1, next_check=T0), records={1: fails(REFUSED, of=1)}))

    assert (result["failed"], result["lost"]) == (12, {"error": 12})
    assert result["busy"] < 0.2


def test_a_retry_has_no_more_time_than_its_slot_has_left():
    slow = make_node(1, next_check=T0, interval=10 * MIN, retries=1)
    record = fails(Failure(290.0, False), of=1)

    result = told(fleet(slow, records={1: record}), pollers=1)

    # 290 s, 120 s of waiting, and the rest of the ten minutes: 190 s. So the next slot begins in time.
    assert result["busy"] == pytest.approx(100 * 480 / 600, abs=1)
    assert result["lateness"]["max"] <= 1


def test_the_links_behind_an_error_are_asked_and_those_behind_silence_are_not():
    links = (make_node(1, next_check=T0, retries=0), make_node(2, master_id=1, retries=0))
    well = Habit(1, ())

    after_error, after_silence = (
        told(fleet(*links, records={1: RunRecord(1, habits={1: Habit(1, (failure,)), 2: well})}))
        for failure in (ERROR, SILENT)
    )

    assert (after_error["completed"], after_error["failed"], after_error["skipped"]) == (12, 12, 0)
    assert (after_silence["completed"], after_silence["failed"], after_silence["skipped"]) == (0, 12, 12)
    assert after_silence["busy"] == pytest.approx(100 * 12 * 20 / 3600 / 5, abs=0.1)


def test_answers_keep_a_breaker_closed():
    deaf, well = (make_node(id, next_check=T0 + 30 * id * SEC, retries=0, interval=1 * MIN) for id in (1, 2))
    habits = {1: Habit(1, (SILENT,)), 2: Habit(1, ())}

    result = told(fleet(deaf, well, records={1: RunRecord(1, habits=habits)}))

    assert result["lost"] == {"unreachable": 60}
    assert result["lateness"]["max"] <= 1


def test_silence_in_a_row_opens_a_breaker_and_an_olt_that_is_there_closes_it():
    node = make_node(1, next_check=T0, retries=0, interval=1 * MIN)

    result = told(fleet(node, records={1: fails(SILENT, of=1)}), hours=2)

    # Three runs, and then a slot or so that is lost until the probe.
    assert result["lost"]["unreachable"] + result["lost"].get("breaker_open", 0) == 120
    assert result["lost"]["unreachable"] > 60


def test_a_breaker_closes_with_the_first_probe_that_is_answered():
    node = make_node(1, next_check=T0, interval=1 * MIN, retries=0)

    result = told(fleet(node, records={1: away(10, 30)}))

    # Away for twenty minutes: three are spent on finding out, and one at most on finding it back.
    assert result["lost"]["unreachable"] == 3
    assert 16 <= result["lost"]["breaker_open"] <= 18
    assert result["completed"] == 60 - result["failed"] - result["skipped"]


def test_a_breaker_that_waits_for_a_person_stays_open():
    node = make_node(1, next_check=T0, interval=1 * MIN, retries=0)

    result = told(fleet(node, records={1: away(10, 30)}), auto_recover=False)

    assert result["completed"] == 10
    assert result["lost"]["breaker_open"] == 47


def test_an_olt_whose_breaker_is_open_now_is_asked_when_it_is_back():
    node = make_node(1, next_check=T0, interval=1 * MIN)
    known = {1: away(50, 60, left=600.0)}

    result = told(fleet(node, broken=frozenset({1}), records=known), warm_up=10 * MIN)

    # Ten minutes more, and the last ten of the hour as in the hour before.
    assert set(result["lost"]) <= {"breaker_open", "unreachable"}
    assert result["completed"] == pytest.approx(40, abs=2)


@pytest.mark.parametrize(
    ("left", "minute", "is_away"),
    [
        pytest.param(600.0, -5, True, id="before the start, as it stands"),
        pytest.param(600.0, 5, True, id="not back yet"),
        pytest.param(600.0, 15, False, id="back, as it was there an hour before"),
        pytest.param(600.0, 55, True, id="away again, as an hour before"),
        pytest.param(0.0, -5, False, id="before the start, as it stands: it is there"),
        pytest.param(0.0, 5, False, id="there"),
    ],
)
def test_an_olt_is_unavailable_until_it_is_back_and_then_when_it_was(left, minute, is_away):
    chance = Chance(fleet(records={1: away(50, 60, left=left)}), T0, seed=1)

    assert chance.is_away(1, T0 + minute * MIN) is is_away


def test_olts_that_went_dark_together_do_so_again():
    chance = Chance(fleet(records={1: away(10, 30), 2: away(10, 30)}), T0, seed=3)

    dark = [{olt for olt in (1, 2) if chance.is_away(olt, T0 + minute * MIN)} for minute in range(120)]

    assert all(each in (set(), {1, 2}) for each in dark)
    assert sum(map(bool, dark)) == 40


@pytest.mark.parametrize(
    ("minute", "found"),
    [
        pytest.param(5, 6, id="it is there: the first probe"),
        pytest.param(12, 31, id="away until the thirtieth minute"),
    ],
)
def test_probes_go_out_once_a_minute_until_one_is_answered(minute, found):
    chance = Chance(fleet(records={1: away(10, 30)}), T0, seed=1)

    at = chance.found_at(1, T0 + minute * MIN)

    assert T0 + (found - 1) * MIN <= at <= T0 + found * MIN
    assert (at - first_probe(1, T0 + minute * MIN)) % PROBE_EVERY == timedelta(0)


@pytest.mark.parametrize(
    ("dead", "record"),
    [
        pytest.param({1}, RunRecord(), id="dead"),
        pytest.param(set(), away(0, 60), id="away all the time"),
    ],
)
def test_nobody_finds_an_olt_that_is_never_there(dead, record):
    chance = Chance(fleet(dead=frozenset(dead), records={1: record}), T0, seed=1)

    assert chance.found_at(1, T0) is None


def test_slots_that_a_breaker_cost_are_not_late():
    node = make_node(1, next_check=T0, interval=1 * MIN, retries=0)

    result = told(fleet(node, records={1: away(10, 30)}))

    # All but the one that waited when the breaker closed.
    ran = result["completed"] + result["failed"]
    assert result["on_time"] == pytest.approx(100 * (ran - 1) / ran, abs=0.1)
    assert result["jobs"][0]["on_time"] == result["on_time"]


def test_what_was_learned_is_told_worst_first():
    nodes = [make_node(id, olt_id=id, next_check=T0) for id in (1, 2, 3)]
    records = {1: RunRecord(24, silent=0, failed=6), 2: RunRecord(12, silent=12), 3: RunRecord(9)}

    result = told(fleet(*nodes, records=records))

    assert result["failures"] == [
        {"olt": "OLT-02", "runs": 12, "answered": 0, "failed": 0},
        {"olt": "OLT-01", "runs": 24, "answered": 24, "failed": 6},
    ]


@pytest.mark.slow
def test_the_same_seed_tells_the_same_failures():
    nodes = [make_node(id, olt_id=id % 3, next_check=T0 + id * SEC) for id in range(1, 13)]
    failing = fleet(*nodes, records={id: fails(ERROR, SILENT, of=5) for id in range(3)})

    first, again, other = (told(failing, pollers=2, hours=3, seed=seed) for seed in (1, 1, 2))

    assert first == again
    assert first != other


@pytest.mark.slow
@pytest.mark.parametrize("hours", [1, 3])
def test_every_slot_of_a_failing_fleet_is_accounted_for(hours):
    nodes = [make_node(id, olt_id=id % 5, next_check=T0 + 7 * id * SEC) for id in range(1, 31)]
    records = {0: away(3, 20), 1: fails(SILENT, of=2), 2: fails(ERROR, of=1), 3: away(50, 60, left=900.0)}

    result = told(fleet(*nodes, records=records, broken=frozenset({3})), pollers=3, hours=hours)

    assert result["required"] == 30 * 12 * hours
    assert sum(result["lost"].values()) == result["failed"] + result["skipped"]
