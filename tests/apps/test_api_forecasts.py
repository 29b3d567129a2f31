"""Forecasts through the API: asked for, refused, and looked at."""

import pytest
from cast import T0
from django.db import IntegrityError, transaction

from facho.apps.coordinator.models import Forecast

URL = "/api/v1/forecasts/"
STATE = {"name": "State", "interval_seconds": 300, "seconds": 12.5}


def test_a_forecast_is_asked_for_and_waits(api, boss):
    answer = api.post(URL, {"olts": 100, "pollers": 20, "jobs": [STATE]}, format="json")

    assert answer.status_code == 202
    shown = answer.json()
    assert (shown["status"], shown["by"], shown["result"]) == ("PENDING", "boss", None)
    assert shown["params"] == {
        "olts": 100,
        "pollers": 20,
        "hours": 24,
        "dead": 0,
        "seed": 1,
        "jobs": [{**STATE, "priority": 40}],
    }
    assert Forecast.objects.get().by == boss


def test_the_installation_itself_is_forecast_by_default(api):
    shown = api.post(URL, {}, format="json").json()

    assert shown["params"] == {"hours": 24, "dead": 0, "seed": 1, "jobs": []}


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        pytest.param({"olts": 0}, "olts", id="no OLTs"),
        pytest.param({"hours": 169}, "hours", id="more than a week"),
        pytest.param({"dead": 101}, "dead", id="more dead than there are"),
        pytest.param({"pollers": 0}, "pollers", id="no pollers"),
        pytest.param({"jobs": [{**STATE, "interval_seconds": 5}]}, "jobs", id="too often"),
        pytest.param({"jobs": [{**STATE, "name": "a:b"}]}, "jobs", id="a name that cannot be written as an option"),
        pytest.param({"jobs": [STATE, STATE]}, "jobs", id="the same job twice"),
        pytest.param(
            {"olts": 5000, "hours": 24}, "non_field_errors", id="more than a machine should do beside polling"
        ),
    ],
)
def test_what_cannot_be_forecast_is_refused(api, wish, field):
    answer = api.post(URL, wish, format="json")

    assert answer.status_code == 400
    assert list(answer.json()) == [field]
    assert not Forecast.objects.exists()


def test_too_many_that_wait_are_refused(api):
    Forecast.objects.bulk_create([Forecast(params={}) for _ in range(20)])

    answer = api.post(URL, {}, format="json")

    assert answer.status_code == 409
    assert "20 forecasts are already waiting" in answer.json()["detail"]


def test_who_only_reads_may_look_and_not_ask(reader_api):
    Forecast.objects.create(params={"hours": 1, "dead": 0, "seed": 1, "jobs": []})

    assert reader_api.get(URL).json()["count"] == 1
    assert reader_api.post(URL, {}, format="json").status_code == 403


def test_nobody_else_gets_in(client):
    assert client.get(URL).status_code == 401


def test_one_that_is_done_has_its_result(api):
    forecast = Forecast.objects.create(params={})
    forecast.end(T0, result={"compliance": 99.5})

    shown = api.get(f"{URL}{forecast.pk}/").json()

    assert (shown["status"], shown["error"], shown["result"]) == ("DONE", "", {"compliance": 99.5})
    assert api.get(URL, {"status": "PENDING"}).json()["count"] == 0


def test_one_is_taken_once_and_only_one_runs_at_a_time(db):
    first, second = (Forecast.objects.create(params={}) for _ in range(2))

    assert first.begin(T0)
    assert not first.begin(T0)
    with pytest.raises(IntegrityError), transaction.atomic():
        second.begin(T0)


def test_a_list_takes_the_same_queries_however_long(api, django_assert_num_queries, boss):
    Forecast.objects.bulk_create([Forecast(params={}, by=boss) for _ in range(20)])

    with django_assert_num_queries(2):
        api.get(URL)
