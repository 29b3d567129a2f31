"""Where the time between a slot and its start went: whatever happened, the parts add up."""

from datetime import timedelta

import pytest
from cast import T0, make_execution
from hypothesis import given
from hypothesis import strategies as st

from facho.apps.polling.lateness import PART_LABELS, milliseconds, parts
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.polling.queries import with_parts
from facho.engine.model import Cause

CAUSES = [Cause.SCHEDULER_LATE, Cause.OLT_BUSY, Cause.NO_FREE_POLLER, Cause.BREAKER_OPEN]

seconds = st.floats(min_value=0, max_value=10_000, allow_nan=False)


def in_milliseconds(split):
    return sum(milliseconds(each) for each in split.values())


@given(
    late=st.floats(min_value=-60, max_value=10_000, allow_nan=False),
    waits=st.dictionaries(st.sampled_from([cause.value for cause in CAUSES]), seconds),
)
def test_parts_add_up_to_the_lateness_to_the_millisecond(late, waits):
    split = parts(late, waits)

    assert in_milliseconds(split) == milliseconds(late)
    assert all(each > 0 for each in split.values()) or late <= 0


@pytest.mark.parametrize(
    ("late", "waits", "expected"),
    [
        pytest.param(0.4, {}, {"starting": 0.4}, id="nothing to wait for: it was being started"),
        pytest.param(
            73.2,
            {"no_free_poller": 2.5, "olt_busy": 70.2},
            {"olt_busy": 70.2, "no_free_poller": 2.5, "starting": 0.5},
            id="what it waited for, and the rest",
        ),
        pytest.param(5.0, {"olt_busy": 8.0}, {"olt_busy": 5.0}, id="a wait longer than the lateness is cut"),
        pytest.param(0.0, {}, {}, id="on the second: nothing to explain"),
        pytest.param(-2.0, {"olt_busy": 1.0}, {"starting": -2.0}, id="a clock that went back"),
    ],
)
def test_a_lateness_is_split_by_what_it_waited_for(late, waits, expected):
    assert parts(late, waits) == expected


def test_every_cause_of_a_wait_has_words():
    assert {cause.value for cause in CAUSES} < PART_LABELS.keys()


def test_a_link_waited_with_its_master_and_then_for_its_turn(node, chained):
    master = make_execution(node, waits={"olt_busy": 10.0}, started_at=T0 + timedelta(seconds=11))
    make_execution(chained, master_execution=master, started_at=T0 + timedelta(seconds=41))

    link = with_parts(Execution.objects.filter(node=chained)).get()

    assert link.parts == {"olt_busy": 10.0, "in_chain": 31.0}


def test_an_execution_that_was_tried_again_was_late_until_its_first_attempt(node):
    run = make_execution(node, waits={"olt_busy": 1.0}, started_at=T0 + timedelta(seconds=2))
    for number, after in ((1, 2), (2, 137)):
        ExecutionAttempt.objects.create(
            execution=run, number=number, status="FAILED", started_at=T0 + timedelta(seconds=after)
        )

    found = with_parts(Execution.objects.all()).get()

    assert found.attempts_made == 2
    assert found.parts == {"olt_busy": 1.0, "starting": 1.0}


def test_a_slot_that_never_started_says_what_it_waited_for(node):
    make_execution(node, status="SKIPPED", cause="olt_busy", waits={"olt_busy": 300.0}, started_at=None, ended_at=None)

    assert with_parts(Execution.objects.all()).get().parts == {"olt_busy": 300.0}
