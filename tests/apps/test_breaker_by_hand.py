"""A breaker that a person looks at and closes, through the API and in the admin."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from facho.apps.inventory.models import Olt

CHANGELIST = reverse("admin:inventory_olt_changelist")


@pytest.fixture
def dark(sur):
    """OLT-SUR-03 with its breaker open."""
    opened = timezone.now() - timedelta(minutes=12)
    Olt.objects.filter(pk=sur.pk).update(failures=3, breaker_opened_at=opened, breaker_probed_at=opened)
    sur.refresh_from_db()
    return sur


def is_open(olt):
    return Olt.objects.get(pk=olt.pk).breaker_opened_at is not None


def test_an_olt_shows_its_breaker(api, dark, central):
    shown = {each["name"]: each["breaker"] for each in api.get("/api/v1/olts/").json()["results"]}

    assert shown["OLT-CENTRAL-01"] == {
        "is_open": False,
        "since": None,
        "failures": 0,
        "probed_at": None,
        "answered_at": None,
    }
    assert (shown["OLT-SUR-03"]["is_open"], shown["OLT-SUR-03"]["failures"]) == (True, 3)
    assert shown["OLT-SUR-03"]["since"] == shown["OLT-SUR-03"]["probed_at"] is not None


def test_olts_are_found_by_their_breaker(api, dark, central):
    found = api.get("/api/v1/olts/?breaker_open=true").json()["results"]

    assert [each["name"] for each in found] == ["OLT-SUR-03"]


def test_the_breaker_is_the_engines_and_cannot_be_written(api, dark):
    api.patch(f"/api/v1/olts/{dark.pk}/", {"breaker": {"is_open": False}, "failures": 0}, format="json")

    assert is_open(dark)


def test_a_person_closes_a_breaker_and_the_engine_is_told(api, dark):
    answer = api.post(f"/api/v1/olts/{dark.pk}/close-breaker/")

    assert answer.status_code == 202
    assert answer.json()["breaker"]["is_open"] is False
    assert not is_open(dark)
    assert Olt.objects.get(pk=dark.pk).revision == dark.revision + 1


def test_a_breaker_that_is_not_open_cannot_be_closed(api, central):
    answer = api.post(f"/api/v1/olts/{central.pk}/close-breaker/")

    assert answer.status_code == 409
    assert answer.json()["detail"] == "The breaker of OLT-CENTRAL-01 is not open: it is polled already."


def test_closing_takes_the_permission_to_change_an_olt(reader_api, dark):
    answer = reader_api.post(f"/api/v1/olts/{dark.pk}/close-breaker/")

    assert answer.status_code == 403
    assert is_open(dark)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("?breaker=open", ["OLT-SUR-03"], id="open"),
        pytest.param("?breaker=closed", ["OLT-CENTRAL-01"], id="closed"),
        pytest.param("?breaker=ajar", ["OLT-CENTRAL-01", "OLT-SUR-03"], id="nonsense"),
    ],
)
def test_the_admin_finds_olts_by_their_breaker(admin_page, dark, central, query, expected):
    rows = admin_page.get(CHANGELIST + query).context["cl"].result_list

    assert [olt.name for olt in rows] == expected


def test_the_admin_closes_the_breakers_of_chosen_olts(admin_page, dark, central):
    chosen = {"action": "close_breakers", "_selected_action": [dark.pk, central.pk]}

    answer = admin_page.post(CHANGELIST, chosen, follow=True)

    assert not is_open(dark)
    assert [str(message) for message in answer.context["messages"]] == ["Polling resumed: OLT-SUR-03."]


def test_the_admin_asks_before_it_closes_the_breaker_of_one_olt(admin_page, dark):
    url = reverse("admin:inventory_olt_close_breaker", args=[dark.pk])

    asked = admin_page.get(url)
    was_open = is_open(dark)
    done = admin_page.post(url, {"_form_submitted": "on"})

    assert (asked.status_code, was_open) == (200, True)
    assert done.headers["HX-Redirect"] == reverse("admin:inventory_olt_change", args=[dark.pk])
    assert not is_open(dark)


def test_the_page_of_an_olt_tells_the_story_of_its_breaker(admin_page, dark, central):
    def page(olt):
        return admin_page.get(reverse("admin:inventory_olt_change", args=[olt.pk])).content.decode()

    assert "after 3 attempts without an answer; last probe:" in page(dark)
    assert "Closed. Attempts in a row without an answer: 0." in page(central)
