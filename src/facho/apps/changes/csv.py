"""The record as CSV: a line for each changed field."""

import csv
import io
import json
from collections.abc import AsyncIterator
from datetime import UTC
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from facho.apps.changes.models import Change
from facho.apps.rest.spreadsheets import protect

COLUMNS = [
    "id",
    "at",
    "actor",
    "token",
    "address",
    "interface",
    "action",
    "object_type",
    "object_id",
    "object_name",
    "olt",
    "field",
    "before",
    "after",
    "note",
    "request_id",
]

# Changes read at once.
BATCH = 1000


def cell(value: Any) -> Any:
    """Return a value as a cell that no spreadsheet runs as a formula."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return protect(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


async def csv_lines(rows: QuerySet[Change]) -> AsyncIterator[str]:
    """Return the lines of a list, the newest first, without holding it in memory."""
    yield _text([COLUMNS])
    newest_first = rows.order_by("-id")
    batch = await _read(newest_first)
    while batch:
        yield _text(line for change in batch for line in _lines(change))
        batch = await _read(newest_first.filter(id__lt=batch[-1].pk))


@sync_to_async
def _read(rows: QuerySet[Change]) -> list[Change]:
    return list(rows[:BATCH])


def _lines(change: Change) -> list[list[Any]]:
    who = [change.actor, change.token, change.address, change.interface, change.action]
    what = [change.object_type, change.object_id, change.object_name, change.olt_id]
    moment = change.at.astimezone(UTC).isoformat(timespec="milliseconds")
    return [
        [cell(value) for value in (change.pk, moment, *who, *what, *field, change.note, change.request_id)]
        for field in change.values or [("", None, None)]
    ]


def _text(lines: Any) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(lines)
    return out.getvalue()
