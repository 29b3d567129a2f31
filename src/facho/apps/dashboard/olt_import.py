"""Import of OLTs from a file, with a preview, and their settings as a file."""

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tablib
from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from facho.apps.dashboard.views import needs, page, show
from facho.apps.inventory.forms import OltImportForm
from facho.apps.inventory.resources import OltResource
from facho.apps.rest.export import CONTENT_TYPES
from facho.apps.rest.spreadsheets import FORMATS

# Rows of each kind that a preview lists.
MOST_LISTED = 100

COLUMNS = [
    ("name", gettext_lazy("Name of the OLT. A row with a known name changes that OLT."), "OLT-NORTE-01"),
    ("host", gettext_lazy("IP address or host name."), "10.0.0.7"),
    ("port", gettext_lazy("UDP port of SNMP; 161 by default."), "161"),
    ("brand", gettext_lazy("Empty: Facho identifies it."), "huawei"),
    ("community", gettext_lazy("Empty: the community written here. It is never exported."), ""),
    ("version", gettext_lazy("SNMP version: 1, 2c or 3; 2c by default."), "2c"),
    ("location", gettext_lazy("Free text."), "Calle Norte 5"),
    ("site", gettext_lazy("Name of a site. A new one is created."), "Lima"),
    ("tags", gettext_lazy("Names with commas between them. New ones are created."), "core,north"),
    ("enabled", gettext_lazy("1 or 0; 1 by default."), "1"),
    ("max_in_flight", gettext_lazy("Most requests at the same time. Empty: automatic."), "4"),
    ("max_pdus_per_second", gettext_lazy("Most requests per second. Empty: no limit."), "50"),
]


@dataclass(frozen=True)
class Imported:
    """What an import did, or would do."""

    result: Any

    @cached_property
    def problems(self) -> list[tuple[int | None, str]]:
        """Return the number of the row in the file and the sentence of each problem."""
        found: list[tuple[int | None, str]] = [(None, str(each.error)) for each in self.result.base_errors]
        # The first row of a file has the names of the columns.
        found += [(number + 1, str(each.error)) for number, errors in self.result.row_errors() for each in errors]
        for row in self.result.invalid_rows:
            for field, sentences in row.error_dict.items():
                prefix = "" if field == NON_FIELD_ERRORS else f"{field}: "
                found += [(row.number + 1, prefix + str(sentence)) for sentence in sentences]
        return sorted(found, key=lambda each: each[0] or 0)

    @cached_property
    def counts(self) -> Counter[str]:
        """Return the number of rows by what was done with them: `new`, `update`, `skip`."""
        return Counter(row.import_type for row in self.result.rows)

    @property
    def listed(self) -> list[Any]:
        """Return the first rows that add or change an OLT."""
        return list(islice((row for row in self.result.rows if row.import_type in ("new", "update")), MOST_LISTED))

    @property
    def summary(self) -> str:
        new, changed, same = (self.counts[kind] for kind in ("new", "update", "skip"))
        return " ".join(
            [
                ngettext("%(n)d new OLT.", "%(n)d new OLTs.", new) % {"n": new},
                ngettext("%(n)d changed.", "%(n)d changed.", changed) % {"n": changed},
                ngettext("%(n)d unchanged.", "%(n)d unchanged.", same) % {"n": same},
            ]
        )


def import_rows(user: Any, form: OltImportForm, *, dry_run: bool) -> Imported:
    """Import the rows of a form, or none if one is wrong. A dry run is an import that is rolled back."""
    resource = OltResource(form.cleaned_data["community"], user)
    result = resource.import_data(
        form.cleaned_data["file"].dataset, dry_run=dry_run, use_transactions=True, rollback_on_validation_errors=True
    )
    return Imported(result)


@sensitive_post_parameters()
@page("inventory.add_olt", has_form=True)
@needs("inventory.change_olt")
def import_olts(request: HttpRequest) -> HttpResponseBase:
    form = OltImportForm(request.POST or None, request.FILES or None)
    imported = None
    if request.method == "POST" and form.is_valid():
        imported = import_rows(request.user, form, dry_run=False)
        if not imported.problems:
            messages.success(request, imported.summary)
            return redirect("dashboard:olts")
    context = {"active": "olts", "form": form, "imported": imported, "columns": COLUMNS}
    return show(request, "olt_import.html", context)


@sensitive_post_parameters()
@require_POST
@needs("inventory.add_olt")
@needs("inventory.change_olt")
def preview_import(request: HttpRequest) -> HttpResponse:
    """Return a part of a page: what an import would do. Nothing is stored."""
    form = OltImportForm(request.POST, request.FILES)
    imported = import_rows(request.user, form, dry_run=True) if form.is_valid() else None
    return render(request, "dashboard/_import.html", {"form": form, "imported": imported, "is_preview": True})


@page("inventory.view_olt")
def olt_template(request: HttpRequest) -> HttpResponse:
    """Return an empty file with the columns of an import."""
    return _file(request, "olts-template", tablib.Dataset(headers=[name for name, _help, _example in COLUMNS]))


@page("inventory.view_olt")
def olt_settings_file(request: HttpRequest) -> HttpResponse:
    """Return the settings of the OLTs that the user sees, without secrets, in the columns of an import."""
    return _file(request, "olt-settings", OltResource(user=request.user).export())


def _file(request: HttpRequest, name: str, dataset: tablib.Dataset) -> HttpResponse:
    file_format = request.GET.get("format", "csv")
    if file_format not in FORMATS:
        raise Http404
    content = FORMATS[file_format]().export_data(dataset)
    disposition = f'attachment; filename="{name}.{file_format}"'
    return HttpResponse(content, content_type=CONTENT_TYPES[file_format], headers={"Content-Disposition": disposition})
