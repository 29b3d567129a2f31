"""Jobs, each with its OLTs. Interval and on or off are set here; the other settings of a job are in the admin."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.apps.accounts.permissions import missing
from facho.apps.changes.models import Change
from facho.apps.coordinator.explain import explain
from facho.apps.coordinator.queries import OLT_HEAVY
from facho.apps.dashboard import queries
from facho.apps.dashboard.list_pages import (
    ListColumn,
    ListQuery,
    ListSpec,
    page_number,
    page_of,
)
from facho.apps.dashboard.shown_changes import last_changes
from facho.apps.dashboard.views import page, refuse, show
from facho.apps.inventory import labels
from facho.apps.inventory.changes import save_changes
from facho.apps.inventory.models import brand_choices
from facho.apps.inventory.remarks import remarks_on, with_remarks
from facho.apps.inventory.scopes import restrict, visible_ids
from facho.apps.jobs.columns import columns_read
from facho.apps.jobs.filters import JobFilter
from facho.apps.jobs.models import SnmpJob, WorkflowNode, shared_refusal
from facho.apps.polling.models import OPEN_STATUSES, Execution

JOBS = ListSpec(
    name="jobs",
    filters=JobFilter,
    columns=(
        ListColumn("name", _("Job"), ("brand", "name")),
        ListColumn("reads", _("Reads")),
        ListColumn("interval", _("Every"), ("interval_seconds",), is_number=True),
        ListColumn("priority", _("Priority"), ("priority",), is_number=True),
        ListColumn("olts", _("OLTs"), ("olt_count",), is_number=True),
    ),
    sentences={
        "q": _("Search: %(value)s"),
        "brand": _("Brand: %(value)s"),
        "olt": _("OLT: %(value)s"),
        "kind": _("Type: %(value)s"),
        "enabled": _("Enabled: %(value)s"),
        "follows": _("Follows: %(value)s"),
        "is_master": _("Masters only: %(value)s"),
    },
    words={
        "brand": lambda value, _request: dict(brand_choices()).get(value, value),
        "kind": lambda value, _request: str(dict(SnmpJob.Kind.choices).get(value, value)),
    },
)


def _may_set(user: Any, model: str) -> bool:
    """Return whether a user may set interval and on or off of a job or node."""
    return any(user.has_perm(f"jobs.{verb}_{model}") for verb in ("operate", "change"))


def _counted(user: Any) -> QuerySet[SnmpJob]:
    """Return all jobs with the number of their OLTs that a user sees."""
    ids = visible_ids(user)
    seen = None if ids is None else Q(nodes__olt__in=ids)
    return SnmpJob.objects.annotate(olt_count=Count("nodes", filter=seen))


@page("jobs.view_snmpjob")
def jobs(request: HttpRequest) -> HttpResponse:
    wanted = ListQuery(request, JOBS)
    rows = wanted.narrowed(_counted(request.user))
    if wanted.text:
        rows = rows.filter(Q(name__icontains=wanted.text) | Q(name__in=labels.jobs_labelled(wanted.text)))
    rows = rows.order_by(*wanted.order_by) if wanted.sort else rows.order_by("brand", "-priority", "name")

    def load(ids: list[int]) -> list[Any]:
        related = _counted(request.user).select_related("follows").prefetch_related("oids", with_remarks(request.user))
        found = related.in_bulk(ids)
        return [JobRow(found[pk]) for pk in ids if pk in found]

    shown = page_of(rows, page_number(request.GET.get("page")), load)
    context = {
        "active": "jobs",
        "jobs": shown.object_list,
        "page": shown,
        "brands": [each for each in brand_choices() if each[0]],
        "kinds": SnmpJob.Kind.choices,
    }
    return show(request, "jobs.html", {**context, **wanted.context()})


class JobRow:
    """A job with what it reads in words."""

    def __init__(self, job: Any) -> None:
        self.job = job
        names = columns_read(job.brand, job.kind, job.columns)
        self.reads = [*map(labels.column, names), *(oid.name for oid in job.oids.all())]
        self.remarks = remarks_on(job.nodes_with_blanks)


class JobIntervalForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """Interval of a job, and whether it runs."""

    class Meta:
        model = SnmpJob
        fields = SnmpJob.OPERATED_FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        if self.instance.follows_id is not None:
            # It runs whenever its master does.
            del fields["interval_seconds"]
            return
        fields["interval_seconds"].help_text = _("In seconds. OLTs with an interval of their own keep it.")


class NodeIntervalForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """Interval of a job on one OLT, and whether it runs there."""

    own_enabled = forms.TypedChoiceField(
        label=_("enabled here"),
        required=False,
        choices=[("", _("same as the job")), ("true", _("yes")), ("false", _("no"))],
        coerce=lambda value: value == "true",
        empty_value=None,
    )

    class Meta:
        model = WorkflowNode
        fields = WorkflowNode.OPERATED_FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        own = self.instance.own_enabled
        self.initial["own_enabled"] = "" if own is None else str(own).lower()
        if self.instance.master_id is not None:
            del fields["own_interval_seconds"]
            return
        every = self.instance.job.interval_seconds
        fields["own_interval_seconds"].help_text = _("Empty: same as the job, %(seconds)d s.") % {"seconds": every}


@page("jobs.view_snmpjob", has_form=True)
def job(request: HttpRequest, job_id: int) -> HttpResponse:
    """Show a job, what it reads, and its OLTs with the interval in effect and the next run."""
    user = request.user
    related = ("oids", Prefetch("followers", SnmpJob.objects.order_by("-priority", "name")), with_remarks(user))
    found = get_object_or_404(_counted(user).select_related("follows").prefetch_related(*related), pk=job_id)
    is_shared = found.is_applied_beyond(visible_ids(user))
    is_allowed = _may_set(user, "snmpjob") and not is_shared
    form = JobIntervalForm(request.POST or None, instance=found) if is_allowed else None
    if request.method == "POST":
        if form is None:
            said = shared_refusal(found) if is_shared else missing(SnmpJob.OPERATE_PERMISSION)
            return refuse(request, said)
        if form.is_valid():
            return _save(request, form, redirect("dashboard:job", found.pk))
        # The form has written invalid values into the row.
        found.refresh_from_db(fields=SnmpJob.OPERATED_FIELDS)
    shown = page_of(_nodes(user, found), page_number(request.GET.get("page")), _node_rows)
    own = Change.objects.filter(object_type="jobs.snmpjob", object_id=found.pk)
    context = {
        "active": "jobs",
        "job": found,
        "row": JobRow(found),
        "form": form,
        "refusal": shared_refusal(found) if is_shared and _may_set(user, "snmpjob") else "",
        "nodes": shown.object_list,
        "page": shown,
        "changes": last_changes(own, user),
    }
    return show(request, "job.html", context)


def _save(request: HttpRequest, form: Any, answer: HttpResponse) -> HttpResponse:
    """Save the changed fields, and show the warnings of the new interval."""
    row = form.instance
    save_changes(row, form.changed_data)
    messages.success(request, gettext("%(name)s was saved.") % {"name": row})
    for warning in row.warnings:
        messages.warning(request, warning)
    return answer


def _nodes(user: Any, found: SnmpJob) -> QuerySet[WorkflowNode]:
    return restrict(WorkflowNode.objects.filter(job=found), user).order_by("olt__name", "pk")


def _node_rows(ids: list[int]) -> list[queries.NodeRow]:
    ended = Execution.objects.filter(node=OuterRef("pk")).exclude(status__in=OPEN_STATUSES).order_by("-slot")
    nodes = (
        WorkflowNode.objects.select_related("job", "olt", "master__job")
        .prefetch_related("job__oids")
        .defer(*OLT_HEAVY)
        .annotate(last_execution_id=Subquery(ended.values("pk")[:1]))
        .in_bulk(ids)
    )
    rows = [nodes[pk] for pk in ids if pk in nodes]
    lasts = Execution.objects.defer("coverage", "failed_onus").in_bulk(
        [each.last_execution_id for each in rows if each.last_execution_id]
    )
    return [queries.NodeRow(each, lasts.get(each.last_execution_id), None) for each in rows]


@page("jobs.view_workflownode", has_form=True)
def node(request: HttpRequest, node_id: int) -> HttpResponse:
    """Explain the delay of a node, and set its interval; the OLT page shows the explanation in a panel."""
    explained = explain(node_id, timezone.now(), request.user)
    # Invalid values are written into the row of the form.
    own_row = WorkflowNode.objects.select_related("olt", "job", "master__job") if request.method == "POST" else None
    row = explained.node if own_row is None else own_row.get(pk=node_id)
    form = NodeIntervalForm(request.POST or None, instance=row) if _may_set(request.user, "workflownode") else None
    if request.method == "POST":
        if form is None:
            return refuse(request, missing(WorkflowNode.OPERATE_PERMISSION))
        if form.is_valid():
            return _save(request, form, redirect("dashboard:node", node_id))
    may_run = request.user.has_perm(WorkflowNode.RUN_PERMISSION)
    own = Change.objects.filter(object_type="jobs.workflownode", object_id=node_id)
    context = {
        "active": "olts",
        "explained": explained,
        "form": form,
        "may_run": may_run,
        "changes": last_changes(own, request.user),
    }
    return show(request, "node.html", context)
