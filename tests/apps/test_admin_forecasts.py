"""Forecasts in the admin: asked for, waited for, read."""

import pytest
from django.urls import reverse

from facho.apps.coordinator.models import Forecast

ADD = "/admin/coordinator/forecast/add/"
RESULT = {
    "olts": 20,
    "nodes": 100,
    "pollers": 6,
    "hours": 1.0,
    "required": 602,
    "completed": 561,
    "compliance": 93.2,
    "on_time": 88.8,
    "lateness": {"p50": 0.0, "p95": 10.4, "p99": 71.8, "max": 121.3},
    "busy": 46.1,
    "saturated_minutes": 1.2,
    "lost": {"no_free_poller": 41},
    "jobs": [{"task": "Optical power", "required": 40, "completed": 39, "compliance": 97.5, "on_time": None}],
    "worst_olts": [{"olt": "OLT-NORTE-02", "required": 30, "completed": 12, "compliance": 40.0}],
    "failures": [{"olt": "OLT-SUR-03", "runs": 288, "answered": 17, "failed": 3}],
    "pool": {"pollers": 9, "on_time": 95.1, "reachable": 97.0},
}


def test_a_wish_goes_to_the_engine_with_whose_it_is(admin_page, boss):
    answer = admin_page.post(ADD, {"olts": "1000", "pollers": "", "hours": "24", "dead": "30"}, follow=True)

    forecast = Forecast.objects.get()
    assert answer.status_code == 200
    assert "appears in one or two minutes" in answer.content.decode()
    assert (forecast.status, forecast.by) == ("PENDING", boss)
    assert {name: forecast.params.get(name) for name in ("olts", "pollers", "hours", "dead")} == {
        "olts": 1000,
        "pollers": None,
        "hours": 24,
        "dead": 30,
    }


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        pytest.param({"olts": "5000", "hours": "168"}, "OLTs multiplied by hours", id="too much at once"),
        pytest.param({"hours": "0"}, "greater than or equal to 1", id="no time"),
        pytest.param({"hours": "24", "pollers": "many"}, "whole number", id="no number"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused_with_a_reason(admin_page, wish, said):
    answer = admin_page.post(ADD, {"olts": "", "pollers": "", "dead": "0"} | wish)

    assert said in answer.content.decode()
    assert not Forecast.objects.exists()


def test_what_came_of_it_is_a_page_to_be_read(admin_page):
    forecast = Forecast.objects.create(params={"olts": 20, "hours": 1}, status="DONE", result=RESULT)

    shown = admin_page.get(reverse("admin:coordinator_forecast_change", args=[forecast.pk])).content.decode()
    listed = admin_page.get(reverse("admin:coordinator_forecast_changelist")).content.decode()

    for said in ("93.2 %", "561 / 602", "OLT-NORTE-02", "Optical power", "no poller was free", "17 / 288"):
        assert said in shown, said
    assert "OLTs: 20, hours: 1" in listed
    assert ">9<" in "".join(listed.split())
