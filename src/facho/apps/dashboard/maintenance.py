"""Pages of maintenance: the list, the form, and its start from the page of an OLT or port."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from facho.apps.dashboard import queries
from facho.apps.dashboard.views import back_to, needs, page, show
from facho.apps.inventory.models import Site, Tag
from facho.apps.inventory.scopes import scope_of, visible_olts
from facho.apps.inventory.spans import span
from facho.apps.maintenance.models import Maintenance
from facho.apps.maintenance.queries import may_plan, restrict_maintenance

PER_PAGE = 50

# Choices of a start with one click, in minutes.
DURATIONS = (30, 60, 120, 240, 480)
# Longest extension with one click.
LONGEST_EXTENSION = 24 * 60

MOMENT = "%Y-%m-%dT%H:%M"


@page(Maintenance.VIEW_PERMISSION)
def maintenance(request: HttpRequest) -> HttpResponse:
    """Show what is running and planned, or what is over."""
    now = timezone.now()
    plans = restrict_maintenance(Maintenance.objects.select_related("olt", "site", "tag"), request.user)
    rows: Any = plans.with_window()
    is_past = request.GET.get("tab") == "past"
    context: dict[str, Any] = {"active": "maintenance", "is_past": is_past}
    if is_past:
        over = rows.in_state(Maintenance.State.OVER, now).order_by("-window_start", "-id")
        context["page"] = context["plans"] = Paginator(over, PER_PAGE).get_page(request.GET.get("page"))
    else:
        running = rows.in_state(Maintenance.State.RUNNING, now).order_by("window_end", "id")
        planned = rows.in_state(Maintenance.State.PLANNED, now).order_by("window_start", "id")
        context["plans"] = [*running, *planned]
    return show(request, "maintenance.html", context)


class MaintenanceForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A maintenance. Its times are in the zone that the form names."""

    class Meta:
        model = Maintenance
        fields = (
            "olt", "slot", "port", "site", "tag", "starts_at", "ends_at", "zone", "recurrence", "repeats_until",
            "polling", "reason",
        )  # fmt: skip
        widgets = {
            name: forms.DateTimeInput(attrs={"type": "datetime-local"}, format=MOMENT)
            for name in ("starts_at", "ends_at", "repeats_until")
        }

    def __init__(self, user: Any, *args: Any, **kwargs: Any) -> None:
        self.user = user
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        scope = scope_of(user)
        fields["olt"].queryset = visible_olts(user).filter(deleting_since=None).only("name")
        fields["site"].queryset = Site.objects.all() if scope is None else scope.sites.all()
        fields["tag"].queryset = Tag.objects.all() if scope is None else scope.tags.all()
        for name in ("site", "tag"):
            if not fields[name].queryset.exists():
                del fields[name]
        for name in ("slot", "port"):
            fields[name].help_text = _("Empty: the whole OLT.")

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        plan = Maintenance(**{name: values.get(name) for name in ("olt", "site", "tag")})
        if any((plan.olt, plan.site, plan.tag)) and not may_plan(self.user, plan):
            raise ValidationError(_("It covers OLTs outside your scope."))
        return values


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Read and show the times of a form in a zone. An unknown one is refused by its field."""
    with timezone.override(ZoneInfo(name) if name in available_timezones() else None):
        yield


@page(Maintenance.ADD_PERMISSION, has_form=True)
def new_maintenance(request: HttpRequest) -> HttpResponse:
    start = timezone.now().replace(second=0, microsecond=0)
    given = {name: request.GET[name] for name in ("olt", "slot", "port", "site", "tag") if name in request.GET}
    plan = Maintenance(starts_at=start, ends_at=start + timedelta(hours=2))
    return _form(request, plan, given)


@page(Maintenance.CHANGE_PERMISSION, has_form=True)
def change_maintenance(request: HttpRequest, maintenance_id: int) -> HttpResponse:
    return _form(request, _found(request, maintenance_id), {})


def _form(request: HttpRequest, plan: Maintenance, given: dict[str, str]) -> HttpResponse:
    is_new = plan.pk is None
    with in_zone(request.POST.get("zone") or plan.zone):
        form = MaintenanceForm(request.user, request.POST or None, instance=plan, initial=given)
        if request.method == "POST" and form.is_valid():
            if is_new:
                plan.plan(by=request.user)
            else:
                plan.replan()
            messages.success(request, _("%(plan)s was saved.") % {"plan": plan})
            return redirect("dashboard:maintenance")
        context = {"active": "maintenance", "form": form, "plan": None if is_new else plan}
        return show(request, "maintenance_form.html", context)


@require_POST
@needs(Maintenance.ADD_PERMISSION)
def start_maintenance(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Start a maintenance of an OLT, or of one of its ports, now."""
    olt = get_object_or_404(visible_olts(request.user), pk=olt_id)
    minutes, now = queries.number(request.POST.get("minutes")), timezone.now()
    plan = Maintenance(
        olt=olt,
        slot=queries.number(request.POST.get("slot")),
        port=queries.number(request.POST.get("port")),
        starts_at=now,
        ends_at=now + timedelta(minutes=minutes if minutes in DURATIONS else DURATIONS[0]),
        polling="polling" in request.POST,
        reason=request.POST.get("reason", "").strip(),
    )
    try:
        plan.full_clean()
        plan.plan(by=request.user)
        messages.success(request, _("%(plan)s has started.") % {"plan": plan})
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    return back_to(request, reverse("dashboard:maintenance"))


@require_POST
@needs(Maintenance.CHANGE_PERMISSION)
def act_on_maintenance(request: HttpRequest, maintenance_id: int) -> HttpResponse:
    """End, extend or cancel a maintenance, and return to the page of the form."""
    plan = _found(request, maintenance_id)
    try:
        messages.success(request, _act(plan, request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    return back_to(request, reverse("dashboard:maintenance"))


def _act(plan: Maintenance, request: HttpRequest) -> str:
    done, said = False, ""
    match request.POST.get("action"):
        case "end":
            done, said = plan.end_now(), _("%(plan)s has ended.")
        case "extend":
            minutes = min(queries.number(request.POST.get("minutes")) or 60, LONGEST_EXTENSION)
            done, said = plan.extend(timedelta(minutes=minutes)), _("%(plan)s was extended.")
        case "cancel":
            name = str(plan)
            plan.cancel()
            return _("%(plan)s was cancelled.") % {"plan": name}
    if not done:
        raise ValidationError(_("It is not running."))
    return said % {"plan": plan}


def _found(request: HttpRequest, maintenance_id: int) -> Maintenance:
    rows = restrict_maintenance(Maintenance.objects.select_related("olt", "site", "tag"), request.user)
    plan = get_object_or_404(rows.with_window(), pk=maintenance_id)
    if not may_plan(request.user, plan):
        raise PermissionDenied(_("It covers OLTs outside your scope."))
    return plan


def quick_choices() -> list[tuple[int, str]]:
    """Return the choices of a start with one click, each with its label."""
    return [(minutes, span(minutes * 60)) for minutes in DURATIONS]
