"""Files of OLTs: CSV and XLSX only, with limits, without formulas, and the same after export and import."""

import zipfile
from io import BytesIO

import openpyxl
import pytest
from cast import make_olt
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from hypothesis import example, given
from hypothesis import strategies as st

from facho.apps.inventory.models import Olt
from facho.apps.rest import spreadsheets
from facho.apps.rest.spreadsheets import CsvFile, XlsxFile, protect, unprotect

IMPORT = reverse("dashboard:import-olts")
NAMES = ["=1+1", "+34 91", "-A1", "@SUM(A1)", "'quoted", "''", "'=1", "-5", "plain", "ñandú"]


@given(st.text(st.sampled_from("=+-@\t\r\n'5.a "), max_size=6) | st.text())
@example("'")
@example("'=1+1")
def test_a_protected_text_is_read_back_as_it_was(text):
    assert unprotect(protect(text)) == text


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "+5", "-1+1", "@SUM(A1)", "\tx", "\rx", "\nx", "=", "-2+3", "+1e5"])
def test_a_formula_is_protected(text):
    assert protect(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "-5", "-21.53", "OLT-1", "a=b", "5+5"])
def test_numbers_and_plain_texts_are_not_changed(text):
    assert protect(text) == unprotect(text) == text


def upload(client, content):
    return client.post(IMPORT, {"file": SimpleUploadedFile("olts", content), "community": "public"})


def settings_file(client, file_format):
    return client.get(reverse("dashboard:olt-settings-file"), {"format": file_format}).content


def problem(answer):
    """Return the sentence beside the file, or at the top of the page."""
    assert answer.status_code == 200
    imported = answer.context["imported"]
    return [
        *answer.context["form"].errors.get("file", []),
        *(said for _row, said in (imported.problems if imported else [])),
    ]


@pytest.mark.parametrize("file_format", ["csv", "xlsx"])
def test_an_export_can_be_imported_again(admin_page, db, file_format):
    for place, name in enumerate(NAMES):
        make_olt(name, host=f"127.0.1.{place}", location=name)
    file = settings_file(admin_page, file_format)
    Olt.objects.all().delete()

    answer = upload(admin_page, file)

    assert answer.status_code == 302
    assert set(Olt.objects.values_list("name", "location")) == {(name, name) for name in NAMES}


@pytest.mark.parametrize("name", ["=1+1", "+A1", "-A1", "@A1"])
def test_no_cell_of_an_export_is_a_formula(admin_page, db, name):
    make_olt(name)

    lines = settings_file(admin_page, "csv").decode().splitlines()
    sheet = openpyxl.load_workbook(BytesIO(settings_file(admin_page, "xlsx"))).active

    assert lines[1].startswith(f"'{name},")
    assert (sheet["A2"].value, sheet["A2"].data_type) == (f"'{name}", "s")


def xlsx(*rows, dimension=None):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    written = BytesIO()
    book.save(written)
    if dimension is None:
        return written.getvalue()
    changed = BytesIO()
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            content = old.read(part)
            if part.filename.endswith("sheet1.xml"):
                start, end = content.index(b'ref="') + 5, content.index(b'"', content.index(b'ref="') + 5)
                content = content[:start] + dimension + content[end:]
            new.writestr(part, content)
    return changed.getvalue()


def bomb():
    """Return a workbook of 50 kB that has 51 MB when unpacked."""
    written = BytesIO(xlsx(["name"]))
    with zipfile.ZipFile(written, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/bomb.xml", b"\0" * (spreadsheets.MOST_UNPACKED_BYTES + 1))
    return written.getvalue()


LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>"""


def entities():
    written = BytesIO()
    with zipfile.ZipFile(BytesIO(xlsx(["name"]))) as old, zipfile.ZipFile(written, "w") as new:
        for part in old.infolist():
            new.writestr(part, LAUGHS if part.filename.endswith("workbook.xml") else old.read(part))
    return written.getvalue()


UNREADABLE = "The file could not be read. Choose a CSV file in UTF-8 or an XLSX file."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"name\n" + b"\n" * 10_001, "The file has more than 10000 rows. Split it.", id="rows"),
        pytest.param(b"," * 50 + b"\n", "The file has more than 50 columns.", id="columns"),
        pytest.param(b"name\n\xff\xfe\n", UNREADABLE, id="another encoding"),
        pytest.param(b"PK\x03\x04name", UNREADABLE, id="a damaged workbook"),
        pytest.param(b'{"name": "OLT"}\n{"name": "B"}', "Unknown column", id="JSON"),
        pytest.param(bomb(), "The file has more than 50 MB when unpacked.", id="an archive that grows"),
        pytest.param(entities(), UNREADABLE, id="entities"),
        pytest.param(b"x" * (5 * 1024**2 + 1), "The file is larger than 5 MB. Split it.", id="size"),
        pytest.param(
            b"name,host,v3_priv_key\nOLT,127.0.0.1,secret\n",
            "Remove the column v3_priv_key: the keys of SNMPv3 are written in the settings of each OLT.",
            id="secrets",
        ),
        pytest.param(b"host\n127.0.0.1\n", "The column name is missing.", id="no name"),
        pytest.param(b"name,name\nA,B\n", "A column occurs twice.", id="a column twice"),
        pytest.param(b"name,colour\nA,red\n", "Unknown column “colour”.", id="unknown column"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_in_a_sentence(admin_page, db, content, sentence):
    answer = upload(admin_page, content)

    [said] = problem(answer)
    assert said.startswith(sentence)
    assert "Traceback" not in answer.content.decode()
    assert not Olt.objects.exists()


def test_an_empty_sheet_of_a_million_rows_costs_nothing():
    dataset = XlsxFile().create_dataset(xlsx(["name", "port"], ["OLT-9", 161], dimension=b"A1:XFD1048576"))

    assert dataset.dict == [{"name": "OLT-9", "port": 161}]


def far_below(row):
    book = openpyxl.Workbook()
    book.active["A1"], book.active[f"A{row}"] = "name", "OLT-9"
    written = BytesIO()
    book.save(written)
    return written.getvalue()


def test_empty_rows_in_a_sheet_are_skipped():
    assert XlsxFile().create_dataset(far_below(20_000))["name"] == ["OLT-9"]


def test_a_row_at_the_end_of_a_sheet_is_refused():
    with pytest.raises(ValidationError, match="more than 10000 rows"):
        XlsxFile().create_dataset(far_below(1_048_576))


def test_too_many_rows_of_a_workbook_are_refused(monkeypatch):
    monkeypatch.setattr(spreadsheets, "MOST_ROWS", 2)

    with pytest.raises(ValidationError, match="more than 2 rows"):
        XlsxFile().create_dataset(xlsx(["name"], ["A"], ["B"], ["C"]))


def test_blanks_around_a_cell_are_removed():
    assert CsvFile(encoding="utf-8").create_dataset(b"name\n  OLT-9  \n")["name"] == ["OLT-9"]
