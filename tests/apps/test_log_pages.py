"""The page of the log: what it finds, for whom, and its files."""

from datetime import timedelta

import pytest
from cast import T0, make_log, make_olt, make_user
from django.test import Client
from test_exports import lines

from facho.apps.accounts.roles import Role
from facho.apps.inventory.models import Scope, Site


@pytest.fixture
def page(reader):
    client = Client()
    client.force_login(reader)
    return client


def html(page, path):
    return page.get(path).content.decode()


def shown(page, query=""):
    return [entry.event_type for entry in page.get(f"/log/{query}").context["entries"]]


@pytest.fixture
def entries(central, norte):
    return [
        make_log("ENGINE_STARTED", T0, level="INFO", message="the engine started", details={"pollers": 4}),
        make_log("OLT_DISABLED", T0 + timedelta(minutes=1), olt=central, level="INFO", message="it was disabled"),
        make_log("BREAKER_OPENED", T0 + timedelta(minutes=2), olt=norte, level="WARNING", message="breaker opened"),
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["BREAKER_OPENED", "OLT_DISABLED", "ENGINE_STARTED"], id="newest first"),
        pytest.param("?level=WARNING", ["BREAKER_OPENED"], id="level"),
        pytest.param("?olt={olt}", ["OLT_DISABLED"], id="OLT"),
        pytest.param("?event=ENGINE_STARTED", ["ENGINE_STARTED"], id="event"),
        pytest.param("?q=NORTE", ["BREAKER_OPENED"], id="name of an OLT"),
        pytest.param("?q=was+disabled", ["OLT_DISABLED"], id="text"),
        pytest.param("?q=engine+STARTED", ["ENGINE_STARTED"], id="name of the event"),
        pytest.param("?q=nothing+like+it", [], id="nothing"),
        pytest.param("?time_after={second}", ["BREAKER_OPENED", "OLT_DISABLED"], id="from"),
        pytest.param("?time_before={second}", ["ENGINE_STARTED"], id="before"),
    ],
)
def test_filters_find_entries(page, entries, central, query, expected):
    second = f"{T0 + timedelta(minutes=1):%Y-%m-%dT%H:%M:%S}"

    assert shown(page, query.format(olt=central.pk, second=second)) == expected


def test_an_entry_is_told_in_the_language_of_the_reader(reader, entries):
    client = Client(headers={"accept-language": "es-PE"})
    client.force_login(reader)

    assert "el motor arrancó con 4 pollers" in html(client, "/log/?event=ENGINE_STARTED")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param("?level=LOUD", "“LOUD” is not valid", id="level"),
        pytest.param("?time_after=2026-02-30T10:00", "“2026-02-30T10:00” is not valid", id="time"),
        pytest.param("?colour=red", "There is no filter “colour”", id="unknown filter"),
    ],
)
def test_an_invalid_filter_is_explained(page, entries, query, said):
    answer = page.get(f"/log/{query}")

    assert answer.status_code == 200
    assert said in answer.content.decode()


def test_an_empty_log_and_an_empty_search_differ(page, db):
    assert "has not written anything yet" in html(page, "/log/")
    assert "No entry matches these filters." in html(page, "/log/?level=ERROR")


def test_a_file_has_the_rows_of_the_page(page, entries):
    answer = page.get("/log/csv/?level=WARNING")

    rows = lines(answer)
    assert len(rows) == 2
    assert "OLT-NORTE-02" in rows[1]


def test_it_goes_on_to_older_entries(page, central):
    for number in range(60):
        make_log("OLT_DISABLED", T0 + timedelta(minutes=number), olt=central)

    assert len(shown(page)) == 50
    assert len(shown(page, "?page=2")) == 10


def test_an_entry_leads_to_the_executions_at_its_time_and_back(page, execution, central):
    make_log("RUN_FAILED", execution.slot + timedelta(minutes=1), olt=central)
    [link] = [part for part in html(page, "/log/").split('"') if part.startswith("/executions/?olt=")]

    found = page.get(link.replace("&amp;", "&")).context["composites"]

    assert [each.pk for each in found] == [execution.pk]
    [back] = [part for part in html(page, "/executions/").split('"') if part.startswith("/log/?olt=")]
    assert shown(page, back.replace("&amp;", "&").removeprefix("/log/")) == ["RUN_FAILED"]


def test_a_user_with_a_scope_sees_the_entries_of_own_olts_only(entries, central):
    user = make_user(Role.ENGINEER)
    scope = Scope.objects.create(user=user)
    lima = Site.objects.create(name="Lima")
    scope.sites.add(lima)
    make_log("OLT_ENABLED", T0, olt=make_olt("OLT-LIMA", host="127.0.0.9", site=lima))
    client = Client()
    client.force_login(user)

    assert shown(client) == ["OLT_ENABLED"]
    assert shown(client, "?q=NORTE") == []


@pytest.mark.parametrize("number", [2, 40])
def test_the_page_costs_a_few_queries_whatever_it_shows(page, central, django_assert_max_num_queries, number):
    for each in range(number):
        make_log("OLT_DISABLED", T0 + timedelta(minutes=each), olt=central)
    page.get("/account/sessions/")

    # Session, user, its permissions and scope, open problems; views, ids, rows, OLTs for the filter.
    with django_assert_max_num_queries(11):
        page.get("/log/")
