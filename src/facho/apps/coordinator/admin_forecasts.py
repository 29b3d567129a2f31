"""Forecasts in the admin: requested in a form, run by the engine, read-only."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from facho.apps.changes.admin import RecordedAdmin
from facho.apps.coordinator.forecasts import MOST_HOURS, MOST_OLTS, ForecastParamsSerializer
from facho.apps.coordinator.models import Forecast
from facho.apps.inventory.admin_tools import FleetAdmin

STATUS_COLOURS = {"PENDING": "info", "RUNNING": "info", "DONE": "success", "FAILED": "danger"}


class WishForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """Parameters of a forecast. The API has the same and checks them."""

    olts = forms.IntegerField(
        label=_("OLTs"),
        min_value=1,
        max_value=MOST_OLTS,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=_(
            "Empty: the OLTs of this installation, with their measured durations. A number: that many imaginary OLTs."
        ),
    )
    pollers = forms.IntegerField(
        label=_("pollers"),
        min_value=1,
        max_value=1000,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=_("Empty: the pollers of this installation, or as many as the imaginary OLTs need."),
    )
    hours = forms.IntegerField(
        label=_("hours"), min_value=1, max_value=MOST_HOURS, initial=24, widget=UnfoldAdminIntegerFieldWidget
    )
    dead = forms.IntegerField(
        label=_("OLTs that do not answer (%)"),
        min_value=0,
        max_value=100,
        initial=0,
        widget=UnfoldAdminIntegerFieldWidget,
    )

    class Meta:
        model = Forecast
        fields: tuple[str, ...] = ()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        params = ForecastParamsSerializer(data={name: value for name, value in cleaned.items() if value is not None})
        if not self.errors and not params.is_valid():
            raise forms.ValidationError([str(each) for errors in params.errors.values() for each in errors])
        if not self.errors:
            self.instance.params = params.validated_data
        return cleaned


@admin.register(Forecast)
class ForecastAdmin(RecordedAdmin, FleetAdmin):
    """Forecasts. They cannot be edited."""

    form = WishForm
    list_display = ["requested_at", "by", "status_badge", "asked", "compliance", "on_time", "pollers_needed"]
    list_select_related = ["by"]
    list_filter = [("status", ChoicesDropdownFilter)]
    list_filter_submit = True
    change_form_before_template = "coordinator/forecast.html"
    actions = None

    class Media:
        css = {"all": ["coordinator/parts.css", "coordinator/admin.css"]}

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        if obj is None:
            return ["olts", "pollers", "hours", "dead"]
        return [("status", "requested_at", "by"), ("started_at", "ended_at"), "asked", "error"]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return ["asked"] if obj is not None else []

    def save_model(self, request: HttpRequest, obj: Forecast, form: Any, change: bool) -> None:
        obj.by_id = request.user.pk
        super().save_model(request, obj, form, change)
        messages.info(request, _("The forecast was requested. The result appears in one or two minutes."))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        forecast = context.get("original")
        context["result"] = forecast.result if forecast else None
        page: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return page

    @display(description=_("status"), label=STATUS_COLOURS, ordering="status")
    def status_badge(self, forecast: Forecast) -> tuple[str, Any]:
        return forecast.status, forecast.get_status_display()

    @display(description=_("requested values"))
    def asked(self, forecast: Forecast) -> str:
        shown = {name: field.label for name, field in WishForm.base_fields.items()}
        known = forecast.params
        return ", ".join(f"{label}: {known[name]}" for name, label in shown.items() if known.get(name))

    @display(description=_("quota (%)"), empty_value="-")
    def compliance(self, forecast: Forecast) -> Any:
        return (forecast.result or {}).get("compliance")

    @display(description=_("on time (%)"), empty_value="-")
    def on_time(self, forecast: Forecast) -> Any:
        return (forecast.result or {}).get("on_time")

    @display(description=_("pollers needed"), empty_value="-")
    def pollers_needed(self, forecast: Forecast) -> Any:
        return ((forecast.result or {}).get("pool") or {}).get("pollers")
