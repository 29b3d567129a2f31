"""How a quota stands: its share, its bar, and how its hour is likely to end."""

from datetime import timedelta

import pytest
from cast import BOSS, T0, make_quota, make_violation

from facho.apps.coordinator import queries
from facho.apps.coordinator.models import QuotaTracker
from facho.apps.coordinator.progress import QuotaProgress, risk, risk_of

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("progress", "minute", "expected"),
    [
        pytest.param(QuotaProgress(12, 6, 0, 0, 6), 30, "on_course", id="half of it at half past"),
        pytest.param(QuotaProgress(12, 0, 0, 0, 12), 4, "on_course", id="the hour has just begun"),
        pytest.param(QuotaProgress(12, 5, 0, 0, 7), 30, "on_course", id="one is under way"),
        pytest.param(QuotaProgress(12, 4, 0, 0, 8), 30, "behind", id="two should have ended by now"),
        pytest.param(QuotaProgress(12, 4, 1, 1, 6), 30, "at_risk", id="two of six missed: 80 % would not be met"),
        pytest.param(QuotaProgress(12, 3, 2, 1, 6), 30, "lost", id="three missed: 9 of 12 is not enough any more"),
        pytest.param(QuotaProgress(4, 2, 0, 1, 1), 50, "lost", id="one of four discoveries missed is too many"),
        pytest.param(QuotaProgress(0, 0, 0, 0, 0), 50, "on_course", id="nothing is due"),
        pytest.param(QuotaProgress(6, 0, 0, 0, 6), 31, "on_course", id="enabled at half past, and not due yet"),
        pytest.param(QuotaProgress(6, 5, 0, 0, 1), 57, "on_course", id="enabled at half past, and always in time"),
    ],
)
def test_an_hour_that_runs_is_judged_by_what_came_and_what_is_to_come(progress, minute, expected):
    assert risk(progress, T0 + HOUR, timedelta(minutes=5), T0 + timedelta(minutes=minute)) == expected


@pytest.mark.parametrize("chained_one", [False, True], ids=["a master", "a link, which has its interval"])
def test_an_hour_is_behind_by_the_interval_of_its_node(node, chained, chained_one):
    make_quota(chained if chained_one else node, completed=0, pending=12, status="IN_PROGRESS")
    interval = node.interval_seconds

    [row] = QuotaTracker.objects.annotate(every=queries.EVERY)

    assert row.every == interval
    assert risk_of(row, T0 + HOUR - timedelta(seconds=interval * 12 - 1)) == "on_course"
    assert risk_of(row, T0 + HOUR - timedelta(seconds=interval * 10)) == "behind"


@pytest.mark.parametrize("causes", [{"disabled": 6}, {"maintenance": 4, "disabled": 2}])
def test_what_nobody_wanted_is_not_missing(node, causes):
    quota = make_quota(node, completed=6, skipped=6, causes=causes, status="COMPLETED")

    progress = QuotaProgress.of(quota)

    assert (progress.percent, progress.came) == (100.0, 6)
    assert risk(progress, T0 + HOUR, timedelta(minutes=5), T0 + timedelta(minutes=59)) == "on_course"
    assert queries.Cell(T0, quota).tone == "ok"
    assert queries.fleet_hour(T0, BOSS).progress.percent_of_those_that_came == 100.0


def test_a_bar_has_a_part_for_each_number_and_fills_the_width():
    bars = QuotaProgress(10, 5, 0, 3, 2).stack()

    assert [(part, number) for part, number, *_ in bars] == [("completed", 5), ("skipped", 3), ("pending", 2)]
    assert [(x, width) for *_, x, width in bars] == [(0.0, 50.0), (50.0, 30.0), (80.0, 20.0)]


def test_the_fleet_is_the_sum_of_its_olts_and_names_the_worst_first(node, sur, power):
    [mute] = power.apply_to([sur])
    make_quota(node, completed=5, skipped=1, pending=6)
    make_quota(mute, completed=0, skipped=6, pending=6)

    hour = queries.fleet_hour(T0 + timedelta(minutes=31), BOSS)

    assert hour.progress == QuotaProgress(24, 5, 0, 7, 12)
    assert hour.progress.percent_of_those_that_came == 41.7
    assert [each.olt_name for each in hour.worst] == ["OLT-SUR-03", "OLT-CENTRAL-01"]


def test_an_olt_that_missed_nothing_is_not_among_the_worst(node):
    make_quota(node, completed=3, pending=9)

    assert queries.fleet_hour(T0, BOSS).worst == []


def test_violations_are_counted_by_severity_and_by_olt(node, sur, power):
    [mute] = power.apply_to([sur])
    make_violation(node, T0, severity="LOW")
    make_violation(node, T0 - HOUR, severity="HIGH")
    make_violation(mute, T0 - HOUR, severity="CRITICAL")
    make_violation(mute, T0 - 30 * HOUR, severity="CRITICAL")

    found = queries.violations(T0 - 24 * HOUR, BOSS)

    assert found.by_severity == {"CRITICAL": 1, "HIGH": 1, "LOW": 1}
    assert [(each.olt_name, each.number, each.severity) for each in found.by_olt] == [
        ("OLT-SUR-03", 1, "CRITICAL"),
        ("OLT-CENTRAL-01", 2, "HIGH"),
    ]
    assert found.by_olt[1].latest == T0 + HOUR


@pytest.mark.parametrize(
    ("numbers", "status", "expected"),
    [
        pytest.param({"completed": 12}, "COMPLETED", "ok", id="all"),
        pytest.param({"completed": 10, "failed": 2}, "PARTIAL", "fair", id="enough"),
        pytest.param({"completed": 7, "skipped": 5}, "QUOTA_NOT_MET", "warn", id="too few"),
        pytest.param({"completed": 6, "skipped": 6}, "QUOTA_NOT_MET", "bad", id="half is as bad as it gets"),
        pytest.param({"completed": 0, "failed": 12}, "FAILED", "bad", id="none"),
        pytest.param({"completed": 3, "skipped": 1}, "INTERRUPTED", "quiet", id="a person disabled it"),
        pytest.param({"completed": 0}, "COMPLETED", "none", id="nothing was due"),
        pytest.param({"completed": 3, "pending": 9}, "IN_PROGRESS", "ok", id="runs, and all that came are there"),
        pytest.param({"completed": 0, "pending": 12}, "IN_PROGRESS", "open", id="runs, and nothing came yet"),
    ],
)
def test_an_hour_of_a_strip_has_the_colour_of_what_came(node, numbers, status, expected):
    make_quota(node, **numbers, status=status)

    [strip] = queries.strips(node.olt_id, T0 + timedelta(minutes=20))

    assert len(strip.cells) == 24
    assert strip.cells[-1].tone == expected
    assert {cell.tone for cell in strip.cells[:-1]} == {"none"}


def test_a_day_adds_the_jobs_of_an_olt_hour_by_hour(node, chained):
    make_quota(node, T0 - HOUR, completed=12)
    make_quota(chained, T0 - HOUR, completed=6, failed=6)

    bars = queries.day_bars(queries.strips(node.olt_id, T0))

    assert bars[-2] == (T0 - HOUR, QuotaProgress(24, 18, 6, 0, 0))
    assert bars[-1] == (T0, QuotaProgress())
