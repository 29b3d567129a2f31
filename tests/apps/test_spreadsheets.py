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

IMPORT, EXPORT = reverse("admin:inventory_olt_import"), reverse("admin:inventory_olt_export")
NAMES = ["=1+1", "+34 91", "-A1", "@SUM(A1)", "'quoted", "''", "'=1", "-5", "plain", "ñandú"]
FORMATS = [pytest.param("0", "csv", id="csv"), pytest.param("1", "xlsx", id="xlsx")]


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


def upload(client, content, file_format="0", **more):
    file = SimpleUploadedFile("olts", content)
    return client.post(IMPORT, {"import_file": file, "format": file_format, "community": "public", **more})


def problem(answer):
    """Return the sentence beside the file, or at the top of the page."""
    assert answer.status_code == 200
    [*said] = answer.context["form"].errors.get("import_file", [])
    return [*said, *(str(each.error) for each in getattr(answer.context.get("result"), "base_errors", []))]


@pytest.mark.parametrize(("number", "_name"), FORMATS)
def test_an_export_can_be_imported_again(admin_page, db, number, _name):
    for place, name in enumerate(NAMES):
        make_olt(name, host=f"127.0.1.{place}", location=name)
    file = admin_page.post(EXPORT, {"format": number, "resource": ""}).content
    Olt.objects.all().delete()

    answer = upload(admin_page, file, number)

    assert answer.status_code == 302
    assert set(Olt.objects.values_list("name", "location")) == {(name, name) for name in NAMES}


@pytest.mark.parametrize("name", ["=1+1", "+A1", "-A1", "@A1"])
def test_no_cell_of_an_export_is_a_formula(admin_page, db, name):
    make_olt(name)

    lines = admin_page.post(EXPORT, {"format": "0", "resource": ""}).content.decode().splitlines()
    sheet = openpyxl.load_workbook(BytesIO(admin_page.post(EXPORT, {"format": "1", "resource": ""}).content)).active

    assert lines[1].startswith(f"'{name},")
    assert (sheet["A2"].value, sheet["A2"].data_type) == (f"'{name}", "s")


def test_files_are_csv_or_xlsx(admin_page):
    for path in (IMPORT, EXPORT):
        choices = admin_page.get(path).context["form"].fields["format"].choices
        assert [str(label) for value, label in choices if value != ""] == ["csv", "xlsx"]


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


UNREADABLE = "The file could not be read. Choose a CSV file in UTF-8 or an XLSX file, and its format."


@pytest.mark.parametrize(
    ("content", "file_format", "sentence"),
    [
        pytest.param(b"name\n" + b"\n" * 10_001, "0", "The file has more than 10000 rows. Split it.", id="rows"),
        pytest.param(b"," * 50 + b"\n", "0", "The file has more than 50 columns.", id="columns"),
        pytest.param(b"name\n\xff\xfe\n", "0", UNREADABLE, id="another encoding"),
        pytest.param(b"name\nOLT\n", "1", UNREADABLE, id="CSV as XLSX"),
        pytest.param(bomb(), "1", "The file has more than 50 MB when unpacked.", id="an archive that grows"),
        pytest.param(entities(), "1", UNREADABLE, id="entities"),
        pytest.param(b"x" * (5 * 1024**2 + 1), "0", "The file is larger than 5 MB. Split it.", id="size"),
        pytest.param(
            b"name,host,community\nOLT,127.0.0.1,secret\n",
            "0",
            "Remove the column community: files must not contain secrets. Write the community in the form.",
            id="secrets",
        ),
        pytest.param(b"host\n127.0.0.1\n", "0", "The column name is missing.", id="no name"),
        pytest.param(b"name,name\nA,B\n", "0", "A column occurs twice.", id="a column twice"),
        pytest.param(b"name,colour\nA,red\n", "0", "Unknown column “colour”.", id="unknown column"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_in_a_sentence(admin_page, db, content, file_format, sentence):
    answer = upload(admin_page, content, file_format)

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
