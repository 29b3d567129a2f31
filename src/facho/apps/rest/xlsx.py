"""A workbook that is written while it is read: no row is kept, in memory or on disk.

openpyxl needs 20 times as much CPU and a temporary file of more than a gigabyte for a million rows, and the first byte
is only there when the last row is written.
"""

import math
import re
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr

# Limits of Excel and of the archive: a part of more than 2 GB needs an extension that not every program reads.
MOST_ROWS = 1_048_576
MOST_BYTES = 1_500_000_000
MOST_TEXT = 32_767

# Day 0 of a date in a workbook.
EPOCH = datetime(1899, 12, 30, tzinfo=UTC)
SECONDS_PER_DAY = 86_400

# Characters that XML does not have.
NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"

# Style 1 is a date and a time, style 2 bold.
STYLES = (
    f'{HEAD}<styleSheet xmlns="{MAIN}"><numFmts count="1">'
    '<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>'
    '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="3"><xf/><xf numFmtId="164" applyNumberFormat="1"/><xf fontId="1" applyFont="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
FIRST_ROW_STAYS = (
    '<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" '
    'state="frozen"/></sheetView></sheetViews>'
)


class _Pipe:
    """The end of the archive that is read. It cannot seek, so the archive is written from front to back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


class Workbook:
    """A workbook of one table, on as many sheets as its rows need. Each call returns the next bytes of the file."""

    def __init__(self, title: str, header: Sequence[str]) -> None:
        self._title = re.sub(r"[\[\]:*?/\\]", " ", title)[:25]
        self._header = f"<row>{''.join(_text(name, style=2) for name in header)}</row>".encode()
        self._pipe = _Pipe()
        # The archive needs no more of a file.
        file: Any = self._pipe
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._sheets = 0
        self._sheet: Any = None
        self._rows = self._bytes = 0

    def rows(self, rows: Iterable[Sequence[Any]]) -> bytes:
        """Write rows. A value is a text, a number, a naive time or None."""
        for row in rows:
            if self._sheet is None or self._rows >= MOST_ROWS or self._bytes >= MOST_BYTES:
                self._next_sheet()
            self._write(f"<row>{''.join(map(_cell, row))}</row>".encode())
        return self._pipe.take()

    def end(self) -> bytes:
        """Write the last parts of the file."""
        if self._sheet is None:
            self._next_sheet()
        self._close_sheet()
        numbers = range(1, self._sheets + 1)
        titles = [self._title if number == 1 else f"{self._title} {number}" for number in numbers]
        sheets = "".join(
            f'<sheet name={quoteattr(title)} sheetId="{number}" r:id="rId{number}"/>'
            for number, title in zip(numbers, titles, strict=True)
        )
        parts = "".join(
            f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{TYPE}.worksheet+xml"/>'
            for number in numbers
        )
        links = "".join(
            f'<Relationship Id="rId{number}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
            for number in numbers
        )
        self._part(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{sheets}</sheets></workbook>'
        )
        styles = f'<Relationship Id="rId0" Type="{RELATIONS}/styles" Target="styles.xml"/>'
        self._part(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships">{styles}{links}</Relationships>',
        )
        self._archive.writestr("xl/styles.xml", STYLES)
        self._part(
            "_rels/.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        self._part(
            "[Content_Types].xml",
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/>'
            f'<Override PartName="/xl/styles.xml" ContentType="{TYPE}.styles+xml"/>{parts}</Types>',
        )
        self._archive.close()
        return self._pipe.take()

    def _part(self, name: str, xml: str) -> None:
        self._archive.writestr(name, HEAD + xml)

    def _next_sheet(self) -> None:
        self._close_sheet()
        self._sheets += 1
        self._sheet = self._archive.open(f"xl/worksheets/sheet{self._sheets}.xml", "w")
        self._rows = self._bytes = 0
        self._sheet.write(f'{HEAD}<worksheet xmlns="{MAIN}">{FIRST_ROW_STAYS}<sheetData>'.encode())
        self._write(self._header)

    def _write(self, row: bytes) -> None:
        self._sheet.write(row)
        self._rows += 1
        self._bytes += len(row)

    def _close_sheet(self) -> None:
        if self._sheet is not None:
            self._sheet.write(b"</sheetData></worksheet>")
            self._sheet.close()
            self._sheet = None


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>" if math.isfinite(value) else "<c/>"
    if isinstance(value, datetime):
        days = (value.replace(tzinfo=UTC) - EPOCH).total_seconds() / SECONDS_PER_DAY
        return f'<c s="1"><v>{days}</v></c>'
    return _text(str(value))


def _text(text: str, style: int = 0) -> str:
    shown = escape(NOT_IN_XML.sub("\ufffd", text[:MOST_TEXT]))
    return f'<c t="inlineStr" s="{style}"><is><t xml:space="preserve">{shown}</t></is></c>'
