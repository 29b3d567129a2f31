"""The list of ONUs: the same filters on the page and in the API, in words, removable; order and columns."""

from datetime import timedelta

import pytest
from cast import make_olt, make_onu
from django.utils import timezone

from facho.apps.dashboard import list_pages
from facho.apps.dashboard.onu_list import ONUS
from facho.apps.inventory.models import Site, Tag


@pytest.fixture
def onus(central, norte):
    """Four ONUs that differ in everything one can ask for."""
    now = timezone.now()
    central.site = Site.objects.create(name="Lima")
    central.save()
    norte.tags.set([Tag.objects.create(name="core")])
    make_onu(central, 1, rx_dbm=-21.53, distance_m=900, model="HG8310M", state_since=now - timedelta(days=20))
    make_onu(
        central,
        2,
        state="los",
        rx_dbm=None,
        port=2,
        olt_rx_dbm=-29.5,
        state_since=now - timedelta(hours=2),
        model="EG8",
    )
    make_onu(norte, 3, state="dying_gasp", rx_dbm=-28.0, slot=3, distance_m=12_000, state_since=now - timedelta(days=3))
    make_onu(norte, 4, rx_dbm=-15.0, slot=3, olt_rx_dbm=-20.0, missing_since=now, index="9.4")


def shown(page, query=""):
    return [onu.onu for onu in page.get(f"/onus/?{query}").context["page"].object_list]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("", [1, 2, 3, 4], id="all"),
        pytest.param("state=dark", [2, 3], id="dark"),
        pytest.param("state=los&state=online", [1, 2], id="several states, a missing one has none"),
        pytest.param("state=missing&state=los", [2, 4], id="a state or missing"),
        pytest.param("state=present", [1, 2, 3], id="not missing"),
        pytest.param("rx_dbm__gte=-28&rx_dbm__lte=-21.53", [1, 3], id="a range of power, both ends"),
        pytest.param("rx_dbm__gt=-28&rx_dbm__lt=-15", [1], id="a range of power, no end"),
        pytest.param("olt_rx_dbm__lte=-25", [2], id="weak at the OLT"),
        pytest.param("distance_m__gte=1000&distance_m__lte=20000", [3], id="a range of distance"),
        pytest.param("since_within=24h", [2], id="since yesterday"),
        pytest.param("since_within=7d", [2, 3], id="since a week"),
        pytest.param("since_before={day}", [1], id="for a long time"),
        pytest.param("since_after={day}&since_within=1d", [2], id="two bounds of the time"),
        pytest.param("model=hg", [1], id="the start of a model"),
        pytest.param("port=2", [2], id="a port"),
        pytest.param("port=3/1", [3, 4], id="slot and port"),
        pytest.param("slot=0", [1, 2], id="a slot"),
        pytest.param("site=lima", [1, 2], id="a site"),
        pytest.param("tag=core&state=dark", [3], id="a tag and a state"),
        pytest.param("olt={olt}&rx_dbm__lt=-20", [1], id="an OLT and a power"),
        pytest.param("port=999999999/1", [], id="a port that does not exist"),
    ],
)
def test_page_and_api_find_the_same(admin_page, api, onus, central, query, found):
    query = query.format(olt=central.pk, day=f"{timezone.now() - timedelta(days=10):%Y-%m-%d}")

    answer = api.get(f"/api/v1/onus/?{query}")

    assert answer.status_code == 200, answer.json()
    assert sorted(onu["onu"] for onu in answer.json()["results"]) == found
    assert sorted(shown(admin_page, query)) == found


@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param("rx_dbm__gte=weak", "Rx: “weak” is not valid. Enter a number.", id="no number"),
        pytest.param("state=asleep", "State: “asleep” is not valid. Select a valid choice.", id="no state"),
        pytest.param("olt=999", "OLT: “999” is not valid. Select a valid choice.", id="no OLT"),
        pytest.param("port=a/b", "Port: “a/b” is not valid. Write the number of a port, or slot/port", id="no port"),
        pytest.param("since_within=long", "State since: “long” is not valid. Write a span of time", id="no span"),
        pytest.param("since_within=999999999d", "Write a span of time", id="a span before there were OLTs"),
        pytest.param("since_after=soon", "State since: “soon” is not valid.", id="no time"),
    ],
)
def test_an_invalid_filter_is_told_and_finds_nothing(admin_page, api, onus, query, said):
    answer = admin_page.get(f"/onus/?{query}")

    assert said in answer.content.decode()
    assert answer.context["page"].object_list == []
    assert api.get(f"/api/v1/onus/?{query}").status_code == 400


@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param("colour=red", "There is no filter “colour”. It is ignored.", id="filter"),
        pytest.param("sort=colour", "The list cannot be ordered by “colour”.", id="order"),
        pytest.param("columns=colour", "There is no column “colour”.", id="column"),
    ],
)
def test_an_unknown_name_is_told_and_the_list_is_shown(admin_page, onus, query, said):
    answer = admin_page.get(f"/onus/?{query}")

    assert said in answer.content.decode()
    assert len(answer.context["page"].object_list) == 4


def test_each_filter_is_a_link_that_removes_it(admin_page, onus, central):
    wanted = admin_page.get(f"/onus/?state=los&state=dark&olt={central.pk}&q=client&columns=rx_dbm").context["wanted"]

    assert {chip.text: chip.href for chip in wanted.chips} == {
        "Search: client": f"?state=los&state=dark&olt={central.pk}&columns=rx_dbm",
        "OLT: OLT-CENTRAL-01": "?state=los&state=dark&q=client&columns=rx_dbm",
        "State: loss of signal": f"?state=dark&olt={central.pk}&q=client&columns=rx_dbm",
        "State: down": f"?state=los&olt={central.pk}&q=client&columns=rx_dbm",
    }


SORTS = [column.name for column in ONUS.columns if column.order]


@pytest.mark.parametrize("column", SORTS)
def test_every_column_orders_the_list_both_ways(admin_page, onus, column):
    up, down = shown(admin_page, f"sort={column}"), shown(admin_page, f"sort=-{column}")

    assert sorted(up) == sorted(down) == [1, 2, 3, 4]


def test_rows_without_a_value_are_last_in_both_orders(admin_page, onus):
    assert shown(admin_page, "sort=rx_dbm") == [3, 1, 4, 2]
    assert shown(admin_page, "sort=-rx_dbm") == [4, 1, 3, 2]


def test_a_header_turns_the_order_round(admin_page, onus):
    headers = {each.column.name: each for each in admin_page.get("/onus/?sort=rx_dbm").context["wanted"].headers}

    assert (headers["rx_dbm"].direction, headers["rx_dbm"].href) == ("up", "?sort=-rx_dbm")
    assert (headers["state"].direction, headers["state"].href) == ("", "?sort=state")


def test_chosen_columns_are_shown_in_their_order(admin_page, onus):
    page = admin_page.get("/onus/?columns=model&columns=rx_dbm,mac")

    assert [each.name for each in page.context["wanted"].columns] == ["name", "rx_dbm", "mac", "model"]
    assert "HG8310M" in page.content.decode()
    # As in the form of the columns, which has a field for each.
    assert dict(page.context["wanted"].hidden) == {"columns": "model,rx_dbm,mac"}
    assert "Tx dBm" not in page.content.decode().split("<table")[1]


def test_every_column_can_be_shown(admin_page, onus):
    names = [column.name for column in ONUS.columns]

    page = admin_page.get(f"/onus/?columns={','.join(names)}").content.decode()

    assert page.count("<th ") + page.count("<th>") == len(names) + 1


def test_a_long_list_is_counted_up_to_a_limit(admin_page, onus, monkeypatch):
    monkeypatch.setattr(list_pages, "MOST", 2)
    monkeypatch.setattr(list_pages, "ROWS_PER_PAGE", 1)

    first, last = (admin_page.get(f"/onus/?page={number}") for number in (1, 9))

    assert "1 to 1 of more than 2" in first.content.decode()
    assert (last.context["page"].number, last.context["page"].has_next) == (2, False)


def test_a_page_beyond_the_end_is_the_last_one(admin_page, onus):
    assert admin_page.get("/onus/?page=7").context["page"].number == 1


def test_many_pages_have_each_row_once(admin_page, central, monkeypatch):
    monkeypatch.setattr(list_pages, "ROWS_PER_PAGE", 2)
    for number in range(5):
        make_onu(central, number, rx_dbm=None)

    assert sorted(onu for page in (1, 2, 3) for onu in shown(admin_page, f"sort=rx_dbm&page={page}")) == [0, 1, 2, 3, 4]


def test_a_list_of_a_million_reads_no_other_rows_than_the_page(admin_page, onus, django_assert_max_num_queries):
    make_onu(make_olt("OLT-OTHER"), 5)
    with django_assert_max_num_queries(9) as queries:
        admin_page.get("/onus/?sort=rx_dbm")

    [ids] = [each["sql"] for each in queries if "rx_level" in each["sql"] and "ORDER BY" in each["sql"]]
    assert "JOIN" not in ids
