"""Pages for requests that fail: in the look and the language of the others."""

import pytest
from django.test import Client

from facho.apps.dashboard import views

pytestmark = pytest.mark.django_db


def fail(_user):
    raise RuntimeError("secret detail")


def test_an_internal_error_is_a_page_without_details(admin_page, monkeypatch):
    monkeypatch.setattr(views, "_problem_count", fail)
    admin_page.raise_request_exception = False

    response = admin_page.get("/olts/", headers={"accept-language": "es"})

    assert response.status_code == 500
    assert "Error interno" in response.content.decode()
    assert "secret detail" not in response.content.decode()


def test_a_form_without_its_token_says_what_to_do(boss):
    client = Client(enforce_csrf_checks=True)
    client.force_login(boss)

    response = client.post("/olts/bulk/", {"action": "enable"})

    assert response.status_code == 403
    assert "load the page again" in response.content.decode()


def test_a_host_that_is_not_allowed_is_a_page_too(admin_page, settings):
    settings.ALLOWED_HOSTS = ["noc.example.net"]

    response = admin_page.get("/", headers={"host": "evil.example.net"})

    assert response.status_code == 400
    assert "its host is not allowed" in response.content.decode()
