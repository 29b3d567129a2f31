"""The network on the overview: the order of the OLTs, their worst ports, and the totals. Long texts are clipped."""

import pytest
from cast import BOSS, make_olt, make_port
from django.test import Client
from django.utils import timezone

from facho.apps.dashboard.network import network_of
from facho.apps.dashboard.templatetags.facho import clipped

LONG = "OLT-SUR-03 did not answer 3 requests in 15.0 s. " * 8


@pytest.fixture
def network(db):
    """A network of each kind of OLT. The ports of the good ones have an ONU that is down."""
    made = {
        name: make_olt(name, reachability=state)
        for name, state in (
            ("A-GOOD", "reachable"), ("B-DOWN", "reachable"), ("C-DEGRADED", "reachable"), ("D-WORSE", "reachable"),
            ("E-SILENT", "unreachable"), ("F-SUSPECT", "reachable"),
        )
    }  # fmt: skip
    for olt in made.values():
        make_port(olt, 0, 1, online=31, los=1)
    make_port(made["B-DOWN"], 0, 2, los=8)
    make_port(made["C-DEGRADED"], 0, 2, online=24, los=8)
    make_port(made["D-WORSE"], 0, 2, online=24, los=8)
    make_port(made["D-WORSE"], 0, 3, los=12)
    make_port(made["D-WORSE"], 0, 4, los=5)
    type(made["F-SUSPECT"]).objects.filter(name="F-SUSPECT").update(suspect_since=timezone.now())
    return network_of(BOSS, most=6)


def test_olts_in_trouble_come_first_each_with_its_worst_port(network):
    shown = [(tile.olt.name, tile.tone, tile.worst and tile.worst.place) for tile in network.tiles]

    assert shown == [
        ("E-SILENT", "bad", None),
        ("D-WORSE", "bad", "0/3"),
        ("B-DOWN", "bad", "0/2"),
        ("C-DEGRADED", "warn", "0/2"),
        ("A-GOOD", "ok", None),
        ("F-SUSPECT", "warn", None),
    ]


def test_only_the_worst_get_a_tile_and_totals_are_those_of_all(network):
    short = network_of(BOSS, most=2)

    assert [(tile.olt.name, tile.onus.dark) for tile in short.tiles] == [("E-SILENT", 1), ("D-WORSE", 26)]
    assert (short.olts, short.other_olts, short.onus) == (6, 4, network.onus)


def test_open_breakers_are_those_of_enabled_olts(db):
    for name, enabled in (("B", True), ("A", True), ("C", False)):
        make_olt(name, enabled=enabled, reachability="unreachable", breaker_opened_at=timezone.now())

    found = network_of(BOSS, most=1)

    assert [olt.name for olt in found.breakers] == ["A", "B"]
    assert (found.enabled, found.unreachable, [tile.olt.name for tile in found.tiles]) == (2, 2, ["A"])


def test_totals_are_those_of_all_olts_and_ports(network):
    assert (network.enabled, network.answering, network.unreachable) == (6, 5, 1)
    assert (network.ports_down, network.ports_degraded) == (3, 2)
    assert (network.onus.online, network.onus.dark) == (6 * 31 + 48, 6 + 8 + 8 + 8 + 12 + 5)


@pytest.mark.parametrize(
    ("text", "is_long"),
    [
        pytest.param("No answer in 5 s.", False, id="short"),
        pytest.param("no answer\nno usable answer", False, id="two lines"),
        pytest.param("1\n2\n3", True, id="three lines"),
        pytest.param(LONG, True, id="a long line"),
    ],
)
def test_only_a_text_that_is_clipped_can_be_unfolded(text, is_long):
    assert clipped(text, key="olt-1")["is_long"] == is_long


@pytest.mark.parametrize("path", ["/", "/olts/", "/olts/{olt}/"])
def test_a_long_error_is_clipped_with_all_of_it_on_demand(boss, path):
    olt = make_olt("OLT-SUR-03", reachability="unreachable", last_error=LONG)
    client = Client()
    client.force_login(boss)

    page = client.get(path.format(olt=olt.pk)).content.decode()

    assert f'<div class="clip"><p>{LONG[:48]}' in page
    assert "<summary>Show all</summary>" in page
