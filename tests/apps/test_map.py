"""The map: cells of ONUs, open problems and sites in the API; the page; the import of positions."""

import io
import zipfile
from datetime import timedelta

import pytest
import tablib
from asgiref.sync import async_to_sync
from cast import make_onu, make_user
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from facho.apps.accounts.roles import Role
from facho.apps.changes.models import Change
from facho.apps.inventory.models import Scope, Site
from facho.apps.rest import spreadsheets
from facho.apps.telemetry.models import OnuPosition
from problem_rows import make_problem

AREA = "bbox=-78,-13,-76,-11"
LIMA, CALLAO = (-12.0464, -77.0428), (-12.0566, -77.1181)


def put(onu, latitude, longitude):
    OnuPosition.at(onu.pk, onu.olt_id, latitude, longitude).save()


@pytest.fixture
def onus(central, norte):
    """Two ONUs in one house, one in the next town, and one without a position."""
    first = make_onu(central, 1, state="los", rx_dbm=None)
    # Its power was not read.
    second = make_onu(central, 2, rx_dbm=None)
    third = make_onu(norte, 3, rx_dbm=-28.5)
    put(first, *LIMA)
    put(second, *LIMA)
    put(third, *CALLAO)
    return [first, second, third, make_onu(norte, 4)]


def cells(client, query=""):
    answer = client.get(f"/api/v1/map/onus/?{AREA}&zoom=14&{query}")
    assert answer.status_code == 200, answer.content
    return sorted(answer.json()["cells"], key=lambda cell: cell["longitude"])


@pytest.fixture
def operator(db):
    """A browser of an operator."""
    return browser_of(Role.OPERATOR)


def browser_of(role):
    client = Client()
    client.force_login(make_user(role))
    return client


def test_onus_that_are_close_share_a_cell(api, onus):
    alone, house = cells(api)

    assert (house["count"], house["good"], house["weak"], house["down"]) == (2, 1, 0, 1)
    assert (house["south"], house["west"], house["north"], house["east"], house["onu"]) == (*LIMA, *LIMA, None)
    assert (alone["count"], alone["weak"], alone["onu"]["name"]) == (1, 1, "client-3")
    assert alone["onu"]["url"] == f"/onus/{onus[2].pk}/"


def test_cells_are_larger_far_away(api, onus):
    [cell] = api.get("/api/v1/map/onus/?bbox=-180,-85,180,85&zoom=2").json()["cells"]

    assert cell["count"] == 3


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        pytest.param("state=dark", [1], id="state"),
        pytest.param("olt={norte}", [1], id="OLT"),
        pytest.param("site=lima", [2], id="site"),
        pytest.param("search=client-3", [1], id="search"),
        pytest.param("read_at__gt=2020-01-01T00:00:00Z", [1, 2], id="time of reading"),
        pytest.param("bbox=-77.05,-12.05,-77,-12", [2], id="area"),
    ],
)
def test_the_map_has_the_filters_of_the_list(api, onus, central, norte, query, counts):
    type(central).objects.filter(pk=central.pk).update(site=Site.objects.create(name="Lima"))
    area = "" if "bbox" in query else f"{AREA}&"

    answer = api.get(f"/api/v1/map/onus/?{area}zoom=14&{query.format(norte=norte.pk)}").json()

    assert sorted(cell["count"] for cell in answer["cells"]) == counts


@pytest.mark.parametrize("query", ["zoom=3", "bbox=1,2,3&zoom=3", f"{AREA}&zoom=20", f"{AREA}&zoom=3&what=1"])
def test_a_wrong_request_is_refused(api, query):
    assert api.get(f"/api/v1/map/onus/?{query}").status_code == 400


@pytest.mark.parametrize(
    ("problem", "affected"),
    [
        pytest.param({"kind": "port_down", "onus": "all"}, [0, 1], id="an outage: those that are still down"),
        pytest.param({"kind": "flapping", "onus": "all"}, [1, 2], id="flapping: all"),
        pytest.param({"kind": "olt_down"}, [0, 2], id="an unreachable OLT: all of its ONUs"),
        pytest.param({"kind": "low_power", "olt": "norte"}, [1, 0], id="low power: the weak ones of the port"),
        pytest.param({"kind": "flapping", "onus": "all", "until": timezone.now()}, [0, 0], id="ended"),
        pytest.param(
            {"kind": "flapping", "onus": "all", "snoozed_until": timezone.now() + timedelta(days=1)},
            [0, 0],
            id="snoozed",
        ),
    ],
)
def test_onus_of_open_problems_are_marked(api, onus, central, norte, problem, affected):
    ids = [onu.pk for onu in onus] if problem.pop("onus", "") else []
    olt = norte if problem.pop("olt", "") else central
    row = make_problem(olt, onus=ids, **problem)

    assert [cell["affected"] for cell in cells(api)] == affected
    shown = api.get("/api/v1/map/problems/").json()["results"]
    assert [(each["id"], each["onus"]) for each in shown] == ([(row.pk, sum(affected))] if any(affected) else [])


def test_one_problem_can_be_shown_alone(api, onus, central):
    one = make_problem(central, kind="flapping", onus=[onus[1].pk])
    make_problem(central, kind="flapping", onus=[onus[2].pk], key="other")

    assert [cell["affected"] for cell in cells(api, f"problem={one.pk}")] == [0, 1]


def test_sites_are_shown_with_their_olts_and_problems(api, central, norte):
    site = Site.objects.create(name="Lima", latitude=LIMA[0], longitude=LIMA[1])
    type(central).objects.update(site=site)
    type(central).objects.filter(pk=norte.pk).update(reachability="unreachable")
    make_problem(norte)

    [shown] = api.get("/api/v1/map/sites/").json()["results"]

    assert (shown["olts"], shown["unreachable"], shown["problems"]) == (type(central).objects.count(), 1, 1)
    assert (shown["url"], shown["problems_url"]) == ("/olts/?site=Lima", "/problems/?site=Lima")


def test_a_user_with_a_scope_sees_only_its_part(api, onus, central, norte):
    lima = Site.objects.create(name="Lima", latitude=LIMA[0], longitude=LIMA[1])
    callao = Site.objects.create(name="Callao", latitude=CALLAO[0], longitude=CALLAO[1])
    type(central).objects.filter(pk=central.pk).update(site=lima)
    type(central).objects.filter(pk=norte.pk).update(site=callao)
    make_problem(central, kind="flapping", onus=[onus[0].pk])
    user = make_user(Role.VIEWER)
    Scope.objects.create(user=user).sites.add(callao)
    api.force_authenticate(user)
    client = Client()
    client.force_login(user)

    assert [cell["count"] for cell in cells(api)] == [1]
    assert [each["name"] for each in api.get("/api/v1/map/sites/").json()["results"]] == ["Callao"]
    assert api.get("/api/v1/map/problems/").json()["results"] == []
    context = client.get("/map/").context
    assert (context["bounds"]["west"], context["bounds"]["east"]) == (CALLAO[1], CALLAO[1])
    assert context["without_position"] == 1


def test_the_page_explains_how_to_begin(operator):
    assert "No position is known yet" in operator.get("/map/").content.decode()
    assert "/map/import/" in operator.get("/map/").content.decode()
    assert "/map/import/" not in browser_of(Role.VIEWER).get("/map/").content.decode()


def test_tiles_are_allowed_on_the_map_only(admin_page, settings, onus):
    settings.FACHO_MAP_TILES = "https://tiles.example.net:8443/{z}/{x}/{y}.png"
    settings.FACHO_MAP_ATTRIBUTION = "© Example"

    page = admin_page.get("/map/")

    assert "img-src 'self' https://tiles.example.net:8443" in page["Content-Security-Policy"]
    assert "© Example" in page.content.decode()
    assert "tiles.example.net" not in admin_page.get("/onus/")["Content-Security-Policy"]


# The import


def csv(*lines, head="serial,latitude,longitude"):
    return SimpleUploadedFile("customers.csv", "\n".join([head, *lines]).encode())


SHEET = tablib.Dataset(("HWTC00000001", -12.05, -77.05), headers=("serial", "latitude", "longitude"))


def check(client, file):
    page = client.post("/map/import/", {"file": file})
    assert page.status_code == 200
    return page


def apply(client, page):
    return client.post("/map/import/", {"checked": page.context["checked"]}, follow=True)


def test_a_file_is_checked_and_applied_when_that_is_confirmed(operator, onus):
    page = check(
        operator, csv("HWTC00000001,-12.05,-77.05", "HWTC00000002,,", "HWTC00000004,-12.1,-77", "HWTC00000009,-12,-77")
    )
    effect = page.context["effect"]
    assert (effect.added, effect.moved, effect.removed, effect.unchanged) == (1, 1, 1, 0)
    assert [line for line, _said in page.context["errors"]] == [5]
    assert OnuPosition.objects.get(pk=onus[0].pk).latitude == LIMA[0]

    answer = apply(operator, page)

    assert "The positions of 3 ONUs were set." in answer.content.decode()
    assert set(OnuPosition.objects.values_list("pk", "latitude")) == {
        (onus[0].pk, -12.05),
        (onus[2].pk, CALLAO[0]),
        (onus[3].pk, -12.1),
    }
    change = Change.objects.get(action="positions_set")
    assert (change.interface, change.fields["file"]) == ("import", [None, "customers.csv"])


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(
            csv("x;HWTC00000001;-12,05;-77,05", head="name;Serial;Latitude;Longitude"), id="CSV of a spreadsheet"
        ),
        pytest.param(SimpleUploadedFile("a.XLSX", SHEET.export("xlsx")), id="XLSX"),
        pytest.param(csv("OLT-CENTRAL-01,0/1/1,-12.05,-77.05", head="olt,place,latitude,longitude"), id="place"),
    ],
)
def test_files_that_are_read(operator, onus, file):
    apply(operator, check(operator, file))

    position = OnuPosition.objects.get(pk=onus[0].pk)
    assert (position.latitude, position.longitude) == (-12.05, -77.05)


def archive():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("no.txt", "sheet")
    return out.getvalue()


@pytest.mark.parametrize(
    ("file", "error"),
    [
        pytest.param(csv(head="serial,lat,lon"), "column latitude is missing", id="no latitude"),
        pytest.param(csv(head="latitude,longitude"), "column serial is missing", id="no serial"),
        pytest.param(csv(head="olt,latitude,longitude"), "column serial is missing", id="an OLT without places"),
        pytest.param(csv(head="serial,serial,latitude,longitude"), "occurs twice", id="twice"),
        pytest.param(csv(), "no rows", id="no rows"),
        pytest.param(SimpleUploadedFile("a.csv", b"serial,\xff\xfe\n1,2"), "could not be read", id="not UTF-8"),
        pytest.param(SimpleUploadedFile("a.xlsx", archive()), "could not be read", id="no sheet"),
        pytest.param(csv("1,2,3", "1,2,3", "1,2,3"), "more than 2 rows", id="too many rows"),
    ],
)
def test_files_that_are_refused(operator, monkeypatch, file, error):
    monkeypatch.setattr(spreadsheets, "MOST_ROWS", 2)

    page = check(operator, file)

    assert error in " ".join(page.context["form"].errors["file"])
    assert "checked" not in page.context


def test_a_check_of_another_user_or_another_form_is_not_applied(operator, onus):
    page = check(operator, csv("HWTC00000004,-12.1,-77"))
    other = browser_of(Role.ENGINEER)

    assert "too old" in apply(other, page).content.decode()
    assert "too old" in operator.post("/map/import/", {"checked": "x"}, follow=True).content.decode()
    assert not OnuPosition.objects.filter(pk=onus[3].pk).exists()


def test_the_template_has_the_onus_of_an_olt(operator, onus, norte):
    def lines(query=""):
        answer = operator.get(f"/map/template/csv/{query}")

        async def read():
            return b"".join([part async for part in answer.streaming_content])

        return async_to_sync(read)().decode().splitlines()

    assert lines() == ["serial,olt,place,name,latitude,longitude"]
    assert lines(f"?olt={norte.pk}")[1:] == [
        f"HWTC00000003,OLT-NORTE-02,0/1/3,client-3,{CALLAO[0]},{CALLAO[1]}",
        "HWTC00000004,OLT-NORTE-02,0/1/4,client-4,,",
    ]
