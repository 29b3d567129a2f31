"""ONUs through the API."""

from datetime import timedelta

import pytest
from cast import T0, make_olt, make_onu
from django.utils import timezone

from facho.apps.telemetry.models import OnuHistory


@pytest.fixture
def onus(central, norte):
    """Four ONUs that differ in everything one can ask for."""
    return [
        make_onu(central, 7, rx_dbm=-21.53, mac="00:11:22:33:44:55"),
        make_onu(central, 8, state="los", rx_dbm=None, port=2, description="the baker"),
        make_onu(norte, 7, state="dying_gasp", rx_dbm=-28.0, slot=3, serial="ZTEGC0FFEE01"),
        make_onu(norte, 9, state="online", rx_dbm=-15.0, slot=3, name="Panadería"),
    ]


def test_an_onu_shows_what_is_known_and_null_for_what_is_not(api, onu):
    shown = api.get(f"/api/v1/onus/{onu.pk}/").json()

    assert (shown["olt_name"], shown["slot"], shown["port"], shown["onu"]) == ("OLT-CENTRAL-01", 0, 1, 7)
    assert (shown["state"], shown["rx_dbm"], shown["tx_dbm"]) == ("online", -21.53, None)
    assert shown["read_at"] == "2025-06-01T10:00:00Z"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", [0, 1, 2, 3], id="by place"),
        pytest.param("olt={olt}", [0, 1], id="of an OLT"),
        pytest.param("slot=3", [2, 3], id="of a slot"),
        pytest.param("port=2", [1], id="of a port"),
        pytest.param("state=los", [1], id="by state"),
        pytest.param("state=los&state=dying_gasp", [1, 2], id="by several states"),
        pytest.param("rx_dbm__lt=-20", [0, 2], id="with little light"),
        pytest.param("rx_dbm__gt=-20", [3], id="with much light"),
        pytest.param("rx_dbm__lt=-20&rx_dbm__gt=-25", [0], id="in between"),
        pytest.param("has_power=false", [1], id="without a known power"),
        pytest.param("serial=ztegc0ffee01", [2], id="by serial, in any letters"),
        pytest.param("search=panader", [3], id="search a name"),
        pytest.param("search=C0FFEE", [2], id="search a part of a serial"),
        pytest.param("search=33:44", [0], id="search a part of a MAC"),
        pytest.param("search=baker", [1], id="search a description"),
        pytest.param("ordering=rx_dbm", [2, 0, 3, 1], id="the darkest first, unknown last"),
        pytest.param("ordering=-rx_dbm", [3, 0, 2, 1], id="the brightest first, unknown last"),
        pytest.param("ordering=-olt__name,onu", [2, 3, 0, 1], id="by two columns"),
    ],
)
def test_onus_are_found(api, onus, central, query, expected):
    rows = [onu.pk for onu in onus]

    answer = api.get(f"/api/v1/onus/?{query.format(olt=central.pk)}")

    assert [rows.index(each["id"]) for each in answer.data["results"]] == expected


def test_equal_onus_stand_on_one_page_each(api, central):
    for number in range(6):
        make_onu(central, number, rx_dbm=None)

    pages = [api.get(f"/api/v1/onus/?ordering=rx_dbm&page_size=2&page={page}").data["results"] for page in (1, 2, 3)]

    assert len({onu["id"] for page in pages for onu in page}) == 6


def test_history_is_given_for_the_hours_asked_for_latest_first(api, onu):
    now = timezone.now()
    for hours in (1, 2, 30):
        OnuHistory.objects.create(onu=onu, at=now - timedelta(hours=hours), rx_dbm=-20.0 - hours)

    day = api.get(f"/api/v1/onus/{onu.pk}/history/").data
    more = api.get(f"/api/v1/onus/{onu.pk}/history/?hours=48&page_size=1").data

    assert [reading["rx_dbm"] for reading in day["results"]] == [-21.0, -22.0]
    assert (more["count"], more["page_size"], len(more["results"])) == (3, 1, 1)


@pytest.mark.parametrize(
    ("hours", "sentence"),
    [
        pytest.param("many", "Write a number of hours, such as 24.", id="no number"),
        pytest.param("-1", "Ensure this value is greater than or equal to 0.", id="the future"),
        pytest.param("1e9", "Ensure this value is less than or equal to 8784.", id="before there were OLTs"),
        pytest.param("nan", "Write a number of hours, such as 24.", id="not a number, as a number"),
    ],
)
def test_nonsense_for_hours_is_refused(api, onu, hours, sentence):
    answer = api.get(f"/api/v1/onus/{onu.pk}/history/?hours={hours}")

    assert answer.status_code == 400
    assert answer.data == {"hours": [sentence]}


def test_the_history_of_an_unknown_onu_is_404(api, db):
    assert api.get("/api/v1/onus/99/history/").status_code == 404


def test_the_summary_counts_by_state_in_all_and_by_olt(api, onus, central, norte):
    answer = api.get("/api/v1/onus/summary/").json()

    assert answer == {
        "total": 4,
        "missing": 0,
        "by_state": {"online": 2, "los": 1, "dying_gasp": 1},
        "olts": [
            {
                "olt": central.pk,
                "olt_name": "OLT-CENTRAL-01",
                "total": 2,
                "missing": 0,
                "by_state": {"online": 1, "los": 1},
            },
            {
                "olt": norte.pk,
                "olt_name": "OLT-NORTE-02",
                "total": 2,
                "missing": 0,
                "by_state": {"dying_gasp": 1, "online": 1},
            },
        ],
    }


@pytest.mark.parametrize("many", [1, 20])
def test_a_page_of_onus_costs_the_same_however_many_there_are(api, db, django_assert_num_queries, many):
    for number in range(many):
        make_onu(make_olt(f"OLT-{number}"), number, read_at=T0)

    with django_assert_num_queries(2):
        api.get("/api/v1/onus/")


def test_the_summary_is_one_query(api, onus, django_assert_num_queries):
    with django_assert_num_queries(1):
        api.get("/api/v1/onus/summary/")
