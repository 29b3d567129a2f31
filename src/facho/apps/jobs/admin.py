"""Jobs in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import (
    BooleanRadioFilter,
    ChoicesDropdownFilter,
    ChoicesRadioFilter,
)
from unfold.decorators import action, display

from facho.apps.inventory.admin_tools import EnablingMixin, PeoplesAdmin
from facho.apps.jobs import admin_workflows as admin_workflows  # registers workflows and nodes
from facho.apps.jobs.forms import JobForm, ProposeJobsForm
from facho.apps.jobs.models import SnmpJob, SnmpJobOid
from facho.apps.jobs.templates import propose


class OidInline(TabularInline):
    """Raw OIDs of a job."""

    model = SnmpJobOid
    fields = ["name", "oid", "decode", "scalar"]
    extra = 0
    tab = True
    hide_title = True


@admin.register(SnmpJob)
class JobAdmin(EnablingMixin, PeoplesAdmin):
    """What to ask, and where."""

    form = JobForm
    inlines = [OidInline]
    list_display = [
        "name",
        "brand",
        "kind_badge",
        "follows",
        "interval_seconds",
        "priority",
        "olt_count",
        "pace",
        "enabled",
    ]
    list_filter = [
        ("brand", ChoicesDropdownFilter),
        ("kind", ChoicesRadioFilter),
        ("enabled", BooleanRadioFilter),
    ]
    search_fields = ["name"]
    actions = ["enable_chosen", "disable_chosen"]
    actions_list = ["propose_jobs"]
    what = (None, {"fields": [("name", "brand"), "kind", "columns", "follows", "enabled"]})
    when = (
        _("Timing"),
        {
            "classes": ["tab"],
            "fields": [("interval_seconds", "priority"), "timeout_seconds", ("retries", "retry_delay_seconds")],
        },
    )
    fieldsets = [what, (_("OLTs"), {"classes": ["tab"], "fields": ["olts", "confirm_removal"]}), when]
    add_fieldsets = [what, (_("OLTs"), {"classes": ["tab"], "fields": ["olts"]}), when]

    def get_queryset(self, request: HttpRequest) -> QuerySet[SnmpJob]:
        jobs: QuerySet[SnmpJob] = super().get_queryset(request)
        return jobs.select_related("follows").annotate(olt_count=Count("nodes")).order_by("brand", "-priority", "name")

    def get_fieldsets(self, request: HttpRequest, obj: SnmpJob | None = None) -> Any:
        return self.fieldsets if obj and self.has_change_permission(request, obj) else self.add_fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: SnmpJob | None = None) -> list[str]:
        # Its columns, its chain and its OLTs are all of this brand.
        return [] if obj is None else ["brand"]

    def save_related(self, request: HttpRequest, form: JobForm, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        form.apply()
        for warning in form.instance.warnings:
            messages.warning(request, warning)

    @action(
        description=_("Propose jobs"),
        icon="lightbulb",
        permissions=["add"],
        dialog={
            "title": _("Propose jobs"),
            "description": _("Creates the usual jobs of a brand. Those that are there already stay as they are."),
            "form_class": ProposeJobsForm,
            "form_submit_text": _("Create"),
        },
    )
    def propose_jobs(self, request: HttpRequest, form: ProposeJobsForm) -> HttpResponse:
        jobs = propose(form.cleaned_data["brand"])
        names = ", ".join(job.name for job in jobs)
        messages.success(request, gettext("There are now: %(names)s. Apply them to OLTs next.") % {"names": names})
        return HttpResponse(headers={"HX-Redirect": reverse("admin:jobs_snmpjob_changelist")})

    @display(description=_("type"), label={"discovery": "info"}, ordering="kind")
    def kind_badge(self, job: SnmpJob) -> tuple[str, str]:
        return job.kind, job.get_kind_display()

    @display(description=_("pace"), label={"fast": "warning"}, empty_value="-")
    def pace(self, job: SnmpJob) -> tuple[str, str] | None:
        return ("fast", gettext("faster than advised")) if job.warnings else None

    @display(description=_("OLTs"))
    def olts(self, job: SnmpJob) -> str:
        """Name the OLTs, for those who may only look."""
        return ", ".join(job.nodes.values_list("olt__name", flat=True))

    @display(description=_("OLTs"), ordering="olt_count")
    def olt_count(self, job: Any) -> int:
        return int(job.olt_count)
