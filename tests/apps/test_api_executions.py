"""Executions through the API."""

from datetime import timedelta

import pytest
from cast import T0, make_execution, make_job


def test_an_execution_says_where_its_time_went(api, execution):
    shown = api.get(f"/api/v1/executions/{execution.pk}/").json()

    assert (shown["olt_name"], shown["node_name"], shown["poller_id"]) == ("OLT-CENTRAL-01", "Optical power", 3)
    assert (shown["duration"], shown["lateness"], shown["waits"]) == (30.0, 2.0, {"olt_busy": 2.0})


def test_one_that_has_not_started_has_no_duration(api, node):
    pending = make_execution(node, status="PENDING", started_at=None, ended_at=None)

    shown = api.get(f"/api/v1/executions/{pending.pk}/").json()

    assert (shown["duration"], shown["lateness"]) == (None, None)


def test_a_master_has_its_chain_with_it_in_the_order_it_ran(api, execution, sur):
    [other] = make_job("Other").apply_to([sur])
    later = make_execution(other, master_execution=execution)

    shown = api.get(f"/api/v1/executions/{execution.pk}/").json()

    assert [link["node_name"] for link in shown["links"]] == ["Names", "Other"]
    assert shown["links"][1]["id"] == later.pk
    assert {link["master_execution"] for link in shown["links"]} == {execution.pk}


def test_a_link_has_its_attempts_with_it(api, execution):
    shown = api.get(f"/api/v1/executions/{execution.links.get().pk}/").json()

    assert [(attempt["number"], attempt["status"]) for attempt in shown["attempts"]] == [(1, "FAILED"), (2, "FAILED")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["manual", "mute", "link", "master"], id="the latest first"),
        pytest.param("olt={olt}", ["manual", "link", "master"], id="by OLT"),
        pytest.param("node={node}", ["manual", "master"], id="by node"),
        pytest.param("poller=4", ["mute"], id="by poller"),
        pytest.param("status=FAILED", ["link"], id="by status"),
        pytest.param("status=FAILED&status=SKIPPED", ["mute", "link"], id="by several statuses"),
        pytest.param("master={master}", ["link"], id="the chain of a master"),
        pytest.param("is_master=true", ["manual", "mute", "master"], id="masters"),
        pytest.param("is_master=false", ["link"], id="links"),
        pytest.param("trigger=manual", ["manual"], id="by who wanted it"),
        pytest.param("slot_after=2025-06-01T10:05:00Z", ["manual", "mute"], id="from a slot on"),
        pytest.param("slot_before=2025-06-01T10:05:00Z", ["link", "master"], id="before a slot"),
        pytest.param("search=no answer", ["link"], id="by the error"),
        pytest.param("search=sur", ["mute"], id="by the name of the OLT"),
        pytest.param("ordering=slot", ["master", "link", "mute", "manual"], id="in the order asked for"),
    ],
)
def test_executions_are_found(api, execution, sur, node, query, expected):
    [mute] = make_job("Other").apply_to([sur])
    rows = {
        execution.pk: "master",
        execution.links.get().pk: "link",
        make_execution(mute, T0 + timedelta(minutes=5), status="SKIPPED", cause="unreachable", poller_id=4).pk: "mute",
        make_execution(node, T0 + timedelta(minutes=7), trigger="manual").pk: "manual",
    }

    answer = api.get(f"/api/v1/executions/?{query.format(olt=node.olt_id, node=node.pk, master=execution.pk)}")

    assert [rows[each["id"]] for each in answer.data["results"]] == expected


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        pytest.param(
            "status=TIRED", "Select a valid choice. TIRED is not one of the available choices.", id="unknown status"
        ),
        pytest.param("slot_after=yesterday", "Enter a valid date/time.", id="no time"),
        pytest.param("node=seven", "Enter a number.", id="no number"),
    ],
)
def test_nonsense_in_a_filter_is_refused(api, db, query, sentence):
    answer = api.get(f"/api/v1/executions/?{query}")

    assert answer.status_code == 400
    assert list(answer.data.values()) == [[sentence]]


@pytest.mark.parametrize("many", [1, 20])
def test_a_page_of_executions_costs_the_same_however_many_there_are(api, node, django_assert_num_queries, many):
    for number in range(many):
        make_execution(node, T0 + timedelta(minutes=number))

    with django_assert_num_queries(2):
        api.get("/api/v1/executions/")


@pytest.mark.parametrize("many", [1, 20])
def test_a_master_costs_the_same_however_long_its_chain_is(api, node, chained, django_assert_num_queries, many):
    master = make_execution(node)
    for number in range(many):
        make_execution(chained, T0 + timedelta(minutes=number), master_execution=master)

    # The execution, its links, its attempts.
    with django_assert_num_queries(3):
        api.get(f"/api/v1/executions/{master.pk}/")
