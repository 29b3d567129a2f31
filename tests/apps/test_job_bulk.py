"""A change of one job on many OLTs: a preview, the change, and what happens if an OLT changed in between."""

import json

import pytest
from cast import make_job, make_olt, make_user
from django.test import Client
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role
from facho.apps.changes.models import Change
from facho.apps.inventory.models import Olt, Scope, Site
from facho.apps.jobs.models import WorkflowNode

API = "/api/v1/nodes/bulk/"


@pytest.fixture
def job(central, norte, sur):
    """State, every 5 min on two OLTs; the third one has another brand."""
    Olt.objects.filter(pk=sur.pk).update(brand="zte")
    Olt.objects.filter(pk=norte.pk).update(brand="huawei")
    norte.refresh_from_db()
    found = make_job("State", columns=["state"], interval_seconds=300)
    found.apply_to([central, norte])
    return found


def send(api, job, action, status=200, **more):
    body = {"action": action, "job": job.pk, **({} if "ids" in more else {"filter": {}}), **more}
    answer = api.post(API, body, format="json")
    assert answer.status_code == status, answer.json()
    return answer.json()


def results(answer):
    return {each["name"]: each["result"] for each in answer["results"]}


def intervals():
    return {node.olt.name: node.own_interval_seconds for node in WorkflowNode.objects.select_related("olt")}


def test_the_interval_of_many_olts_is_set(api, job):
    told = send(api, job, "interval", interval_seconds=900)

    assert told["detail"] == "State: 2 OLTs now every 15 min, 1 was left out."
    assert results(told) == {"OLT-CENTRAL-01": "done", "OLT-NORTE-02": "done", "OLT-SUR-03": "refused"}
    assert intervals() == {"OLT-CENTRAL-01": 900, "OLT-NORTE-02": 900}


def test_a_dry_run_reports_the_same_and_changes_nothing(api, job):
    told = send(api, job, "interval", interval_seconds=900, dry_run=True)

    assert told["detail"] == "State will run every 15 min on 2 OLTs."
    assert results(told) == {"OLT-CENTRAL-01": "done", "OLT-NORTE-02": "done", "OLT-SUR-03": "refused"}
    first = told["results"][0]
    assert (first["before"], first["after"]) == (
        {"is_applied": True, "interval_seconds": 300, "enabled": True},
        {"is_applied": True, "interval_seconds": 900, "enabled": True},
    )
    assert told["results"][-1]["detail"] == "State is for Huawei MA5600T / MA5800, and this OLT has another brand."
    assert set(intervals().values()) == {None}


def test_the_interval_of_the_job_is_not_an_interval_of_its_own(api, job):
    send(api, job, "interval", interval_seconds=900)
    back = send(api, job, "interval", interval_seconds=300)

    assert back["detail"].startswith("State: 2 OLTs now every 5 min")
    assert set(intervals().values()) == {None}


def test_without_an_interval_that_of_the_job_applies(api, job):
    WorkflowNode.objects.update(own_interval_seconds=300)

    told = send(api, job, "interval", interval_seconds=None)
    again = send(api, job, "interval", interval_seconds=None)

    assert told["detail"].startswith("State: 2 OLTs now every 5 min")
    assert set(intervals().values()) == {None}
    assert again["detail"].startswith("State: 0 OLTs now every 5 min, 2 already were")


def test_a_change_after_the_preview_is_not_overwritten(api, job, central, norte):
    preview = send(api, job, "interval", interval_seconds=900, dry_run=True)
    seen = {str(each["id"]): each["before"] for each in preview["results"]}
    WorkflowNode.objects.get(olt=central).set_interval(60)

    told = send(api, job, "interval", interval_seconds=900, seen=seen)

    assert results(told)["OLT-CENTRAL-01"] == "refused"
    assert told["results"][0]["detail"] == (
        "It was changed after the preview: every 5 min, now every 1 min. Preview it again."
    )
    assert intervals() == {"OLT-CENTRAL-01": 60, "OLT-NORTE-02": 900}


def test_a_job_removed_after_the_preview_is_not_applied_again(api, job, central):
    seen = {str(central.pk): {"is_applied": True, "interval_seconds": 300, "enabled": True}}
    WorkflowNode.objects.get(olt=central).delete()

    told = send(api, job, "disable", seen=seen, ids=[central.pk])

    assert told["results"][0]["detail"].startswith("It was changed after the preview: every 5 min, now not applied.")


def test_a_job_is_disabled_and_enabled(api, job, central):
    off = send(api, job, "disable", ids=[central.pk])
    node = WorkflowNode.objects.get(olt=central)
    is_off, again = node.own_enabled, send(api, job, "disable", ids=[central.pk])
    on = send(api, job, "enable", ids=[central.pk])
    node.refresh_from_db()

    assert [each["detail"] for each in (off, again, on)] == [
        "State: disabled on 1 OLT.",
        "State: disabled on 0 OLTs, 1 already was.",
        "State: enabled on 1 OLT.",
    ]
    # Enabled like its job, so it follows the job.
    assert (is_off, node.own_enabled) == (False, None)


def test_a_job_is_applied_and_removed_with_its_followers(api, job, central, norte):
    make_job("Names", columns=["name"], follows=job)
    third = make_olt("OLT-ESTE-04", host="127.0.0.4")

    applied = send(api, job, "apply")
    nodes = third.nodes.count()
    removed = send(api, job, "remove", ids=[central.pk, third.pk])

    assert applied["detail"] == "State: applied to 1 OLT, 2 already were, 1 was left out."
    assert nodes == 2
    assert removed["detail"] == "State: removed from 2 OLTs."
    assert (central.nodes.count(), norte.nodes.count(), third.nodes.count()) == (0, 2, 0)


@pytest.mark.parametrize(
    ("action", "detail"),
    [
        ("interval", "Names runs whenever State does. Choose State."),
        ("apply", "Names comes and goes with State. Choose State."),
        ("remove", "Names comes and goes with State. Choose State."),
    ],
)
def test_a_follower_has_no_schedule(api, job, central, action, detail):
    names = make_job("Names", columns=["name"], follows=job)
    more = {"interval_seconds": 60} if action == "interval" else {}

    told = send(api, names, action, ids=[central.pk], **more)

    assert (told["results"][0]["result"], told["results"][0]["detail"]) == ("refused", detail)


def test_a_follower_can_be_disabled(api, job, central):
    names = make_job("Names", columns=["name"], follows=job)

    told = send(api, names, "disable", ids=[central.pk])

    assert told["results"][0]["after"] == {"is_applied": True, "interval_seconds": 300, "enabled": False}
    assert WorkflowNode.objects.get(olt=central, job=names).own_enabled is False


def test_an_interval_below_the_floor_is_a_warning(api, central):
    power = make_job("Optical power", columns=["rx_dbm"], interval_seconds=1800)
    power.apply_to([central])

    told = send(api, power, "interval", interval_seconds=30, ids=[central.pk], dry_run=True)

    assert told["results"][0]["result"] == "done"
    assert "is too short for these columns" in told["results"][0]["warnings"][0]


def test_a_job_that_reads_nothing_is_not_enabled(api, central):
    empty = make_job("Empty", columns=[])
    empty.apply_to([central])

    told = send(api, empty, "enable", ids=[central.pk])

    assert told["results"][0]["detail"].startswith("Empty reads nothing.")


def test_each_olt_has_a_record_under_one_request(api, job):
    send(api, job, "interval", interval_seconds=900)

    changes = Change.objects.filter(object_type="jobs.workflownode", action="changed")
    assert [change.fields for change in changes] == [{"own_interval_seconds": [None, 900]}] * 2
    assert len({change.request_id for change in changes}) == 1


def test_the_engine_hears_of_it(api, job, central):
    before = Olt.objects.get(pk=central.pk).revision
    send(api, job, "interval", interval_seconds=900)

    assert Olt.objects.get(pk=central.pk).revision > before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "explode"}, "action"),
        ({"job": 9999}, "job"),
        ({"interval_seconds": 9}, "interval_seconds"),
        ({"interval_seconds": 604801}, "interval_seconds"),
        ({"action": "interval"}, "interval_seconds"),
        ({"action": "enable", "interval_seconds": 60}, "interval_seconds"),
        ({"ids": [1]}, "ids"),
        ({"filter": {"colour": "red"}}, "filter"),
        ({"seen": {"x": {"is_applied": True, "interval_seconds": 1, "enabled": True}}}, "seen"),
        ({"seen": {"1": {"is_applied": True}}}, "seen"),
        ({"seen": []}, "seen"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_nonsense_is_refused(api, job, body, field):
    whole = {"action": "enable", "job": job.pk, "filter": {}, **body}

    answer = api.post(API, whole, format="json")

    assert (answer.status_code, list(answer.json())) == (400, [field])


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (Role.SUPPORT, set()),
        (Role.OPERATOR, {"interval", "enable", "disable"}),
        (Role.ENGINEER, {"interval", "enable", "disable", "apply", "remove"}),
    ],
)
def test_each_action_needs_its_permission(job, central, role, allowed):
    client = APIClient()
    client.force_authenticate(make_user(role))
    statuses = {}
    for action in ("interval", "enable", "disable", "apply", "remove"):
        more = {"interval_seconds": 60} if action == "interval" else {}
        body = {"action": action, "job": job.pk, "ids": [central.pk], "dry_run": True, **more}
        statuses[action] = client.post(API, body, format="json").status_code

    assert {action for action, status in statuses.items() if status == 200} == allowed
    assert set(statuses.values()) <= {200, 403}


def test_a_scope_limits_the_olts(job, central, norte):
    user = make_user(Role.OPERATOR)
    central.site = Site.objects.create(name="Lima")
    central.save()
    Scope.objects.create(user=user).sites.set([central.site])
    client = APIClient()
    client.force_authenticate(user)

    told = send(client, job, "interval", interval_seconds=900, ids=[central.pk, norte.pk])

    assert results(told) == {"OLT-CENTRAL-01": "done", "": "refused"}
    assert intervals()["OLT-NORTE-02"] is None


def test_a_preview_of_many_olts_needs_few_queries(api, job, django_assert_max_num_queries):
    job.apply_to([make_olt(f"OLT-{number:03}", host=f"127.0.3.{number}") for number in range(40)])

    with django_assert_max_num_queries(15):
        send(api, job, "interval", interval_seconds=900, dry_run=True)


# The pages


PAGE = "/olts/jobs/"


def test_the_page_previews_before_it_applies(admin_page, job, central, norte, sur):
    chosen = {"id": f"{central.pk},{norte.pk},{sur.pk}", "back": "?sort=name"}

    asked = admin_page.post("/olts/bulk/", {**chosen, "action": "change_job"})
    form = {**chosen, "job": job.pk, "action": "interval", "interval": "15", "unit": "min"}
    preview = admin_page.post(PAGE, form)
    untouched = set(intervals().values())
    done = admin_page.post(PAGE, {**form, "confirmed": "1", "seen": preview.context["seen"]}, follow=True)

    assert "State" in asked.content.decode()
    text = preview.content.decode()
    assert "State will run every 15 min on 2 OLTs." in text
    assert "every 5 min" in text
    assert "this OLT has another brand" in text
    assert untouched == {None}
    assert done.redirect_chain[0][0] == "/olts/?sort=name"
    assert "State: 2 OLTs now every 15 min, 1 was left out." in done.content.decode()
    assert intervals() == {"OLT-CENTRAL-01": 900, "OLT-NORTE-02": 900}


def test_the_page_does_not_overwrite_a_later_change(admin_page, job, central, norte):
    form = {"id": f"{central.pk},{norte.pk}", "job": job.pk, "action": "interval", "interval": "15", "unit": "min"}
    preview = admin_page.post(PAGE, form)
    WorkflowNode.objects.get(olt=central).set_interval(60)

    done = admin_page.post(PAGE, {**form, "confirmed": "1", "seen": preview.context["seen"]}, follow=True)

    assert "State: 1 OLT now every 15 min, 1 was left out." in done.content.decode()
    assert "OLT-CENTRAL-01: It was changed after the preview: every 5 min, now every 1 min." in done.content.decode()
    assert intervals() == {"OLT-CENTRAL-01": 60, "OLT-NORTE-02": 900}


def test_nothing_is_applied_without_what_was_shown(admin_page, job, central):
    form = {"id": central.pk, "job": job.pk, "action": "disable", "confirmed": "1"}

    for seen in ("", "{", "[]", '{"x": 1}', json.dumps({str(central.pk): {"is_applied": 7}})):
        shown = admin_page.post(PAGE, {**form, "seen": seen})
        assert shown.status_code == 200
        assert "State will be disabled on 1 OLT." in shown.content.decode()

    assert WorkflowNode.objects.get(olt=central).enabled


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"job": ""}, "This field is required."),
        ({"job": "9999"}, "Select a valid choice."),
        ({"action": "explode"}, "Select a valid choice."),
        ({"interval": ""}, "Enter the interval."),
        ({"interval": "5", "unit": "s"}, "Choose an interval of 10 s to 7 d."),
        ({"interval": "900", "unit": "h"}, "Choose an interval of 10 s to 7 d."),
    ],
)
def test_an_incomplete_form_is_told(admin_page, job, central, fields, said):
    form = {"id": central.pk, "job": job.pk, "action": "interval", "interval": "15", "unit": "min", **fields}

    shown = admin_page.post(PAGE, form)

    assert shown.status_code == 200
    assert said in shown.content.decode()


def test_olts_without_a_job_are_told(admin_page, central):
    assert "There is no job for the brands of these OLTs." in admin_page.post(PAGE, {"id": central.pk}).content.decode()


def test_without_olts_there_is_nothing_to_change(admin_page, job):
    shown = admin_page.post(PAGE, {"job": job.pk}, follow=True)

    assert "Tick OLTs and choose an action." in shown.content.decode()


def test_the_forecast_is_asked_with_the_values_filled_in(admin_page, job, central):
    preview = admin_page.post(
        PAGE, {"id": central.pk, "job": job.pk, "action": "interval", "interval": "2", "unit": "min"}
    ).content.decode()

    assert f"/forecast/?job={job.pk}&amp;interval=2&amp;unit=min&amp;olts={central.pk}" in preview


def test_the_page_offers_what_the_user_may_do(job, central):
    shown = {}
    for role in (Role.SUPPORT, Role.OPERATOR, Role.ENGINEER):
        client = Client()
        client.force_login(make_user(role))
        answer = client.post(PAGE, {"id": central.pk})
        shown[role] = (
            [value for value, _label in answer.context["form"].fields["action"].choices]
            if (answer.status_code == 200)
            else answer.status_code
        )

    assert shown == {
        Role.SUPPORT: 403,
        Role.OPERATOR: ["interval", "enable", "disable"],
        Role.ENGINEER: ["interval", "enable", "disable", "apply", "remove"],
    }
