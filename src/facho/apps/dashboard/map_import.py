"""The import of positions of ONUs: a file is checked and shown first, and applied when that is confirmed.

The checked positions are in the form in between, signed, so that no file is kept on the server.
"""

from typing import Any

from django import forms
from django.contrib import messages
from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import F
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from facho.apps.changes.actor import Interface, acting_through
from facho.apps.dashboard import queries
from facho.apps.dashboard.templatetags.facho import place
from facho.apps.dashboard.views import page, show
from facho.apps.inventory.formats import whole
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.rest.export import Column, Export, column
from facho.apps.rest.spreadsheets import SpreadsheetField
from facho.apps.telemetry.models import Onu, OnuPosition
from facho.apps.telemetry.positions import Positions, Row, effect_of, read, set_positions

SALT = "facho.positions"
# Between the check and the confirmation.
LONGEST_WAIT = 3600
# Lines with errors on the page.
MOST_ERRORS = 100

COLUMNS = ("serial", "olt", "place", "latitude", "longitude")


class ImportForm(forms.Form):
    """A file with positions."""

    file = SpreadsheetField(label=gettext_lazy("CSV or XLSX file"))

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        self.rows = _rows(file.dataset)
        return file


def _rows(dataset: Any) -> list[Row]:
    """Return the rows of a file. The columns may be in any order, with others beside them."""
    names = [str(each or "").strip().lower() for each in dataset.headers or ()]
    known = [name for name in names if name in COLUMNS]
    if len(known) > len(set(known)):
        raise ValidationError(_("A column occurs twice."))
    lacking = [name for name in ("latitude", "longitude") if name not in names]
    if "serial" not in names and not {"olt", "place"} <= set(names):
        lacking.append("serial")
    if lacking:
        said = _("The column %(name)s is missing. The first row has the names of columns: %(columns)s.")
        raise ValidationError(said % {"name": lacking[0], "columns": ", ".join(COLUMNS)})
    rows = []
    for line, cells in enumerate(dataset, 2):
        pairs = zip(names, cells, strict=False)
        values: dict[str, Any] = {name: _text(cell) for name, cell in pairs if name in COLUMNS}
        if any(values.values()):
            rows.append(Row(line, **values))
    if not rows:
        raise ValidationError(_("The file has no rows."))
    return rows


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


@page(OnuPosition.CHANGE_PERMISSION, has_form=True)
def map_import(request: HttpRequest) -> HttpResponseBase:
    """Check a file and show what it would change; apply it when that is confirmed."""
    if "checked" in request.POST:
        return _apply(request)
    form = ImportForm(request.POST or None, request.FILES or None)
    context: dict[str, Any] = {"active": "map", "form": form, "columns": COLUMNS}
    if request.method == "POST" and form.is_valid():
        found = read(form.rows, request.user)
        name = form.cleaned_data["file"].name[:100]
        context |= {
            "file_name": name,
            "row_total": len(form.rows),
            "effect": effect_of(found.positions),
            "errors": found.errors[:MOST_ERRORS],
            "error_total": len(found.errors),
            "checked": signing.dumps([request.user.pk, name, _packed(found.positions)], salt=SALT, compress=True),
        }
    context["olts"] = visible_olts(request.user).only("name")
    return show(request, "map_import.html", context)


def _packed(positions: Positions) -> list[list[Any]]:
    return [[pk, *(position or ())] for pk, position in positions.items()]


def _apply(request: HttpRequest) -> HttpResponse:
    try:
        user, name, packed = signing.loads(request.POST["checked"], salt=SALT, max_age=LONGEST_WAIT)
    except signing.BadSignature:
        user = None
    if user != request.user.pk:
        messages.error(request, _("The check is too old. Choose the file again."))
        return redirect("dashboard:map-import")
    positions = {pk: tuple(position) or None for pk, *position in packed}
    with acting_through(Interface.IMPORT):
        effect = set_positions(positions, request.user, source=name)
    said = ngettext("The position of %(n)s ONU was set.", "The positions of %(n)s ONUs were set.", effect.changed)
    messages.success(request, said % {"n": whole(effect.changed)})
    return redirect("dashboard:map")


TEMPLATE_COLUMNS = (
    column("serial", "serial"),
    column("olt", "olt", "olt_name"),
    Column("place", "place", place),
    column("name", "name"),
    column("latitude", "latitude"),
    column("longitude", "longitude"),
)


@page(OnuPosition.CHANGE_PERMISSION)
def map_template(request: HttpRequest, file_format: str) -> HttpResponseBase:
    """Return a file to fill in: with the ONUs of an OLT, or empty."""
    olt_id = queries.number(request.GET.get("olt"))
    onus = restrict(Onu.objects.none() if olt_id is None else Onu.objects.filter(olt=olt_id), request.user)
    table = Onu.objects.annotate(
        olt_name=F("olt__name"), latitude=F("position__latitude"), longitude=F("position__longitude")
    )
    rows = onus.filter(missing_since__isnull=True).order_by("slot", "port", "onu", "pk")
    return Export("positions", rows, table, TEMPLATE_COLUMNS, file_format).response()
