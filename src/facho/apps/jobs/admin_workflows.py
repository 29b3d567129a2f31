"""Workflows and nodes in the admin: schedules and manual runs."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Max, Min, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import (
    BooleanRadioFilter,
    ChoicesDropdownFilter,
    RelatedDropdownFilter,
)
from unfold.decorators import action, display
from unfold.widgets import BUTTON_CLASSES

from facho.apps.accounts.permissions import missing
from facho.apps.inventory import labels
from facho.apps.inventory.admin import STATE_COLOURS, STATE_NAMES
from facho.apps.inventory.admin_tools import (
    JobSearch,
    PeoplesAdmin,
    ScopedDropdownFilter,
    dialog,
    moment_column,
    never,
)
from facho.apps.inventory.models import brand_label
from facho.apps.inventory.scopes import restrict
from facho.apps.inventory.search import matching_olts
from facho.apps.jobs import in_effect
from facho.apps.jobs.forms import ApplyJobsForm, NodeForm, NodeFormSet
from facho.apps.jobs.models import Workflow, WorkflowNode
from facho.apps.jobs.templates import apply_usual_jobs
from facho.brands import BRANDS


def ask_for_runs(request: HttpRequest, nodes: QuerySet[WorkflowNode]) -> None:
    """Request runs of these nodes, and report the result to the user."""
    for node in nodes.select_related("olt", "job"):
        if reason := node.why_not_runnable():
            messages.error(request, reason)
        elif node.request_run():
            messages.success(request, gettext("%(node)s runs as soon as its OLT is free.") % {"node": node})
        elif node.run_requested_at is None:
            changed = gettext("%(node)s has just started, or it was disabled or deleted. Reload the page.")
            messages.error(request, changed % {"node": node})
        else:
            messages.info(
                request, gettext("A run of %(node)s was already requested and has not started yet.") % {"node": node}
            )


def warn_of_paces(request: HttpRequest, nodes: Iterable[WorkflowNode]) -> None:
    """Show the warnings of these nodes, such as an interval that is too short for the OLT."""
    for node in nodes:
        for warning in node.warnings:
            messages.warning(request, f"{node}: {warning}")


def may_operate(request: HttpRequest) -> bool:
    return bool(request.user.has_perm(WorkflowNode.OPERATE_PERMISSION))


def not_operated(request: HttpRequest) -> list[str]:
    """Return the settings of a node that this user cannot change although others can be changed."""
    if request.user.has_perm("jobs.change_workflownode"):
        return []
    return [name for name in NodeForm.Meta.fields if name not in WorkflowNode.OPERATED_FIELDS]


class NodeInline(TabularInline):
    """Nodes of an OLT, each master followed by its chain."""

    model = WorkflowNode
    fk_name = "olt"
    form = NodeForm
    formset = NodeFormSet
    fields = [
        "place",
        "own_interval_seconds",
        "own_priority",
        "own_enabled",
        "in_effect",
        "remarks",
        "next_run",
        "last_run",
        "asked_for",
        "run_now",
    ]
    readonly_fields = ["place", "in_effect", "remarks", "next_run", "last_run", "asked_for", "run_now"]
    extra = 0
    max_num = 0
    hide_title = True
    has_add_permission = never
    next_run = moment_column("next_run_at", _("next run"))
    last_run = moment_column("last_run_at", _("last run"))
    asked_for = moment_column("run_requested_at", _("run requested"))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_operate(request) or super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*self.readonly_fields, *not_operated(request)]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowNode]:
        nodes: QuerySet[WorkflowNode] = super().get_queryset(request).select_related("job", "olt", "master__job")
        return nodes.order_by(Coalesce("master_id", "id"), *in_effect.CHAIN_ORDER)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        may_run = request.user.has_perm(WorkflowNode.RUN_PERMISSION)
        return [name for name in self.fields if may_run or name != "run_now"]

    @display(description=_("job"))
    def place(self, node: WorkflowNode) -> str:
        return str(node.job) if node.master_id is None else f"↳ {node.job}"

    @display(description=_("in effect"))
    def in_effect(self, node: WorkflowNode) -> str:
        if node.job.reads_nothing:
            return gettext("reads nothing, not scheduled")
        if not node.enabled:
            return pgettext("node", "disabled")
        if node.master_id is not None:
            return gettext("after %(master)s") % {"master": node.master.job if node.master else ""}
        said = gettext("every %(seconds)d s, priority %(priority)d") % {
            "seconds": node.interval_seconds,
            "priority": node.priority,
        }
        return f"{said}, {gettext('interval too short')}" if node.warnings else said

    @display(description=_("remarks"), empty_value="-")
    def remarks(self, node: WorkflowNode) -> str | None:
        return " ".join(node.remarks) or None

    @display(description=_("run"))
    def run_now(self, node: WorkflowNode) -> str:
        # It posts the surrounding form, with its CSRF token, to another URL.
        return format_html(
            '<button type="submit" formnovalidate formaction="{}" class="{}">{}</button>',
            reverse("admin:jobs_workflow_run", args=[node.olt_id, node.pk]),
            " ".join(BUTTON_CLASSES),
            _("Run now"),
        )


@admin.register(Workflow)
class WorkflowAdmin(PeoplesAdmin):
    """An OLT with its nodes."""

    inlines = [NodeInline]
    list_display = ["name", "state_badge", "brand", "node_count", "next_run", "last_run"]
    list_filter = [("brand", ChoicesDropdownFilter), ("enabled", BooleanRadioFilter)]
    search_fields = ["name"]
    matching = staticmethod(matching_olts)
    olt_path = "pk"
    actions = ["apply_usual"]
    actions_detail = ["apply_jobs"]
    fields = [("name", "brand", "state_name")]
    readonly_fields = ["name", "brand", "state_name"]
    has_add_permission = has_delete_permission = never
    next_run = moment_column("next_run", _("next run"))
    last_run = moment_column("last_run", _("last run"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        workflows: QuerySet[Workflow] = super().get_queryset(request)
        return workflows.annotate(
            node_count=Count("nodes"), next_run=Min("nodes__next_run_at"), last_run=Max("nodes__last_run_at")
        ).order_by("name")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # The page shows an OLT read-only, and its nodes.
        return may_operate(request) or super().has_change_permission(request, obj)

    def has_apply_permission(self, request: HttpRequest, _object_id: Any = None) -> bool:
        return bool(request.user.has_perm("jobs.change_workflow"))

    def get_urls(self) -> list[URLPattern]:
        run = self.admin_site.admin_view(self.run_node)
        return [path("<int:olt_id>/run/<int:node_id>/", run, name="jobs_workflow_run"), *super().get_urls()]

    def run_node(self, request: HttpRequest, olt_id: int, node_id: int) -> HttpResponse:
        """Request one run, and return."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.has_perm(WorkflowNode.RUN_PERMISSION):
            return HttpResponseForbidden(missing(WorkflowNode.RUN_PERMISSION))
        nodes = restrict(WorkflowNode.objects.filter(pk=node_id, olt_id=olt_id), request.user)
        get_object_or_404(nodes)
        ask_for_runs(request, nodes)
        return redirect("admin:jobs_workflow_change", olt_id)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        warn_of_paces(request, [node for node, _changed in getattr(formset, "changed_objects", ())])

    @action(
        description=_("Apply jobs"),
        icon="add",
        permissions=["apply"],
        dialog=dialog(
            _("Apply jobs"),
            _("Jobs of this brand that the OLT does not have yet. Jobs that follow them are included."),
            _("Apply"),
            ApplyJobsForm,
        ),
    )
    def apply_jobs(self, request: HttpRequest, form: ApplyJobsForm, object_id: str) -> HttpResponse:
        workflow = get_object_or_404(self.get_queryset(request), pk=object_id)
        for job in form.cleaned_data["jobs"]:
            job.apply_to([workflow])
        messages.success(request, gettext("Applied. The first run starts in about one minute."))
        return HttpResponse(headers={"HX-Redirect": reverse("admin:jobs_workflow_change", args=[object_id])})

    @action(description=_("Apply the default jobs"), icon="playlist_add", permissions=["apply"])
    def apply_usual(self, request: HttpRequest, workflows: QuerySet[Workflow]) -> None:
        """Apply the proposed jobs of its brand to each OLT. Existing nodes are not changed."""
        by_brand: defaultdict[str, list[Workflow]] = defaultdict(list)
        for workflow in workflows:
            by_brand[workflow.brand if workflow.brand in BRANDS else ""].append(workflow)
        for unknown in by_brand.pop("", ()):
            messages.warning(
                request, gettext("%(olt)s has no known brand, so there are no default jobs for it.") % {"olt": unknown}
            )
        for brand_id, olts in by_brand.items():
            counts = {"brand": brand_label(BRANDS[brand_id]), "n": len(olts)}
            counts["jobs"] = labels.jobs(apply_usual_jobs(brand_id, olts))
            sentence = ngettext(
                "%(brand)s: %(jobs)s applied to %(n)d OLT.", "%(brand)s: %(jobs)s applied to %(n)d OLTs.", len(olts)
            )
            messages.success(request, sentence % counts)

    @display(description=_("state"), label=STATE_COLOURS, ordering="reachability")
    def state_badge(self, olt: Workflow) -> tuple[str, Any]:
        return olt.state, STATE_NAMES[olt.state]

    @display(description=_("state"))
    def state_name(self, olt: Workflow) -> Any:
        return STATE_NAMES[olt.state]

    @display(description=_("nodes"), ordering="node_count")
    def node_count(self, olt: Any) -> int:
        return int(olt.node_count)


@admin.register(WorkflowNode)
class NodeAdmin(JobSearch, PeoplesAdmin):
    """All nodes in one list. Nodes are created by applying a job, so none is added here."""

    form = NodeForm
    list_display = [
        "job",
        "olt",
        "is_chained",
        "interval",
        "priority_here",
        "is_enabled",
        "next_run",
        "last_run",
        "values",
    ]
    list_select_related = ["job", "olt"]
    list_filter = [("olt", ScopedDropdownFilter), ("job", RelatedDropdownFilter)]
    olt_path = "olt"
    search_fields = ["olt__name", "job__name"]
    job_name = "job__name"
    actions = ["run_chosen"]
    fields = [
        ("olt", "job", "master"),
        ("own_interval_seconds", "own_priority", "own_enabled"),
        ("next_run", "last_run", "asked_for"),
        "remarks",
    ]
    readonly_fields = ["olt", "job", "master", "next_run", "last_run", "asked_for", "remarks"]
    has_add_permission = never
    next_run = moment_column("next_run_at", _("next run"))
    last_run = moment_column("last_run_at", _("last run"))
    asked_for = moment_column("run_requested_at", _("run requested"))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_operate(request) or super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*self.readonly_fields, *not_operated(request)]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        warn_of_paces(request, [obj])

    # A link cannot be deleted alone. This is not a permission: it is deleted with its job or OLT.

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        node = self.get_object(request, object_id)
        if node is not None and node.master_id is not None and self.has_delete_permission(request, node):
            messages.error(
                request, gettext("%(node)s is deleted together with the node that it follows.") % {"node": node}
            )
            return redirect("admin:jobs_workflownode_change", node.pk)
        response: HttpResponse = super().delete_view(request, object_id, extra_context)
        return response

    def render_change_form(self, request: HttpRequest, context: Any, **kwargs: Any) -> HttpResponse:
        node = kwargs.get("obj")
        response: HttpResponse = super().render_change_form(
            request, {**context, "show_delete": node is not None and node.master_id is None}, **kwargs
        )
        return response

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {name: each for name, each in super().get_actions(request).items() if name != "delete_selected"}

    def has_run_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(WorkflowNode.RUN_PERMISSION)

    @action(description=_("Run now"), icon="play_arrow", permissions=["run"])
    def run_chosen(self, request: HttpRequest, nodes: QuerySet[WorkflowNode]) -> None:
        ask_for_runs(request, nodes)

    @display(description=_("chained"), boolean=True)
    def is_chained(self, node: WorkflowNode) -> bool:
        return node.master_id is not None

    @display(description=_("interval (s)"))
    def interval(self, node: WorkflowNode) -> int | None:
        return None if node.master_id is not None else node.interval_seconds

    @display(description=_("priority"))
    def priority_here(self, node: WorkflowNode) -> int:
        return node.priority

    @display(description=_("values"), label={"blank": "warning"}, empty_value="-")
    def values(self, node: WorkflowNode) -> tuple[str, str] | None:
        return ("blank", gettext("column without values")) if node.remarks else None

    @display(description=_("remarks"), empty_value="-")
    def remarks(self, node: WorkflowNode) -> str | None:
        return " ".join(node.remarks) or None

    @display(description=pgettext_lazy("node", "enabled"), boolean=True)
    def is_enabled(self, node: WorkflowNode) -> bool:
        return node.enabled
