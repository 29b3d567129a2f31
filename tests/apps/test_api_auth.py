"""Who gets in, how, and what each may do."""

import pytest
from django.contrib.auth.models import Permission, User
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role, set_role
from facho.apps.inventory.models import Olt

LISTS = ["olts", "jobs", "nodes", "executions", "onus", "brands", "brands/decoders", "onus/summary"]
NEWS = ["pollers", "pollers/queue", "pollers/stats"]


@pytest.fixture
def demo(db):
    user = User.objects.create_user("demo", password="demo")
    set_role(user, Role.VIEWER)
    return user


def test_name_and_password_give_a_token_that_opens_the_api(demo):
    client = APIClient()

    login = client.post("/api/v1/auth/token/", {"username": "demo", "password": "demo"}, format="json")
    answer = client.get("/api/v1/olts/", headers={"authorization": f"Token {login.data['token']}"})

    assert (login.status_code, answer.status_code) == (200, 200)


def test_a_wrong_password_is_refused_with_a_sentence(demo):
    answer = APIClient().post("/api/v1/auth/token/", {"username": "demo", "password": "wrong"})

    assert answer.status_code == 400
    assert answer.data == {"non_field_errors": ["Unable to log in with provided credentials."]}


def test_an_old_session_does_not_keep_anybody_from_logging_in(demo):
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(demo)

    answer = client.post("/api/v1/auth/token/", {"username": "demo", "password": "demo"})

    assert answer.status_code == 200


def test_a_session_opens_the_api_too(demo):
    client = APIClient()
    client.force_login(demo)

    assert client.get("/api/v1/olts/").status_code == 200


@pytest.mark.parametrize("path", LISTS + NEWS)
def test_without_login_nothing_is_shown(db, path):
    answer = APIClient().get(f"/api/v1/{path}/")

    assert answer.status_code == 401
    assert answer.data["detail"] == "Authentication credentials were not provided."
    assert answer.headers["WWW-Authenticate"] == "Token"


def test_a_wrong_token_is_told_so(db):
    answer = APIClient().get("/api/v1/olts/", headers={"authorization": "Token nonsense"})

    assert (answer.status_code, answer.data["detail"]) == (401, "Invalid token.")


@pytest.mark.parametrize("path", LISTS + NEWS)
def test_a_viewer_may_read(reader_api, path):
    assert reader_api.get(f"/api/v1/{path}/").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("post", "/olts/", id="create an OLT"),
        pytest.param("patch", "/olts/{olt}/", id="change an OLT"),
        pytest.param("delete", "/olts/{olt}/", id="delete an OLT"),
        pytest.param("post", "/olts/{olt}/enable/", id="enable an OLT"),
        pytest.param("post", "/olts/{olt}/disable/", id="disable an OLT"),
        pytest.param("post", "/jobs/", id="create a job"),
        pytest.param("patch", "/jobs/{job}/", id="change a job"),
        pytest.param("delete", "/jobs/{job}/", id="delete a job"),
        pytest.param("post", "/jobs/{job}/apply/", id="apply a job"),
        pytest.param("post", "/nodes/", id="create a node"),
        pytest.param("patch", "/nodes/{node}/", id="change a node"),
        pytest.param("delete", "/nodes/{node}/", id="delete a node"),
        pytest.param("post", "/pollers/nodes/{node}/run/", id="run a node"),
    ],
)
def test_reading_is_not_writing(reader_api, node, method, path):
    url = "/api/v1" + path.format(olt=node.olt_id, job=node.job_id, node=node.pk)

    answer = getattr(reader_api, method)(url, {}, format="json")

    assert answer.status_code == 403


def test_a_permission_is_enough_for_what_it_is_for(reader, reader_api, central):
    reader.user_permissions.add(Permission.objects.get(codename="operate_olt"))

    disabled = reader_api.post(f"/api/v1/olts/{central.pk}/disable/")
    deleted = reader_api.delete(f"/api/v1/olts/{central.pk}/")

    assert (disabled.status_code, deleted.status_code) == (202, 403)
    assert not Olt.objects.get().enabled


def test_a_missing_permission_is_named(reader_api, central):
    answer = reader_api.post(f"/api/v1/olts/{central.pk}/disable/")

    assert answer.data["detail"] == (
        "This needs the permission inventory.operate_olt, which the role Operator has. An admin can grant it."
    )


@pytest.mark.parametrize("path", ["executions/{execution}", "onus/{onu}", "onus/{onu}/history", "pollers"])
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_what_the_engine_owns_is_read_only(api, execution, onu, path, method):
    url = f"/api/v1/{path.format(execution=execution.pk, onu=onu.pk)}/"

    assert getattr(api, method)(url, {}, format="json").status_code == 405
