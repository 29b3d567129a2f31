"""The lists of OLTs and executions in every order, with filters that are kept."""

from datetime import timedelta

import pytest
from cast import T0, make_execution, make_olt, make_port

from facho.apps.dashboard import execution_list, list_pages
from facho.apps.dashboard.execution_list import EXECUTIONS
from facho.apps.dashboard.olt_list import OLTS


def names(page, query=""):
    return [row.olt.name for row in page.get(f"/olts/?{query}").context["page"].object_list]


@pytest.fixture
def olts(central, norte, sur):
    """Three OLTs: with a weak ONU and a dark port, with an ONU online, and without any."""
    make_port(central, 0, 1, los=3, read_at=T0)
    make_port(central, 0, 2, missing=1)
    make_port(central, 0, 3, online=1, weak=1)
    make_port(norte, 0, 1, online=1, read_at=T0 + timedelta(hours=1))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", "SUR NORTE CENTRAL", id="worst first"),
        pytest.param("sort=name", "CENTRAL NORTE SUR", id="by name"),
        pytest.param("sort=-name", "SUR NORTE CENTRAL", id="by name, reversed"),
        pytest.param("sort=-state", "CENTRAL NORTE SUR", id="best first"),
        pytest.param("sort=host", "CENTRAL NORTE SUR", id="by address"),
        pytest.param("sort=-dark", "CENTRAL SUR NORTE", id="most dark ONUs first"),
        pytest.param("sort=-weak", "CENTRAL SUR NORTE", id="most weak ONUs first"),
        pytest.param("sort=-dark_ports", "CENTRAL SUR NORTE", id="most dark ports first"),
        pytest.param("sort=-read_at", "NORTE CENTRAL SUR", id="latest data first, without data last"),
        pytest.param("sort=read_at", "CENTRAL NORTE SUR", id="oldest data first, without data last"),
        pytest.param("sort=-online&state=slow", "NORTE", id="with a filter"),
        pytest.param("q=127.0.0.3", "SUR", id="with a search"),
        pytest.param("state=wrong", "", id="with an invalid filter"),
    ],
)
def test_the_olts_are_ordered(admin_page, olts, query, expected):
    assert " ".join(name.split("-")[1] for name in names(admin_page, query)) == expected


def test_of_the_olts_that_answer_those_with_bad_ports_come_first(admin_page, db):
    for name, states in {"A": {"online": 20}, "B": {"online": 20, "los": 5}, "C": {"online": 20, "los": 25}}.items():
        make_port(make_olt(f"OLT-{name}", host=f"127.0.3.{ord(name)}", reachability="reachable"), 0, 1, **states)

    assert names(admin_page) == ["OLT-C", "OLT-B", "OLT-A"]


def test_ports_that_are_down_are_counted_as_on_the_overview(admin_page, central):
    make_port(central, 0, 1, online=18, los=27)
    make_port(central, 0, 2, los=1)

    listed = admin_page.get("/olts/").context["page"].object_list[0]

    assert (listed.dark_ports, listed.degraded_ports) == (1, 1)
    assert admin_page.get("/").context["network"].ports_down == 1


def test_ports_without_an_onu_online_are_counted(admin_page, olts):
    rows = {row.olt.name: (row.ports, row.dark_ports) for row in admin_page.get("/olts/").context["page"].object_list}

    # The port whose only ONU is missing is not used.
    assert rows == {"OLT-SUR-03": (0, 0), "OLT-NORTE-02": (1, 0), "OLT-CENTRAL-01": (2, 1)}


def test_a_long_list_of_olts_has_pages(admin_page, db, monkeypatch):
    monkeypatch.setattr(list_pages, "ROWS_PER_PAGE", 2)
    for number in range(5):
        make_olt(f"OLT-{number}", host=f"127.0.2.{number}")

    assert [names(admin_page, f"sort=name&page={page}") for page in (1, 3, 9)] == [
        ["OLT-0", "OLT-1"],
        ["OLT-4"],
        ["OLT-4"],
    ]


@pytest.fixture
def runs(node, sur):
    """Three masters: quick, late and slow, and one that was skipped."""
    make = [
        {"started_at": T0 + timedelta(seconds=1), "ended_at": T0 + timedelta(seconds=2), "readings": 9, "pdus": 3},
        {"started_at": T0 + timedelta(seconds=90), "ended_at": T0 + timedelta(seconds=92), "readings": 1, "pdus": 9},
        {"started_at": T0 + timedelta(seconds=3), "ended_at": T0 + timedelta(seconds=63), "readings": 5, "pdus": 5},
        {"started_at": None, "ended_at": None, "status": "SKIPPED"},
    ]
    return [make_execution(node, T0 + timedelta(minutes=5 * n), **each) for n, each in enumerate(make)]


def order(page, runs, query):
    return [runs.index(run) for run in page.get(f"/executions/?{query}").context["composites"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", [3, 2, 1, 0], id="newest first"),
        pytest.param("sort=slot", [0, 1, 2, 3], id="oldest first"),
        pytest.param("sort=-took", [2, 1, 0, 3], id="slowest first, not run last"),
        pytest.param("sort=readings", [3, 1, 2, 0], id="fewest ONUs first"),
        pytest.param("sort=-pdus", [1, 2, 0, 3], id="most requests first"),
        pytest.param("sort=status", [3, 0, 1, 2], id="by status"),
        pytest.param("sort=-took&status=SUCCESS", [2, 1, 0], id="with a filter"),
        pytest.param("sort=slot&slot_after=2025-06-01T10:05:00Z", [1, 2, 3], id="from a time"),
        pytest.param("status=WRONG", [], id="with an invalid filter"),
        pytest.param("q=nothing", [], id="with a search"),
    ],
)
def test_the_executions_are_ordered(admin_page, runs, query, expected):
    assert order(admin_page, runs, query) == expected


def test_another_order_is_among_the_newest_executions(admin_page, runs, monkeypatch):
    monkeypatch.setattr(execution_list, "MOST", 2)

    assert order(admin_page, runs, "sort=-took") == [2, 3]


@pytest.mark.parametrize("spec", [OLTS, EXECUTIONS], ids=lambda spec: spec.name)
def test_every_column_orders_the_list(admin_page, olts, runs, spec):
    for column in spec.columns:
        for sort in (column.name, f"-{column.name}") if column.order else ():
            answer = admin_page.get(f"/{spec.name}/?sort={sort}")

            assert answer.context["wanted"].errors == [], sort
            assert answer.context["page"].object_list, sort


@pytest.mark.parametrize("ordering", ["lateness", "-duration"])
def test_the_api_orders_executions_by_computed_times(api, runs, ordering):
    shown = api.get(f"/api/v1/executions/?ordering={ordering}").json()["results"]

    found = [each[ordering.removeprefix("-")] for each in shown]
    known = sorted(found[:-1], reverse=ordering.startswith("-"))
    assert found == [*known, None]
