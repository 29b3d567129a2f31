"""Forecasts through the API: asked for, refused, and looked at."""

import pytest
from cast import T0, make_job
from django.db import IntegrityError, transaction
from forecast_answers import ANSWER, QUESTION

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


# Questions


@pytest.mark.parametrize(
    ("question", "stored"),
    [
        ({}, {"more_olts": 0, "more_pollers": 0}),
        ({"more_olts": 20}, {"more_olts": 20, "more_pollers": 0}),
        ({"more_pollers": -1}, {"more_olts": 0, "more_pollers": -1}),
    ],
)
def test_a_question_is_asked(api, question, stored):
    answer = api.post(URL, {"question": question}, format="json")

    assert answer.status_code == 202
    assert Forecast.objects.get().params == {"question": stored, "seed": 1}
    assert (answer.json()["params"]["question"], answer.json()["said"]) == (stored, None)


def test_an_interval_is_asked_by_job(api, central):
    job = make_job("State", columns=["state"])
    question = {"interval": {"job": job.pk, "seconds": 120, "olts": [central.pk]}}

    answer = api.post(URL, {"question": question, "hours": 3}, format="json")

    stored = {"job": job.pk, "name": "State", "seconds": 120, "olts": [central.pk]}
    assert answer.json()["params"]["question"]["interval"] == stored
    assert Forecast.objects.get().params["hours"] == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"question": {"more_olts": -1}}, "question"),
        ({"question": {"more_olts": 5001}}, "question"),
        ({"question": {"more_pollers": 1001}}, "question"),
        ({"question": {"colour": "red"}}, "question"),
        ({"question": "20 more"}, "question"),
        ({"question": None}, "question"),
        ({"question": {"interval": {"job": 9999, "seconds": 60}}}, "question"),
        ({"question": {"interval": {"seconds": 60}}}, "question"),
        ({"question": {}, "olts": 5}, "olts"),
        ({"question": {}, "pollers": 5}, "pollers"),
        ({"question": {}, "dead": 0}, "dead"),
        ({"question": {}, "jobs": []}, "jobs"),
        ({"question": {}, "hours": 0}, "hours"),
    ],
)
def test_a_wrong_question_is_refused(api, db, body, field):
    answer = api.post(URL, body, format="json")

    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert not Forecast.objects.exists()


@pytest.mark.parametrize("seconds", [9, 604801, "often"])
def test_an_interval_has_limits(api, db, seconds):
    job = make_job("State", columns=["state"])

    answer = api.post(URL, {"question": {"interval": {"job": job.pk, "seconds": seconds}}}, format="json")

    assert list(answer.json()["question"]["interval"]) == ["seconds"]


def test_the_interval_of_a_follower_is_that_of_its_master(api, db):
    state = make_job("State", columns=["state"])
    names = make_job("Names", columns=["name"], follows=state)

    answer = api.post(URL, {"question": {"interval": {"job": names.pk, "seconds": 60}}}, format="json")

    assert answer.json()["question"]["interval"]["job"] == ["Names runs after State. Ask for the interval of State."]


def test_an_answer_is_told_in_sentences(api, boss):
    forecast = Forecast.objects.create(params=QUESTION, status="DONE", result=ANSWER)

    shown = api.get(f"{URL}{forecast.pk}/").json()
    spanish = api.get(f"{URL}{forecast.pk}/", headers={"Accept-Language": "es"}).json()

    assert shown["said"]["word"] == "No"
    assert "Use 14 pollers instead of 9 (FACHO_POLLERS)." in shown["said"]["changes"]
    assert len(shown["said"]["reasons"]) == 3
    assert shown["result"]["answer"]["changes"]["pollers"] == 14
    assert spanish["said"].keys() == shown["said"].keys()
