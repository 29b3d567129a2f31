"""Quotas, violations, plans and the log as the admin shows them: bars, badges, and pages that can be read."""

from datetime import timedelta

import pytest
from cast import T0, make_execution, make_log, make_plan, make_quota, make_violation
from django.urls import reverse
from django.utils import timezone

from facho.apps.polling.models import ExecutionAttempt
from facho.engine.quota.quota import hour_of

HOUR = timedelta(hours=1)


def url(model, page="changelist", *args):
    app = "polling" if model == "execution" else "coordinator"
    return reverse(f"admin:{app}_{model}_{page}", args=args)


def html(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def ids(client, path):
    return [row.pk for row in client.get(path).context["cl"].result_list]


def test_a_quota_has_a_bar_of_its_parts_a_badge_and_its_course(admin_page, node):
    make_quota(node, hour_of(timezone.now()), completed=0, failed=3, skipped=3, pending=6)

    page = html(admin_page, url("quotatracker"))

    assert "3 failed, 3 skipped, 6 pending" in page
    assert 'class="part-skipped" x="25.00%" width="25.00%"' in page
    assert "in progress" in page
    assert "can no longer be met" in page


def test_a_quota_of_an_hour_that_is_over_has_no_course(admin_page, node):
    make_quota(node, completed=2, skipped=10, status="QUOTA_NOT_MET")

    page = html(admin_page, url("quotatracker"))

    assert "quota not met" in page
    assert "can no longer be met" not in page


def test_the_page_of_a_quota_says_why_slots_were_missed(admin_page, node):
    quota = make_quota(node, completed=10, failed=1, skipped=1, causes={"olt_busy": 1, "BadAnswer": 1})

    page = html(admin_page, url("quotatracker", "change", quota.pk))

    assert "OLT-CENTRAL-01: Optical power completed 10 of 12 runs." in page
    assert "the OLT was busy" in page
    assert "unusable answer" in page


def test_quotas_are_found_by_hour(admin_page, node):
    over = make_quota(node)
    running = make_quota(node, hour_of(timezone.now()))

    assert ids(admin_page, url("quotatracker") + "?hour=running") == [running.pk]
    assert ids(admin_page, url("quotatracker") + "?hour=over") == [over.pk]
    assert ids(admin_page, url("quotatracker") + "?status__exact=FAILED") == []


def test_a_violation_can_be_read_without_knowing_json(admin_page, node):
    violation = make_violation(node)

    page = html(admin_page, url("quotaviolation", "change", violation.pk))

    assert "OLT-CENTRAL-01: Optical power completed 2 of 4 runs from Jun 1, 2025, 10:00 to 11:00." in page
    assert "high, 50 %" in page
    assert "check its power, its uplink" in page
    assert "the breaker of the OLT was open" in page
    assert "it was being started" in page
    assert "31.5" in page


@pytest.mark.parametrize("report", [{}, {"advice": [], "causes": None, "slowest": None, "worst_lateness": None}])
def test_a_report_that_lacks_everything_still_opens(admin_page, node, report):
    violation = make_violation(node, report=report)

    assert "completed 0 of 0 runs" in html(admin_page, url("quotaviolation", "change", violation.pk))
    assert "OLT-CENTRAL-01" in html(admin_page, url("quotaviolation"))


def test_violations_are_found_by_severity(admin_page, node):
    high = make_violation(node)
    make_violation(node, T0 + HOUR, severity="LOW")

    assert ids(admin_page, url("quotaviolation") + "?severity__exact=HIGH") == [high.pk]


def test_a_plan_is_drawn_and_says_whether_it_fits(admin_page, node):
    plan = make_plan(node, is_feasible=False, needed_seconds=4260.0, utilisation=118.3)
    make_execution(node)

    listed = html(admin_page, url("executionplan"))
    page = html(admin_page, url("executionplan", "change", plan.pk))

    assert "does not fit" in listed
    assert "118 %" in listed
    assert "OLT-CENTRAL-01 needs 71 of 60 minutes (118 %)." in page
    assert page.count('class="bar-plan" x=') == 4
    assert page.count('class="bar-ok" x=') == 1


def test_the_log_says_its_sentences_and_is_found_by_level_and_event(admin_page, sur):
    opened = make_log(
        "BREAKER_OPENED",
        olt=sur,
        level="WARNING",
        message="as in the file",
        details={"olt": "OLT-SUR-03", "failures": 3},
    )
    make_log("OLT_DISABLED")

    assert "OLT-SUR-03 did not answer 3 attempts in a row" in html(admin_page, url("coordinatorlog"))
    assert ids(admin_page, url("coordinatorlog") + "?least=WARNING") == [opened.pk]
    assert ids(admin_page, url("coordinatorlog") + "?event=BREAKER_OPENED") == [opened.pk]
    assert len(ids(admin_page, url("coordinatorlog") + "?least=LOUD&event=PARTY")) == 2


def test_the_page_of_an_olt_has_its_day(admin_page, node):
    make_quota(node, hour_of(timezone.now()), completed=1, pending=11)

    page = html(admin_page, reverse("admin:inventory_olt_change", args=[node.olt_id]))

    assert "Quotas of the last 24 hours" in page
    assert "1 completed, 11 pending" in page


def test_a_new_olt_has_no_day_yet(admin_page):
    assert "Quotas of the last 24 hours" not in html(admin_page, reverse("admin:inventory_olt_add"))


def test_executions_show_their_attempts_and_where_their_lateness_went(admin_page, node):
    once = make_execution(node, T0)
    waiting = make_execution(node, T0 + HOUR, status="PENDING", retry_at=T0 + HOUR, waits={"olt_busy": 1.5})
    for run, tries in ((once, 1), (waiting, 2)):
        for number in range(tries):
            ExecutionAttempt.objects.create(execution=run, number=number + 1, status="FAILED", started_at=T0)

    page = html(admin_page, url("execution", "change", waiting.pk))

    assert "1.500 s: the OLT was busy<br>0.500 s: it was being started" in page
    assert "Jun 1, 2025, 11:00:00" in page
    assert ids(admin_page, url("execution") + "?tried=again") == [waiting.pk]
    assert ids(admin_page, url("execution") + "?tried=waiting") == [waiting.pk]
