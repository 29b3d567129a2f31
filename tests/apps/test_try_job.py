"""Trying a job on an OLT before it is saved: the request waits for the engine, and answers 202 if that takes long."""

from datetime import timedelta

import pytest
from cast import SECRETS, make_olt
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from facho.apps.inventory.models import Question
from facho.apps.jobs.models import SnmpJob

URL = "/api/v1/jobs/try/"
COLUMN = {
    "name": "rx_dbm",
    "oid": "1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4",
    "decode": "",
    "rows": [{"onu": "ONU 0/1/7", "index": "4194304000.7", "type": "INTEGER", "raw": "-2153", "value": -21.53}],
    "remark": "",
}
ANSWER = {"columns": [COLUMN], "problems": [], "requests": 1, "seconds": 0.1}


def answered():
    Question.objects.update(state="answered", answer=ANSWER, answered_at=timezone.now())


def failed():
    Question.objects.update(state="failed", error="The OLT is busy with a run. Try again when it has finished.")


@pytest.fixture(autouse=True)
def _no_engine(engine):
    engine()


@pytest.fixture
def body(central):
    return {"olt": central.pk, "brand": "huawei", "kind": "table", "columns": ["rx_dbm"]}


def test_the_answer_of_the_olt_comes_back(api, body, engine):
    engine(lambda: None, answered)

    reply = api.post(URL, body, format="json")

    assert reply.status_code == 200
    shown = reply.json()
    assert (shown["state"], shown["error"], shown["olt_name"], shown["kind"]) == (
        "answered",
        "",
        "OLT-CENTRAL-01",
        "try_job",
    )
    assert shown["answer"] == ANSWER
    assert shown["asked_at"].endswith("Z")
    assert not SnmpJob.objects.exists()


def test_the_engine_gets_the_job_and_no_secret(api, body):
    oid = {"name": "vlan", "oid": "1.3.6.1.4.1.99.1", "decode": "number"}

    api.post(URL, {**body, "name": "Optical power", "oids": [oid], "interval_seconds": 60}, format="json")

    question = Question.objects.get()
    assert question.body == {
        "name": "Optical power",
        "kind": "table",
        "columns": ["rx_dbm"],
        "oids": [{**oid, "scalar": False}],
    }
    assert question.expires_at > question.asked_at
    assert all(secret not in str(question.body) for secret in SECRETS.values())


def test_an_answer_that_takes_long_is_polled_for(api, reader_api, boss, body):
    reply = api.post(URL, body, format="json")

    assert reply.status_code == 202
    url = reply.json()["url"]
    assert url.endswith(f"/api/v1/questions/{Question.objects.get().pk}/")
    assert (reply.json()["state"], reply.json()["answer"]) == ("pending", None)
    answered()
    assert api.get(url).json()["answer"] == ANSWER
    assert reader_api.get(url).status_code == 404


def test_why_there_is_no_answer_is_said(api, body, engine):
    engine(failed)

    reply = api.post(URL, body, format="json").json()

    assert (reply["state"], reply["answer"]) == ("failed", None)
    assert reply["error"] == "The OLT is busy with a run. Try again when it has finished."


def test_a_question_that_no_engine_takes_expires(api, body):
    url = api.post(URL, body, format="json").json()["url"]
    Question.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    shown = api.get(url).json()

    assert shown["state"] == "expired"
    assert shown["error"] == "The engine did not answer in time. Check that it is running."


def test_a_job_that_is_there_can_be_tried_under_its_name(api, body, power, engine):
    engine(answered)

    assert api.post(URL, {**body, "name": power.name}, format="json").status_code == 200


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        pytest.param({"olt": None}, "olt", "This field may not be null.", id="no OLT"),
        pytest.param({"columns": ["colour"]}, "columns", "has no column colour", id="a column that nobody has"),
        pytest.param({"oids": [{"name": "x", "oid": "1.x", "decode": "number"}]}, "oids", "is not an OID", id="no OID"),
        pytest.param({"brand": "zte_c300"}, "olt", "has another brand", id="another brand"),
        pytest.param({"colour": "red"}, "colour", "Unknown field", id="an unknown field"),
    ],
)
def test_a_mistake_is_told_at_once(api, body, change, field, said):
    reply = api.post(URL, body | change, format="json")

    assert reply.status_code == 400
    assert said in str(reply.json()[field])
    assert not Question.objects.exists()


def test_a_disabled_olt_is_not_asked(api, body):
    olt = make_olt("OLT-SUR-03", host="127.0.0.3", enabled=False)

    reply = api.post(URL, body | {"olt": olt.pk}, format="json")

    assert reply.json() == {"olt": ["OLT-SUR-03 is disabled. Enable it first."]}


def test_it_takes_the_right_to_change_jobs(reader_api, reader, body):
    refused = reader_api.post(URL, body, format="json")
    reader.user_permissions.add(Permission.objects.get(codename="change_snmpjob"))
    reader = type(reader).objects.get(pk=reader.pk)
    reader_api.force_authenticate(reader)

    assert refused.status_code == 403
    assert "jobs.change_snmpjob" in refused.json()["detail"]
    assert reader_api.post(URL, body, format="json").status_code == 202


def test_nobody_else_is_asked_without_a_login(client, body):
    assert client.post(URL, body, content_type="application/json").status_code in (401, 403)


def test_a_page_needs_its_csrf_token(boss, body):
    from django.test import Client

    page = Client(enforce_csrf_checks=True)
    page.force_login(boss)

    assert page.post(URL, body, content_type="application/json").status_code == 403


def test_only_post_is_known(api):
    assert api.get(URL).status_code == 405


@pytest.mark.parametrize("path", ["add", "change"])
def test_the_admin_offers_it_before_saving(admin_page, central, power, path):
    names = {"add": reverse("admin:jobs_snmpjob_add"), "change": reverse("admin:jobs_snmpjob_change", args=[power.pk])}

    page = admin_page.get(names[path]).content.decode()

    assert "Try now" in page
    assert f'data-url="{URL}"' in page
    assert f'value="{central.pk}"' in page
    assert "jobs/try.js" in page
