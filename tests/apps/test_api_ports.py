"""PON ports through the API."""

from datetime import timedelta

import pytest
from cast import make_olt, make_onu, make_port, make_user
from django.utils import timezone
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role
from facho.apps.changes.models import Change
from facho.apps.inventory.models import Site, Tag
from history_rows import add_reading

PORTS = "/api/v1/ports/"


@pytest.fixture
def cut(central):
    """A port on which a fibre was cut."""
    port = make_port(central, 1, 9, online=5, los=16, dying_gasp=7, weak=1, missing=2, held=1)
    for number, state, rx in ((0, "online", -20.0), (1, "online", -28.0), (2, "los", -40.0), (4, "online", None)):
        make_onu(central, number, slot=1, port=9, onu=number, state=state, rx_dbm=rx, pon_port=port)
    make_onu(central, 6, slot=1, port=9, onu=6, missing_since=timezone.now(), pon_port=port)
    return port


def places(answer):
    assert answer.status_code == 200, answer.json()
    return [(row["olt_name"], row["place"]) for row in answer.json()["results"]]


def test_a_port_has_counters_level_capacity_and_power(api, cut):
    [row] = api.get(PORTS).json()["results"]

    assert row == {
        "id": cut.pk, "olt": cut.olt_id, "olt_name": "OLT-CENTRAL-01", "slot": 1, "port": 9, "place": "1/9",
        "level": "dark", "total": 30, "present": 28, "missing": 2, "held": 1, "weak": 1, "dark": 23, "online": 5,
        "offline": 0, "los": 16, "dying_gasp": 7, "auth_failed": 0, "logging": 0, "syncing": 0, "degraded": 0,
        "disabled": 0, "unknown": 0, "own_capacity": None, "capacity": 128, "free": 100, "used_percent": 21.9,
        "mean_rx_dbm": -24.0, "worst_rx_dbm": -28.0, "read_at": None, "state_at": None, "power_at": None,
    }  # fmt: skip


def test_one_port_has_its_onu_ids_and_traffic(api, cut):
    now = timezone.now()
    onu = cut.onus.get(onu=1)
    for minutes, octets in ((6, 0), (1, 300_000)):
        add_reading(onu, now - timedelta(minutes=minutes), in_octets=octets, out_octets=2 * octets)

    row = api.get(f"{PORTS}{cut.pk}/").json()

    # Huawei counts from 0; 6 belongs to an ONU that is missing.
    free = [{"first": 3, "last": 3}, {"first": 5, "last": 5}, {"first": 7, "last": 127}]
    assert row["onu_ids"] == {"free": free, "reserved": [{"first": 6, "last": 6}]}
    assert (row["traffic"]["in_bps"], row["traffic"]["out_bps"], row["traffic"]["onus"]) == (8000, 16000, 1)


def test_a_port_without_power_counters_and_ids_has_null(api, central):
    port = make_port(central, None, None, online=1)
    make_onu(central, 1, slot=None, port=None, onu=None, rx_dbm=None, pon_port=port)

    row = api.get(f"{PORTS}{port.pk}/").json()

    assert (row["place"], row["mean_rx_dbm"], row["worst_rx_dbm"]) == ("", None, None)
    assert (row["onu_ids"], row["traffic"]) == (None, None)


@pytest.fixture
def network(central, norte):
    """Ports of two OLTs, of each level."""
    central.site = Site.objects.create(name="Lima")
    central.save()
    norte.tags.set([Tag.objects.create(name="core")])
    make_port(central, 0, 1, online=40)
    make_port(central, 0, 2, online=2, los=8, weak=2)
    make_port(norte, 1, 1, online=36, offline=9, weak=1)
    make_port(norte, 1, 2)
    make_port(norte, None, 9, online=32, capacity=32)


C1, C2 = ("OLT-CENTRAL-01", "0/1"), ("OLT-CENTRAL-01", "0/2")
N1, N2, N9 = ("OLT-NORTE-02", "1/1"), ("OLT-NORTE-02", "1/2"), ("OLT-NORTE-02", "9")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("site=lima", [C1, C2], id="site"),
        pytest.param("tag=core", [N9, N1, N2], id="tag"),
        pytest.param("slot=0&port=2", [C2], id="place"),
        pytest.param("level=dark&level=empty", [C2, N2], id="levels"),
        pytest.param("online__gt=32", [C1, N1], id="more ONUs online than"),
        pytest.param("dark__gt=0&dark__lt=9", [C2], id="ONUs down, between"),
        pytest.param("weak__gt=1", [C2], id="weak"),
        pytest.param("used_percent__gt=30&used_percent__lt=33", [C1], id="used percent"),
        pytest.param("online_percent__lt=50", [C2], id="online percent"),
        pytest.param("dark_percent__gt=19", [C2, N1], id="percent down"),
        pytest.param("search=norte", [N9, N1, N2], id="name of the OLT"),
        pytest.param("search=0/2", [C2], id="place as written"),
        pytest.param("search=9", [N9], id="a port without a slot"),
        pytest.param("search=1/1 NORTE", [N1], id="both"),
        pytest.param("ordering=-used_percent", [N9, N1, C1, C2, N2], id="the fullest first"),
        pytest.param("ordering=-weak", [C2, N1, C1, N2, N9], id="the weakest first"),
        pytest.param("ordering=level_rank,-dark", [C2, N1, C1, N9, N2], id="the most troubled first"),
    ],
)
def test_ports_are_filtered_and_ordered(api, network, query, expected):
    found = places(api.get(f"{PORTS}?{query}"))

    assert (found if "ordering" in query else sorted(found, key=[C1, C2, N9, N1, N2].index)) == expected


def test_an_unknown_parameter_is_refused_with_the_valid_ones(api):
    answer = api.get(f"{PORTS}?stat=dark")

    assert answer.status_code == 400
    assert "used_percent__gt" in answer.json()["stat"][0]


@pytest.mark.parametrize("rows", [1, 40])
def test_a_page_costs_three_queries_whatever_it_shows(api, central, django_assert_num_queries, rows):
    for number in range(rows):
        make_onu(central, number, slot=2, port=number, pon_port=make_port(central, 2, number, online=1))

    # Count, ports with their OLTs, power.
    with django_assert_num_queries(3):
        answer = api.get(PORTS)

    assert [row["mean_rx_dbm"] for row in answer.json()["results"]] == [-20.0 - n / 10 for n in range(rows)]


def client_of(role):
    client = APIClient()
    client.force_login(make_user(role))
    return client


@pytest.mark.parametrize(
    ("capacity", "effective"), [pytest.param(64, 64, id="a number"), pytest.param(None, 128, id="that of the brand")]
)
def test_an_operator_sets_the_capacity_and_it_is_recorded(cut, capacity, effective):
    cut.capacity = 100
    cut.save()

    answer = client_of(Role.OPERATOR).patch(f"{PORTS}{cut.pk}/", {"own_capacity": capacity}, format="json")

    assert (answer.status_code, answer.json()["own_capacity"], answer.json()["capacity"]) == (200, capacity, effective)
    change = Change.objects.get(object_type="telemetry.ponport")
    assert (change.fields, change.object_name) == ({"capacity": [100, capacity]}, "OLT-CENTRAL-01 1/9")
    assert (change.actor, change.olt_id) == ("Operator", cut.olt_id)


def test_the_support_does_not_set_the_capacity(cut):
    answer = client_of(Role.SUPPORT).patch(f"{PORTS}{cut.pk}/", {"own_capacity": 64}, format="json")

    assert answer.status_code == 403
    assert "Operator" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param({"own_capacity": 0}, "greater than or equal to 1", id="zero"),
        pytest.param({"own_capacity": 5000}, "less than or equal to 2047", id="too many"),
        pytest.param({"own_capacity": "many"}, "valid integer", id="no number"),
        pytest.param({"capacity": 64}, "Writable fields: own_capacity.", id="the capacity in effect"),
        pytest.param({"online": 3}, "Writable fields: own_capacity.", id="a counter"),
    ],
)
def test_what_cannot_be_set_is_refused(api, cut, body, said):
    answer = api.patch(f"{PORTS}{cut.pk}/", body, format="json")

    assert answer.status_code == 400
    assert said in str(answer.json())


def test_a_port_of_another_brand_has_its_capacity(api, db):
    make_port(make_olt("EPON", "vsol_epon"), None, 3, online=16)

    [row] = api.get(PORTS).json()["results"]

    assert (row["capacity"], row["used_percent"]) == (64, 25.0)
