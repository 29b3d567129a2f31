"""Why is this late? Summary, last slots with the causes of their delays, next slots, and obstacles."""

from datetime import timedelta

import pytest
from cast import BOSS, T0, make_execution, make_plan
from hypothesis import example, given
from hypothesis import strategies as st

from facho.adapters.bus.local import LocalBus
from facho.apps.coordinator.explain import explain
from facho.apps.coordinator.serializers import SlotSerializer
from facho.apps.coordinator.stories import SlotStory
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling import live
from facho.apps.polling.models import Execution, ExecutionAttempt

NOW = T0 + timedelta(minutes=4)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

FREE = {"olt_id": None, "olt": None, "node_id": None, "node": None, "busy_since": None, "seconds": 0.0}


@pytest.fixture
def news():
    """Publish how things stand at NOW; the engine is alive unless a test says otherwise."""
    bus = LocalBus()
    live.attach(bus)

    def publish(*, pollers=(), queue=(), at=NOW, **stats):
        bus.publish(
            "snapshot",
            {
                **live.EMPTY,
                "at": at.isoformat(),
                "pollers": list(pollers),
                "queue": {"size": len(queue), "delayed": 0, "next": list(queue)},
                "stats": {**live.EMPTY["stats"], **stats},
            },
        )

    publish()
    yield publish
    live.attach(None)


def busy(node, poller=2):
    return {
        "id": poller,
        "status": "BUSY",
        "olt_id": node.olt_id,
        "olt": node.olt.name,
        "node_id": node.pk,
        "node": "Discovery",
        "busy_since": (NOW - 70 * SECOND).isoformat(),
        "seconds": 70.0,
    }


def waiting(node, cause="olt_busy"):
    return {"node_id": node.pk, "slot": T0.isoformat(), "late": 240.0, "waiting_for": cause}


def codes(explanation):
    return [each.code for each in explanation.in_the_way]


def on_grid(node, due=T0 + 5 * MINUTE):
    WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=due)


def test_a_node_that_ran_on_time_reports_it_and_when_it_is_due(node, news):
    make_execution(node)
    on_grid(node)

    said = explain(node.pk, NOW, BOSS)

    assert said.answer == "Its last slot was 4 min ago. It ran on time. It took 30.0 s. The next is due in 1 min."
    assert (said.level, said.in_the_way) == ("ok", [])


def test_a_late_slot_says_where_its_time_went(node, news):
    late = T0 + timedelta(seconds=73.2)
    make_execution(node, waits={"no_free_poller": 2.5, "olt_busy": 70.2}, started_at=late, ended_at=late + 12 * SECOND)

    said = explain(node.pk, NOW, BOSS)

    [slot] = said.last_slots
    assert slot.sentence == (
        "It started 1 min 13 s late: 1 min 10 s because the OLT was busy, 2.50 s because no poller was free. "
        "It took 12.0 s."
    )
    assert (slot.lateness, slot.parts) == (73.2, {"olt_busy": 70.2, "no_free_poller": 2.5, "starting": 0.5})
    assert said.level == "late"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        pytest.param(
            {"status": "SKIPPED", "cause": "olt_busy", "started_at": None, "ended_at": None},
            "It was lost. The OLT was busy.",
            id="lost",
        ),
        pytest.param(
            {"status": "SKIPPED", "cause": "engine_down", "slots": 12, "started_at": None, "ended_at": None},
            "12 slots in a row were lost. The engine was down.",
            id="many lost",
        ),
        pytest.param(
            {"status": "FAILED", "error": "OLT-CENTRAL-01 did not answer within 15 s\nmore"},
            "It failed. OLT-CENTRAL-01 did not answer within 15 s.",
            id="failed: the first line of its error",
        ),
        pytest.param(
            {"status": "INTERRUPTED", "cause": "stopped"},
            "It was interrupted. The engine was stopped.",
            id="interrupted",
        ),
        pytest.param(
            {"status": "PARTIAL", "error": "port 0/1 gave no answer"},
            "It read only some of the data. Port 0/1 gave no answer.",
            id="partial",
        ),
        pytest.param(
            {"status": "PENDING", "started_at": None, "ended_at": None}, "It is about to start.", id="claimed"
        ),
        pytest.param(
            {"status": "RUNNING", "ended_at": None}, "It has been running for 3 min 58 s in poller 3.", id="running"
        ),
    ],
)
def test_every_outcome_has_its_sentence(node, news, row, sentence):
    make_execution(node, **row)

    [slot] = explain(node.pk, NOW, BOSS).last_slots

    assert slot.sentence == sentence


def test_a_slot_that_waits_for_another_attempt_says_when_and_why(node, news):
    run = make_execution(node, status="PENDING", error="no answer", ended_at=None, retry_at=NOW + 95 * SECOND)
    ExecutionAttempt.objects.create(execution=run, number=1, status="FAILED", started_at=T0)

    said = explain(node.pk, NOW, BOSS)

    assert said.answer == "Attempt 1 failed; the next attempt is in 1 min. No answer."
    assert said.last_slots[0].execution.attempts_made == 1


def test_a_skipped_slot_says_what_it_was_waiting_for(node, news):
    make_execution(node, status="SKIPPED", cause="no_free_poller", waits={"no_free_poller": 300.0}, started_at=None)

    [slot] = explain(node.pk, NOW, BOSS).last_slots

    assert (slot.waited_for, slot.lateness, slot.parts) == ("no_free_poller", None, {"no_free_poller": 300.0})


def test_a_chained_node_is_explained_through_its_master(node, chained, news):
    master = make_execution(node, waits={"olt_busy": 60.0}, started_at=T0 + MINUTE, ended_at=T0 + 2 * MINUTE)
    make_execution(chained, master_execution=master, started_at=T0 + 2 * MINUTE, ended_at=T0 + 2 * MINUTE + SECOND)
    on_grid(node)

    said = explain(chained.pk, NOW, BOSS)

    assert said.answer == (
        "Names runs right after Optical power, every 5 min. Its last slot was 4 min ago. Its chain started "
        "1 min 0 s late: 1 min 0 s because the OLT was busy. It took 1.00 s. The next is due in 1 min."
    )
    assert said.last_slots[0].parts == {"olt_busy": 60.0, "in_chain": 60.0}


def test_waiting_for_the_links_before_it_does_not_make_a_link_late(node, chained, news):
    master = make_execution(node, ended_at=T0 + 2 * MINUTE)
    make_execution(chained, master_execution=master, started_at=T0 + 2 * MINUTE, ended_at=T0 + 3 * MINUTE)

    [slot] = explain(chained.pk, NOW, BOSS).last_slots

    assert (slot.level, slot.sentence) == ("ok", "It ran on time. It took 1 min 0 s.")


@pytest.mark.parametrize(
    ("table", "change", "code"),
    [
        pytest.param(Olt, {"enabled": False}, "olt_disabled", id="the OLT"),
        pytest.param(WorkflowNode, {"own_enabled": False}, "node_disabled", id="the node"),
    ],
)
def test_what_is_switched_off_is_said_before_anything_else(node, news, table, change, code):
    make_execution(node)
    on_grid(node)
    table.objects.update(**change)

    said = explain(node.pk, NOW, BOSS)

    assert codes(said) == [code]
    assert said.answer == said.in_the_way[0].sentence
    assert said.next_slots == []


def test_an_olt_that_nothing_is_sent_to_says_what_to_do(node, news):
    Olt.objects.update(community="")

    said = explain(node.pk, NOW, BOSS)

    assert codes(said) == ["olt_barred"]
    assert said.in_the_way[0].sentence.endswith("Write it in the settings of the OLT.")


def test_a_job_that_is_off_stands_in_the_way_of_what_runs_behind_it(node, chained, news):
    node.job.enabled = False
    node.job.save()

    said = explain(chained.pk, NOW, BOSS)

    assert codes(said) == ["job_disabled"]
    assert said.in_the_way[0].node == node.pk


def test_an_open_breaker_says_since_when_and_why(node, news):
    Olt.objects.update(breaker_opened_at=NOW - 12 * MINUTE, failures=3)

    said = explain(node.pk, NOW, BOSS)

    assert codes(said) == ["breaker_open"]
    assert said.in_the_way[0].since == NOW - 12 * MINUTE
    assert said.answer == (
        "The breaker of OLT-CENTRAL-01 has been open for 12 min: it did not answer 3 attempts in a row. "
        "It is probed once a minute."
    )


def test_nothing_is_predicted_of_an_olt_that_does_not_answer(node, news):
    Olt.objects.update(breaker_opened_at=NOW - 12 * MINUTE)
    make_plan(node)
    on_grid(node)

    slots = explain(node.pk, NOW, BOSS).next_slots

    assert {(each.start, each.end, each.cause) for each in slots} == {(None, None, "breaker_open")}


def test_slots_that_an_engine_left_behind_are_not_to_come(node, news):
    on_grid(node, T0 - 57 * MINUTE)

    slots = explain(node.pk, NOW, BOSS).next_slots

    assert [(each.slot - T0) // MINUTE for each in slots] == [3, 8, 13, 18, 23]


def test_a_breaker_that_waits_for_a_person_reports_it(node, news):
    Olt.objects.update(breaker_opened_at=NOW - 12 * MINUTE, breaker_answered_at=NOW - MINUTE, failures=3)

    said = explain(node.pk, NOW, BOSS)

    assert codes(said) == ["breaker_waits"]
    assert "Close the breaker to resume polling" in said.answer


def test_an_engine_that_is_silent_is_in_the_way_and_its_old_news_is_not_believed(node, news):
    news(at=NOW - 3 * MINUTE, pollers=[busy(node)], queue=[waiting(node)])

    said = explain(node.pk, NOW, BOSS)

    assert (codes(said), said.stale) == (["engine_silent"], True)
    assert said.answer == "The engine has not reported for 3 min: nothing runs until it is back."


def test_an_engine_that_never_spoke_is_in_the_way(node):
    assert codes(explain(node.pk, NOW, BOSS)) == ["engine_silent"]


def test_who_holds_the_olt_is_named_and_where_the_node_stands_in_the_queue(node, news):
    news(pollers=[{**FREE, "id": 1}, busy(node, poller=2)], queue=[{**waiting(node), "node_id": 999}, waiting(node)])

    said = explain(node.pk, NOW, BOSS)

    holder, queued = said.in_the_way
    assert (holder.code, holder.poller, holder.since) == ("olt_busy", 2, NOW - 70 * SECOND)
    assert (queued.code, queued.position) == ("queued", 2)
    assert said.answer == (
        "It has been due for 4 min and is waiting for its OLT to be free. It is number 2 of 2 in the "
        "queue. OLT-CENTRAL-01 has been busy with Discovery for 1 min, in poller 2."
    )


def test_a_node_does_not_stand_in_its_own_way(node, news):
    make_execution(node, status="RUNNING", ended_at=None, poller_id=2)
    news(pollers=[busy(node, poller=2)])

    assert codes(explain(node.pk, NOW, BOSS)) == []


def test_a_pool_that_is_too_small_is_in_the_way(node, news):
    news(is_saturated=True, busy_percentage=91.7, total_pollers=10)

    [obstacle] = explain(node.pk, NOW, BOSS).in_the_way

    assert obstacle.sentence == "The 10 pollers were busy 92 % of the last minute: more pollers are needed."


def test_next_slots_come_from_the_active_plan_and_then_from_the_grid(node, news):
    make_plan(node)
    make_plan(node, status="SUPERSEDED", plan_data=[{"node_id": node.pk, "slot": (NOW + SECOND).isoformat()}])
    on_grid(node, T0 + 50 * MINUTE)

    slots = explain(node.pk, NOW, BOSS).next_slots

    assert [(each.slot - T0) // MINUTE for each in slots] == [15, 30, 45, 50, 55]
    assert [each.source for each in slots] == ["plan"] * 3 + ["grid"] * 2
    assert (slots[0].start, slots[0].end) == (T0 + 15 * MINUTE, T0 + 15 * MINUTE + 30 * SECOND)


def test_without_a_plan_a_run_is_expected_to_take_what_it_took(node, news):
    on_grid(node)
    WorkflowNode.objects.filter(pk=node.pk).update(durations={"recent": [20.0] * 5})

    first = explain(node.pk, NOW, BOSS).next_slots[0]

    assert (first.slot, first.start, first.source) == (T0 + 5 * MINUTE, T0 + 5 * MINUTE, "grid")
    assert first.end == T0 + 5 * MINUTE + 20 * SECOND


def test_a_slot_that_the_plan_gives_up_says_why(node, news):
    lost = {"node_id": node.pk, "slot": (NOW + MINUTE).isoformat(), "start": None, "end": None, "cause": "olt_busy"}
    make_plan(node, plan_data=[lost, {"unknown": "shape"}])

    [slot] = explain(node.pk, NOW, BOSS).next_slots

    assert (slot.start, slot.cause_label) == (None, "the OLT was busy")


def test_a_link_has_its_own_times_in_a_plan(node, chained, news):
    at = NOW + MINUTE
    link = {
        "node_id": chained.pk,
        "task": "Names",
        "start": (at + MINUTE).isoformat(),
        "end": (at + 2 * MINUTE).isoformat(),
    }
    slot = {"node_id": node.pk, "slot": at.isoformat(), "start": at.isoformat(), "end": (at + MINUTE).isoformat()}
    make_plan(node, plan_data=[{**slot, "chain": [link]}])

    [found] = explain(chained.pk, NOW, BOSS).next_slots

    assert (found.slot, found.start, found.end) == (at, at + MINUTE, at + 2 * MINUTE)


@given(
    waits=st.dictionaries(
        st.sampled_from(["scheduler_late", "olt_busy", "no_free_poller", "breaker_open"]),
        st.integers(min_value=0, max_value=400_000).map(lambda number: number / 1000),
    ),
    starting=st.integers(min_value=0, max_value=5_000_000),
    is_link=st.booleans(),
)
@example(waits={}, starting=35_500, is_link=False)
def test_on_the_wire_the_parts_of_any_execution_add_up_to_its_lateness(waits, starting, is_link):
    claimed = T0 + timedelta(seconds=sum(waits.values()))
    run = Execution(
        pk=7,
        slot=T0,
        status="SUCCESS",
        waits={} if is_link else waits,
        claimed_at=claimed,
        started_at=claimed + timedelta(microseconds=starting),
        master_execution_id=6 if is_link else None,
    )
    run.attempts_made, run.master_waits = 1, waits if is_link else None

    wire = SlotSerializer(SlotStory(run, "ok", "")).data

    assert round(1000 * wire["lateness"]) == sum(round(1000 * part) for part in wire["parts"].values())
    assert {name: each for name, each in waits.items() if each}.items() <= wire["parts"].items()


def test_the_api_answers_it_to_a_logged_in_user(reader_api, node, execution):
    answer = reader_api.get(f"/api/v1/nodes/{node.pk}/explain/")

    assert answer.status_code == 200
    assert (answer.data["node"], answer.data["olt_name"], answer.data["job_name"]) == (
        node.pk,
        "OLT-CENTRAL-01",
        "Optical power",
    )
    assert answer.data["answer"] == "The engine has not reported yet: it may be starting or down."
    [slot] = answer.data["last_slots"]
    assert (slot["execution"], slot["status"], slot["parts"]) == (execution.pk, "SUCCESS", {"olt_busy": 2.0})


def test_there_is_nothing_to_explain_about_a_node_that_is_not_there(reader_api, client, db):
    assert reader_api.get("/api/v1/nodes/12345/explain/").status_code == 404
    assert client.get("/api/v1/nodes/12345/explain/").status_code in (401, 403)


@pytest.mark.parametrize("many", [1, 30])
def test_an_explanation_costs_the_same_whatever_has_happened(api, node, django_assert_num_queries, many):
    for number in range(many):
        run = make_execution(node, T0 + number * MINUTE)
        ExecutionAttempt.objects.create(execution=run, number=1, status="SUCCESS", started_at=T0)
    make_plan(node, plan_data=[{"node_id": node.pk, "slot": T0.isoformat()}] * many)

    # The node with its OLT, its slots, the plans.
    with django_assert_num_queries(3):
        answer = api.get(f"/api/v1/nodes/{node.pk}/explain/")

    assert len(answer.data["last_slots"]) == min(many, 20)
