"""Quotas, breakers, plans and explanations in the dashboard: what a NOC sees, and who may act."""

from datetime import timedelta

import pytest
from cast import make_execution, make_plan, make_quota, make_violation
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from facho.apps.coordinator.timeline import runs_of, timeline
from facho.apps.inventory.models import Olt
from facho.engine.quota.quota import hour_of

MINUTE = timedelta(minutes=1)


@pytest.fixture
def page(reader):
    client = Client()
    client.force_login(reader)
    return client


@pytest.fixture
def hour():
    return hour_of(timezone.now())


@pytest.fixture
def dark(sur):
    """OLT-SUR-03 with its breaker open."""
    Olt.objects.filter(pk=sur.pk).update(failures=3, breaker_opened_at=timezone.now() - 12 * MINUTE)
    return sur


def html(client, path):
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_the_overview_says_how_the_hour_goes(page, node, hour):
    make_quota(node, hour, completed=5, skipped=1, pending=6)

    text = html(page, "/")

    assert "83.3 %" in text
    assert "of 6 slots so far, of 12 in this hour" in text
    assert "5 completed, 1 skipped, 6 pending" in text


def test_the_overview_names_open_breakers_and_violations(page, dark, node, hour):
    make_violation(node, hour - timedelta(hours=2))
    make_violation(node, hour - timedelta(hours=30), severity="CRITICAL")

    response = page.get("/")

    assert [olt.name for olt in response.context["breakers"]] == ["OLT-SUR-03"]
    text = response.content.decode()
    assert "1 high" in text
    assert "1 critical" not in text


def test_an_overview_without_trouble_reports_it(page, central):
    text = html(page, "/")

    assert "No slot was due in this hour yet." in text
    assert "All OLTs are polled: no breaker is open." in text
    assert "All quotas were met." in text


def test_a_disabled_olt_has_no_breaker_to_speak_of(page, dark):
    dark.disable()

    assert page.get("/").context["breakers"] == []
    assert "breaker open" not in html(page, "/olts/")


def test_the_page_of_an_olt_says_why_it_is_not_polled_and_lets_those_close_the_breaker_who_may(page, admin_page, dark):
    path = f"/olts/{dark.pk}/"
    button = f'data-run="/api/v1/olts/{dark.pk}/close-breaker/"'

    assert "The OLT did not answer 3 attempts in a row" in html(page, path)
    assert button not in html(page, path)
    assert button in html(admin_page, path)


def test_an_olt_that_answers_while_it_waits_for_a_person_reports_it(page, dark):
    Olt.objects.filter(pk=dark.pk).update(breaker_answered_at=timezone.now())

    text = html(page, f"/olts/{dark.pk}/")

    assert "It answers again. Close the breaker to resume polling." in text
    assert "answers again</span>" in text


def test_the_page_of_an_olt_shows_its_hours_job_by_job(page, node, chained, hour):
    make_quota(node, hour - timedelta(hours=1), completed=5, skipped=7, status="QUOTA_NOT_MET")
    make_quota(chained, hour - timedelta(hours=1), status="COMPLETED")

    text = html(page, f"/olts/{node.olt_id}/")

    assert text.count('<li class="cell ') == 2 * 24
    assert text.count('<li class="cell bad"') == 1
    assert "quota not met · 5 completed, 7 skipped" in text


def test_an_olt_without_quotas_or_a_plan_reports_it(page, central):
    text = html(page, f"/olts/{central.pk}/")

    assert "No quota was counted in the last 24 hours." in text
    assert "There is no plan for this hour yet." in text


def test_a_plan_that_does_not_fit_says_what_to_do(page, node, hour):
    params = {"olt": "OLT-CENTRAL-01", "needed": 71.0, "task": "Optical power", "minutes": 20}
    make_plan(node, hour, is_feasible=False, utilisation=118.0, advice=[{"event": "HOUR_INFEASIBLE", "params": params}])

    text = html(page, f"/olts/{node.olt_id}/")

    assert "OLT-CENTRAL-01 needs 71 of 60 minutes: increase the interval of Optical power to 20 min" in text
    assert "does not fit" in text


def test_a_timeline_has_what_was_expected_above_what_happened(node, chained, hour):
    link = {
        "node_id": chained.pk,
        "task": "Names",
        "start": (hour + 30 * MINUTE).isoformat(),
        "end": (hour + 33 * MINUTE).isoformat(),
    }
    slot = {"node_id": node.pk, "task": "Optical power", "slot": (hour + 15 * MINUTE).isoformat()}
    slot |= {"start": (hour + 15 * MINUTE).isoformat(), "end": (hour + 30 * MINUTE).isoformat(), "chain": [link]}
    lost = {"node_id": node.pk, "slot": (hour + 45 * MINUTE).isoformat(), "cause": "olt_busy"}
    plan = make_plan(node, hour, plan_data=[slot, lost, {"another": "shape"}])
    make_execution(
        node, hour + 15 * MINUTE, started_at=hour + 18 * MINUTE, ended_at=hour + 24 * MINUTE, status="FAILED"
    )

    line = timeline(plan, runs_of(plan), hour + 30 * MINUTE)

    master, behind = line.lanes
    assert (master.task, master.is_link, behind.task, behind.is_link) == ("Optical power", False, "Names", True)
    assert [(bar.x, bar.width, bar.tone) for bar in master.planned] == [(25.0, 25.0, "plan"), (75.0, 0.5, "lost")]
    assert [(bar.x, round(bar.width, 6), bar.tone) for bar in master.actual] == [(30.0, 10.0, "bad")]
    assert [(bar.x, round(bar.width, 6)) for bar in behind.planned] == [(50.0, 5.0)]
    assert line.now == 50.0


def test_a_lane_with_many_runs_has_blocks_with_their_results(node, hour):
    slots = [hour + timedelta(seconds=30 * number) for number in range(120)]
    entries = [
        {
            "node_id": node.pk,
            "slot": at.isoformat(),
            "start": at.isoformat(),
            "end": (at + MINUTE / 6).isoformat(),
        }
        for at in slots
    ]
    entries[3] = {"node_id": node.pk, "slot": slots[3].isoformat(), "cause": "olt_busy"}
    for number, entry in enumerate(entries[:10]):
        status = "SKIPPED" if number == 3 else "FAILED" if number % 5 == 0 else "SUCCESS"
        entry |= {"status": status, "actual_start": entry["slot"]}
    plan = make_plan(node, hour, plan_data=entries)

    [lane] = timeline(plan, [], hour + 5 * MINUTE).lanes

    assert lane.in_blocks
    shown = [(round(bar.x, 2), round(bar.width, 2), bar.tone) for bar in lane.planned]
    assert shown[:3] == [(0.0, 0.79, "lost"), (0.79, 7.12, "plan"), (8.33, 7.92, "plan")]
    assert len(shown) == 13
    assert [(bar.tone, round(bar.width, 2)) for bar in lane.actual] == [("ok", 5.54), ("bad", 1.58), ("lost", 0.79)]
    assert "expected: 10 · success: 7 · failed: 2 · lost: 1" in lane.actual[0].title


def test_a_plan_that_is_completed_says_itself_what_happened(node, hour):
    earlier = hour - timedelta(hours=5)
    slot = {"node_id": node.pk, "task": "Optical power", "slot": earlier.isoformat(), "status": "SUCCESS"}
    slot |= {"actual_start": earlier.isoformat(), "actual_end": (earlier + 6 * MINUTE).isoformat()}
    plan = make_plan(node, earlier, plan_data=[slot], status="COMPLETED")

    line = timeline(plan, [], hour)

    [bar] = line.lanes[0].actual
    assert (bar.x, bar.width, bar.tone, line.now) == (0.0, 10.0, "ok", None)


def test_why_a_node_is_late_has_a_page_that_the_olt_and_its_onus_lead_to(page, node, onu, execution):
    path = f"/nodes/{node.pk}/"

    assert f'href="{path}" data-explain' in html(page, f"/olts/{node.olt_id}/")
    assert f'href="{path}"' in html(page, f"/onus/{onu.pk}/")
    text = html(page, path)
    assert "The engine has not reported yet: it may be starting or down." in text
    assert "It ran on time. It took 30.0 s." in text
    assert "the OLT was busy" in text


def test_an_execution_that_is_tried_again_says_when(page, node):
    make_execution(node, status="PENDING", ended_at=None, retry_at=timezone.now() + MINUTE)

    assert "<dt>Retry</dt>" in html(page, "/executions/")


def test_a_node_can_be_run_from_its_page_by_who_may(page, admin_page, node):
    button = f'data-run="{reverse("api-run-node", args=[node.pk])}"'

    assert button in html(admin_page, f"/nodes/{node.pk}/")
    assert button not in html(page, f"/nodes/{node.pk}/")
