"""Lists as files, CSV or XLSX, written while they are read.

The ids are read first, in the order of the list, and then the rows in batches by id. So no statement or transaction is
open while a slow client reads, and no order needs to be repeated for each batch. A million ids are 8 MB.
"""

import csv
import io
import threading
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Protocol

from asgiref.sync import sync_to_async
from django.db import models
from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.rest.spreadsheets import protect
from facho.apps.rest.xlsx import Workbook

# Rows read at once: some 30 ms.
BATCH = 1000
# Ids read at once.
IDS = 10_000

# Of all exports, one works at a time. Several would take the CPU from polling, which shares the process.
_TURN = threading.Lock()

# Byte order mark: without it, Excel takes UTF-8 for another encoding.
MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list: its name in the API, its label on pages, and its value of a row."""

    name: str
    label: Any
    value: Callable[[Any], Any]
    # Its value in the user's language, if that differs.
    said: Callable[[Any], Any] | None = None

    def shown(self, row: Any) -> Any:
        return self.value(row) if self.said is None else self.said(row)


def column(name: str, label: Any, path: str = "", said: Callable[[Any], Any] | None = None) -> Column:
    """Return a column with the value of an attribute, such as `olt.name`; by default that of the same name."""
    return Column(name, label, attrgetter(path or name), said)


def label_of(model: type[models.Model], name: str) -> Any:
    """Return the name of a field for people."""
    found: Any = model._meta.get_field(name)
    return found.verbose_name


def columns_of(model: type[models.Model], *names: str) -> list[Column]:
    """Return columns with the values of these fields."""
    return [column(name, label_of(model, name)) for name in names]


def chosen_columns(known: Sequence[Column], names: Iterable[str]) -> list[Column]:
    """Return the columns of these names, in the order of the list; all if there are no names."""
    wanted = [name.strip() for text in names for name in text.split(",") if name.strip()]
    if unknown := set(wanted) - {each.name for each in known}:
        valid = ", ".join(each.name for each in known)
        said = _("Unknown column “%(name)s”. Valid columns: %(columns)s.")
        raise ValidationError({"columns": [said % {"name": min(unknown)[:100], "columns": valid}]})
    return [each for each in known if each.name in wanted] or list(known)


class _Writer(Protocol):
    """The file: rows in, bytes out."""

    def rows(self, rows: Iterable[Sequence[Any]]) -> bytes: ...

    def end(self) -> bytes: ...


class _CsvFile:
    """Lines with commas."""

    def __init__(self, header: Sequence[str], start: str) -> None:
        self._start = start + self._text([header])

    def rows(self, rows: Iterable[Sequence[Any]]) -> bytes:
        start, self._start = self._start, ""
        return (start + self._text(rows)).encode()

    def end(self) -> bytes:
        return self.rows([])

    @staticmethod
    def _text(rows: Iterable[Sequence[Any]]) -> str:
        out = io.StringIO()
        csv.writer(out).writerows(rows)
        return out.getvalue()


XLSX_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "xlsx": XLSX_TYPE}


class Export:
    """The rows of a list, or their ids, in its order. `table` has these rows with all that the columns need.

    For people, labels and words are in their language and times in their zone; for programs they are as in the API.
    """

    def __init__(
        self,
        name: str,
        rows: QuerySet[Any] | Sequence[int],
        table: QuerySet[Any],
        columns: Sequence[Column],
        file_format: str,
        *,
        title: str = "",
    ) -> None:
        self._name, self._rows, self._table, self._columns = name, rows, table, columns
        self._format, self._is_for_people = file_format, bool(title)
        self._language, self._zone = translation.get_language(), timezone.get_current_timezone()
        header = [str(each.label) if title else each.name for each in columns]
        self._writer: _Writer = (
            Workbook(title or name, header) if file_format == "xlsx" else _CsvFile(header, MARK if title else "")
        )

    def response(self) -> HttpResponseBase:
        file_name = f"facho-{self._name}-{timezone.localdate():%Y-%m-%d}.{self._format}"
        return StreamingHttpResponse(
            self.parts(),
            content_type=CONTENT_TYPES[self._format],
            headers={"Content-Disposition": f'attachment; filename="{file_name}"', "Cache-Control": "no-store"},
        )

    async def parts(self) -> AsyncIterator[bytes]:
        ids = await sync_to_async(self._ids)()
        for start in range(0, len(ids), BATCH):
            yield await sync_to_async(self._batch)(ids[start : start + BATCH])
        yield self._writer.end()

    def _ids(self) -> "array[int]":
        if not isinstance(self._rows, QuerySet):
            return array("q", self._rows)
        return array("q", self._rows.values_list("pk", flat=True).iterator(chunk_size=IDS))

    def _batch(self, ids: "array[int]") -> bytes:
        with _TURN, translation.override(self._language), timezone.override(self._zone):
            found = {row.pk: row for row in self._table.filter(pk__in=list(ids)).order_by()}
            return self._writer.rows(self._line(found[pk]) for pk in ids if pk in found)

    def _line(self, row: Any) -> list[Any]:
        if self._is_for_people:
            return [self._cell(each.shown(row)) for each in self._columns]
        return [self._cell(each.value(row)) for each in self._columns]

    def _cell(self, value: Any) -> Any:
        if value is None or type(value) in (int, float):
            return value
        if isinstance(value, datetime):
            return self._moment(value)
        if isinstance(value, timedelta):
            return round(value.total_seconds(), 3)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list | tuple):
            value = ", ".join(map(str, value))
        return protect(str(value))

    def _moment(self, at: datetime) -> Any:
        local = at.astimezone(self._zone).replace(tzinfo=None, microsecond=0)
        if self._format == "xlsx":
            return local
        return f"{local:%Y-%m-%d %H:%M:%S}" if self._is_for_people else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


class FileRenderer(BaseRenderer):
    """Chosen by `format`. The view streams the file; only errors are rendered here."""

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return JSONRenderer().render(data)


class CsvRenderer(FileRenderer):
    media_type = "text/csv"
    format = "csv"


class XlsxRenderer(FileRenderer):
    media_type = XLSX_TYPE
    format = "xlsx"


COLUMNS = OpenApiParameter(
    "columns", str, description="With `format=csv` or `xlsx`: names of columns, separated by commas. All if omitted."
)
FORMAT = OpenApiParameter("format", str, enum=["json", "csv", "xlsx"], description="csv, xlsx: all rows as a file.")


def describe_export(serializer: Any) -> Any:
    """Describe the list of a view set that has files."""
    return extend_schema(
        parameters=[COLUMNS, FORMAT],
        responses={(200, "application/json"): serializer(many=True), (200, "text/csv"): str, (200, XLSX_TYPE): bytes},
    )


class ExportedList:
    """A view set whose list is also a file: `format=csv` or `xlsx`, with all rows in the order of the list."""

    request: Any
    export_name = ""
    export_columns: Sequence[Column] = ()

    def get_renderers(self) -> list[BaseRenderer]:
        is_list = getattr(self, "action", None) == "list"
        return [JSONRenderer(), *([CsvRenderer(), XlsxRenderer()] if is_list else [])]

    def known_parameters(self) -> list[str]:
        names: list[str] = super().known_parameters()  # type: ignore[misc]  # of the strict view beside it
        return [*names, COLUMNS.name] if getattr(self, "action", None) == "list" else names

    def handle_exception(self, exc: Exception) -> Response:
        if getattr(self.request, "accepted_renderer", None) is not None:
            self.request.accepted_renderer, self.request.accepted_media_type = JSONRenderer(), "application/json"
        answer: Response = super().handle_exception(exc)  # type: ignore[misc]
        return answer

    def export_table(self) -> QuerySet[Any]:
        """Return the rows with what the columns of a file need."""
        view: Any = self
        table: QuerySet[Any] = view.get_queryset()
        return table

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        file_format = request.accepted_renderer.format
        if file_format not in CONTENT_TYPES:
            if any(request.query_params.getlist(COLUMNS.name)):
                raise ValidationError({COLUMNS.name: [_("Columns can be chosen with format=csv or xlsx only.")]})
            return super().list(request, *args, **kwargs)  # type: ignore[misc]
        if paged := {"page", "page_size"} & request.query_params.keys():
            said = _("A file has all rows of the list. Remove this parameter.")
            raise ValidationError({name: [said] for name in sorted(paged)})
        columns = chosen_columns(self.export_columns, request.query_params.getlist(COLUMNS.name))
        view: Any = self
        rows = view.filter_queryset(view.get_queryset())
        return Export(self.export_name, rows, self.export_table(), columns, file_format).response()
