"""Lists as files: the same rows, columns and order, protected and streamed."""

import csv
import io
from datetime import UTC, datetime, timedelta

import openpyxl
import pytest
from asgiref.sync import async_to_sync
from cast import T0, make_execution, make_onu
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from facho.apps.accounts.roles import Role, set_role
from facho.apps.inventory.models import Olt, Scope, Site, Tag
from facho.apps.rest import export, xlsx
from problem_rows import make_problem


def content(answer):
    assert answer.status_code == 200, answer.content

    async def read():
        return b"".join([part async for part in answer.streaming_content])

    return async_to_sync(read)()


def lines(answer):
    return list(csv.reader(io.StringIO(content(answer).decode("utf-8-sig"))))


def sheets(answer):
    book = openpyxl.load_workbook(io.BytesIO(content(answer)))
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}


@pytest.fixture
def onus(central):
    make_onu(central, 1, rx_dbm=-21.5, name="=1+1", last_up=T0)
    make_onu(central, 2, rx_dbm=None, name="Peña\x01", state="los", last_rx_dbm=-19.5, last_rx_at=T0)
    make_onu(central, 3, rx_dbm=-28.25, name="-5", serial=None)


def test_a_file_of_the_api_has_the_rows_in_their_order(api, onus):
    answer = api.get("/api/v1/onus/?format=csv&ordering=rx_dbm&columns=name,rx_dbm,last_up,olt_name&state=online")

    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="facho-onus-{timezone.localdate():%Y-%m-%d}.csv"'
    assert lines(answer) == [
        ["olt_name", "name", "rx_dbm", "last_up"],
        ["OLT-CENTRAL-01", "-5", "-28.25", ""],
        ["OLT-CENTRAL-01", "'=1+1", "-21.5", "2025-06-01T10:00:00Z"],
    ]


def test_a_workbook_has_numbers_times_and_texts(api, onus):
    answer = api.get("/api/v1/onus/?format=xlsx&ordering=-rx_dbm&columns=name,rx_dbm,last_up,is_missing")

    assert sheets(answer) == {
        "onus": [
            ["name", "rx_dbm", "last_up", "is_missing"],
            ["'=1+1", -21.5, datetime(2025, 6, 1, 10), "false"],  # noqa: DTZ001  # cells have no zone
            ["-5", -28.25, None, "false"],
            ["Peña�", None, None, "false"],
        ]
    }


def test_a_file_without_chosen_columns_has_all(api, onus):
    header, *rows = lines(api.get("/api/v1/onus/?format=csv"))

    shown = api.get("/api/v1/onus/").json()["results"][0]
    assert len(rows) == 3
    assert set(header) <= shown.keys()
    assert shown.keys() - set(header) == {"extra", "misses", "replaced_by", "replaces"}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("format=csv&columns=colour", "columns"),
        ("columns=name", "columns"),
        ("format=csv&page=2", "page"),
        ("format=xlsx&state=asleep", "state"),
        ("format=csv&colour=red", "colour"),
    ],
)
def test_nonsense_is_refused_as_json(api, onus, query, name):
    answer = api.get(f"/api/v1/onus/?{query}")

    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")
    assert list(answer.json()) == [name]


def test_a_file_of_the_page_has_its_columns_and_words(admin_page, onus):
    answer = admin_page.get("/onus/csv/?sort=-rx_dbm&columns=state,rx_dbm,last_up&state=online&state=los")

    assert lines(answer) == [
        [
            *("name", "serial", "state", "received power (dBm)", "last received power (dBm)"),
            *("last received power read", "last up"),
        ],
        ["'=1+1", "HWTC00000001", "online", "-21.5", "", "", "2025-06-01 10:00:00"],
        ["-5", "", "online", "-28.25", "", "", ""],
        ["Peña\x01", "HWTC00000002", "loss of signal", "", "-19.5", "2025-06-01 10:00:00", ""],
    ]


def test_the_words_of_a_file_are_in_the_language_of_the_user(admin_page, onus):
    rows = sheets(admin_page.get("/onus/xlsx/?columns=state", headers={"Accept-Language": "es"}))

    [(title, [header, *_rows])] = rows.items()
    assert (title, header) == ("ONUs", ["nombre", "serie", "estado"])


def test_ticked_rows_are_a_file(admin_page, onus, central):
    [first, _second, third] = central.onus.order_by("onu")

    rows = lines(admin_page.get(f"/onus/csv/?id={first.pk}&id={third.pk}&columns=state"))

    assert [row[0] for row in rows[1:]] == ["'=1+1", "-5"]


def test_a_list_that_is_not_valid_is_shown_instead_of_a_file(admin_page, onus):
    answer = admin_page.get("/onus/csv/?rx_dbm__lt=x")

    assert (answer.status_code, answer["Location"]) == (302, "/onus/?rx_dbm__lt=x")


def test_a_file_of_many_batches_is_complete(api, central, monkeypatch):
    monkeypatch.setattr(export, "BATCH", 2)
    for number in range(7):
        make_onu(central, number)

    answer = api.get("/api/v1/onus/?format=csv&columns=onu")

    assert lines(answer) == [["onu"], *([str(number)] for number in range(7))]


def test_a_row_that_was_deleted_meanwhile_is_left_out(api, onus, central, monkeypatch):
    monkeypatch.setattr(export, "BATCH", 1)

    async def read():
        parts = [await anext(parts_of)]
        await central.onus.filter(onu=3).adelete()
        return b"".join([*parts, *[part async for part in parts_of]])

    parts_of = api.get("/api/v1/onus/?format=csv&columns=onu").streaming_content
    assert async_to_sync(read)().decode().split() == ["onu", "1", "2"]


def test_a_workbook_goes_on_on_another_sheet(monkeypatch):
    monkeypatch.setattr(xlsx, "MOST_ROWS", 3)
    book = xlsx.Workbook("ONUs: all", ["n"])

    data = book.rows([[1], [2], [3]]) + book.end()

    found = openpyxl.load_workbook(io.BytesIO(data))
    assert {sheet.title: [row[0] for row in sheet.iter_rows(values_only=True)] for sheet in found} == {
        "ONUs  all": ["n", 1, 2],
        "ONUs  all 2": ["n", 3],
    }


def test_a_workbook_without_rows_has_a_header():
    found = openpyxl.load_workbook(io.BytesIO(xlsx.Workbook("x", ["a & <b>"]).end()))

    assert [list(row) for row in found.active.iter_rows(values_only=True)] == [["a & <b>"]]


def test_times_keep_their_second_in_a_workbook(api, central):
    at = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    make_onu(central, 1, last_up=at)

    [[_header, [found]]] = sheets(api.get("/api/v1/onus/?format=xlsx&columns=last_up")).values()

    assert found == at.replace(tzinfo=None)


def test_olts_and_executions_are_files_too(api, admin_page, central, execution):
    central.tags.set([Tag.objects.create(name="core"), Tag.objects.create(name="vip")])

    olts = lines(api.get("/api/v1/olts/?format=csv&columns=name,site,tags,state"))
    runs = lines(api.get("/api/v1/executions/?format=csv&ordering=id&columns=node_name,lateness,duration,status"))

    assert olts == [["name", "site", "tags", "state"], ["OLT-CENTRAL-01", "", "core, vip", "reachable"]]
    assert runs[1] == ["Optical power", "SUCCESS", "2.0", "30.0"]
    assert lines(admin_page.get("/olts/csv/"))[1][0] == "OLT-CENTRAL-01"
    assert lines(admin_page.get("/executions/csv/"))[1][:3] == ["Optical power", "OLT-CENTRAL-01", "success"]
    assert sheets(admin_page.get("/olts/xlsx/"))["OLTs"][1][0] == "OLT-CENTRAL-01"


def test_no_secret_is_in_a_file(api, admin_page, central):
    for answer in (api.get("/api/v1/olts/?format=csv"), admin_page.get("/olts/csv/")):
        assert b"s3cret" not in content(answer)


@pytest.mark.parametrize("path", ["/onus/csv/", "/olts/csv/", "/executions/csv/", "/api/v1/onus/?format=csv"])
def test_a_file_has_visible_olts_only(reader, central, norte, node, path):
    scope = Scope.objects.create(user=reader)
    scope.sites.set([site := Site.objects.create(name="Lima")])
    norte.site = site
    norte.save()
    make_onu(central, 1, name="hidden")
    make_onu(norte, 2, name="seen")
    make_execution(node)
    client = Client()
    client.force_login(reader)

    text = content(client.get(path)).decode()

    assert "OLT-CENTRAL-01" not in text
    assert "hidden" not in text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/executions/csv/", "2026-11-08 09:05:09", id="of a page: as on the page"),
        pytest.param("/api/v1/executions/?format=csv", "2026-11-08T14:05:09Z", id="of the API: in UTC"),
    ],
)
def test_the_times_of_a_file(admin_page, node, path, expected):
    make_execution(node, slot=datetime(2026, 11, 8, 14, 5, 9, tzinfo=UTC))
    admin_page.cookies["facho_zone"] = "America/Lima"

    assert expected in content(admin_page.get(path)).decode()


@pytest.mark.parametrize("path", ["/executions/csv/", "/olts/csv/"])
def test_errors_in_files_of_pages_have_the_language_of_the_user(admin_page, central, node, path):
    advice = "Check the address, the community and the OLT's SNMP access list."
    error = f"OLT-CENTRAL-01 did not answer 2 requests in 5.3 s. {advice}"
    make_execution(node, status="FAILED", error=error)
    Olt.objects.filter(pk=central.pk).update(last_error=error)

    answer = content(admin_page.get(path, headers={"Accept-Language": "es-PE"})).decode()

    assert "OLT-CENTRAL-01 no respondió a 2 consultas" in answer


def test_problems_of_the_page_are_a_file(admin_page, admin_user, central):
    cut = make_problem(central, since=T0, found_at=T0, until=T0 + timedelta(hours=2), key="cut")
    cut.comment(by=admin_user, comment="=Splicer sent.")
    make_problem(central, kind="low_power", severity="minor", until=T0, since=T0 - timedelta(hours=1), key="weak")
    make_problem(central)

    rows = lines(admin_page.get("/problems/?tab=past&severity=critical&file=csv&page=7"))

    found = dict(zip(*rows, strict=True))
    assert [found[name] for name in ("type", "OLT", "place", "duration (s)", "last comment")] == [
        "Port down", "OLT-CENTRAL-01", "0/1", "7200.0", "'=Splicer sent.",
    ]  # fmt: skip
    assert found["probable cause"] == "Probable cause: fibre cut before the first splitter"


def test_problems_of_the_api_are_a_file(api, central):
    make_problem(central, since=T0)

    [header, row] = lines(api.get("/api/v1/problems/?format=csv&columns=kind,cause,since,place"))

    assert dict(zip(header, row, strict=True)) == {
        "kind": "port_down", "place": "0/1", "since": f"{T0:%Y-%m-%dT%H:%M:%SZ}", "cause": "fibre_cut",
    }  # fmt: skip


def test_the_file_of_problems_has_those_in_the_scope_of_the_user(central, norte):
    user = User.objects.create(username="ana")
    set_role(user, Role.VIEWER)
    site = Site.objects.create(name="Lima")
    Olt.objects.filter(pk=norte.pk).update(site=site)
    Scope.objects.create(user=user).sites.add(site)
    make_problem(central)
    make_problem(norte)
    client = Client()
    client.force_login(user)

    assert [row[2] for row in lines(client.get("/problems/?file=csv"))[1:]] == ["OLT-NORTE-02"]
