"""Reading one ONU now: who may, when it is refused, and what the request answers."""

from datetime import timedelta

import pytest
from cast import make_onu
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role, set_role
from facho.apps.changes.models import Change
from facho.apps.inventory.models import Olt, Question
from facho.apps.jobs.models import SnmpJobOid

ANSWER = {
    "onu": 1,
    "values": {"state": "online", "rx_dbm": -21.4},
    "unanswered": ["tx_dbm"],
    "requests": 3,
    "seconds": 0.4,
}


@pytest.fixture(autouse=True)
def _no_engine(engine):
    engine()


@pytest.fixture
def support(db):
    user = User.objects.create(username="support")
    set_role(user, Role.SUPPORT)
    client = APIClient()
    client.force_authenticate(user)
    return client


def url(onu):
    return f"/api/v1/onus/{onu.pk}/read/"


def answered():
    Question.objects.update(state="answered", answer=ANSWER, answered_at=timezone.now())


@pytest.mark.parametrize("query", ["", "?wait="], ids=["usual wait", "empty wait"])
def test_support_gets_the_values(support, onu, engine, query):
    engine(lambda: None, answered)

    reply = support.post(url(onu) + query)

    assert reply.status_code == 200
    assert (reply.json()["kind"], reply.json()["answer"], reply.json()["progress"]) == ("read_onu", ANSWER, "")


def test_a_request_that_does_not_wait_is_followed(support, onu):
    Question.objects.all().delete()

    reply = support.post(f"{url(onu)}?wait=0")

    assert (reply.status_code, reply.json()["state"], reply.json()["progress"]) == (
        202,
        "pending",
        "Waiting for the engine.",
    )
    follow = reply.json()["url"]
    Question.objects.update(state="running", waits_for={"job": "State", "seconds": 12.3})
    assert support.get(follow).json()["progress"] == "Waiting for the run of State on this OLT, usually 12 s."
    Question.objects.update(waits_for={})
    assert support.get(follow).json()["progress"] == "Asking the OLT."
    answered()
    assert support.get(follow).json()["answer"] == ANSWER


def test_the_engine_gets_the_index_and_the_raw_oids_of_the_jobs(support, onu, node):
    SnmpJobOid.objects.create(job=node.job, name="vlan", oid="1.3.6.1.4.1.99.1", decode="number")
    SnmpJobOid.objects.create(job=node.job, name="uptime", oid="1.3.6.1.2.1.1.3.0", decode="number", scalar=True)

    support.post(f"{url(onu)}?wait=0")

    oid = {"name": "vlan", "oid": "1.3.6.1.4.1.99.1", "decode": "number", "scalar": False}
    assert Question.objects.get().body == {"onu": onu.pk, "index": onu.index, "oids": [oid]}


def test_it_is_in_the_record_as_an_action_on_the_onu(support, onu):
    support.post(f"{url(onu)}?wait=0")

    change = Change.objects.get(action="read")
    assert (change.object_type, change.object_id, change.olt_id, change.actor) == (
        "telemetry.onu",
        onu.pk,
        onu.olt_id,
        "support",
    )


@pytest.mark.parametrize(
    ("olt", "own", "said"),
    [
        pytest.param({"enabled": False}, {}, "OLT-CENTRAL-01 is disabled", id="disabled"),
        pytest.param({"brand": ""}, {}, "The brand of OLT-CENTRAL-01 is not known yet", id="no brand"),
        pytest.param(
            {"breaker_opened_at": timezone.now()},
            {},
            "OLT-CENTRAL-01 does not answer: its breaker has been open for",
            id="breaker open",
        ),
        pytest.param(
            {}, {"place_taken": True, "missing_since": timezone.now()}, "belongs to another ONU now", id="replaced"
        ),
        pytest.param({}, {"place_taken": True}, "was not found on the new one yet", id="OLT replaced"),
    ],
)
def test_it_is_refused_in_words(support, onu, olt, own, said):
    Olt.objects.filter(pk=onu.olt_id).update(**olt)
    type(onu).objects.filter(pk=onu.pk).update(**own)

    reply = support.post(url(onu))

    assert reply.status_code == 409
    assert said in reply.json()["detail"]
    assert not Question.objects.exists()


def test_an_onu_is_not_asked_again_within_some_seconds(support, onu):
    support.post(f"{url(onu)}?wait=0")
    again = support.post(url(onu))
    assert (again.status_code, again.json()["detail"]) == (429, "This ONU is being read already.")

    Question.objects.update(state="answered", asked_at=timezone.now() - timedelta(seconds=4))
    again = support.post(url(onu))
    assert (again.status_code, again["Retry-After"]) == (429, "6")
    assert again.json()["detail"] == "This ONU was read 4 s ago. Wait a moment."

    Question.objects.update(asked_at=timezone.now() - timedelta(seconds=10))
    assert support.post(f"{url(onu)}?wait=0").status_code == 202


def test_an_olt_is_not_asked_for_more_than_ten_onus_a_minute(support, onu):
    others = [make_onu(onu.olt, number) for number in range(20, 30)]
    for other in others:
        assert support.post(f"{url(other)}?wait=0").status_code == 202

    assert support.post(url(onu)).status_code == 429
    Question.objects.filter(body__onu=others[0].pk).update(asked_at=timezone.now() - timedelta(minutes=1))
    assert support.post(f"{url(onu)}?wait=0").status_code == 202


@pytest.mark.parametrize("query", ["wait=21", "wait=soon", "wait=0.5", "hours=3"])
def test_a_wrong_parameter_is_refused(support, onu, query):
    assert support.post(f"{url(onu)}?{query}").status_code == 400


def test_a_viewer_is_told_which_role_may(reader_api, onu):
    reply = reader_api.post(url(onu))

    assert reply.status_code == 403
    assert "Support" in reply.json()["detail"]
