"""Problems in the API: lists, filters, and what people do about them."""

from datetime import timedelta

import pytest
from cast import make_onu
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role, set_role
from facho.apps.inventory.models import Olt, Scope, Site, Tag
from facho.problems.models import Problem
from problem_rows import make_problem

HOUR = timedelta(hours=1)
URL = "/api/v1/problems/"


@pytest.fixture
def support(db):
    """Ana of Support."""
    user = User.objects.create(username="ana")
    set_role(user, Role.SUPPORT)
    return user


@pytest.fixture
def cut(central):
    return make_problem(central, key="cut", since=timezone.now() - HOUR)


@pytest.fixture
def others(central, sur):
    """A minor problem with a low number, one that is over, and one of another OLT."""
    now = timezone.now()
    return [
        make_problem(
            central, key="weak", kind="low_power", severity="minor", cause="feeder", affected=4, slot=1,
            evidence={"weak": 4, "up": 30},
        ),
        make_problem(central, key="past", until=now - HOUR, since=now - 2 * HOUR),
        make_problem(sur, key="down", kind="olt_down", affected=300, slot=None, port=None, evidence={"error": ""}),
    ]  # fmt: skip


def keys(api, **query):
    answer = api.get(URL, query)
    assert answer.status_code == 200, answer.json()
    return [Problem.objects.get(pk=each["id"]).key for each in answer.json()["results"]]


def test_open_ones_come_first_the_worst_first(api, cut, others):
    assert keys(api) == ["down", "cut", "weak", "past"]
    assert keys(api, ordering="-affected,-until") == ["down", "past", "cut", "weak"]


FILTERS = [
    pytest.param({"state": "open"}, ["down", "cut", "weak"], id="open"),
    pytest.param({"state": "past"}, ["past"], id="past"),
    pytest.param({"state": "all"}, ["down", "cut", "weak", "past"], id="all"),
    pytest.param({"kind": ["olt_down", "low_power"]}, ["down", "weak"], id="kinds"),
    pytest.param({"severity": "minor"}, ["weak"], id="severity"),
    pytest.param({"cause": "feeder"}, ["weak"], id="cause"),
    pytest.param({"slot": 1, "port": 1}, ["weak"], id="place"),
    pytest.param({"site": "lima"}, ["down"], id="site"),
    pytest.param({"tag": "core"}, ["down"], id="tag"),
    pytest.param({"search": "sur"}, ["down"], id="search"),
    pytest.param({"search": "splicer"}, ["cut"], id="search in comments"),
    pytest.param({"acknowledged": "true"}, ["cut"], id="acknowledged"),
    pytest.param({"assigned": "true"}, ["down"], id="assigned"),
    pytest.param({"assignee": "ana"}, ["down"], id="of a user"),
    pytest.param({"snoozed": "true"}, ["weak"], id="snoozed"),
    pytest.param({"snoozed": "false", "state": "open"}, ["down", "cut"], id="not snoozed"),
]


@pytest.mark.parametrize(("query", "expected"), FILTERS)
def test_filters(api, cut, others, sur, support, boss, query, expected):
    Olt.objects.filter(pk=sur.pk).update(site=Site.objects.create(name="Lima"))
    sur.tags.add(Tag.objects.create(name="core"))
    cut.acknowledge(by=boss, comment="Splicer sent.")
    others[0].snooze(by=boss, until=timezone.now() + HOUR)
    others[2].assign(by=boss, to=support)

    assert keys(api, **query) == expected


def test_times(api, cut, others):
    moment = (timezone.now() - 1.5 * HOUR).isoformat()

    assert keys(api, since_after=moment, state="open") == ["cut"]
    assert keys(api, until_after=moment) == ["past"]


def test_a_problem_says_what_where_and_why(api, central, cut):
    body = api.get(f"{URL}{cut.pk}/").json()

    assert body["title"] == "Port down · OLT-CENTRAL-01 0/1"
    assert body["summary"] == "28 of 28 ONUs down: 28 with loss of signal; within 6 s"
    assert body["cause_text"] == "Probable cause: fibre cut before the first splitter"
    assert (body["olt_name"], body["is_open"], round(body["seconds"])) == ("OLT-CENTRAL-01", True, 3600)
    assert body["entries"] == []


SUMMARIES = [
    pytest.param(
        {"down": 28, "total": 29, "up": 0},
        "28 of 29 ONUs down (1 other went down at another time): 28 with loss of signal; within 6 s",
        id="none of the others works",
    ),
    pytest.param(
        {"down": 28, "total": 40, "up": 12}, "28 of 40 ONUs down: 28 with loss of signal; within 6 s", id="they work"
    ),
    pytest.param(
        {"down": 28, "total": 40, "up": 10},
        "28 of 40 ONUs down (2 others went down at another time): 28 with loss of signal; within 6 s",
        id="some of them work",
    ),
]


@pytest.mark.parametrize(("evidence", "summary"), SUMMARIES)
def test_onus_that_went_down_at_another_time_are_told_apart(api, cut, evidence, summary):
    cut.evidence |= evidence
    cut.save()

    assert api.get(f"{URL}{cut.pk}/").json()["summary"] == summary


def test_a_violated_quota_names_the_cause_of_most_lost_runs(api, central):
    evidence = {"task": "State", "completed": 60, "required": 120, "causes": {"no_free_poller": 6, "olt_busy": 54}}
    quota = make_problem(central, kind="quota_violated", cause="unknown", confidence="unknown", evidence=evidence)

    body = api.get(f"{URL}{quota.pk}/").json()

    assert body["cause_text"] == "Main cause: the OLT was busy (54 of 60 lost runs)"


def act(api, problem, action, **body):
    return api.post(f"{URL}{problem.pk}/{action}/", body, format="json")


def test_each_action_and_its_undo(api, cut, support):
    until = (timezone.now() + HOUR).isoformat()
    answers = [
        act(api, cut, "acknowledge", comment="Splicer sent."),
        act(api, cut, "assign", user="ana"),
        act(api, cut, "snooze", until=until),
        act(api, cut, "comment", comment="Found at km 3."),
        act(api, cut, "snooze", until=None),
        act(api, cut, "assign", user=None),
        act(api, cut, "unacknowledge"),
    ]

    assert [answer.status_code for answer in answers] == [202] * 7
    assert (answers[3].json()["acknowledged_by"], answers[3].json()["assignee"]) == ("boss", "ana")
    last = answers[-1].json()
    assert (last["acknowledged_at"], last["assignee"], last["snoozed_until"]) == (None, None, None)
    said = [(each["kind"], each["user"], each["said"]) for each in last["entries"]]
    assert said[0] == ("acknowledged", "boss", "acknowledged: Splicer sent.")
    assert said[1] == ("assigned", "boss", "assigned to ana")
    assert [each[2] for each in said[3:]] == [
        "comment: Found at km 3.", "no longer snoozed", "no longer assigned", "acknowledgement withdrawn",
    ]  # fmt: skip


def test_the_comment_of_a_second_acknowledgement_is_kept(api, cut, support):
    cut.acknowledge(by=support, comment="Splicer sent.")

    answer = act(api, cut, "acknowledge", comment="Ticket 4711.").json()

    assert answer["acknowledged_by"] == "ana"
    assert [(each["kind"], each["user"], each["text"]) for each in answer["entries"]] == [
        ("acknowledged", "ana", "Splicer sent."),
        ("commented", "boss", "Ticket 4711."),
    ]


def test_a_second_acknowledgement_changes_nothing(api, cut, support):
    cut.acknowledge(by=support)

    assert act(api, cut, "acknowledge").json()["acknowledged_by"] == "ana"
    assert cut.entries.count() == 1


REFUSED = [
    pytest.param("snooze", {"until": "2020-01-01T00:00Z"}, "until", id="a snooze into the past"),
    pytest.param("snooze", {}, "until", id="a snooze without an end"),
    pytest.param("assign", {"user": "nobody"}, "user", id="an unknown user"),
    pytest.param("assign", {"user": "reader"}, "user", id="a user who may not act"),
    pytest.param("comment", {"comment": ""}, "comment", id="an empty comment"),
    pytest.param("acknowledge", {"reason": "x"}, "reason", id="an unknown field"),
]


@pytest.mark.parametrize(("action", "body", "field"), REFUSED)
def test_refused_actions(api, cut, reader, action, body, field):
    answer = act(api, cut, action, **body)

    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert cut.entries.count() == 0


def test_a_user_of_another_scope_is_not_assigned(api, cut, support):
    Scope.objects.create(user=support).sites.set([Site.objects.create(name="Cusco")])

    assert act(api, cut, "assign", user="ana").status_code == 400


def test_viewers_read_and_do_not_act(reader_api, cut):
    assert reader_api.get(f"{URL}{cut.pk}/").status_code == 200
    assert act(reader_api, cut, "acknowledge").status_code == 403


def test_the_list_costs_the_same_for_many(api, central, cut, django_assert_max_num_queries):
    for number in range(5):
        onu = make_onu(central, number + 20)
        make_problem(central, key=f"{number}", kind="flapping", onu=onu, evidence={"falls": 5, "hours": 2.0})

    with django_assert_max_num_queries(2):
        assert api.get(URL).json()["count"] == 6


def test_a_deleted_user_leaves_the_history(cut, support):
    cut.acknowledge(by=support, comment="Mine.")

    support.delete()

    entry = cut.entries.get()
    assert (entry.user, entry.user_name) == (None, "ana")


def test_unknown_parameters_are_refused(api, db):
    assert APIClient().get(URL).status_code == 401
    assert list(api.get(URL, {"colour": "red"}).json()) == ["colour"]
