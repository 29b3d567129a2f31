"""Jobs in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Count, Q, QuerySet
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

from facho.apps.inventory import labels
from facho.apps.inventory.admin_tools import EnablingMixin, JobSearch, PeoplesAdmin, dialog, tab
from facho.apps.inventory.remarks import remarks_on, with_remarks
from facho.apps.inventory.scopes import restrict, visible_ids, visible_olts
from facho.apps.jobs import admin_workflows as admin_workflows  # registers workflows and nodes
from facho.apps.jobs.columns import span
from facho.apps.jobs.forms import JobForm, OidFormSet, OperatedJobForm, ProposeJobsForm
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, shared_refusal
from facho.apps.jobs.templates import propose

# Every kind is listed: a badge without a colour would show the key.
KIND_COLOURS = {kind.value: "default" for kind in SnmpJob.Kind} | {"discovery": "info"}


def try_text() -> dict[str, Any]:
    """Return the texts of `try.js`."""
    return {
        "columns": {key: str(label) for key, label in labels.COLUMNS.items()},
        "onu": gettext("ONU"),
        "type": gettext("Type"),
        "raw": gettext("Raw value"),
        "value": gettext("Decoded"),
        "none": gettext("no value"),
        "cost": gettext("{n} requests in {seconds} s."),
        "asking": gettext("Reading from the OLT…"),
        "noOlt": gettext("There is no enabled OLT of this brand."),
        "offline": gettext("Facho could not be reached. Try again."),
    }


def may_change(request: HttpRequest) -> bool:
    """Return whether the user may change all of a job, and not only operate it."""
    return bool(request.user.has_perm("jobs.change_snmpjob"))


class OidInline(TabularInline):
    """Raw OIDs of a job."""

    model = SnmpJobOid
    formset = OidFormSet
    fields = ["name", "oid", "decode", "unit", "scalar"]
    extra = 0
    tab = True
    hide_title = True


@admin.register(SnmpJob)
class JobAdmin(EnablingMixin, JobSearch, PeoplesAdmin):
    """Jobs and the OLTs they are applied to."""

    class Media:
        # By name: these styles belong to the coordinator app, which depends on jobs.
        css = {"all": ["coordinator/admin.css", "jobs/try.css"]}
        js = ["jobs/priority.js", "jobs/try.js"]

    form = JobForm
    delete_confirmation_template = "jobs/delete_job.html"
    delete_selected_confirmation_template = "jobs/delete_jobs.html"
    inlines = [OidInline]
    list_display = [
        "title",
        "brand",
        "kind_badge",
        "follows",
        "interval_seconds",
        "priority",
        "olt_count",
        "pace",
        "values",
        "enabled",
    ]
    list_filter = [
        ("brand", ChoicesDropdownFilter),
        ("kind", ChoicesRadioFilter),
        ("enabled", BooleanRadioFilter),
    ]
    search_fields = ["name"]
    job_name = "name"
    actions = ["enable_chosen", "disable_chosen"]
    actions_list = ["propose_jobs"]
    change_form_after_template = "jobs/try_now.html"

    what = (None, {"fields": [("name", "brand"), "kind", "columns", "follows", "enabled"]})
    when = tab(_("Timing"), ("interval_seconds", "priority"), "timeout_seconds", ("retries", "retry_delay_seconds"))
    fieldsets = [what, tab(_("OLTs"), "olts", "confirm_removal"), when]
    # Only if there are remarks.
    remarked_fieldsets = [(None, {"fields": ["remarks"]}), *fieldsets]
    add_fieldsets = [what, tab(_("OLTs"), "olts"), when]

    def get_queryset(self, request: HttpRequest) -> QuerySet[SnmpJob]:
        jobs: QuerySet[SnmpJob] = super().get_queryset(request)
        ordered = jobs.select_related("follows").order_by("brand", "-priority", "name")
        ids = visible_ids(request.user)
        seen = None if ids is None else Q(nodes__olt__in=ids)
        return ordered.annotate(olt_count=Count("nodes", filter=seen)).prefetch_related(with_remarks(request.user))

    def has_delete_permission(self, request: HttpRequest, obj: SnmpJob | None = None) -> bool:
        is_shared = obj is not None and obj.is_applied_beyond(visible_ids(request.user))
        return not is_shared and super().has_delete_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_shared = obj is not None and obj.is_applied_beyond(visible_ids(request.user))
        is_allowed = self.has_operate_permission(request) or super().has_change_permission(request, obj)
        return is_allowed and not is_shared

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if change and not may_change(request):
            kwargs["form"] = OperatedJobForm
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: SnmpJob | None = None) -> Any:
        if obj is None or not may_change(request):
            return self.add_fieldsets
        return self.remarked_fieldsets if self.remarks(obj) else self.fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: SnmpJob | None = None) -> list[str]:
        if obj is None:
            return []
        if not may_change(request):
            fields = flatten_fieldsets(self.get_fieldsets(request, obj))
            return [name for name in fields if name not in SnmpJob.OPERATED_FIELDS]
        # Its columns, its chain and its OLTs are all of this brand.
        return ["brand", "remarks"]

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        # An error about the raw OIDs as a whole is shown in their tab, which may be closed.
        for inline in context["inline_admin_formsets"]:
            for error in inline.formset.non_form_errors():
                messages.error(request, error)
        job = context.get("original")
        may_try = may_change(request) and not (job and job.kind == SnmpJob.Kind.IDENTIFY)
        olts = visible_olts(request.user).filter(enabled=True).exclude(brand="").only("name", "brand").order_by("name")
        context |= {"try_olts": olts if may_try else None, "try_text": try_text()}
        return super().render_change_form(request, context, *args, **kwargs)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if isinstance(form, JobForm):
            form.apply()
        for warning in form.instance.warnings:
            messages.warning(request, warning)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], Any, set[str], list[Any]]:
        """Keep shared jobs, and followers until the user has chosen what to do with them."""
        ids = visible_ids(request.user)
        if shared := [shared_refusal(job) for job in objs if job.is_applied_beyond(ids)]:
            return [], {}, set(), shared
        followers = list(SnmpJob.followers_left_by(objs))
        if followers and request.POST.get("followers") not in SnmpJob.Followers:
            said = gettext("%(job)s, which follows %(master)s")
            return [], {}, set(), [said % {"job": each, "master": each.follows} for each in followers]
        objects: tuple[list[Any], Any, set[str], list[Any]] = super().get_deleted_objects([*objs, *followers], request)
        return objects

    def delete_model(self, request: HttpRequest, obj: SnmpJob) -> None:
        self._remove(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> None:
        self._remove(request, list(queryset))

    def _remove(self, request: HttpRequest, jobs: list[SnmpJob]) -> None:
        for job in SnmpJob.remove(jobs, request.POST.get("followers", "")):
            said = gettext("%(job)s now has its own schedule: every %(interval)s.")
            messages.info(request, said % {"job": job, "interval": span(job.interval_seconds)})

    @action(
        description=_("Propose jobs"),
        icon="lightbulb",
        permissions=["add"],
        dialog=dialog(
            _("Propose jobs"),
            _("Creates the default jobs of a brand. Existing jobs are not changed."),
            _("Create"),
            ProposeJobsForm,
        ),
    )
    def propose_jobs(self, request: HttpRequest, form: ProposeJobsForm) -> HttpResponse:
        jobs = propose(form.cleaned_data["brand"])
        names = ", ".join(map(str, jobs))
        messages.success(
            request, gettext("Jobs available: %(names)s. The next step is to apply them to OLTs.") % {"names": names}
        )
        return HttpResponse(headers={"HX-Redirect": reverse("admin:jobs_snmpjob_changelist")})

    @display(description=_("name"), ordering="name")
    def title(self, job: SnmpJob) -> str:
        return str(job)

    @display(description=_("type"), label=KIND_COLOURS, ordering="kind")
    def kind_badge(self, job: SnmpJob) -> tuple[str, str]:
        return job.kind, job.get_kind_display()

    @display(description=_("warnings"), label={"fast": "warning", "nothing": "danger"}, empty_value="-")
    def pace(self, job: SnmpJob) -> tuple[str, str] | None:
        if job.reads_nothing:
            return "nothing", gettext("reads nothing")
        return ("fast", gettext("interval too short")) if job.warnings else None

    @display(description=_("values"), label={"blank": "warning"}, empty_value="-")
    def values(self, job: SnmpJob) -> tuple[str, str] | None:
        return ("blank", gettext("column without values")) if self.remarks(job) else None

    @display(description=_("remarks"))
    def remarks(self, job: Any) -> str:
        return " ".join(remarks_on(job.nodes_with_blanks))

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        job: Any = super().get_object(request, *args, **kwargs)
        if job is not None:
            job.seen_nodes = restrict(job.nodes.all(), request.user)
        return job

    @display(description=_("OLTs"))
    def olts(self, job: Any) -> str:
        """List the OLTs for users with read-only access."""
        return ", ".join(job.seen_nodes.values_list("olt__name", flat=True))

    def _set_enabled(self, request: HttpRequest, rows: QuerySet[Any], enabled: bool) -> None:
        ids = visible_ids(request.user)
        shared = [job for job in rows if job.is_applied_beyond(ids)]
        for job in shared:
            messages.error(request, shared_refusal(job))
        super()._set_enabled(request, rows.exclude(pk__in=[job.pk for job in shared]), enabled)

    @display(description=_("OLTs"), ordering="olt_count")
    def olt_count(self, job: Any) -> int:
        return int(job.olt_count)
