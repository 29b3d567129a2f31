"""Questions about the fleet on their pages: asked, waited for, answered."""

from urllib.parse import parse_qs, urlsplit

import pytest
from cast import make_job, make_user
from django.test import Client
from django.utils import timezone
from forecast_answers import ANSWER, QUESTION, YES

from facho.adapters.bus.local import LocalBus
from facho.apps.accounts.roles import Role
from facho.apps.coordinator.models import Forecast
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling import live

PAGE = "/forecast/"


@pytest.fixture
def job(central):
    """State on one OLT, which has run."""
    found = make_job("State", columns=["state"], interval_seconds=300)
    found.apply_to([central])
    WorkflowNode.objects.update(durations={"recent": [12.0]})
    return found


def shown(client, path=PAGE, **more):
    answer = client.get(path, more)
    assert answer.status_code == 200
    return answer.content.decode()


def asked(client, **fields):
    answer = client.post(PAGE, fields)
    assert answer.status_code == 302, answer.context["form"].errors
    return Forecast.objects.get(pk=int(answer.url.split("/")[2]))


@pytest.mark.parametrize(
    ("fields", "question", "text"),
    [
        pytest.param(
            {"more_olts": "20"}, {"more_olts": 20, "more_pollers": 0}, "+20 OLTs like the present ones", id="OLTs"
        ),
        pytest.param(
            {"pollers": "1", "pollers_are": "fewer"}, {"more_olts": 0, "more_pollers": -1}, "1 poller fewer", id="fewer"
        ),
        pytest.param(
            {"pollers": "2", "pollers_are": "more"}, {"more_olts": 0, "more_pollers": 2}, "2 pollers more", id="more"
        ),
        pytest.param({}, {"more_olts": 0, "more_pollers": 0}, "The fleet as it is", id="nothing"),
    ],
)
def test_a_question_is_asked(admin_page, job, boss, fields, question, text):
    forecast = asked(admin_page, **fields)

    assert (forecast.params["question"], forecast.status, forecast.by) == (question, "PENDING", boss)
    assert text in shown(admin_page, f"{PAGE}{forecast.pk}/")
    assert text in shown(admin_page)


def test_an_interval_is_asked(admin_page, job, central):
    whole = asked(admin_page, job=job.pk, interval="2", unit="min")
    some = asked(admin_page, job=job.pk, interval="90", unit="s", olts=str(central.pk), more_olts="3")

    assert whole.params["question"]["interval"] == {
        "job": job.pk,
        "name": "State",
        "brand": "huawei",
        "seconds": 120,
    }
    assert some.params["question"]["interval"]["olts"] == [central.pk]
    assert "+3 OLTs like the present ones, State (Huawei MA5600T / MA5800) every 1 min 30 s on 1 OLT" in shown(
        admin_page
    )


def test_the_record_of_changes_has_the_question_as_a_sentence(admin_page, job):
    asked(admin_page, pollers="1", pollers_are="fewer")

    record = shown(admin_page, "/changes/?object_type=coordinator.forecast")
    assert "1 poller fewer" in record
    assert "more_pollers" not in record


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"job": "JOB"}, "Enter the interval."),
        ({"interval": "5", "unit": "min"}, "Choose the job that gets this interval."),
        ({"job": "JOB", "interval": "5", "unit": "s"}, "Choose an interval of 10 s to 7 d."),
        ({"job": "9999", "interval": "5"}, "Select a valid choice."),
        ({"more_olts": "-1"}, "greater than or equal to 0"),
        ({"more_olts": "5001"}, "less than or equal to 5000"),
        ({"pollers": "many"}, "Enter a whole number."),
        ({"job": "JOB", "interval": "5", "olts": "9999"}, "an OLT of it no longer exists"),
        ({"job": "JOB", "interval": "5", "olts": "x"}, "an OLT of it no longer exists"),
    ],
)
def test_a_wrong_question_is_told(admin_page, job, fields, said):
    answer = admin_page.post(PAGE, {name: job.pk if value == "JOB" else value for name, value in fields.items()})

    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not Forecast.objects.exists()


def test_a_follower_cannot_be_asked_for(admin_page, job):
    names = make_job("Names", columns=["name"], follows=job)

    assert names not in admin_page.get(PAGE).context["form"].fields["job"].queryset


def test_too_many_that_wait_are_refused(admin_page, job):
    Forecast.objects.bulk_create([Forecast(params={}) for _ in range(20)])

    assert "20 forecasts are already waiting." in admin_page.post(PAGE, {}).content.decode()


def test_the_form_is_filled_from_the_address(admin_page, job, central):
    text = shown(admin_page, job=job.pk, interval="2", unit="h", olts=f"{central.pk},x,9999")

    assert f'<option value="{job.pk}" selected>' in text
    assert "On 1 OLT:" in text
    assert "OLT-CENTRAL-01" in text


def test_without_olts_there_is_nothing_to_ask(admin_page, db):
    text = shown(admin_page)

    assert "No OLT yet" in text
    assert "No question has been asked yet." in text
    assert 'id="question"' not in text


def test_without_jobs_there_is_nothing_to_ask(admin_page, central):
    assert "No job is enabled on an enabled OLT" in shown(admin_page)


def test_before_the_first_run_nothing_is_invented(admin_page, job):
    WorkflowNode.objects.update(durations={})

    text = shown(admin_page)

    assert "No run has been measured yet" in text
    assert 'id="question"' not in text


def test_a_no_has_its_reasons_and_what_to_change(admin_page, job):
    forecast = Forecast.objects.create(params=QUESTION, status="DONE", result=ANSWER)

    text = shown(admin_page, f"{PAGE}{forecast.pk}/")

    for words in (
        "4 quotas would be missed: State @ OLT-1, State @ OLT-2, State @ OLT-3, 1 more.",
        "The pollers would be saturated for 61 % of the time; today it is 0 %.",
        "Only 71.0 % of the runs would start on time; today it is 98.4 %.",
        "Use 14 pollers instead of 9 (FACHO_POLLERS).",
        "State fits with an interval of 3 min.",
        "7 more OLTs fit without any other change.",
        "OLT-1 has more work than an hour allows: run State there every 10 min or less often.",
        "1 quota is missed today already.",
        "2 jobs on OLTs have not run yet.",
        "1 OLT does not answer. Its quotas do not count.",
        "24 h were simulated, in 12 s.",
        "OLT-SUR-03",
    ):
        assert words in text
    assert "data-running" not in text


def test_a_yes_says_why(admin_page, job):
    forecast = Forecast.objects.create(params=QUESTION, status="DONE", result=YES)

    text = shown(admin_page, f"{PAGE}{forecast.pk}/")

    assert "No quota is missed because of it, 98.4 % of the runs start on time" in text
    assert "To make it fit" not in text


def test_the_question_can_be_changed(admin_page, job):
    forecast = Forecast.objects.create(params=QUESTION, status="DONE", result=YES)

    again = admin_page.get(f"{PAGE}{forecast.pk}/").context["again"]

    assert parse_qs(again) == {
        "more_olts": ["20"], "pollers": ["1"], "pollers_are": ["fewer"],
        "job": ["1"], "interval": ["2"], "unit": ["min"], "olts": ["1,2"],
    }  # fmt: skip
    assert urlsplit(f"{PAGE}?{again}").path == PAGE


def test_an_interval_below_the_floor_is_a_warning_beside_the_answer(admin_page, central):
    power = make_job("Optical power", columns=["rx_dbm"], interval_seconds=1800)
    question = {"question": {"interval": {"job": power.pk, "name": "Optical power", "seconds": 30}}}
    forecast = Forecast.objects.create(params=question, status="DONE", result=YES)

    assert "is too short for these columns" in shown(admin_page, f"{PAGE}{forecast.pk}/")


def test_a_question_waits_and_shows_its_progress(admin_page, job):
    first = Forecast.objects.create(params=QUESTION, status="RUNNING", progress=40)
    second = Forecast.objects.create(params=QUESTION)
    third = Forecast.objects.create(params=QUESTION)

    texts = [shown(admin_page, f"{PAGE}{each.pk}/") for each in (first, second, third)]

    assert "40 %" in texts[0]
    assert "1 question is ahead of this one." in texts[2]
    assert all("data-running" in text for text in [*texts, shown(admin_page)])


def test_a_stopped_engine_is_told(admin_page, job, monkeypatch):
    forecast = Forecast.objects.create(params=QUESTION)
    stopped = [shown(admin_page), shown(admin_page, f"{PAGE}{forecast.pk}/")]
    bus = LocalBus()
    bus.publish("snapshot", {**live.EMPTY, "at": timezone.now().isoformat()})
    monkeypatch.setattr(live, "_bus", bus)
    running = [shown(admin_page), shown(admin_page, f"{PAGE}{forecast.pk}/")]

    assert all("The engine is not running" in text for text in stopped)
    assert not any("The engine is not running" in text for text in running)


def test_a_failure_is_told(admin_page, job):
    forecast = Forecast.objects.create(params=QUESTION, status="FAILED", error="No run has been measured yet.")

    assert "No run has been measured yet." in shown(admin_page, f"{PAGE}{forecast.pk}/")


def test_a_forecast_of_the_api_is_shown_too(admin_page, job):
    result = {
        name: value for name, value in ANSWER.items() if name not in ("answer", "today", "saturated", "missed_quotas")
    }
    params = {"olts": 100, "pollers": 5, "dead": 10, "jobs": [{"name": "State"}], "hours": 1}
    forecast = Forecast.objects.create(params=params, status="DONE", result=result)

    text = shown(admin_page, f"{PAGE}{forecast.pk}/")

    assert "100 imaginary OLTs, 5 pollers, 10 % of the OLTs do not answer, jobs: State" in text
    assert "To make it fit" not in text


def test_a_viewer_reads_and_an_engineer_asks(job):
    Forecast.objects.create(params=QUESTION, status="DONE", result=YES)
    viewer, engineer = Client(), Client()
    viewer.force_login(make_user(Role.VIEWER))
    engineer.force_login(make_user(Role.ENGINEER))

    assert "To ask, you need the role Engineer." in shown(viewer)
    assert "+20 OLTs like the present ones" in shown(viewer)
    assert viewer.post(PAGE, {}).status_code == 403
    assert engineer.post(PAGE, {}).status_code == 302


def test_disabled_olts_are_not_asked_about(admin_page, job):
    Olt.objects.update(enabled=False)

    assert "No job is enabled on an enabled OLT" in shown(admin_page)
