"""An address that there is not, and a fault of ours: programs get the shape of all refusals, people get a page."""

import pytest
from django.test import Client

from facho.apps.inventory.api import BrandList


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/api/v1/nonsense/", id="no such list"),
        pytest.param("/api/v1/olts/7/nonsense/", id="nothing below a row"),
        pytest.param("/api/v2/olts/", id="another version"),
        pytest.param("/api/", id="the root"),
    ],
)
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_an_address_of_the_api_that_there_is_not_is_refused_in_json(api, path, method):
    answer = getattr(api, method)(path)

    assert answer.status_code == 404
    assert answer["content-type"] == "application/json"
    assert list(answer.json()) == ["detail"]


def test_the_refusal_says_where_to_look(db, client):
    answer = client.get("/api/v1/nonsense/")

    assert answer.json()["detail"] == "There is nothing at /api/v1/nonsense/. The documentation is at /api/v1/docs/."


def test_people_get_a_page(db, client):
    answer = client.get("/nonsense/")

    assert answer.status_code == 404
    assert answer["content-type"].startswith("text/html")


def test_an_address_without_its_last_slash_is_still_led_to_the_right_one(reader_api):
    answer = reader_api.get("/api/v1/olts")

    assert (answer.status_code, answer["location"]) == (301, "/api/v1/olts/")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/api/v1/brands/", "application/json", id="a program"),
        pytest.param("/", "text/html", id="a person"),
    ],
)
def test_a_fault_of_ours_says_nothing_of_itself(boss, monkeypatch, path, kind):
    def fail(*args, **kwargs):
        raise RuntimeError("the community is s3cret")

    monkeypatch.setattr(BrandList, "get", fail)
    monkeypatch.setattr("facho.apps.dashboard.views.live.snapshot", fail)
    client = Client(raise_request_exception=False)
    client.force_login(boss)

    answer = client.get(path)

    assert answer.status_code == 500
    assert answer["content-type"].startswith(kind)
    assert "s3cret" not in answer.content.decode()
