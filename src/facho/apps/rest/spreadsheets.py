"""Files for spreadsheets: CSV and XLSX, without formulas, and with limits on what is read.

A spreadsheet evaluates a cell that begins with =, +, -, @, a tab or a line end. Such a text is written with ' before
it, which spreadsheets show as text, and read without it.
"""

import re
import zipfile
from io import BytesIO
from typing import Any

import tablib
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from import_export.formats.base_formats import CSV, XLSX

MOST_BYTES = 5 * 1024 * 1024
MOST_ROWS = 10_000
MOST_COLUMNS = 50
# Empty rows included: sheets often have some.
MOST_SHEET_ROWS = 10 * MOST_ROWS
# An XLSX file is an archive: its parts after they are unpacked.
MOST_UNPACKED_BYTES = 50 * 1024 * 1024
MOST_PARTS = 200

MARK = "'"
# The mark itself too, so that a text which begins with it is read back as it was.
FORMULA_STARTS = frozenset(f"=+-@\t\r\n{MARK}")
# A number is not a formula, and stays a number. With a + it is a telephone number, which would lose the +.
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def protect(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return MARK + text if text[:1] in FORMULA_STARTS and text and not NUMBER.fullmatch(text) else text


def unprotect(text: str) -> str:
    """Return the text that was protected; any other is returned unchanged."""
    return text[1:] if text[:1] == MARK and text[1:2] in FORMULA_STARTS and text[1:] else text


class CsvFile(CSV):
    """Lines with commas, or with semicolons."""

    def create_dataset(self, in_stream: Any, **kwargs: Any) -> tablib.Dataset:
        # Before the file is parsed: millions of empty lines would take a lot of memory.
        if max(in_stream.count(b"\n"), in_stream.count(b"\r")) > MOST_ROWS + 1:
            raise ValidationError(_too_many_rows())
        head = in_stream.partition(b"\n")[0]
        # Spreadsheets write semicolons where the comma is the decimal separator.
        delimiter = ";" if b";" in head and b"," not in head else ","
        return _checked(super().create_dataset(in_stream, delimiter=delimiter, **kwargs))

    def export_data(self, dataset: tablib.Dataset, **kwargs: Any) -> Any:
        return super().export_data(_protected(dataset), **kwargs)


class XlsxFile(XLSX):
    """The first sheet of a workbook."""

    def create_dataset(self, in_stream: bytes) -> tablib.Dataset:
        import openpyxl

        with zipfile.ZipFile(BytesIO(in_stream)) as archive:
            parts = archive.infolist()
            if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED_BYTES:
                most = MOST_UNPACKED_BYTES // 1024**2
                raise ValidationError(_("The file has more than %(most)d MB when unpacked.") % {"most": most})
        sheet = openpyxl.load_workbook(BytesIO(in_stream), read_only=True, data_only=True).active
        # The size that a sheet declares may be a million rows of 16,384 columns, all empty.
        sheet.reset_dimensions()
        rows: list[list[Any]] = []
        for number, row in enumerate(sheet.iter_rows(values_only=True, max_col=MOST_COLUMNS + 1)):
            if number > MOST_SHEET_ROWS:
                raise ValidationError(_too_many_rows())
            if any(cell is not None for cell in row):
                rows.append(list(row))
        headers, *rows = rows or [[]]
        while headers and headers[-1] is None:
            headers.pop()
        dataset = tablib.Dataset(headers=headers)
        for row in rows:
            dataset.append(row[: len(headers)])
        return _checked(dataset)

    def export_data(self, dataset: tablib.Dataset, **kwargs: Any) -> Any:
        return super().export_data(_protected(dataset), **kwargs)


FORMATS: dict[str, Any] = {"csv": CsvFile, "xlsx": XlsxFile}


class SpreadsheetField(forms.FileField):
    """An uploaded file. Its value has the rows as `dataset`."""

    def clean(self, data: Any, initial: Any = None) -> Any:
        file = super().clean(data, initial)
        if file.size > MOST_BYTES:
            raise ValidationError(_("The file is larger than %(most)d MB. Split it.") % {"most": MOST_BYTES // 1024**2})
        file.dataset = _read(file.read())
        return file


def _read(content: bytes) -> tablib.Dataset:
    # A workbook is an archive.
    kind = XlsxFile() if content.startswith(b"PK") else CsvFile(encoding="utf-8-sig")
    try:
        return kind.create_dataset(content)
    except ValidationError:
        raise
    except Exception as error:
        # Parsers of damaged files raise errors of many kinds.
        said = _("The file could not be read. Choose a CSV file in UTF-8 or an XLSX file.")
        raise ValidationError(said) from error


def _too_many_rows() -> str:
    return _("The file has more than %(most)d rows. Split it.") % {"most": MOST_ROWS}


def _checked(dataset: tablib.Dataset) -> tablib.Dataset:
    if len(dataset) > MOST_ROWS:
        raise ValidationError(_too_many_rows())
    if len(dataset.headers or ()) > MOST_COLUMNS:
        raise ValidationError(_("The file has more than %(most)d columns.") % {"most": MOST_COLUMNS})
    rows = [[unprotect(cell.strip(" ")) if isinstance(cell, str) else cell for cell in row] for row in dataset]
    return tablib.Dataset(*rows, headers=dataset.headers)


def _protected(dataset: tablib.Dataset) -> tablib.Dataset:
    rows = [[protect(cell) if isinstance(cell, str) else cell for cell in row] for row in dataset]
    return tablib.Dataset(*rows, headers=dataset.headers, title=dataset.title)
