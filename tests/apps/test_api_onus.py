"""ONUs through the API."""

from datetime import timedelta

import pytest
from cast import T0, make_olt, make_onu
from django.utils import timezone

from facho.apps.telemetry.history import RAW
from facho.apps.telemetry.models import HistoryChunk
from facho.store.history import close
from history_rows import add_reading


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
        add_reading(onu, now - timedelta(hours=hours), rx_dbm=-20.0 - hours)

    day = api.get(f"/api/v1/onus/{onu.pk}/history/").data
    more = api.get(f"/api/v1/onus/{onu.pk}/history/?hours=48&page_size=1").data

    assert [reading["rx_dbm"] for reading in day["results"]] == [-21.0, -22.0]
    assert (more["count"], more["page_size"], len(more["results"])) == (3, 1, 1)


def history(api, onu, query=""):
    answer = api.get(f"/api/v1/onus/{onu.pk}/history/?{query}")
    assert answer.status_code == 200, answer.data
    return answer.json()["results"]


@pytest.fixture
def day(onu):
    """A day of readings every half hour, and the time of the last one: midnight."""
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for number in range(48):
        at = midnight - timedelta(minutes=30 * number)
        add_reading(onu, at, state="online", rx_dbm=-20.0 - number, in_octets=10_000 - 10 * number)
    return midnight


def written(at):
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def test_a_reading_has_every_field_and_null_for_what_was_not_read(api, onu, day):
    [latest] = history(api, onu, f"from={written(day)}&to={written(day)}")

    assert latest == {
        "at": written(day),
        "state": "online",
        "rx_dbm": -20.0,
        "tx_dbm": None,
        "olt_rx_dbm": None,
        "temperature_c": None,
        "in_octets": 10_000,
        "out_octets": None,
    }


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("field=state&field=rx_dbm", id="repeated"),
        pytest.param("field=rx_dbm,state", id="with commas"),
        pytest.param("field=rx_dbm, state&field=state", id="both"),
    ],
)
def test_only_the_fields_asked_for_are_shown(api, onu, day, query):
    assert list(history(api, onu, f"{query}&to={written(day)}")[0]) == ["at", "state", "rx_dbm"]


def test_a_reading_without_the_fields_asked_for_is_left_out(api, onu, day):
    assert history(api, onu, f"field=tx_dbm&to={written(day)}") == []


def test_history_is_given_from_one_time_to_another_with_both_ends(api, onu, day):
    rows = history(api, onu, f"from={written(day - timedelta(hours=1))}&to={written(day)}")

    assert [row["rx_dbm"] for row in rows] == [-20.0, -21.0, -22.0]
    assert [row["rx_dbm"] for row in history(api, onu, f"hours=1&to={written(day)}")] == [-20.0, -21.0, -22.0]


@pytest.mark.parametrize("step", ["3600", "3600s", "60m", "1h"])
def test_with_a_step_results_are_buckets(api, onu, day, step):
    rows = history(api, onu, f"field=state,rx_dbm,in_octets&step={step}&hours=2&to={written(day)}")

    assert rows == [
        {
            "at": written(day),
            "state": "online",
            "rx_dbm": {"min": -20.0, "mean": -20.0, "max": -20.0},
            "in_octets": {"sum": 10},
        },
        {
            "at": written(day - timedelta(hours=1)),
            "state": "online",
            "rx_dbm": {"min": -22.0, "mean": -21.5, "max": -21.0},
            "in_octets": {"sum": 20},
        },
        {
            "at": written(day - timedelta(hours=2)),
            "state": "online",
            "rx_dbm": {"min": -24.0, "mean": -23.5, "max": -23.0},
            # The reading before it is not among those asked for.
            "in_octets": {"sum": 10},
        },
    ]


def test_a_step_of_a_day_uses_daily_values_where_the_readings_are_gone(api, onu, day):
    close(RAW, onu.olt_id, day - timedelta(days=1))
    HistoryChunk.objects.all().delete()

    rows = history(api, onu, f"field=rx_dbm&step=1d&to={written(day)}")

    assert [(row["at"], row["rx_dbm"]["min"]) for row in rows] == [
        (written(day), -20.0),
        (written(day - timedelta(days=1)), -67.0),
    ]


@pytest.mark.parametrize(
    ("query", "name", "sentence"),
    [
        pytest.param(
            "field=light", "field", "The field light has no history. Valid fields: state, rx_dbm,", id="no such field"
        ),
        pytest.param("field=", "field", "has no history. Valid fields:", id="an empty field"),
        pytest.param("step=often", "step", "Write seconds, or a number and s, m, h or d", id="a step that is none"),
        pytest.param("step=0", "step", "Write seconds", id="no step at all"),
        pytest.param("step=999d", "step", "Write seconds", id="a step of years"),
        pytest.param("from=yesterday", "from", "Datetime has wrong format", id="no time"),
        pytest.param("from=2025-06-02T00:00Z&hours=3", "hours", "Use hours or from, not both.", id="both"),
        pytest.param(
            "from=2025-06-02T00:00Z&to=2025-06-01T00:00Z",
            "from",
            "This must be before the end.",
            id="end before beginning",
        ),
        pytest.param("to=0001-01-01T00:00Z", "to", "This date is too far in the past.", id="before there were years"),
        pytest.param("until=2025-06-02T00:00Z", "until", "Unknown parameter.", id="unknown"),
    ],
)
def test_nonsense_about_history_is_refused(api, onu, query, name, sentence):
    answer = api.get(f"/api/v1/onus/{onu.pk}/history/?{query}")

    assert answer.status_code == 400
    assert list(answer.data) == [name]
    assert sentence in answer.data[name][0]


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
        make_onu(make_olt(f"OLT-{number}"), number, own_read_at=T0)

    # Count, ids, rows, and the ONUs that they replaced.
    with django_assert_num_queries(4):
        api.get("/api/v1/onus/")


def test_the_summary_is_one_query(api, onus, django_assert_num_queries):
    with django_assert_num_queries(1):
        api.get("/api/v1/onus/summary/")
