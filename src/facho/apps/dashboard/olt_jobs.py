"""Change of a job on many OLTs: a form, a preview, and the change."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from facho.apps.accounts.permissions import missing
from facho.apps.coordinator.models import Forecast
from facho.apps.dashboard import queries
from facho.apps.dashboard.intervals import IntervalForm
from facho.apps.dashboard.views import show
from facho.apps.inventory.bulk import MOST_OLTS, Result
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import visible_ids, visible_olts
from facho.apps.jobs.bulk import JobAction, JobChange, NodeState, PlannedChange, job_actions_of
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.jobs.serializers import NodeStateSerializer

# Value of the list of actions on the page of OLTs.
CHANGE_JOB = "change_job"

MOST_TOLD = 5


class JobChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic only in the stubs
    """A job, with its brand and the number of chosen OLTs that have it."""

    def label_from_instance(self, job: Any) -> str:
        said = ngettext("%(job)s · %(brand)s · on %(n)d OLT", "%(job)s · %(brand)s · on %(n)d OLTs", job.on_olts)
        return said % {"job": job, "brand": job.get_brand_display(), "n": job.on_olts}


class JobChangeForm(IntervalForm):
    """The job, what to do with it, and the interval."""

    field_order = ("job", "action", "interval", "unit")
    job = JobChoice(SnmpJob.objects.none(), label=gettext_lazy("job"), empty_label=None)
    action = forms.ChoiceField(label=gettext_lazy("change"))

    def __init__(self, user: Any, olts: list[Olt], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        on_olts = Count("nodes", filter=Q(nodes__olt__in=olts))
        jobs = SnmpJob.objects.filter(brand__in={olt.brand for olt in olts} - {""}).select_related("follows")
        fields["job"].queryset = jobs.annotate(on_olts=on_olts).order_by("-on_olts", "brand", "name")
        fields["action"].choices = [(action.value, action.label) for action in job_actions_of(user)]
        fields["action"].widget.attrs["data-action-choice"] = ""

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        is_interval = values.get("action") == JobAction.INTERVAL
        if is_interval and values["interval_seconds"] is None and "interval" not in self.errors:
            self.add_error("interval", _("Enter the interval."))
        return values if is_interval else {**values, "interval_seconds": None}

    @property
    def change(self) -> JobChange:
        values = self.cleaned_data
        return JobChange(values["job"], JobAction(values["action"]), values["interval_seconds"])


@require_POST
@login_required
def change_job(request: HttpRequest) -> HttpResponse:
    """Ask for the change, preview it for each OLT, and apply it when that is confirmed."""
    if not job_actions_of(request.user) or not request.user.has_perm("inventory.view_olt"):
        return render(request, "403.html", {"exception": missing(WorkflowNode.OPERATE_PERMISSION)}, status=403)
    back = reverse("dashboard:olts") + request.POST.get("back", "")
    olts = chosen_olts(request)
    if not olts:
        messages.error(request, _("Tick OLTs and choose an action."))
        return redirect(back)
    if len(olts) > MOST_OLTS:
        messages.error(request, _("At most %(most)d OLTs at once. Filter the list.") % {"most": MOST_OLTS})
        return redirect(back)
    form = JobChangeForm(request.user, olts, request.POST if "job" in request.POST else None)
    context: dict[str, Any] = {
        "active": "olts",
        "form": form,
        "olts": olts,
        "back": back,
        "ids": ",".join(str(olt.pk) for olt in olts),
        "back_query": request.POST.get("back", ""),
    }
    if not form.is_valid():
        return show(request, "olts_job.html", context)
    seen = _seen(request)
    if "confirmed" in request.POST and seen is not None:
        _tell(request, form.change, form.change.run(olts, seen), seen)
        return redirect(back)
    return show(request, "olts_job.html", {**context, **_preview(request, form.change, olts)})


def chosen_olts(request: HttpRequest) -> list[Olt]:
    """Return the OLTs of a form: the ticked ones, or all of the list. Ids are in one field, or one for each row."""
    texts = [request.POST.get("all_ids", "")] if "all" in request.POST else request.POST.getlist("id")
    ids = [queries.number(each) for text in texts for each in text.split(",")]
    olts = visible_olts(request.user).select_related("site")
    return list(olts.filter(pk__in=[pk for pk in ids if pk is not None])[: MOST_OLTS + 1])


def _seen(request: HttpRequest) -> dict[int, NodeState] | None:
    """Return what the preview showed, or None without a usable one."""
    try:
        states = json.loads(request.POST.get("seen", ""))
    except ValueError:
        return None
    if not isinstance(states, dict) or not all(key.isdecimal() for key in states):
        return None
    checked = NodeStateSerializer(data=list(states.values()), many=True)
    if not checked.is_valid():
        return None
    return {int(key): NodeState(**state) for key, state in zip(states, checked.validated_data, strict=True)}


def _preview(request: HttpRequest, change: JobChange, olts: list[Olt]) -> dict[str, Any]:
    rows = change.plan(olts)
    numbers = Counter(row.result for row in rows)
    done = [row.olt.pk for row in rows if row.result == Result.DONE]
    states = {
        row.olt.pk: {name: getattr(row.before, name) for name in ("is_applied", "interval_seconds", "enabled")}
        for row in rows
    }
    return {
        "change": change,
        "rows": rows,
        "intention": change.intention(rows),
        "changed": numbers[Result.DONE],
        "left_out": numbers[Result.REFUSED],
        "unchanged": numbers[Result.UNCHANGED],
        "warnings": dict.fromkeys(warning for row in rows for warning in row.warnings),
        "seen": json.dumps(states, separators=(",", ":")),
        "forecast": _forecast_url(request, change, done),
    }


def _forecast_url(request: HttpRequest, change: JobChange, olt_ids: list[int]) -> str:
    """Return the address of the question whether the change fits, or nothing if there is none."""
    may_ask = request.user.has_perm(Forecast.VIEW_PERMISSION) and visible_ids(request.user) is None
    if change.action != JobAction.INTERVAL or not olt_ids or not may_ask:
        return ""
    query = {"job": change.job.pk, "interval": request.POST["interval"], "unit": request.POST.get("unit", "min")}
    return f"{reverse('dashboard:forecast')}?{urlencode({**query, 'olts': ','.join(map(str, olt_ids))}, safe=',')}"


def _tell(request: HttpRequest, change: JobChange, rows: list[PlannedChange], seen: Mapping[int, NodeState]) -> None:
    """Tell what was done, and which OLTs had changed. The preview had the other reasons to leave one out."""
    surprising = [row for row in rows if row.olt.pk in seen and seen[row.olt.pk] != row.before]
    (messages.warning if surprising else messages.success)(request, change.story(rows))
    for row in surprising[:MOST_TOLD]:
        messages.error(request, f"{row.olt}: {row.detail}")
