"""Replacing the device of an OLT, and deleting an OLT: pages, API and admin."""

import itertools
import logging
from datetime import timedelta

import pytest
from cast import make_execution, make_job, make_olt, make_onu, make_user
from django.apps import apps
from django.test import Client
from django.utils import timezone

from facho.apps.accounts.roles import Role
from facho.apps.changes.models import Change
from facho.apps.inventory import removal
from facho.apps.inventory.models import Olt, Replacement, Scope, Site
from facho.apps.jobs.models import WorkflowNode
from facho.apps.maintenance.models import Maintenance
from facho.apps.polling.models import Execution
from facho.apps.telemetry.history import OLT_ITSELF
from facho.apps.telemetry.models import HistoryRun, Onu, OnuEvent, OnuNote
from facho.runtime.commands.export import _olts
from facho.store import history
from problem_rows import make_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def engineer():
    client = Client()
    client.force_login(make_user(Role.ENGINEER))
    return client


@pytest.fixture
def full(central):
    """An OLT with something of all kinds."""
    node = make_job("State").apply_to([central])[0]
    make_execution(node)
    onu = make_onu(central, 1)
    OnuNote.objects.create(onu=onu, text="Dog bites.", author_name="ana")
    OnuEvent.objects.create(onu=onu, olt=central, at=timezone.now(), field="state", old="online", new="los")
    make_problem(central)
    history.append(central.pk, timezone.now(), [onu.pk], {"state": ["online"]})
    return central


def test_the_page_says_what_goes_and_offers_to_disable_instead(engineer, full):
    shown = engineer.get(f"/olts/{full.pk}/delete/")

    counts = {str(part.label): part.count for part in shown.context["parts"]}
    assert counts == {
        "ONUs": 1,
        "PON ports": 1,
        "applied jobs": 1,
        "executions": 1,
        "events of ONUs": 1,
        "days of history": 1,
        "open problems": 1,
        "notes of users": 1,
    }
    page = shown.content.decode()
    assert 'value="disable"' in page
    assert f"/olts/{full.pk}/replace/" in page


@pytest.mark.parametrize("typed", ["", "OLT-CENTRAL", "olt-central-01", "yes"])
def test_a_wrong_name_deletes_nothing(engineer, full, typed):
    shown = engineer.post(f"/olts/{full.pk}/delete/", {"name": typed})

    assert shown.status_code == 200
    assert shown.context["form"].errors["name"]
    assert Olt.objects.get(pk=full.pk).enabled
    assert Onu.objects.exists()


def test_the_typed_name_deletes_the_olt_and_all_that_is_of_it(engineer, full):
    other = make_onu(make_olt("OLT-NORTE-02", host="127.0.0.2"), 2)

    shown = engineer.post(f"/olts/{full.pk}/delete/", {"name": " OLT-CENTRAL-01 "}, follow=True)

    assert "OLT-CENTRAL-01 was deleted." in shown.content.decode()
    assert [olt.name for olt in Olt.objects.all()] == ["OLT-NORTE-02"]
    assert list(Onu.objects.all()) == [other]
    assert not Execution.objects.exists()
    change = Change.objects.filter(action="deleted").get()
    assert (change.object_name, change.fields["name"]) == ("OLT-CENTRAL-01", ["OLT-CENTRAL-01", None])


@pytest.fixture
def running(full):
    return make_execution(full.nodes.get(), slot=timezone.now(), status="RUNNING", ended_at=None)


def test_an_olt_that_is_being_polled_is_deleted_when_its_run_has_ended(engineer, full, running):
    shown = engineer.post(f"/olts/{full.pk}/delete/", {"name": "OLT-CENTRAL-01"}, follow=True)
    assert "is being deleted" in shown.content.decode()
    left = Olt.objects.get(pk=full.pk)
    assert (left.enabled, left.deleting_since is None) == (False, False)
    assert Onu.objects.filter(olt=full).exists()
    assert "This OLT is being deleted." in engineer.get(f"/olts/{full.pk}/").content.decode()

    Execution.objects.update(status="INTERRUPTED")
    assert removal.delete_rows(full.pk, seconds=60)

    assert not Olt.objects.exists()
    assert Change.objects.filter(action="deleted").count() == 1


def test_its_name_and_device_are_free_at_once(engineer, full, running):
    engineer.post(f"/olts/{full.pk}/delete/", {"name": "OLT-CENTRAL-01"})
    form = {"name": "OLT-CENTRAL-01", "host": full.host, "version": "2c", "community": "public", "enabled": "on"}

    saved = engineer.post("/olts/new/", form)

    assert saved.status_code == 302, saved.context["form"].errors


def test_an_olt_that_is_being_deleted_cannot_be_enabled_or_changed(api, admin_page, full, running):
    assert api.delete(f"/api/v1/olts/{full.pk}/").status_code == 202

    assert api.post(f"/api/v1/olts/{full.pk}/enable/").status_code == 409
    assert api.patch(f"/api/v1/olts/{full.pk}/", {"enabled": True}, format="json").status_code == 400
    bulk = api.post("/api/v1/olts/bulk/", {"action": "enable", "ids": [full.pk]}, format="json")
    assert bulk.data["results"][0]["result"] == "refused"
    admin_page.post("/admin/inventory/olt/", {"action": "enable_chosen", "_selected_action": [full.pk]})
    assert not Olt.objects.get(pk=full.pk).enabled
    assert admin_page.get(f"/olts/{full.pk}/delete/").status_code == 302
    assert api.get(f"/api/v1/olts/{full.pk}/").data["deleting_since"]


def test_an_olt_that_is_being_deleted_gets_no_job_and_no_maintenance(api, engineer, full, running):
    removal.delete_olt(full)
    job = running.node.job

    for change in ({"action": "interval", "interval_seconds": 900}, {"action": "disable"}, {"action": "remove"}):
        told = api.post("/api/v1/nodes/bulk/", {"job": job.pk, "filter": {}, **change}, format="json").data
        assert [each["result"] for each in told["results"]] == ["refused"]
    now = timezone.now()
    plan = {"olt": full.pk, "starts_at": now, "ends_at": now + timedelta(hours=1), "reason": "works"}
    refused = api.post("/api/v1/maintenance/", plan, format="json")
    assert (refused.status_code, "is being deleted" in str(refused.data)) == (400, True)
    engineer.post(f"/olts/{full.pk}/maintenance/", {"minutes": "60", "reason": "works"})
    assert not Maintenance.objects.exists()
    assert "OLT-CENTRAL-01" not in engineer.get("/maintenance/new/").content.decode().split("<main")[1]


def test_files_leave_out_an_olt_that_is_being_deleted(engineer, full, running):
    removal.delete_olt(full)

    assert "OLT-CENTRAL-01" not in engineer.get("/olts/import/olts/").content.decode()
    assert _olts([]) == []


def test_a_portion_ends_in_time_and_the_next_one_goes_on(full):
    Olt.objects.filter(pk=full.pk).update(deleting_since=timezone.now(), enabled=False)
    # Each look at the clock takes a second.
    seconds = itertools.count()

    assert not removal.delete_rows(full.pk, seconds=3, clock=lambda: next(seconds))
    assert not HistoryRun.objects.exists()
    assert Onu.objects.exists()

    assert removal.delete_rows(full.pk, seconds=60, clock=lambda: next(seconds))
    assert not Olt.objects.exists()


def test_what_is_not_deleted_in_portions_is_little():
    """A new table with rows of an OLT needs a decision: in portions, or with the OLT."""
    with_the_olt = {
        "inventory.Question", "inventory.Replacement", "jobs.WorkflowNode", "maintenance.Maintenance",
        "maintenance.MaintenanceWindow", "alerts.Rule", "alerts.Rule_olts", "telemetry.PonPort", "inventory.Olt_tags",
        # They go with their ONU.
        "telemetry.OnuSearch", "telemetry.OnuPosition",
    }  # fmt: skip
    referring = {
        relation.related_model._meta.label
        for relation in Olt._meta.get_fields(include_hidden=True)
        if relation.auto_created and not relation.concrete and relation.related_model is not None
    }
    assert referring - set(removal.PORTIONS) - with_the_olt == set()
    assert all(apps.get_model(label) for label in removal.PORTIONS)


def test_the_admin_leads_to_the_page_and_deletes_none_itself(admin_page, full):
    url = f"/admin/inventory/olt/{full.pk}/delete/"

    assert admin_page.get(url).headers["Location"] == f"/olts/{full.pk}/delete/"
    assert admin_page.post(url, {"post": "yes"}).headers["Location"] == f"/olts/{full.pk}/delete/"
    admin_page.post(
        "/admin/inventory/olt/", {"action": "delete_selected", "_selected_action": [full.pk], "post": "yes"}
    )
    assert Olt.objects.exists()


NEW = {"host": "10.9.9.9:1161", "brand": "huawei", "version": "2c", "community": "of-the-new-one"}


def test_an_engineer_replaces_the_device(engineer, full):
    shown = engineer.post(f"/olts/{full.pk}/replace/", NEW, follow=True)

    olt = Olt.objects.get(pk=full.pk)
    page = shown.content.decode()
    assert "The device of OLT-CENTRAL-01 was replaced." in page
    assert "1 ONU was not found on the new device yet." in page
    assert (olt.host, olt.port, olt.community.reveal()) == ("10.9.9.9", 1161, "of-the-new-one")
    replaced = Change.objects.get(object_type="inventory.replacement")
    assert (replaced.action, replaced.olt_id, replaced.object_name) == ("created", olt.pk, "OLT-CENTRAL-01")
    assert "10.9.9.9:1161" in replaced.fields["after"][1]
    onu = Onu.objects.get()
    assert "was not found on the new one yet" in engineer.get(f"/onus/{onu.pk}/").content.decode()


def test_the_replacement_is_a_mark_on_the_charts(engineer, full):
    engineer.post(f"/olts/{full.pk}/replace/", NEW)
    onu = Onu.objects.get()

    of_onu = engineer.get(f"/onus/{onu.pk}/history/").json()["marks"]
    of_port = engineer.get(f"/olts/{full.pk}/ports/0/1/history/").json()["marks"]

    assert any(mark["text"].startswith("Device replaced: ") for mark in of_onu)
    assert any(mark["title"].startswith("Device replaced: ") for mark in of_port)


def test_the_secret_is_asked_again_for_another_address(engineer, full):
    shown = engineer.post(f"/olts/{full.pk}/replace/", NEW | {"community": ""})

    assert "Write this again" in shown.context["form"].errors["community"][0]
    assert not Replacement.objects.exists()
    assert WorkflowNode.objects.exists()


def test_the_page_tells_what_is_kept_and_what_starts_again(engineer, full):
    make_onu(full, 2, serial="", mac="")

    page = engineer.get(f"/olts/{full.pk}/replace/").content.decode()

    assert "2 ONUs with their history, notes and positions." in page
    assert "1 ONU has no serial and no MAC." in page
    assert full.community.reveal() not in page


def test_the_api_replaces_with_another_brand(api, full):
    body = {"host": "10.9.9.9", "brand": "zte_c300", "community": "of-the-new-one"}

    answer = api.post(f"/api/v1/olts/{full.pk}/replace/", body, format="json")

    assert answer.status_code == 200, answer.data
    assert (answer.data["brand"], answer.data["host"]) == ("zte_c300", "10.9.9.9")
    assert "of-the-new-one" not in answer.content.decode()
    assert {node.job.brand for node in WorkflowNode.objects.select_related("job")} == {"zte_c300"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({}, "host", id="no address"),
        pytest.param({"host": "10.9.9.9"}, "community", id="a secret of another address"),
        pytest.param({"host": "10.9.9.9", "community": "x", "brand": "acme"}, "brand", id="unknown brand"),
        pytest.param({"host": "10.9.9.9", "community": "x", "name": "Z"}, "name", id="unknown field"),
        pytest.param({"host": "10.0.0.300", "community": "x"}, "host", id="bad address"),
    ],
)
def test_the_api_refuses_what_is_not_a_device(api, full, body, field):
    answer = api.post(f"/api/v1/olts/{full.pk}/replace/", body, format="json")

    assert answer.status_code == 400
    assert field in answer.data
    assert not Replacement.objects.exists()


def test_an_olt_outside_the_scope_is_neither_replaced_nor_deleted(full):
    user = make_user(Role.ENGINEER)
    Scope.objects.create(user=user).sites.add(Site.objects.create(name="Lima"))
    client = Client()
    client.force_login(user)

    for path in (f"/olts/{full.pk}/replace/", f"/olts/{full.pk}/delete/"):
        assert client.get(path).status_code == 404
        assert client.post(path, NEW | {"name": full.name}).status_code == 404
    assert client.post(f"/api/v1/olts/{full.pk}/replace/", NEW, content_type="application/json").status_code == 404


def test_a_history_of_the_olt_itself_goes_too(engineer, full, caplog):
    caplog.set_level(logging.INFO)
    history.append(full.pk, timezone.now(), [OLT_ITSELF], {"oid.board": [41]})

    engineer.post(f"/olts/{full.pk}/delete/", {"name": full.name})

    assert not Olt.objects.exists()
    assert "deletion requested" in caplog.text
