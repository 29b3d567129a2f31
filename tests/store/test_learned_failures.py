"""What the executions of the last day say of how runs fail, as a forecast gets to know it."""

import pytest
from builders import HOUR, MIN, SEC, T0
from django.db import connection
from django.test.utils import CaptureQueriesContext

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.engine.forecast.failures import Failure
from facho.store import measured_runs

pytestmark = pytest.mark.django_db

CENTRAL, SUR = "OLT-CENTRAL-01", "OLT-SUR-03"


@pytest.fixture
def nodes():
    """State with Traffic behind it on two OLTs, by OLT and job."""
    state = SnmpJob.objects.create(name="State", brand="huawei", kind="table", columns=["state"])
    SnmpJob.objects.create(name="Traffic", brand="huawei", kind="table", columns=["in_octets"], follows=state)
    for name in (CENTRAL, SUR):
        state.apply_to([Olt.objects.create(name=name, brand="huawei", host="127.0.0.1", community="public")])
    return {(node.olt.name, node.job.name): node for node in WorkflowNode.objects.select_related("olt", "job")}


def run(node, slot, *endings):
    """Write an execution whose attempts ended so, two minutes apart: a status, or an error with its name."""
    last = endings[-1]
    status = last if last.isupper() else "FAILED"
    execution = Execution.objects.create(
        olt=node.olt, node=node, node_name=node.job.name, slot=slot, started_at=slot, status=status
    )
    for number, ending in enumerate(endings):
        began = slot + 2 * number * MIN
        ExecutionAttempt.objects.create(
            execution=execution,
            number=number + 1,
            status=ending if ending.isupper() else "FAILED",
            error_class="" if ending.isupper() else ending,
            started_at=began,
            ended_at=None if ending == "RUNNING" else began + 20 * SEC,
        )


def test_a_mute_olt_answered_nothing_and_is_dead(nodes):
    for number in range(3):
        run(nodes[SUR, "State"], T0 + 10 * number * MIN, *["OltUnreachable"] * 3)
    Olt.objects.filter(name=SUR).update(breaker_opened_at=T0 + 25 * MIN)

    fleet = measured_runs.fleet(T0 + HOUR)

    sur = nodes[SUR, "State"].olt_id
    assert (fleet.records[sur].runs, fleet.records[sur].silent) == (9, 9)
    assert fleet.dead == fleet.broken == {sur}


def test_a_forecast_knows_the_durations_that_the_engine_knows(nodes):
    measured = nodes[CENTRAL, "State"].pk
    WorkflowNode.objects.filter(pk=measured).update(durations={"recent": [12.0, 12.0, 12.0]})

    expected = {node.id: node.expected for node in measured_runs.fleet(T0).nodes}

    assert expected == {node.pk: 12.0 if node.pk == measured else None for node in nodes.values()}


def test_a_breaker_that_has_been_open_for_longer_than_a_day_is_dead_as_well(nodes):
    run(nodes[SUR, "State"], T0, "OltUnreachable")
    Olt.objects.filter(name=SUR).update(breaker_opened_at=T0)

    fleet = measured_runs.fleet(T0 + 25 * HOUR)

    assert fleet.records == {}
    assert fleet.dead == {nodes[SUR, "State"].olt_id}


def test_an_open_breaker_says_more_than_one_silence_does(nodes):
    for number in range(20):
        run(nodes[SUR, "State"], T0 + 10 * number * MIN, "SUCCESS" if number < 19 else "OltUnreachable")
    sur = nodes[SUR, "State"].olt_id

    before = measured_runs.fleet(T0 + 4 * HOUR)
    Olt.objects.filter(name=SUR).update(breaker_opened_at=T0 + 4 * HOUR)

    assert (before.dead, measured_runs.fleet(T0 + 4 * HOUR).dead) == (frozenset(), {sur})


def test_an_olt_that_comes_and_goes_is_not_dead_though_its_breaker_is_open(nodes):
    for number in range(60):
        away = number // 10 in (2, 5)
        run(nodes[SUR, "State"], T0 + 10 * number * MIN, "OltUnreachable" if away else "SUCCESS")
    Olt.objects.filter(name=SUR).update(breaker_opened_at=T0 + 600 * MIN)

    fleet = measured_runs.fleet(T0 + 600 * MIN)

    sur = nodes[SUR, "State"].olt_id
    assert (fleet.dead, fleet.broken) == (frozenset(), {sur})
    assert len(fleet.records[sur].outages.spans) == 2
    assert 0 < fleet.records[sur].outages.left < 7200


def test_each_attempt_counts_with_its_own_duration_and_whether_it_is_worth_another(nodes):
    state, traffic = nodes[CENTRAL, "State"], nodes[CENTRAL, "Traffic"]
    for number in range(3):
        run(state, T0 + 10 * number * MIN, "BadAnswer", "SUCCESS")
        run(traffic, T0 + 10 * number * MIN + MIN, "Refused")

    record = measured_runs.records(T0 + HOUR)[state.olt_id]

    assert (record.runs, record.silent, record.failed) == (9, 0, 6)
    assert record.habits[state.pk].attempts == 6
    assert record.habits[state.pk].failures == (Failure(20.0, is_silent=False),) * 3
    assert record.habits[traffic.pk].failures == (Failure(20.0, is_silent=False, is_temporary=False),) * 3


@pytest.mark.parametrize("ending", ["INTERRUPTED", "RUNNING"])
def test_what_was_stopped_or_is_not_over_tells_nothing(nodes, ending):
    run(nodes[CENTRAL, "State"], T0, "BadAnswer")
    run(nodes[CENTRAL, "State"], T0 + 10 * MIN, ending)

    assert measured_runs.records(T0 + HOUR)[nodes[CENTRAL, "State"].olt_id].runs == 1


@pytest.mark.parametrize(
    "forget",
    [
        pytest.param(lambda olt: None, id="longer ago than a day"),
        pytest.param(lambda olt: Execution.objects.update(slot=T0 + 24 * HOUR, node=None), id="its node was deleted"),
        pytest.param(lambda olt: Olt.objects.update(enabled=False), id="its OLT is disabled"),
        pytest.param(lambda olt: ExecutionAttempt.objects.update(status="SUCCESS"), id="nothing failed"),
    ],
)
def test_what_does_not_matter_any_more_is_not_learned(nodes, forget):
    run(nodes[CENTRAL, "State"], T0, "OltUnreachable")

    forget(nodes[CENTRAL, "State"].olt)

    assert measured_runs.records(T0 + 25 * HOUR) == {}


def test_all_is_read_at_once_and_only_of_olts_that_fail(nodes):
    for number in range(20):
        run(nodes[CENTRAL, "State"], T0 + number * MIN, "SUCCESS")
        run(nodes[SUR, "State"], T0 + number * MIN, "OltUnreachable")

    with CaptureQueriesContext(
        connection,
    ) as queries:
        known = measured_runs.records(T0 + HOUR)

    assert known.keys() == {nodes[SUR, "State"].olt_id}
    assert len(queries) == 1
