"""How an explanation is worded: nothing is said of what is zero, and one is not many."""

import pytest
from cast import BOSS, T0, make_execution
from test_explain import FREE, MINUTE, NOW, SECOND, busy, news, on_grid, waiting

from facho.apps.coordinator.explain import explain
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import ExecutionAttempt

__all__ = ["news"]  # a fixture


@pytest.mark.parametrize(
    ("late", "others", "said"),
    [
        pytest.param(0.4, 0, "It is due now and is waiting for a free poller.", id="just now, and alone"),
        pytest.param(1.2, 0, "It has been due for 1 s and is waiting for a free poller.", id="a second, and alone"),
        pytest.param(
            240.0,
            2,
            "It has been due for 4 min and is waiting for a free poller. It is number 1 of 3 in the queue.",
            id="minutes, and first of several",
        ),
    ],
)
def test_a_node_in_the_queue_says_since_when_it_is_due_and_where_it_stands(node, news, late, others, said):
    mine = {**waiting(node, "no_free_poller"), "late": late}
    news(queue=[mine, *({**mine, "node_id": 1000 + number} for number in range(others))])

    [obstacle] = explain(node.pk, NOW, BOSS).in_the_way

    assert obstacle.sentence == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param(0.3, "OLT-CENTRAL-01 is busy with Discovery, in poller 2.", id="since just now"),
        pytest.param(70.0, "OLT-CENTRAL-01 has been busy with Discovery for 1 min, in poller 2.", id="for a minute"),
    ],
)
def test_who_has_only_just_begun_has_been_at_it_for_no_time(node, news, seconds, said):
    news(pollers=[{**FREE, "id": 1}, {**busy(node), "seconds": seconds}])

    [obstacle] = explain(node.pk, NOW, BOSS).in_the_way

    assert obstacle.sentence == said


def test_one_silent_attempt_and_one_poller_are_not_many(node, news):
    Olt.objects.update(breaker_opened_at=NOW - 12 * MINUTE, failures=1)
    news(is_saturated=True, busy_percentage=91.7, total_pollers=1)

    breaker, pool = explain(node.pk, NOW, BOSS).in_the_way

    assert "it did not answer 1 attempt. " in breaker.sentence
    assert pool.sentence == "The only poller was busy 92 % of the last minute: more pollers are needed."


def test_a_slot_that_comes_within_the_second_is_due_now(node, news):
    on_grid(node, NOW + 0.4 * SECOND)

    assert explain(node.pk, NOW, BOSS).answer.endswith("The next is due now.")


def test_a_further_attempt_that_is_due_waits_for_its_turn(node, news):
    run = make_execution(node, status="PENDING", ended_at=None, retry_at=NOW - SECOND)
    ExecutionAttempt.objects.create(execution=run, number=1, status="FAILED", started_at=T0)

    said = explain(node.pk, NOW, BOSS).answer

    assert said == "Attempt 1 failed; the next attempt starts as soon as the OLT and a poller are free."


def test_the_page_leaves_out_parts_that_round_to_nothing_and_the_api_does_not(node, news, api, client, boss):
    waits = {"scheduler_late": 0.003, "olt_busy": 70.2}
    make_execution(node, waits=waits, started_at=T0 + 70.203 * SECOND, ended_at=T0 + 80 * SECOND)

    [slot] = explain(node.pk, NOW, BOSS).last_slots
    client.force_login(boss)
    page = client.get(f"/nodes/{node.pk}/").content.decode()

    assert [(name, seconds) for name, _label, seconds in slot.shares] == [("olt_busy", 70.2)]
    assert slot.parts == waits
    assert "0.00 s" not in page
    assert api.get(f"/api/v1/nodes/{node.pk}/explain/").data["last_slots"][0]["parts"] == waits
