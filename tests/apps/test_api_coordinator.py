"""Quotas, violations, plans and the log through the API: found, read in one's language, and never written."""

from datetime import timedelta

import pytest
from cast import T0, make_job, make_log, make_plan, make_quota, make_violation
from django.utils import timezone

HOUR = timedelta(hours=1)


@pytest.fixture
def this_hour(monkeypatch):
    """An hour that does not end while a test looks for it."""
    monkeypatch.setattr(timezone, "now", lambda: T0 + 24 * HOUR + timedelta(minutes=7))
    return T0 + 24 * HOUR


@pytest.fixture
def mute(sur):
    """Optical power on OLT-SUR-03, which does not answer."""
    [node] = make_job("Optical power of the south").apply_to([sur])
    return node


def results(api, path):
    answer = api.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.data
    return answer.data["results"]


def test_a_quota_says_what_was_owed_and_what_came(api, node):
    make_quota(node, completed=9, failed=1, skipped=1, pending=1, causes={"olt_busy": 1, "unreachable": 1})

    [quota] = results(api, "quotas/")

    assert (quota["quota_required"], quota["quota_completed"], quota["percent"]) == (12, 9, 75.0)
    assert quota["quota_failed"] + quota["quota_skipped"] + quota["quota_pending"] == 3
    assert (quota["olt_name"], quota["task_type"]) == ("OLT-CENTRAL-01", "Optical power")
    assert quota["causes"] == {"olt_busy": 1, "unreachable": 1}


def test_an_hour_that_is_over_runs_no_risk_and_one_in_which_nothing_was_due_has_no_percent(api, node):
    make_quota(node, completed=0)

    [quota] = results(api, "quotas/")

    assert (quota["percent"], quota["risk"]) == (None, None)


def test_an_hour_that_runs_says_how_it_is_likely_to_end(api, node, this_hour):
    make_quota(node, this_hour, completed=0, skipped=5, pending=7)

    [quota] = results(api, "quotas/?current=true")

    assert quota["risk"] == "lost"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["later", "mute", "first"], id="the latest hour first"),
        pytest.param("olt={olt}", ["later", "first"], id="by OLT"),
        pytest.param("node={node}", ["later", "first"], id="by node"),
        pytest.param("task=optical power of the south", ["mute"], id="by job, in small letters or large"),
        pytest.param("status=QUOTA_NOT_MET", ["mute"], id="by status"),
        pytest.param("status=QUOTA_NOT_MET&status=COMPLETED", ["mute", "first"], id="by several statuses"),
        pytest.param("hour_after=2025-06-01T11:00:00Z", ["later", "mute"], id="from an hour on"),
        pytest.param("hour_before=2025-06-01T11:00:00Z", ["first"], id="before an hour"),
        pytest.param("search=sur-03", ["mute"], id="by the name of the OLT"),
        pytest.param("current=true", [], id="the running hour"),
        pytest.param("ordering=quota_completed", ["mute", "first", "later"], id="in the order asked for"),
    ],
)
def test_quotas_are_found(api, node, mute, query, expected):
    rows = {
        make_quota(node, T0, status="COMPLETED").pk: "first",
        make_quota(mute, T0 + HOUR, completed=2, skipped=10, status="QUOTA_NOT_MET").pk: "mute",
        make_quota(node, T0 + 2 * HOUR).pk: "later",
    }

    found = results(api, f"quotas/?{query.format(olt=node.olt_id, node=node.pk)}")

    assert [rows[each["id"]] for each in found] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["told", "half"], id="the latest hour first"),
        pytest.param("severity=CRITICAL", ["told"], id="by severity"),
        pytest.param("notified=false", ["half"], id="by whether anybody was told"),
        pytest.param("olt={olt}", ["half"], id="by OLT"),
        pytest.param("hour_after=2025-06-01T11:00:00Z", ["told"], id="by time"),
        pytest.param("task=Optical power", ["half"], id="by job"),
    ],
)
def test_violations_are_found(api, node, mute, query, expected):
    rows = {
        make_violation(node).pk: "half",
        make_violation(mute, T0 + HOUR, severity="CRITICAL", notified=True).pk: "told",
    }

    found = results(api, f"violations/?{query.format(olt=node.olt_id)}")

    assert [rows[each["id"]] for each in found] == expected


def test_a_violation_says_what_to_do_in_the_language_of_the_request(api, node):
    make_violation(node)

    [violation] = results(api, "violations/")

    assert violation["report"]["percent"] == 50.0
    assert violation["advice"] == [
        "OLT-CENTRAL-01 did not answer: check its power, its uplink, the management network, "
        "and its SNMP community or user."
    ]


def test_advice_of_another_version_is_given_as_it_was_written(api, node):
    make_violation(node, report={"advice": [{"code": "consult_an_oracle", "sentence": "Consult an oracle."}]})

    [violation] = results(api, "violations/")

    assert violation["advice"] == ["Consult an oracle."]


def test_a_plan_says_whether_the_hour_is_long_enough(api, node):
    advice = {
        "event": "HOUR_INFEASIBLE",
        "params": {"olt": "OLT-NORTE-02", "needed": 71, "task": "Power", "minutes": 20},
    }
    make_plan(node, is_feasible=False, advice=[advice, {"event": "CONSULT_AN_ORACLE"}])

    [listed] = results(api, "plans/")
    plan = api.get(f"/api/v1/plans/{listed['id']}/").json()

    assert (
        plan["advice"]
        == listed["advice"]
        == ["OLT-NORTE-02 needs 71 of 60 minutes: increase the interval of Power to 20 min"]
    )
    # A list omits the slots, which are hundreds for each OLT.
    assert "plan_data" not in listed
    assert [item["slot"] for item in plan["plan_data"]] == [
        f"2025-06-01T10:{minute:02}:00+00:00" for minute in (0, 15, 30, 45)
    ]


def test_plans_are_found_by_hour_status_and_whether_they_count_now(api, node, this_hour):
    rows = {
        make_plan(node, T0, status="COMPLETED").pk: "old",
        make_plan(node, this_hour, status="SUPERSEDED").pk: "replaced",
        make_plan(node, this_hour).pk: "current",
    }

    def found(query):
        return [rows[each["id"]] for each in results(api, f"plans/?{query}")]

    assert found("current=1") == found("current=true") == ["current"]
    assert found("current=0") == ["replaced", "old"]
    assert found("status=SUPERSEDED") == ["replaced"]
    assert found("hour_before=2025-06-01T11:00:00Z") == ["old"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["error", "opened", "disabled"], id="the latest first"),
        pytest.param("olt={olt}", ["opened"], id="by OLT"),
        pytest.param("event=BREAKER_OPENED", ["opened"], id="by event"),
        pytest.param("event=BREAKER_OPENED&event=OLT_DISABLED", ["opened", "disabled"], id="by several events"),
        pytest.param("level=WARNING", ["error", "opened"], id="by the least level"),
        pytest.param("level=ERROR", ["error"], id="by a higher level"),
        pytest.param("after=2025-06-01T10:01:00Z", ["error", "opened"], id="from a time on"),
        pytest.param("before=2025-06-01T10:01:00Z", ["disabled"], id="before a time"),
        pytest.param("search=probed", ["opened"], id="by a word in it"),
    ],
)
def test_entries_of_the_log_are_found(api, sur, query, expected):
    rows = {
        make_log("OLT_DISABLED").pk: "disabled",
        make_log(
            "BREAKER_OPENED", T0 + timedelta(minutes=1), olt=sur, level="WARNING", message="it is only probed now"
        ).pk: "opened",
        make_log("CHORE_FAILED", T0 + timedelta(minutes=2), level="ERROR", message="no").pk: "error",
    }

    found = results(api, f"logs/?{query.format(olt=sur.pk)}")

    assert [rows[each["id"]] for each in found] == expected


def test_an_entry_says_its_sentence_beside_the_message_of_the_log_file(api, sur):
    make_log("BREAKER_OPENED", olt=sur, message="as in the file", details={"olt": "OLT-SUR-03", "failures": 3})

    [entry] = results(api, "logs/")

    assert entry["message"] == "as in the file"
    said = "OLT-SUR-03 did not answer 3 attempts in a row: breaker opened, probing once a minute"
    assert entry["sentence"] == said


@pytest.mark.parametrize(
    "query", ["logs/?level=LOUD", "logs/?event=PARTY", "logs/?after=yesterday", "plans/?current=soon", "quotas/?olt=x"]
)
def test_nonsense_in_a_filter_is_refused(api, db, query):
    assert api.get(f"/api/v1/{query}").status_code == 400


@pytest.mark.parametrize("path", ["quotas", "violations", "plans", "logs"])
def test_what_the_engine_owns_is_only_read(api, reader_api, client, node, path):
    make = {"quotas": make_quota, "violations": make_violation, "plans": make_plan}
    row = make[path](node) if path in make else make_log()
    url = f"/api/v1/{path}/{row.pk}/"

    answers = [api.post(f"/api/v1/{path}/", {}), api.put(url, {}), api.patch(url, {}), api.delete(url)]

    assert [answer.status_code for answer in answers] == [405] * 4
    assert reader_api.get(url).status_code == 200
    assert client.get(url).status_code in (401, 403)


@pytest.mark.parametrize("many", [1, 9])
@pytest.mark.parametrize("path", ["quotas", "violations", "plans", "logs"])
def test_a_page_costs_the_same_however_long_it_is(api, node, django_assert_num_queries, path, many):
    for number in range(many):
        hour = T0 + number * HOUR
        make_quota(node, hour)
        make_violation(node, hour)
        make_plan(node, hour)
        make_log(olt=node.olt)

    with django_assert_num_queries(2):
        api.get(f"/api/v1/{path}/")
