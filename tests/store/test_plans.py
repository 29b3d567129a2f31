"""Plans as rows: one per hour and OLT, created in advance, replaced on a change, compared with the result."""

import logging

import pytest
from builders import HOUR, MIN, SEC, T0
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from contracts.worlds import DbWorld, Inline, by_hand, done, scheduled
from facho.apps.coordinator.models import ExecutionPlan
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.engine.events import Event
from facho.engine.model import Cause, Outcome, Status, Traffic
from facho.engine.quota.durations import learn
from facho.store.plans import Planner, make_plans

pytestmark = pytest.mark.django_db


def make_job(name="Optical power", minutes=15, **more):
    defaults = {"brand": "huawei", "kind": "table", "columns": ["rx_dbm"], "interval_seconds": 60 * minutes}
    return SnmpJob.objects.create(name=name, **defaults | more)


def make_olt(name="OLT-CENTRAL-01"):
    return Olt.objects.create(name=name, brand="huawei", host="127.0.0.1", community="public")


def apply(job, olt, *, due=T0 + 5 * MIN, seconds=30.0):
    """Put a job on an OLT and on the grid; it has always taken so long."""
    [node] = job.apply_to([olt])
    for each in (node, *node.chain.all()):
        durations = learn({}, seconds, T0) if seconds else {}
        next_run_at = due if each.master_id is None else None
        WorkflowNode.objects.filter(pk=each.pk).update(next_run_at=next_run_at, durations=durations)
    return WorkflowNode.objects.get(pk=node.pk)


def ran(node, slot, status="SUCCESS", *, seconds=30, **more):
    times = {} if status == "SKIPPED" else {"started_at": slot + 2 * SEC, "ended_at": slot + (2 + seconds) * SEC}
    return Execution.objects.create(
        olt=node.olt, node=node, node_name=node.job.name, slot=slot, status=status, **times | more
    )


@pytest.fixture
def central():
    return make_olt()


@pytest.fixture
def power(central):
    """Every 15 minutes from five past on, half a minute each."""
    return apply(make_job(), central)


@pytest.fixture
def events(caplog):
    """Return the events that were told so far, by name."""
    caplog.set_level(logging.INFO, logger="facho.store.plans")
    return lambda: [record.event.name for record in caplog.records if hasattr(record, "event")]


def plans(**filters):
    return list(ExecutionPlan.objects.filter(**filters).order_by("pk"))


def minutes(plan, name="slot"):
    return [entry[name] and entry[name][14:16] for entry in plan.plan_data]


def test_an_olt_has_one_plan_for_the_hour(power, central):
    assert make_plans(T0) == 1

    [plan] = plans()
    assert (plan.olt_id, plan.status) == (central.pk, "ACTIVE")
    assert (plan.period_start, plan.period_end) == (T0, T0 + HOUR)
    assert minutes(plan) == minutes(plan, "start") == ["05", "20", "35", "50"]
    assert (plan.total_tasks, plan.needed_seconds, plan.utilisation, plan.is_feasible) == (4, 120, 3.3, True)


def test_nothing_is_made_twice_and_hardly_anything_is_asked_for(power):
    make_plans(T0)

    with CaptureQueriesContext(connection) as queries:
        assert make_plans(T0 + 1 * MIN) == 0

    assert len(queries) == 4
    assert len(plans()) == 1


def test_a_run_that_takes_a_little_longer_changes_no_plan(power):
    make_plans(T0)
    WorkflowNode.objects.filter(pk=power.pk).update(next_run_at=T0 + 20 * MIN, durations=learn({}, 99.0, T0))

    assert make_plans(T0 + 6 * MIN) == 0


def test_runs_that_take_much_longer_plan_the_rest_of_the_hour_again(power, events):
    make_plans(T0)
    WorkflowNode.objects.filter(pk=power.pk).update(next_run_at=T0 + 20 * MIN, durations=learn({}, 1062.0, T0))

    assert make_plans(T0 + 6 * MIN) == 1

    before, after = plans()
    assert (before.status, before.utilisation, before.reason) == ("SUPERSEDED", 3.3, "hour")
    assert (after.status, after.utilisation, after.is_feasible) == ("ACTIVE", 118.0, False)
    assert (after.reason, minutes(after)) == ("durations", ["20", "35", "50"])
    assert events() == ["PLAN_ADJUSTED", "HOUR_INFEASIBLE"]
    assert make_plans(T0 + 7 * MIN) == 0


def test_an_open_breaker_loses_the_slots_of_the_rest_of_the_hour(power, central, events):
    make_plans(T0)
    Olt.objects.update(breaker_opened_at=T0 + 6 * MIN)
    WorkflowNode.objects.update(next_run_at=T0 + 20 * MIN)
    make_plans(T0 + 6 * MIN)
    blocked = plans(status="ACTIVE")[0]

    Olt.objects.update(breaker_opened_at=None)
    WorkflowNode.objects.update(next_run_at=T0 + 35 * MIN)
    make_plans(T0 + 30 * MIN)

    assert [(entry["start"], entry["cause"]) for entry in blocked.plan_data] == [(None, "breaker_open")] * 3
    [again] = plans(status="ACTIVE")
    assert (blocked.reason, again.reason) == ("reachability", "reachability")
    assert (minutes(again, "start"), blocked.utilisation) == (["35", "50"], 3.3)
    assert events() == ["PLAN_ADJUSTED", "PLAN_ADJUSTED"]


@pytest.mark.parametrize(
    ("now", "hours"),
    [pytest.param(T0 + 49 * MIN, 1, id="not yet"), pytest.param(T0 + 50 * MIN, 2, id="ten minutes before")],
)
def test_the_next_hour_is_planned_before_it_begins(power, now, hours):
    make_plans(now)

    assert [plan.period_start for plan in plans(status="ACTIVE")] == [T0 + n * HOUR for n in range(hours)]


def test_the_next_hour_goes_on_with_the_plan_that_was_made_before(power):
    make_plans(T0 + 50 * MIN)

    make_plans(T0 + HOUR)

    [plan] = plans(status="ACTIVE")
    assert minutes(plan) == ["05", "20", "35", "50"]


def test_an_olt_that_is_busy_is_free_later(power):
    other = apply(make_job("State", minutes=60, kind="table"), power.olt, due=T0 + HOUR, seconds=600.0)
    ran(other, T0 - 10 * SEC, "RUNNING", started_at=T0, ended_at=None)

    make_plans(T0 + 1 * MIN)

    assert minutes(plans()[0], "start")[0] == "10"


def test_a_changed_interval_supersedes_the_plan_from_now_on(power, events):
    make_plans(T0)
    ran(power, T0 + 5 * MIN)
    power.own_interval_seconds = 600
    power.save()
    WorkflowNode.objects.filter(pk=power.pk).update(next_run_at=T0 + 15 * MIN)

    assert make_plans(T0 + 10 * MIN) == 1

    before, after = plans()
    assert (before.status, before.completed_tasks) == ("SUPERSEDED", 1)
    assert [entry.get("status") for entry in before.plan_data] == ["SUCCESS", None, None, None]
    assert after.status == "ACTIVE"
    assert minutes(after) == ["15", "25", "35", "45", "55"]
    assert (after.reason, events()) == ("changed", ["PLAN_ADJUSTED"])


def test_a_node_that_comes_onto_the_grid_gets_into_the_plan(central, power):
    make_plans(T0)
    make_job("State").apply_to([central])
    make_plans(T0 + 1 * SEC)
    WorkflowNode.objects.exclude(pk=power.pk).update(next_run_at=T0 + 7 * MIN)

    make_plans(T0 + 1 * MIN)

    assert minutes(plans(status="ACTIVE")[0]) == ["05", "07", "20", "22", "35", "37", "50", "52"]


def test_a_plan_is_made_again_when_it_is_known_how_long_a_job_takes(central):
    node = apply(make_job(), central, seconds=None)
    make_plans(T0)
    WorkflowNode.objects.filter(pk=node.pk).update(durations=learn({}, 2.0, T0))

    make_plans(T0 + 6 * MIN)
    make_plans(T0 + 7 * MIN)

    guessed, known = plans()
    assert (guessed.status, known.status) == ("SUPERSEDED", "ACTIVE")
    assert (guessed.needed_seconds, known.needed_seconds) == (0, 8)


def test_a_disabled_olt_has_no_plan(power, central):
    make_plans(T0)
    central.disable()

    assert make_plans(T0 + 10 * MIN) == 0

    assert [plan.status for plan in plans()] == ["ABORTED"]


def test_an_olt_without_a_job_has_no_plan_and_was_not_disabled(power):
    make_plans(T0)
    power.own_enabled = False
    power.save()

    assert make_plans(T0 + 10 * MIN) == 0

    assert [plan.status for plan in plans()] == ["SUPERSEDED"]


def test_a_plan_of_an_hour_that_is_over_says_what_really_happened(power):
    make_plans(T0)
    ran(power, T0 + 5 * MIN)
    ran(power, T0 + 20 * MIN, "FAILED", cause="unreachable")
    ran(power, T0 + 35 * MIN, "SKIPPED", slots=2, cause="breaker_open")

    make_plans(T0 + HOUR)

    plan = plans(status="COMPLETED")[0]
    assert [entry["status"] for entry in plan.plan_data] == ["SUCCESS", "FAILED", "SKIPPED", "SKIPPED"]
    assert [entry["cause"] for entry in plan.plan_data] == [None, "unreachable", "breaker_open", "breaker_open"]
    assert minutes(plan, "actual_start") == ["05", "20", None, None]
    assert plan.plan_data[0]["actual_end"] == "2026-03-01T10:05:32.000+00:00"
    assert (plan.completed_tasks, plan.failed_tasks, plan.total_tasks) == (1, 1, 4)


def test_the_links_of_a_chain_are_planned_and_compared_too(central):
    job = make_job(minutes=60)
    make_job("Names", follows=job)
    node = apply(job, central)
    make_plans(T0)
    ran(node, T0 + 5 * MIN)
    ran(node.chain.get(), T0 + 5 * MIN, "PARTIAL")

    make_plans(T0 + HOUR)

    [entry] = plans(status="COMPLETED")[0].plan_data
    [link] = entry["chain"]
    assert (link["task"], link["start"][14:19], link["end"][14:19]) == ("Names", "05:30", "06:00")
    assert (link["status"], link["actual_start"][14:19]) == ("PARTIAL", "05:02")


@pytest.mark.parametrize(
    ("now", "statuses"),
    [
        pytest.param(T0 + HOUR, ["ACTIVE", "ACTIVE"], id="something is still running"),
        pytest.param(T0 + HOUR + 5 * MIN, ["COMPLETED", "ACTIVE"], id="nobody waits any longer"),
    ],
)
def test_a_plan_waits_a_while_for_what_is_still_open(power, now, statuses):
    make_plans(T0)
    ran(power, T0 + 50 * MIN, "RUNNING", ended_at=None)

    make_plans(now)

    assert [plan.status for plan in plans()] == statuses


def test_an_hour_that_is_too_short_is_told_beforehand_and_once(central, events):
    apply(make_job("State", minutes=5), central, seconds=5.0)
    apply(make_job(), central, seconds=1050.0)

    make_plans(T0 + 50 * MIN)
    SnmpJob.objects.filter(name="State").update(priority=41)
    make_plans(T0 + 51 * MIN)
    make_plans(T0 + HOUR)

    assert events().count("HOUR_INFEASIBLE") == 2
    assert {plan.is_feasible for plan in plans()} == {False}
    [advice] = plans()[0].advice
    sentence = Event[advice["event"]].form(advice["params"]) % advice["params"]
    assert sentence == "OLT-CENTRAL-01 needs 71 of 60 minutes: increase the interval of Optical power to 20 min"


def test_an_hour_that_several_jobs_must_make_room_in_is_told_with_all_of_them(central, caplog):
    for name in ("Power", "State", "Names"):
        apply(make_job(name, minutes=5), central, seconds=250.0)

    make_plans(T0)

    [said] = [each.getMessage() for each in caplog.records if each.event is Event.HOUR_INFEASIBLE]
    assert said == (
        "OLT-CENTRAL-01 needs 150 of 60 minutes: increase the interval of Power to 20 min, and also State "
        "(20 min), Names (10 min)"
    )


def test_a_job_that_never_ran_makes_no_hour_too_short(central, events):
    apply(make_job(minutes=1, kind="get"), central, seconds=None)

    make_plans(T0)

    assert plans()[0].is_feasible
    assert events() == []


@pytest.fixture
def count_queries():
    """Return how many queries planning takes for so many OLTs, at the turn of an hour and after a change."""

    def count(olts):
        job = make_job(f"Job of {olts}")
        for number in range(olts):
            node = apply(job, make_olt(f"OLT-{olts}-{number:03}"))
            ran(node, T0 + 5 * MIN)
        make_plans(T0)
        job.interval_seconds = 600
        job.save()
        with CaptureQueriesContext(connection) as queries:
            make_plans(T0 + HOUR)
        return len(queries)

    return count


def test_the_number_of_queries_does_not_grow_with_the_olts(count_queries):
    few = count_queries(2)
    Olt.objects.all().delete()
    many = count_queries(20)

    assert few == many


SUCCESS = Outcome(Status.SUCCESS, traffic=Traffic(pdus=3, rtt_p50=0.02))
GARBAGE = Outcome(Status.FAILED, None, "cannot be read", "BadAnswer")


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def state(world):
    """A job every five minutes from the hour on, with a chain, in the plan of the hour."""
    node = world.add("State", next_check=T0)
    world.names = world.add("Names", master_id=node.id)
    make_plans(T0 - 1 * MIN)
    make_plans(T0)
    return node


def run(world, node, slot, outcome, *, chain=()):
    for id_ in world.claim(scheduled(node, *chain, slot=slot), now=slot + 2 * SEC).execution_ids:
        world.start(id_, now=slot + 2 * SEC)
        world.close([id_], outcome, now=slot + 9 * SEC)


def counts():
    [plan] = plans(status="ACTIVE", period_start=T0)
    return plan.completed_tasks, plan.failed_tasks, plan.failures_in_row


def test_an_active_plan_counts_runs_as_they_end(world, state):
    run(world, state, T0, SUCCESS, chain=[world.names])
    first = counts()
    run(world, state, T0 + 5 * MIN, GARBAGE, chain=[world.names])
    run(world, state, T0 + 10 * MIN, Outcome(Status.SKIPPED, Cause.OLT_BUSY))

    assert (first, counts()) == ((1, 0, 0), (1, 1, 1))


def test_a_manual_run_is_in_no_plan(world, state):
    world.wish(state, T0 + 1 * MIN)
    claim = world.claim(by_hand(state, slot=T0 + 1 * MIN), now=T0 + 1 * MIN)
    world.start(claim.execution_ids[0], now=T0 + 1 * MIN)
    world.close(claim.execution_ids, SUCCESS, now=T0 + 2 * MIN)

    assert counts() == (0, 0, 0)


def test_a_run_that_was_claimed_before_the_plan_was_made_is_not_in_it(world, state):
    (id_,) = world.claim(scheduled(state, slot=T0), now=T0).execution_ids
    world.start(id_, now=T0)
    Olt.objects.update(breaker_opened_at=T0)
    make_plans(T0 + 1 * MIN)
    world.close([id_], SUCCESS, now=T0 + 2 * MIN)

    assert counts() == (0, 0, 0)


def test_interrupted_runs_fail_but_are_no_failures_of_the_olt(world, state):
    world.claim(scheduled(state, slot=T0), now=T0)
    world.disable()
    world.abort(olts=[world.olt_id], now=T0 + 1 * MIN)

    assert counts() == (0, 1, 0)


def step(planner, now):
    done(planner.step(now))


@pytest.fixture
def planner(world, state):
    planner = Planner(Inline())
    step(planner, T0 + 1 * SEC)
    return planner


def test_the_rest_of_the_hour_is_planned_again_after_several_failures(world, state, planner, events):
    for number in range(3):
        run(world, state, T0 + number * 5 * MIN, GARBAGE)
        step(planner, T0 + 1 * SEC)

    before, after = plans(period_start=T0)
    assert (before.status, before.failed_tasks) == ("SUPERSEDED", 3)
    assert (after.reason, after.failed_tasks, minutes(after)[0]) == ("failures", 0, "15")
    assert events() == ["EMERGENCY_REPLAN"]


def test_failures_plan_an_hour_again_once(world, state, planner, events):
    for number in range(9):
        run(world, state, T0 + number * 5 * MIN, GARBAGE)
        step(planner, T0 + number * 5 * MIN + 10 * SEC)

    assert (events(), counts()) == (["EMERGENCY_REPLAN"], (0, 6, 6))


def test_failures_between_successes_are_no_emergency(world, state, planner, events):
    for number in range(9):
        run(world, state, T0 + number * 5 * MIN, GARBAGE if number % 3 else SUCCESS)
        step(planner, T0 + number * 5 * MIN + 10 * SEC)

    assert "EMERGENCY_REPLAN" not in events()


def test_a_change_is_planned_with_the_next_step_and_not_with_the_next_minute(world, state, planner, events):
    world.add("Power", interval=20 * MIN, next_check=T0 + 7 * MIN)
    step(planner, T0 + 3 * SEC)
    before = events()

    planner.changed([world.olt_id])
    step(planner, T0 + 5 * SEC)

    assert (before, events()) == ([], ["PLAN_ADJUSTED"])


def test_a_change_that_could_not_be_planned_is_planned_later(world, state, events):
    class Failing(Inline):
        is_down = False

        async def run(self, work):
            if self.is_down:
                raise OperationalError("the database is unavailable")
            return work()

    thread = Failing()
    planner = Planner(thread)
    step(planner, T0 + 1 * SEC)
    world.add("Power", interval=20 * MIN, next_check=T0 + 7 * MIN)
    planner.changed([world.olt_id])
    thread.is_down = True
    with pytest.raises(OperationalError):
        step(planner, T0 + 3 * SEC)

    thread.is_down = False
    step(planner, T0 + 5 * SEC)

    assert events() == ["PLAN_ADJUSTED"]


def test_a_step_without_news_is_one_query(planner):
    with CaptureQueriesContext(connection) as queries:
        step(planner, T0 + 3 * SEC)

    assert len(queries) == 1


def test_all_olts_are_looked_at_once_a_minute(world, state, planner, events):
    world.add("Power", interval=20 * MIN, next_check=T0 + 7 * MIN)

    step(planner, T0 + 59 * SEC)
    before = events()
    step(planner, T0 + 61 * SEC)

    assert (before, events()) == ([], ["PLAN_ADJUSTED"])
