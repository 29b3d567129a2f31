"""Files of list pages."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from facho.apps.dashboard.list_pages import ListQuery
from facho.apps.rest.export import Column, Export


def file_of(
    wanted: ListQuery,
    rows: QuerySet[Any] | Sequence[int],
    table: QuerySet[Any],
    known: Iterable[Column],
    title: str,
    file_format: str,
) -> HttpResponseBase:
    """Return the rows of a list as a file, with the columns of the page. A list that is not valid is shown instead."""
    if not wanted.is_valid:
        return redirect(reverse(f"dashboard:{wanted.spec.name}") + wanted.here)
    columns = wanted.file_columns(known)
    return Export(wanted.spec.name, rows, table, columns, file_format, title=title).response()
