"""Search through the API: grouped, and in the lists."""

import pytest
from cast import make_event, make_olt, make_onu
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from facho.apps.inventory.models import Scope, Tag
from facho.apps.telemetry.models import PonPort


@pytest.fixture
def network(central, norte):
    """Two OLTs with a port 1/9 and an ONU of María each."""
    for olt in (central, norte):
        PonPort.objects.create(olt=olt, slot=1, port=9)
    return [
        make_onu(olt, number, slot=1, port=9, name=f"María de {olt.name}")
        for number, olt in enumerate((central, norte), start=1)
    ]


def names(answer):
    """Return what was found, by kind."""
    groups = answer.json()
    return {
        "onus": [row["name"] for row in groups["onus"]["results"]],
        "ports": [f"{row['olt_name']} {row['slot']}/{row['port']}" for row in groups["ports"]["results"]],
        "olts": [row["name"] for row in groups["olts"]["results"]],
    }


@pytest.mark.parametrize(
    ("q", "onus", "ports", "olts"),
    [
        pytest.param("maria", ["María de OLT-CENTRAL-01", "María de OLT-NORTE-02"], [], [], id="a word"),
        pytest.param("norte 1/9", ["María de OLT-NORTE-02"], ["OLT-NORTE-02 1/9"], [], id="OLT and port"),
        pytest.param("127.0.0.2", ["María de OLT-NORTE-02"], ["OLT-NORTE-02 1/9"], ["OLT-NORTE-02"], id="address"),
        pytest.param(
            "127.0.0.2:161", ["María de OLT-NORTE-02"], ["OLT-NORTE-02 1/9"], ["OLT-NORTE-02"], id="address with port"
        ),
        pytest.param("nobody", [], [], [], id="nothing"),
    ],
)
def test_a_search_finds_onus_ports_and_olts(api, network, q, onus, ports, olts):
    answer = api.get("/api/v1/search/", {"q": q})

    assert names(answer) == {"onus": onus, "ports": ports, "olts": olts}
    assert {kind: group["count"] for kind, group in answer.json().items()} == {
        "onus": len(onus), "ports": len(ports), "olts": len(olts),
    }  # fmt: skip


def test_a_group_has_as_many_rows_as_requested_and_the_whole_count(api, network):
    group = api.get("/api/v1/search/?q=maria&limit=1").json()["onus"]

    assert (len(group["results"]), group["count"], group["is_counted"]) == (1, 2, True)


def test_a_group_counts_no_further_than_its_limit(api, network, monkeypatch):
    monkeypatch.setattr("facho.apps.telemetry.search.MOST_FOUND", 1)

    group = api.get("/api/v1/search/?q=maria").json()["onus"]

    assert (group["count"], group["is_counted"]) == (1, False)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("", "q", id="nothing to search"),
        pytest.param("q=" + "a+" * 11, "q", id="too many words"),
        pytest.param("q=" + "a" * 201, "q", id="too many characters"),
        pytest.param("q=a%00b", "q", id="a NUL"),
        pytest.param("q=a&limit=101", "limit", id="too many rows"),
        pytest.param("q=a&page=2", "page", id="an unknown parameter"),
    ],
)
def test_what_cannot_be_searched_is_refused(api, db, query, field):
    answer = api.get(f"/api/v1/search/?{query}")

    assert answer.status_code == 400
    assert list(answer.json()) == [field]


def test_a_scope_limits_all_groups(reader, network, central):
    tag = Tag.objects.create(name="centre")
    central.tags.add(tag)
    scope = Scope.objects.create(user=reader)
    scope.tags.add(tag)
    client = APIClient()
    client.force_authenticate(User.objects.get(pk=reader.pk))

    for q, onus in (("maria", ["María de OLT-CENTRAL-01"]), ("norte", []), ("1/9", ["María de OLT-CENTRAL-01"])):
        answer = client.get("/api/v1/search/", {"q": q})
        assert "NORTE" not in answer.content.decode()
        assert names(answer)["onus"] == onus


def test_the_cost_does_not_depend_on_what_is_found(api, network, django_assert_num_queries):
    # Texts of the OLTs and of the ONUs, ONUs, ports and their number.
    with django_assert_num_queries(5):
        api.get("/api/v1/search/?q=central+1/9")
    for number in range(10, 20):
        olt = make_olt(f"OLT-CENTRAL-{number}")
        PonPort.objects.create(olt=olt, slot=1, port=9)
        make_onu(olt, number, slot=1, port=9)
    with django_assert_num_queries(5):
        api.get("/api/v1/search/?q=central+1/9")


def test_lists_search_with_the_same_rules(api, network, central):
    make_event(network[0])

    assert api.get("/api/v1/onus/?search=central+1/9/1").data["count"] == 1
    assert api.get("/api/v1/onus/?search=jose").data["count"] == 0
    assert api.get("/api/v1/olts/?search=CENTRÁL").data["count"] == 1
    assert api.get("/api/v1/events/?search=central+maria").data["count"] == 1
    assert api.get(f"/api/v1/onus/{network[0].pk}/events/?search=maria").status_code == 400


@pytest.mark.parametrize("path", ["telemetry/onu", "telemetry/onuevent", "inventory/olt", "jobs/workflow"])
def test_the_admin_searches_with_the_same_rules(admin_page, network, path):
    make_event(network[0])

    shown = admin_page.get(f"/admin/{path}/?q=CENTRÁL+01").context["cl"].result_list

    assert [str(getattr(row, "olt", row)) for row in shown] == ["OLT-CENTRAL-01"]
