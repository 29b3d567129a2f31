"""The world of a forecast: the real engine over a fleet that only takes time, and counts that add up."""

import asyncio
from datetime import timedelta

import pytest
from builders import HOUR, MIN, SEC, T0, make_node

from facho.engine.forecast.fleet import SILENCE, Fleet, works
from facho.engine.forecast.forecast import on_grid
from facho.engine.forecast.report import Score
from facho.engine.model import Cause, Status
from facho.engine.quota.durations import Prediction
from facho.runtime.forecasting import ForecastLoop, Wish, forecast


def fleet(*nodes, seconds=10.0, **more):
    """Return a fleet whose runs always take so long: as many seconds, or by node."""
    takes = seconds if isinstance(seconds, dict) else dict.fromkeys((node.id for node in nodes), seconds)
    return Fleet(tuple(nodes), lambda node, at: Prediction(takes[node.id], takes[node.id]), **more)


def told(fleet, *, pollers=5, hours=1.0, warm_up=0 * MIN, **more):
    return forecast(Wish(fleet, pollers, hours, T0, warm_up=warm_up, **more))


def job(result, task):
    return next(each for each in result["jobs"] if each["task"] == task)


def test_a_healthy_hour_is_met_and_in_time():
    result = told(fleet(make_node(1, next_check=T0 + 1 * MIN), make_node(2, master_id=1)))

    assert (result["required"], result["completed"], result["compliance"]) == (24, 24, 100.0)
    assert (result["on_time"], result["lateness"]["max"], result["violations"]) == (100.0, 0.0, {})
    # Twelve times twenty seconds, of five pollers.
    assert result["busy"] == pytest.approx(100 * 240 / 3600 / 5, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("hours", [1, 3, 24])
def test_every_slot_of_every_hour_is_accounted_for(hours):
    nodes = [make_node(id, olt_id=id, interval=10 * MIN, next_check=T0 + id * SEC) for id in range(1, 21)]

    result = told(fleet(*nodes, seconds=45.0, dead=frozenset({3, 4})), pollers=1, hours=hours)

    assert result["required"] == 20 * 6 * hours
    assert result["completed"] + result["failed"] + result["skipped"] == result["required"]
    assert sum(result["lost"].values()) == result["failed"] + result["skipped"]


@pytest.mark.slow
def test_a_pool_that_is_too_small_loses_slots_to_it():
    nodes = [make_node(id, olt_id=id, next_check=T0) for id in range(1, 5)]

    result = told(fleet(*nodes, seconds=150.0), pollers=1, hours=4)

    assert set(result["lost"]) == {"no_free_poller"}
    assert result["compliance"] == pytest.approx(50, abs=3)
    assert result["busy"] == pytest.approx(100, abs=1)
    assert result["saturated_minutes"] == pytest.approx(4 * 60 - 1, abs=1)
    # Each OLT needs a poller half of the time, and all of them at once.
    assert result["pool"]["pollers"] == 4


@pytest.mark.slow
def test_an_olt_that_is_too_slow_loses_its_own_slots_and_no_other_ones():
    slow = [make_node(id, olt_id=1, next_check=T0) for id in (1, 2)]
    well = make_node(3, olt_id=2, next_check=T0)

    result = told(fleet(*slow, well, seconds={1: 200, 2: 200, 3: 10}), hours=4)

    assert set(result["lost"]) == {"olt_busy"}
    assert job(result, "node 3")["compliance"] == 100.0
    assert [each["olt"] for each in result["worst_olts"]] == ["OLT-01"]


@pytest.mark.slow
def test_a_dead_olt_is_a_violation_and_costs_the_others_nothing():
    nodes = [make_node(id, olt_id=id, next_check=T0 + id * SEC) for id in range(1, 11)]

    well = told(fleet(*nodes), hours=2)
    result = told(fleet(*nodes, dead=frozenset({7})), hours=2)

    assert result["violations"] == {"CRITICAL": 2}
    assert (result["completed"], result["on_time"]) == (well["completed"] * 9 // 10, 100.0)
    # One execution with its attempts, and from then on nothing is asked.
    assert (result["failed"], result["lost"]["breaker_open"]) == (1, 23)


def test_what_is_counted_is_an_engine_that_has_been_running():
    # It begins a minute before the hour that is counted, and holds the only poller for three minutes of it.
    walk = make_node(1, olt_id=1, interval=HOUR, next_check=T0 - 1 * MIN)
    state = make_node(2, olt_id=2, interval=HOUR, next_check=T0 + 30 * SEC)
    nodes = fleet(walk, state, seconds={1: 240.0, 2: 10.0})

    fresh, warm = (told(nodes, pollers=1, warm_up=minutes * MIN) for minutes in (0, 30))

    assert (fresh["required"], warm["required"]) == (2, 2)
    assert fresh["lateness"]["max"] == 0.0
    assert warm["lateness"]["max"] == pytest.approx(150, abs=1)


def test_what_dies_in_a_forecast_was_well_before():
    dying = make_node(1, next_check=T0)

    result = told(fleet(dying, dead=frozenset({1})), hours=2, warm_up=30 * MIN)

    assert (result["completed"], result["failed"], result["lost"]["breaker_open"]) == (0, 1, 23)


def test_an_olt_whose_breaker_was_open_is_not_asked_at_all():
    nodes = [make_node(1, olt_id=1, next_check=T0 - 7 * MIN), make_node(2, olt_id=1, master_id=1)]

    result = told(fleet(*nodes, dead=frozenset({1}), broken=frozenset({1})))

    assert result["lost"] == {"breaker_open": 24}
    assert result["busy"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("warm_up", "late"),
    [
        pytest.param(30 * MIN, SILENCE, id="one that dies holds a poller for one time-out"),
        pytest.param(0 * MIN, 0, id="one that was dead before is found out by a check"),
    ],
)
def test_a_dead_olt_is_given_up_as_late_as_a_real_one(warm_up, late):
    # One poller, and somebody who waits for it: by as much as silence takes.
    nodes = [make_node(1, olt_id=1, next_check=T0, priority=90), make_node(2, olt_id=2, next_check=T0)]

    result = told(fleet(*nodes, dead=frozenset({1})), pollers=1, warm_up=warm_up)

    assert result["lateness"]["max"] == pytest.approx(late, abs=1)


def test_breakers_open_when_the_installation_says():
    nodes = [make_node(1, next_check=T0)]

    result = told(fleet(*nodes, dead=frozenset({1})), opens_after=5)

    # Three attempts in the first slot, two in the second.
    assert result["failed"] == 2


def test_a_retry_that_is_due_when_the_breaker_is_open_asks_nothing():
    failing = make_node(1, next_check=T0, priority=90, interval=HOUR)
    opening = make_node(2, next_check=T0, retries=0, interval=HOUR)

    result = told(fleet(failing, opening, dead=frozenset({1})), pollers=1, opens_after=1)

    # Silence was found out by checks, so no poller was held.
    assert (result["failed"], result["busy"]) == (2, 0)


def test_what_still_waits_at_the_end_is_counted_once_with_what_it_waits_for():
    failing = make_node(1, next_check=T0, priority=90, interval=3 * HOUR)
    opening = make_node(2, next_check=T0, retries=0, interval=3 * HOUR)
    broken = make_node(3, olt_id=2, next_check=T0, interval=24 * HOUR)
    dead = {"dead": frozenset({1, 2}), "broken": frozenset({2})}

    result = told(fleet(failing, opening, broken, **dead), pollers=1, opens_after=1)

    assert result["lost"] == {"unreachable": 2, "breaker_open": 1}


def test_pending_work_when_a_breaker_opens_is_accounted_for_once():
    first, second = (make_node(id, next_check=T0, retries=0, priority=97 - id) for id in (1, 3))
    between = make_node(2, olt_id=2, next_check=T0, priority=95)

    result = told(fleet(first, between, second, dead=frozenset({1})), pollers=1, opens_after=1)

    assert result["required"] == 3 * 12
    assert result["lost"] == {"breaker_open": 23, "unreachable": 1}


def test_every_slot_of_a_fleet_that_dies_with_many_jobs_is_accounted_for():
    nodes = [make_node(id, olt_id=id % 10, next_check=T0 + 7 * id * SEC) for id in range(1, 51)]

    result = told(fleet(*nodes, dead=frozenset(range(5))), pollers=4, warm_up=10 * MIN)

    assert result["required"] == 50 * 12
    assert result["lost"].keys() <= {"unreachable", "breaker_open", "olt_busy", "no_free_poller"}


@pytest.mark.slow
def test_the_same_seed_tells_the_same_and_another_one_nearly():
    nodes = [make_node(id, olt_id=id % 4, next_check=T0 + id * SEC) for id in range(1, 13)]
    uneven = Fleet(tuple(nodes), lambda node, at: Prediction(30.0, 90.0))

    first, again, other = (told(uneven, pollers=2, hours=3, seed=seed) for seed in (1, 1, 2))

    assert first == again
    assert first["lateness"] != other["lateness"]
    assert first["on_time"] == pytest.approx(other["on_time"], abs=10)


def test_a_run_takes_its_time_limit_at_most():
    limited = make_node(1, next_check=T0, timeout=timedelta(seconds=30))

    result = told(fleet(limited, seconds=3000.0), pollers=1)

    assert result["compliance"] == 100.0
    assert result["busy"] == pytest.approx(10, abs=0.5)


def test_progress_is_told_until_the_end():
    seen = []

    forecast(Wish(fleet(make_node(1, next_check=T0)), 1, 1.0, T0), seen.append)

    assert seen[0] == 0
    assert seen[-1] == 1.0


@pytest.mark.parametrize(
    ("due", "expected"),
    [
        pytest.param(T0 - 7 * MIN, T0 + 3 * MIN, id="due before: the grid goes on"),
        pytest.param(T0 - 5 * MIN, T0, id="a slot at the start is part of it"),
        pytest.param(T0 + 9 * MIN, T0 + 4 * MIN, id="due later: it ran before that as well"),
        pytest.param(None, None, id="never on the grid: the scheduler decides"),
    ],
)
def test_a_forecast_begins_with_the_first_slot_of_each_node(due, expected):
    assert on_grid(make_node(1, next_check=due), T0).next_check == expected


def test_what_is_known_of_a_fleet_becomes_work_for_the_pool():
    found = works([make_node(1, next_check=T0), make_node(2, master_id=1)], fleet(make_node(1), make_node(2)), T0)

    assert [(work.composite.id, work.mean) for work in found] == [(1, 20.0)]


def test_a_score_judges_each_job_of_each_hour_by_itself():
    nodes = {1: make_node(1), 2: make_node(2)}
    score = Score(T0, T0 + 2 * HOUR, nodes)

    for minute in range(0, 60, 5):
        score.ended(1, T0 + minute * MIN, Status.SUCCESS, None)
        score.ended(2, T0 + minute * MIN, Status.PARTIAL if minute < 30 else Status.FAILED, None)
    score.ended(1, T0 + HOUR, Status.SKIPPED, Cause.OLT_BUSY)
    score.ended(1, T0 + 2 * HOUR, Status.SKIPPED, Cause.OLT_BUSY)

    report = score.report()
    assert report["violations"] == {"HIGH": 1, "CRITICAL": 1}
    assert (report["required"], report["completed"], report["failed"], report["skipped"]) == (25, 18, 6, 1)
    assert report["lost"] == {"error": 6, "olt_busy": 1}


def test_a_slot_that_was_lost_was_not_in_time():
    node = make_node(1)
    score = Score(T0, T0 + HOUR, {1: node})

    for minute, late in ((0, 0), (5, 5), (10, 6)):
        score.began(node, T0 + minute * MIN, T0 + minute * MIN + late * SEC)
        score.ended(1, T0 + minute * MIN, Status.SUCCESS, None)
    score.ended(1, T0 + 15 * MIN, Status.SKIPPED, Cause.OLT_BUSY)

    report = score.report()
    assert report["on_time"] == 50.0
    assert report["lateness"] == {"p50": 5.0, "p95": 6.0, "p99": 6.0, "max": 6.0}


def test_how_late_a_dead_olt_began_is_nobodys_business():
    dead, well = make_node(1, olt_id=1), make_node(2, olt_id=2)
    score = Score(T0, T0 + HOUR, {1: dead, 2: well}, dead=frozenset({1}))

    for node, late in ((dead, 60), (well, 0)):
        score.began(node, T0, T0 + late * SEC)
    score.ended(1, T0, Status.FAILED, Cause.UNREACHABLE)
    score.ended(1, T0 + 5 * MIN, Status.SKIPPED, Cause.BREAKER_OPEN)
    score.ended(2, T0, Status.SUCCESS, None)

    report = score.report()
    assert (report["on_time"], report["lateness"]["max"]) == (100.0, 0.0)
    assert report["compliance"] == pytest.approx(100 / 3, abs=0.01)


def test_a_loop_without_sockets_still_keeps_the_order_of_time():
    seen = []

    async def story():
        loop = asyncio.get_running_loop()
        for delay in (3.0, 1.0, 2.0):
            loop.call_later(delay, seen.append, delay)
        await asyncio.sleep(3600)
        return loop.time()

    with asyncio.Runner(loop_factory=ForecastLoop) as runner:
        assert runner.run(story()) == pytest.approx(3600)
    assert seen == [1.0, 2.0, 3.0]
