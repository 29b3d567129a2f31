"""Questions about the fleet: the form with its recent answers, and one answer."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.apps.accounts.permissions import missing
from facho.apps.coordinator.answers import FleetAnswer, question_text
from facho.apps.coordinator.forecasts import MOST_OLTS, MOST_POLLERS, ForecastParamsSerializer
from facho.apps.coordinator.models import Forecast
from facho.apps.dashboard import queries
from facho.apps.dashboard.intervals import IntervalForm
from facho.apps.dashboard.views import page, show
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import visible_ids, visible_olts
from facho.apps.jobs.columns import floor_warnings
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling import live

PER_PAGE = 20
FEWER, MORE = "fewer", "more"


class MasterChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic only in the stubs
    """A job with a schedule of its own."""

    def label_from_instance(self, job: Any) -> str:
        return f"{job} · {job.get_brand_display()}"


class QuestionForm(IntervalForm):
    """A question. What is empty stays as it is; without anything it is whether the fleet fits as it is."""

    more_olts = forms.IntegerField(
        label=gettext_lazy("more OLTs like the present ones"), min_value=0, max_value=MOST_OLTS, required=False
    )
    job = MasterChoice(
        SnmpJob.objects.filter(follows__isnull=True).exclude(brand="").order_by("name", "brand"),
        label=gettext_lazy("job"),
        required=False,
        empty_label=gettext_lazy("no change"),
    )
    pollers = forms.IntegerField(label=gettext_lazy("pollers"), min_value=0, max_value=MOST_POLLERS, required=False)
    pollers_are = forms.ChoiceField(
        label=gettext_lazy("more or fewer"),
        choices=[(FEWER, gettext_lazy("fewer")), (MORE, gettext_lazy("more"))],
        required=False,
    )
    olts = forms.CharField(widget=forms.HiddenInput, required=False)

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        job, seconds = values.get("job"), values.get("interval_seconds")
        if job and seconds is None and "interval" not in self.errors:
            self.add_error("interval", _("Enter the interval."))
        if seconds is not None and not job and "job" not in self.errors:
            self.add_error("job", _("Choose the job that gets this interval."))
        if self.errors:
            return values
        pollers = (values["pollers"] or 0) * (1 if values["pollers_are"] == MORE else -1)
        question: dict[str, Any] = {"more_olts": values["more_olts"] or 0, "more_pollers": pollers}
        if job:
            question["interval"] = {"job": job.pk, "seconds": seconds}
            if values["olts"]:
                question["interval"]["olts"] = values["olts"].split(",")
        # The rules are those of the API.
        checked = ForecastParamsSerializer(data={"question": question})
        if not checked.is_valid():
            raise ValidationError(_("The question cannot be asked: an OLT of it no longer exists. Choose them again."))
        return {**values, "params": checked.validated_data}


def _for_all_olts(request: HttpRequest) -> HttpResponse | None:
    """Refuse users who see only some of the OLTs: forecasts have the names of others."""
    if visible_ids(request.user) is None:
        return None
    said = _("This concerns all OLTs. It needs a user without a scope.")
    return render(request, "403.html", {"exception": said}, status=403)


@page(Forecast.VIEW_PERMISSION, has_form=True)
def forecast(request: HttpRequest) -> HttpResponse:
    """Show the questions that can be asked and those that were; ask one."""
    if (refusal := _for_all_olts(request)) is not None:
        return refusal
    may_ask = request.user.has_perm(Forecast.ADD_PERMISSION)
    if request.method == "POST" and not may_ask:
        return render(request, "403.html", {"exception": missing(Forecast.ADD_PERMISSION)}, status=403)
    form = QuestionForm(request.POST) if request.method == "POST" else QuestionForm(initial=request.GET.dict())
    if request.method == "POST" and form.is_valid():
        try:
            asked = Forecast.request(form.cleaned_data["params"], by=request.user)
            return redirect("dashboard:forecast-answer", asked.pk)
        except ValidationError as error:
            form.add_error(None, error)
    asked_page = Paginator(Forecast.objects.select_related("by"), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "active": "forecast",
        "form": form,
        "may_ask": may_ask,
        "has_olts": Olt.objects.exists(),
        "has_nodes": WorkflowNode.objects.polled().exists(),
        "is_measured": WorkflowNode.objects.polled().exclude(durations={}).exists(),
        "chosen": _chosen(form["olts"].value() or "", request.user),
        "page": asked_page,
        "rows": [_row(each) for each in asked_page],
        "is_waiting": Forecast.objects.exclude(status__in=(Forecast.Status.DONE, Forecast.Status.FAILED)).exists(),
        "is_engine_running": not live.snapshot()["stale"],
    }
    return show(request, "forecast.html", context)


def _chosen(text: str, user: Any) -> list[Olt]:
    """Return the OLTs of a prepared question, such as that of a preview of a change."""
    ids = [queries.number(each) for each in text.split(",")]
    return list(visible_olts(user).filter(pk__in=[pk for pk in ids if pk is not None]).only("name").order_by("name"))


def _row(each: Forecast) -> dict[str, Any]:
    return {"forecast": each, "text": question_text(each.params), "answer": _answer(each)}


def _answer(each: Forecast) -> FleetAnswer | None:
    return FleetAnswer(each.params, each.result) if each.result and "answer" in each.result else None


@page(Forecast.VIEW_PERMISSION)
def answer(request: HttpRequest, forecast_id: int) -> HttpResponse:
    """Show one question: what it waits for, or its answer with the figures behind it."""
    if (refusal := _for_all_olts(request)) is not None:
        return refusal
    found = get_object_or_404(Forecast.objects.select_related("by"), pk=forecast_id)
    answered, result = _answer(found), found.result or {}
    context = {
        "active": "forecast",
        "forecast": found,
        "text": question_text(found.params),
        "ahead": Forecast.objects.filter(status=Forecast.Status.PENDING, pk__lt=found.pk).count(),
        "is_engine_running": not live.snapshot()["stale"],
        "answer": answered,
        "result": result,
        "missed": result.get("answer", {}).get("missed", ()),
        "figures": _figures(result),
        "floors": _floors(found),
        "again": _again(found),
        "may_ask": request.user.has_perm(Forecast.ADD_PERMISSION),
    }
    return show(request, "forecast_answer.html", context)


def _figures(result: dict[str, Any]) -> list[tuple[str, Any, Any, int]]:
    """Return the figures of the answer and of today: label, today, then, decimals."""
    if not result:
        return []
    today = result.get("today")

    def line(label: str, *path: str, places: int = 0) -> tuple[str, Any, Any, int]:
        return label, _at(today, path), _at(result, path), places

    lines = [
        line(_("OLTs"), "olts"),
        line(_("Pollers"), "pollers"),
        line(_("Quotas: runs completed (%)"), "compliance", places=1),
        line(_("Quotas missed"), "missed_quotas"),
        line(_("Pollers busy (%)"), "busy", places=1),
        line(_("Pool saturated (share of the time, %)"), "saturated", places=1),
        line(_("Runs on time (%)"), "on_time", places=1),
        line(_("Delay, 95th percentile (s)"), "lateness", "p95", places=1),
        line(_("Pollers needed"), "pool", "pollers"),
    ]
    return [each for each in lines if each[2] is not None]


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _floors(found: Forecast) -> list[str]:
    """Return warnings about an interval that the brand does not bear, whatever the forecast says."""
    asked = (found.params.get("question") or {}).get("interval")
    job = SnmpJob.objects.filter(pk=asked["job"]).first() if asked else None
    return floor_warnings(job.brand, job.kind, job.columns, asked["seconds"]) if asked and job else []


def _again(found: Forecast) -> str:
    """Return the query that fills the form with this question."""
    question = found.params.get("question") or {}
    pollers = question.get("more_pollers") or 0
    query: dict[str, Any] = {"more_olts": question.get("more_olts") or ""}
    if pollers:
        query |= {"pollers": abs(pollers), "pollers_are": MORE if pollers > 0 else FEWER}
    if asked := question.get("interval"):
        number, unit = _with_unit(asked["seconds"])
        query |= {
            "job": asked["job"],
            "interval": number,
            "unit": unit,
            "olts": ",".join(map(str, asked.get("olts", ()))),
        }
    return urlencode({name: value for name, value in query.items() if value}, safe=",")


def _with_unit(seconds: int) -> tuple[int, str]:
    if seconds % 3600 == 0:
        return seconds // 3600, "h"
    return (seconds // 60, "min") if seconds % 60 == 0 else (seconds, "s")
