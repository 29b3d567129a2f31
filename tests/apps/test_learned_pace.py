"""The window that runs have found, as people and programs see it."""

import pytest
from cast import BOSS, make_olt
from django.core.exceptions import ValidationError

from facho.apps.inventory.models import Olt
from facho.apps.inventory.resources import OltResource

PACE = {"window": 4, "rate": 3924.024, "round_trip": 0.034275, "why": "no_gain", "hold": 9, "patience": 32}


def learned(olt, **paces):
    Olt.objects.filter(pk=olt.pk).update(learned={"sizes": {}, "pace": paces})


def entries(api, olt):
    return api.get(f"/api/v1/olts/{olt.pk}/").json()["learned_pace"]


def test_an_olt_is_automatic_unless_a_number_is_set(db):
    assert make_olt("OLT-NUEVO-01").max_in_flight is None
    with pytest.raises(ValidationError):
        Olt(name="OLT-NUEVO-02", host="127.0.0.2", community="public", max_in_flight=0).full_clean()


@pytest.mark.parametrize("number", [None, 4])
def test_the_api_takes_a_number_or_null(api, central, number):
    response = api.patch(f"/api/v1/olts/{central.pk}/", {"max_in_flight": number}, format="json")

    assert response.status_code == 200
    assert response.json()["max_in_flight"] == number
    central.refresh_from_db()
    assert central.max_in_flight == number


@pytest.mark.parametrize(
    ("limit", "change", "reason", "sentence"),
    [
        pytest.param(None, {}, "no_gain", "did not increase the values", id="no gain"),
        pytest.param(None, {"why": "lost"}, "lost", "requests were lost", id="lost"),
        pytest.param(None, {"why": "slower"}, "slower", "answered more slowly", id="slower"),
        pytest.param(None, {"why": "untried"}, "untried", "has not been tried", id="untried"),
        pytest.param(None, {"window": 8}, "brand_limit", "limit for this brand is 8", id="limit of the brand"),
        pytest.param(4, {}, "admin_limit", "The limit set for this OLT is 4.", id="limit of the admin"),
        pytest.param(2, {}, "admin_limit", "The limit set for this OLT is 2.", id="a limit that was lowered since"),
        pytest.param(None, {"why": "of another version"}, "untried", "has not been tried", id="not understood"),
    ],
)
def test_the_api_says_what_was_learned_and_why_the_window_is_not_larger(api, central, limit, change, reason, sentence):
    Olt.objects.filter(pk=central.pk).update(max_in_flight=limit)
    learned(central, cheap=PACE | change)

    (entry,) = entries(api, central)

    window = min(limit or 8, (PACE | change)["window"])
    assert (entry["requests"], entry["window"], entry["limit"]) == ("cheap", window, limit or 8)
    assert (entry["values_per_second"], entry["round_trip"]) == (3924.0, 0.0343)
    assert entry["reason"] == reason
    assert sentence in entry["explanation"]


@pytest.mark.parametrize("garbage", [{}, {"pace": 7}, {"pace": {"cheap": {"window": "x"}}}, [], "text"])
def test_nothing_is_shown_of_what_is_not_understood(api, admin_page, central, garbage):
    Olt.objects.filter(pk=central.pk).update(learned=garbage)

    assert entries(api, central) == []
    assert "requests in flight" not in admin_page.get(f"/olts/{central.pk}/").content.decode()


def test_the_learned_pace_cannot_be_written(api, central):
    response = api.patch(f"/api/v1/olts/{central.pk}/", {"learned_pace": [{"window": 64}]}, format="json")

    assert response.status_code == 400


@pytest.mark.parametrize("path", ["/olts/{}/", "/admin/inventory/olt/{}/change/"])
def test_the_pages_of_an_olt_show_it_in_plain_words(admin_page, central, path):
    learned(central, cheap=PACE, optical=PACE | {"window": 1, "rate": 25.1, "round_trip": 4.2})

    shown = admin_page.get(path.format(central.pk)).content.decode()

    assert (
        "Other values: 4 requests in flight, 3,924 values per second, round trip 34 ms. More requests in "
        "flight did not increase the values per second." in shown
    )
    assert "Optical values: 1 request in flight, 25 values per second, round trip 4200 ms." in shown


def test_an_imported_file_may_leave_the_number_empty(central):
    Olt.objects.filter(pk=central.pk).update(max_in_flight=4)
    exported = OltResource().export(Olt.objects.filter(pk=central.pk))
    row = dict(exported.dict[0], max_in_flight="")
    exported.dict = [row]

    result = OltResource(user=BOSS).import_data(exported, raise_errors=True)

    assert not result.has_errors()
    central.refresh_from_db()
    assert central.max_in_flight is None
