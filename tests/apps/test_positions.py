"""Positions of ONUs: set in the API, by id, serial or place; all or none; within the scope; one change."""

import pytest
from cast import make_onu
from django.contrib.auth.models import User

from facho.apps.accounts.roles import Role, set_role
from facho.apps.changes.models import Change
from facho.apps.inventory.models import Scope, Site
from facho.apps.telemetry.models import Onu, OnuPosition
from facho.apps.telemetry.positions import Row, read

URL = "/api/v1/onus/positions/"
LIMA = {"latitude": -12.0464, "longitude": -77.0428}
BOSS = User(is_superuser=True)


@pytest.fixture
def onus(central, norte):
    return [make_onu(central, 1, slot=1, port=9), make_onu(central, 2, slot=1, port=9), make_onu(norte, 3, slot=None)]


def send(api, *entries):
    return api.post(URL, {"positions": list(entries)}, format="json")


def test_positions_are_set_moved_and_removed_as_one_change(api, central, onus):
    first, second, _third = onus
    answer = send(api, {"onu": first.pk, **LIMA}, {"serial": second.serial.lower(), **LIMA})
    assert answer.json() == {"added": 2, "moved": 0, "removed": 0, "unchanged": 0}

    other = {"latitude": -12.1, "longitude": -77.1}
    nothing = {"latitude": None, "longitude": None}
    answer = send(api, {"olt": central.name.lower(), "place": "1/9/1", **other}, {"serial": second.serial, **nothing})

    assert answer.json() == {"added": 0, "moved": 1, "removed": 1, "unchanged": 0}
    assert list(OnuPosition.objects.values_list("onu", "latitude", "longitude")) == [(first.pk, -12.1, -77.1)]
    shown = api.get(f"/api/v1/onus/{first.pk}/").json()
    assert (shown["latitude"], shown["longitude"]) == (-12.1, -77.1)
    last, _first = Change.objects.filter(action="positions_set")
    assert (last.olt_id, last.fields) == (central.pk, {"moved": [None, 1], "removed": [None, 1]})


def test_nothing_is_set_if_one_entry_is_refused(api, onus):
    answer = send(api, {"onu": onus[0].pk, **LIMA}, {"serial": "HWTC00000000", **LIMA})

    assert answer.status_code == 400
    assert list(answer.json()["positions"]) == ["1"]
    assert not OnuPosition.objects.exists()


@pytest.mark.parametrize(
    ("row", "error"),
    [
        pytest.param({"serial": "HWTC00000002"}, "", id="serial"),
        pytest.param({"serial": "4857544300000002"}, "", id="serial in hex"),
        pytest.param({"serial": "HWTC-00000002"}, "", id="serial with a separator"),
        pytest.param({"olt": "olt-central-01", "place": "0/1/9/2"}, "", id="place with the frame"),
        pytest.param({"olt": "OLT-NORTE-02", "place": "1/3"}, "", id="place on an OLT without slots"),
        pytest.param({"serial": "TWIN", "olt": "OLT-NORTE-02"}, "", id="serial on two OLTs, with the OLT"),
        pytest.param({"serial": "MOVED"}, "", id="missing on the other OLT"),
        pytest.param({"serial": "TWIN"}, "Several ONUs", id="serial on two OLTs"),
        pytest.param({"serial": "HWTC00000009"}, "no ONU with the serial", id="unknown serial"),
        pytest.param({"olt": "OLT-1", "place": "1/9/1"}, "There is no OLT", id="unknown OLT"),
        pytest.param({"olt": "OLT-CENTRAL-01", "place": "1/9"}, "There is no ONU at", id="a port"),
        pytest.param({"olt": "OLT-CENTRAL-01"}, "Write a serial", id="no place"),
        pytest.param({"latitude": "-12,0464"}, "", id="a comma"),
        pytest.param({"latitude": "south"}, "not a latitude", id="no number"),
        pytest.param({"latitude": "nan"}, "not a latitude", id="nan"),
        pytest.param({"longitude": "-181"}, "not a longitude", id="out of range"),
        pytest.param({"latitude": ""}, "leave both empty", id="half a position"),
        pytest.param({"latitude": "0.0", "longitude": "0"}, "in the ocean", id="unknown in another program"),
    ],
)
def test_rows_of_a_file(central, norte, onus, row, error):
    for name in ("TWIN", "MOVED"):
        make_onu(
            central, 7, serial=name, index=f"1.{name}", missing_since=onus[0].first_seen_at if name == "MOVED" else None
        )
        make_onu(norte, 8, serial=name, index=f"2.{name}")
    defaults = {} if "serial" in row or "olt" in row else {"serial": "HWTC00000001"}

    found = read([Row(2, **{"latitude": "-12.0464", "longitude": "-77.0428", **defaults, **row})], BOSS)

    assert ([said for _line, said in found.errors] == []) if not error else (error in found.errors[0][1])
    assert list(found.positions.values()) == ([] if error else [(-12.0464, -77.0428)])


def test_an_onu_twice_is_refused_with_both_lines(onus):
    serial = onus[0].serial
    found = read([Row(2, 1, 1, serial=serial), Row(3, 2, 2, serial=serial)], BOSS)

    assert found.errors == [(3, "The ONU is also in line 2.")]


def test_onus_outside_the_scope_do_not_exist(api, onus, central):
    site = Site.objects.create(name="Lima")
    type(central).objects.filter(pk=central.pk).update(site=site)
    user = User.objects.create(username="lima")
    set_role(user, Role.OPERATOR)
    Scope.objects.create(user=user).sites.add(site)
    api.force_authenticate(user)

    assert send(api, {"onu": onus[0].pk, **LIMA}).status_code == 200
    assert "outside your scope" in str(send(api, {"onu": onus[2].pk, **LIMA}).json())
    assert "outside your scope" in str(send(api, {"serial": onus[2].serial, **LIMA}).json())
    assert "outside your scope" in str(send(api, {"olt": "OLT-NORTE-02", "place": "1/3", **LIMA}).json())


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        pytest.param("has_position=true", [1, 2], id="with a position"),
        pytest.param("has_position=false", [3], id="without one"),
        pytest.param("area=-77.1,-12.1,-77,-12", [1], id="an area"),
        pytest.param("area=-77.0428,-12.0464,-77.0428,-12.0464", [1], id="a point"),
    ],
)
def test_onus_are_filtered_by_position(api, admin_page, onus, query, numbers):
    send(api, {"onu": onus[0].pk, **LIMA}, {"onu": onus[1].pk, "latitude": -13.5, "longitude": -72})

    assert [row["onu"] for row in api.get(f"/api/v1/onus/?{query}").json()["results"]] == numbers
    page = admin_page.get(f"/onus/?{query}").context["page"]
    assert [onu.onu for onu in page.object_list] == numbers


def test_an_area_that_is_none_is_refused(api):
    assert "west,south,east,north" in str(api.get("/api/v1/onus/?area=1,2").json())


def test_the_position_goes_with_its_onu(onus, central, api):
    send(api, {"onu": onus[0].pk, **LIMA})

    Onu.objects.filter(pk=onus[0].pk).delete()

    assert not OnuPosition.objects.exists()


@pytest.mark.parametrize(
    ("values", "status"),
    [
        pytest.param(LIMA, 200, id="a position"),
        pytest.param({"latitude": None, "longitude": None}, 200, id="none"),
        pytest.param({"latitude": -12.0}, 400, id="half of one"),
        pytest.param({"latitude": -91, "longitude": 0}, 400, id="out of range"),
    ],
)
def test_a_site_has_a_whole_position_or_none(api, db, values, status):
    site = Site.objects.create(name="Lima")

    assert api.patch(f"/api/v1/sites/{site.pk}/", values, format="json").status_code == status
