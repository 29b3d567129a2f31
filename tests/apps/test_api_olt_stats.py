"""The figures of one OLT over time, as its executions tell them."""

from datetime import UTC, datetime, timedelta

import pytest
from cast import make_execution, make_job, make_olt
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from facho.apps.polling.models import ExecutionAttempt
from facho.apps.polling.olt_stats import MOST_POINTS, fleet_stats, step_for

T0 = datetime(2025, 6, 1, 10, 0, tzinfo=UTC)
SEC, MIN, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

FIGURES = {
    "completed", "failed", "interrupted", "success_rate", "duration_mean", "duration_p95", "round_trip_p50",
    "round_trip_p95", "pdus", "retransmissions", "retries", "retry_gap_mean", "lost_slots",
}  # fmt: skip


def stats(api, olt, since=T0, until=T0 + HOUR, step="1h"):
    query = {"from": since.isoformat(), "to": until.isoformat(), "step": step}
    answer = api.get(f"/api/v1/olts/{olt.pk}/stats/", query)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def run(node, minute, seconds=10.0, **more):
    slot = T0 + minute * MIN
    return make_execution(node, slot, **{"started_at": slot, "ended_at": slot + seconds * SEC, "pdus": 10} | more)


def test_an_hour_of_runs_is_one_point(reader_api, node):
    for number, seconds in enumerate((10, 20, 30)):
        run(node, number, seconds, retransmissions=number)
    run(node, 3, 50, status="PARTIAL")
    run(node, 4, 900, status="FAILED", cause="unreachable")
    run(node, 5, 900, status="INTERRUPTED", cause="stopped")

    answer = stats(reader_api, node.olt)

    [point] = answer.pop("points")
    assert answer == {
        "olt": node.olt.pk,
        "olt_name": "OLT-CENTRAL-01",
        "from": "2025-06-01T10:00:00Z",
        "to": "2025-06-01T11:00:00Z",
        "step": "1h",
    }
    assert point == {
        "at": "2025-06-01T10:00:00Z",
        "completed": 4,
        "failed": 1,
        "interrupted": 1,
        "success_rate": 66.67,
        "duration_mean": 27.5,
        "duration_p95": 50.0,
        "round_trip_p50": None,
        "round_trip_p95": None,
        "pdus": 60,
        "retransmissions": 3,
        "retries": 0,
        "retry_gap_mean": None,
        "lost_slots": {},
    }


def test_a_step_in_which_nothing_ended_is_null_and_not_zero(reader_api, node):
    run(node, 0)
    run(node, 10)
    run(node, 5, status="RUNNING", ended_at=None)

    points = stats(reader_api, node.olt, until=T0 + 15 * MIN, step="5m")["points"]

    assert [point["completed"] for point in points] == [1, None, 1]
    assert points[1] == {"at": "2025-06-01T10:05:00Z", **dict.fromkeys(FIGURES)}


def test_a_step_with_lost_slots_only_has_no_rate(reader_api, node):
    run(node, 0, status="SKIPPED", cause="olt_busy", started_at=None, ended_at=None, slots=3, pdus=0)
    run(node, 20, status="SKIPPED", cause="olt_busy", started_at=None, ended_at=None, pdus=0)
    run(node, 25, status="SKIPPED", cause="no_free_poller", started_at=None, ended_at=None, pdus=0)

    [point] = stats(reader_api, node.olt)["points"]

    assert point["lost_slots"] == {"olt_busy": 4, "no_free_poller": 1}
    assert (point["completed"], point["failed"], point["success_rate"]) == (0, 0, None)
    assert (point["duration_mean"], point["duration_p95"]) == (None, None)


@pytest.mark.parametrize(
    ("seconds", "p95"),
    [
        pytest.param([7.25], 7.25, id="one run"),
        pytest.param(list(range(1, 21)), 19.0, id="the 19th of 20"),
        pytest.param(list(range(40, 0, -1)), 38.0, id="the 38th of 40"),
        pytest.param([5] * 19 + [300], 5.0, id="one slow run of 20"),
        pytest.param([5] * 18 + [300], 300.0, id="one slow run of 19"),
    ],
)
def test_the_95th_percentile_is_that_of_the_nearest_rank(reader_api, node, seconds, p95):
    for number, each in enumerate(seconds):
        run(node, number, each)

    [point] = stats(reader_api, node.olt)["points"]

    assert point["duration_p95"] == p95


def test_round_trips_are_weighted_by_requests(reader_api, node):
    run(node, 0, pdus=300, rtt_p50=0.010, rtt_p95=0.020)
    run(node, 5, pdus=100, rtt_p50=0.050, rtt_p95=0.100)
    run(node, 10, pdus=999, rtt_p50=None, rtt_p95=None, status="FAILED")

    [point] = stats(reader_api, node.olt)["points"]

    assert (point["round_trip_p50"], point["round_trip_p95"]) == (0.02, 0.04)


def test_the_gap_between_attempts_is_from_the_end_to_the_next_start(reader_api, node):
    execution, other = run(node, 0), run(node, 5)
    for number, (start, end) in enumerate([(0, 15), (135, 150), (270, 280)], 1):
        ExecutionAttempt.objects.create(
            execution=execution, number=number, status="FAILED", started_at=T0 + start * SEC, ended_at=T0 + end * SEC
        )
    ExecutionAttempt.objects.create(execution=other, number=1, status="SUCCESS", started_at=T0, ended_at=T0)

    [point] = stats(reader_api, node.olt)["points"]

    assert (point["retries"], point["retry_gap_mean"]) == (2, 120.0)


def test_only_the_olt_and_the_time_that_were_asked_for_count(reader_api, node):
    other = make_olt("OLT-NORTE-02", host="127.0.0.2")
    [elsewhere] = make_job("Elsewhere").apply_to([other])
    run(elsewhere, 5)
    for minute in (-1, 0, 59, 60):
        run(node, minute)

    [point] = stats(reader_api, node.olt)["points"]

    assert point["completed"] == 2


def test_steps_begin_on_the_clock_and_cover_the_time(reader_api, node):
    answer = stats(reader_api, node.olt, since=T0 + 7 * MIN, until=T0 + 130 * MIN, step="1h")

    assert answer["from"] == "2025-06-01T10:00:00Z"
    assert [point["at"][11:16] for point in answer["points"]] == ["10:00", "11:00", "12:00"]


def test_a_day_is_a_day_in_utc(reader_api, node):
    run(node, -600)
    run(node, -601)

    points = stats(reader_api, node.olt, since=T0 - DAY, step="1d")["points"]

    assert [(point["at"], point["completed"]) for point in points] == [
        ("2025-05-31T00:00:00Z", 1),
        ("2025-06-01T00:00:00Z", 1),
    ]


def test_without_parameters_it_is_the_last_day(reader_api, node):
    answer = reader_api.get(f"/api/v1/olts/{node.olt.pk}/stats/").json()

    assert answer["step"] == "5m"
    assert datetime.fromisoformat(answer["to"]) == timezone.now()
    assert 288 <= len(answer["points"]) <= 289
    assert all(set(point) == {"at", *FIGURES} for point in answer["points"])


@pytest.mark.parametrize(
    ("span", "step"),
    [(HOUR, 5 * MIN), (DAY, 5 * MIN), (2 * DAY, 15 * MIN), (7 * DAY, HOUR), (30 * DAY, 6 * HOUR), (92 * DAY, DAY)],
)
def test_the_step_follows_the_time_unless_it_is_given(span, step):
    assert step_for(span) == step


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        pytest.param({"step": "5"}, "step", "such as 5m, 1h or 1d", id="no unit"),
        pytest.param({"step": "0m"}, "step", "such as 5m, 1h or 1d", id="nothing"),
        pytest.param({"step": "1w"}, "step", "such as 5m, 1h or 1d", id="unknown unit"),
        pytest.param({"step": "-5m"}, "step", "such as 5m, 1h or 1d", id="backwards"),
        pytest.param({"step": "1m"}, "step", f"1440 points; the maximum is {MOST_POINTS}", id="too many points"),
        pytest.param({"from": "yesterday"}, "from", "format", id="no time"),
        pytest.param({"from": "2025-06-02T00:00:00Z", "to": "2025-06-01T00:00:00Z"}, "from", "before", id="backwards"),
        pytest.param({"from": "2025-01-01T00:00:00Z", "to": "2025-06-01T00:00:00Z"}, "from", "92 days", id="too long"),
        pytest.param({"since": "2025-06-01T00:00:00Z"}, "since", "from, to, step", id="another name"),
    ],
)
def test_a_time_or_step_that_is_not_possible_is_refused(reader_api, central, query, field, said):
    answer = reader_api.get(f"/api/v1/olts/{central.pk}/stats/", query)

    assert answer.status_code == 400
    assert said in str(answer.json()[field])


def test_an_olt_that_does_not_exist_is_404(reader_api, db):
    assert reader_api.get("/api/v1/olts/99/stats/").status_code == 404


def test_who_is_not_logged_in_gets_nothing(client, central):
    assert client.get(f"/api/v1/olts/{central.pk}/stats/").status_code == 401


def test_the_figures_take_the_same_few_queries_however_much_ran(api, node):
    def queries():
        with CaptureQueriesContext(
            connection,
        ) as found:
            stats(api, node.olt)
        return len(found)

    run(node, 0)
    before = queries()
    for minute in range(1, 60):
        run(node, minute)

    assert queries() == before <= 6


def test_the_figures_of_several_olts_are_kept_apart(node):
    other = make_olt("OLT-NORTE-02", host="127.0.0.2")
    [elsewhere] = make_job("Elsewhere").apply_to([other])
    run(node, 0, 10)
    run(node, 5, 20, status="FAILED")
    run(elsewhere, 5, 30)

    found = fleet_stats([node.olt.pk, other.pk], T0, T0 + HOUR)

    assert {olt: (each.success_rate, each.duration_p95) for olt, each in found.items()} == {
        node.olt.pk: (50.0, 10.0),
        other.pk: (100.0, 30.0),
    }
