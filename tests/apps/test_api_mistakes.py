"""What people and programs write by mistake into the address of a list is refused in a sentence, never a crash."""

import pytest
from cast import T0, make_quota
from django.test import override_settings

HUGE = 10**23

TIMES = [
    "quotas/?hour_after",
    "violations/?hour_before",
    "plans/?hour_before",
    "logs/?after",
    "logs/?before",
    "alerts/?opened_after",
    "executions/?slot_before",
    "problems/?since_after",
    "problems/?until_before",
]
IDS = [
    "alerts/?olt",
    "alerts/?rule",
    "alert-rules/?channel",
    "deliveries/?alert",
    "deliveries/?channel",
    "executions/?node",
    "executions/?master",
    "jobs/?olt",
    "quotas/?olt",
    "logs/?olt",
    "problems/?olt",
]


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize(
    "time",
    [
        pytest.param("0001-01-01T00:00:00%2B23:59", id="before the first year in UTC"),
        pytest.param("9999-12-31T23:59:59-12:00", id="after the last year in UTC"),
    ],
)
def test_a_time_beyond_the_calendar_is_refused(api, name, time):
    answer = api.get(f"/api/v1/{name}={time}")

    assert answer.status_code == 400
    assert "valid date/time" in str(answer.data)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("number", [HUGE, -HUGE], ids=["too large", "too small"])
def test_an_id_that_no_row_can_have_is_refused(api, name, number):
    answer = api.get(f"/api/v1/{name}={number}")

    assert answer.status_code == 400


@pytest.mark.parametrize("name", [name for name in IDS if name not in ("quotas/?olt", "logs/?olt")])
def test_an_id_that_no_row_has_finds_nothing(api, name):
    answer = api.get(f"/api/v1/{name}={2**63 - 1}")

    assert answer.status_code == 200
    assert answer.data["results"] == []


@override_settings(TIME_ZONE="America/Lima")
def test_times_are_utc_wherever_the_installation_is(api, node):
    make_quota(node, completed=12)

    [quota] = api.get("/api/v1/quotas/").json()["results"]

    assert quota["period_start"] == T0.isoformat().replace("+00:00", "Z")


@override_settings(TIME_ZONE="America/Lima")
def test_a_time_without_a_zone_is_taken_for_utc(api, node):
    make_quota(node, completed=12)

    found = api.get(f"/api/v1/quotas/?hour_after={T0:%Y-%m-%dT%H:%M:%S}").json()
    later = api.get(f"/api/v1/quotas/?hour_after={T0:%Y-%m-%dT%H:%M:01}").json()

    assert (found["count"], later["count"]) == (1, 0)
