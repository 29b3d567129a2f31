"""Notes about an ONU: anybody sees them, Support writes them, and only the author changes them."""

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role, set_role
from facho.apps.changes.models import Change
from facho.apps.telemetry.models import OnuNote


def client_of(name):
    user = User.objects.create(username=name)
    set_role(user, Role.SUPPORT)
    client = APIClient()
    client.force_authenticate(user)
    return client


@pytest.fixture
def ana(db):
    return client_of("ana")


@pytest.fixture
def luis(db):
    return client_of("luis")


@pytest.fixture
def url(onu):
    return f"/api/v1/onus/{onu.pk}/notes/"


def test_notes_have_an_author_and_come_newest_first(ana, luis, reader_api, url):
    ana.post(url, {"text": "Customer has no light."})
    made = luis.post(url, {"text": "Technician is on the way."})

    assert made.status_code == 201
    shown = reader_api.get(url).json()["results"]
    assert [(each["author"], each["text"], each["edited_at"]) for each in shown] == [
        ("luis", "Technician is on the way.", None),
        ("ana", "Customer has no light.", None),
    ]


def test_only_its_author_changes_and_deletes_a_note(ana, luis, api, url):
    note = f"/api/v1/notes/{ana.post(url, {'text': 'No light.'}).json()['id']}/"

    for other in (luis, api):
        refused = other.patch(note, {"text": "Mine"})
        assert (refused.status_code, refused.json()["detail"]) == (403, "Only ana can change this note.")
        assert other.delete(note).status_code == 403
    edited = ana.patch(note, {"text": "Light again."}).json()
    assert (edited["text"], edited["author"], edited["edited_at"] is not None) == ("Light again.", "ana", True)
    assert ana.delete(note).status_code == 204
    assert not OnuNote.objects.exists()


def test_a_note_is_in_the_record_with_its_text(ana, url, onu):
    ana.post(url, {"text": "No light."})

    change = Change.objects.get(object_type="telemetry.onunote")
    assert (change.action, change.fields["text"], change.olt_id) == ("created", [None, "No light."], onu.olt_id)


def test_a_note_outlives_its_author(ana, reader_api, url):
    ana.post(url, {"text": "No light."})
    User.objects.get(username="ana").delete()

    assert reader_api.get(url).json()["results"][0]["author"] == "ana"


@pytest.mark.parametrize(
    "body",
    [{}, {"text": ""}, {"text": "x" * 2001}, {"text": "x", "author": "boss"}],
    ids=["none", "empty", "long", "forged"],
)
def test_a_wrong_body_is_refused(ana, url, body):
    assert ana.post(url, body, format="json").status_code == 400


def test_a_viewer_writes_none(reader_api, url):
    assert reader_api.post(url, {"text": "x"}).status_code == 403
