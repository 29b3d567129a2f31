"""Pages of problems: the list, one problem with its history, and what people do about them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from facho.apps.accounts.permissions import missing
from facho.apps.dashboard import queries
from facho.apps.dashboard.list_pages import ListQuery
from facho.apps.dashboard.onu_list import ONUS, onu_page
from facho.apps.dashboard.views import back_to, page, show
from facho.apps.inventory.models import Tag
from facho.apps.inventory.scopes import visible_olts
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling import live
from facho.apps.rest.export import CONTENT_TYPES, Export
from facho.apps.rest.filters import FilterSet, search_problem
from facho.problems.columns import PROBLEM_COLUMNS
from facho.problems.filters import ProblemFilter
from facho.problems.models import CHANGE_PERMISSION, MOST_COMMENT_CHARACTERS, Problem
from facho.problems.queries import OF_JOBS, assignable_users, problems_of, searched, with_comment

PROBLEMS_PER_PAGE = 50

# It is the list of ONUs without its filters, columns to choose and views.
ONUS_OF_PROBLEM = replace(ONUS, name="problem", filters=FilterSet, has_choice=False)

# Parameters of the page that are not filters of the API.
OWN = ("q", "page", "tab", "handled", "sort", "file")
# Open problems by what people did: filters of the API.
HANDLED = {
    "new": {"acknowledged": "false", "snoozed": "false"},
    "acknowledged": {"acknowledged": "true", "snoozed": "false"},
    "assigned": {"assigned": "true", "snoozed": "false"},
    "snoozed": {"snoozed": "true"},
}

# The cause in words has its confidence.
FILE_COLUMNS = [each for each in PROBLEM_COLUMNS if each.name not in ("id", "confidence")]

# Choices of a snooze, in hours.
SNOOZES = (1, 4, 24, 7 * 24)


@page("problems.view_problem")
def problems(request: HttpRequest) -> HttpResponseBase:
    """Show the open problems, the worst first, or the past ones, the last first; or return them as a file."""
    now = timezone.now()
    is_past = request.GET.get("tab") == "past"
    wanted, words = _filters(request), request.GET.get("q", "").strip()
    problem = search_problem(words)
    rows = problems_of(request.user)
    rows = rows.filter(until__isnull=False).order_by("-until", "-id") if is_past else rows.open().worst_first()
    found = ProblemFilter(wanted, rows if problem else searched(rows, words))
    olts = visible_olts(request.user).select_related("site").only("name", "site__name")
    is_valid = found.is_valid() and not problem
    if is_valid and (file_format := request.GET.get("file")) in CONTENT_TYPES:
        # The same rows: those of the list are in the scope of the user.
        table = with_comment(Problem.objects.select_related("olt", "onu", "acknowledged_by", "assignee"))
        return Export("problems", found.qs, table, FILE_COLUMNS, file_format, title=_("Problems")).response()
    context = {
        "active": "problems",
        "page": Paginator(found.qs if is_valid else Problem.objects.none(), PROBLEMS_PER_PAGE).get_page(
            request.GET.get("page")
        ),
        "problem": problem,
        "errors": [error for errors in found.errors.values() for error in errors],
        "is_past": is_past,
        "is_filtered": bool(words or set(wanted) - {"snoozed"}),
        "q": words,
        "wanted": wanted,
        "handled": request.GET.get("handled", ""),
        "olts": olts,
        "sites": sorted({each.site.name for each in olts if each.site}),
        "tags": Tag.objects.filter(olts__in=olts).distinct().values_list("name", flat=True),
        "kinds": Problem.Kind.choices,
        "severities": Problem.Severity.choices,
        "silent": _silence(request, now),
        **_actions(request),
    }
    return show(request, "problems.html", context)


def _filters(request: HttpRequest) -> QueryDict:
    """Return the filters of the API that the form means."""
    wanted = request.GET.copy()
    for name in [name for name, value in wanted.items() if not value or name in OWN]:
        del wanted[name]
    if request.GET.get("tab") != "past":
        wanted.update(HANDLED.get(request.GET.get("handled", ""), {"snoozed": "false"}))
    return wanted


def _silence(request: HttpRequest, now: Any) -> Any:
    """Return the last report of the engine if the list is out of date. It evaluates beside the scheduler."""
    snapshot = live.snapshot_for(request.user, now)
    return {"age": snapshot["age"], "at": snapshot["at"]} if snapshot["stale"] else None


@page("problems.view_problem")
def problem(request: HttpRequest, problem_id: int) -> HttpResponse:
    """Show one problem: its evidence, its history and its ONUs."""
    found = get_object_or_404(problems_of(request.user), pk=problem_id)
    wanted = ListQuery(request, ONUS_OF_PROBLEM)
    context = {
        "active": "problems",
        "problem": found,
        "entries": found.entries.all(),
        "wanted": wanted,
        "page": onu_page(wanted, onus := queries.onus_of_problem(request.user, found)),
        "nodes": nodes_of(found),
        "is_on_map": found.is_open and onus.filter(position__isnull=False).exists(),
        **_actions(request),
    }
    return show(request, "problem.html", context)


def nodes_of(problem: Problem) -> QuerySet[WorkflowNode]:
    """Return the nodes of a violated quota or a late job, by the name of the job."""
    name = problem.evidence.get("task") if problem.kind in OF_JOBS else None
    return WorkflowNode.objects.filter(olt=problem.olt_id, job__name=name) if name else WorkflowNode.objects.none()


def _actions(request: HttpRequest) -> dict[str, Any]:
    """Return what the forms of a problem need."""
    may_act = request.user.has_perm(CHANGE_PERMISSION)
    return {
        "may_act": may_act,
        "people": assignable_users() if may_act else [],
        "snoozes": SNOOZES,
        "most_characters": MOST_COMMENT_CHARACTERS,
        "back": request.get_full_path(),
    }


@require_POST
@login_required
def act(request: HttpRequest, problem_id: int) -> HttpResponse:
    """Do what a form of a problem asks for, and return to its page."""
    if not request.user.has_perm(CHANGE_PERMISSION):
        return render(request, "403.html", {"exception": missing(CHANGE_PERMISSION)}, status=403)
    found = get_object_or_404(problems_of(request.user), pk=problem_id)
    try:
        messages.success(request, _act(found, request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    return back_to(request, found.get_absolute_url())


def _act(problem: Problem, request: HttpRequest) -> str:
    user, comment = request.user, request.POST.get("comment", "").strip()[:MOST_COMMENT_CHARACTERS]
    match request.POST.get("action"):
        case "acknowledge":
            return _acknowledged(problem, user, comment)
        case "unacknowledge":
            problem.unacknowledge(by=user)
            _keep(problem, user, comment)
            return _("The acknowledgement was withdrawn.")
        case "assign":
            name = request.POST.get("user", "")
            problem.assign(by=user, to=get_object_or_404(User, username=name) if name else None)
            return _("Assigned to %(user)s.") % {"user": name} if name else _("No longer assigned.")
        case "take":
            problem.assign(by=user, to=user)
            _keep(problem, user, comment)
            return _("Assigned to you.")
        case "snooze":
            hours = queries.number(request.POST.get("hours"))
            until = timezone.now() + timedelta(hours=hours) if hours in SNOOZES else None
            problem.snooze(by=user, until=until)
            return _("Snoozed.") if until else _("No longer snoozed.")
        case "comment" if comment:
            problem.comment(by=user, comment=comment)
            return _("The comment was added.")
    raise ValidationError(_("Choose an action, or write a comment."))


def _acknowledged(problem: Problem, user: Any, comment: str) -> str:
    if problem.acknowledge(by=user, comment=comment):
        return _("Acknowledged.")
    # Another user was faster.
    problem.refresh_from_db()
    name = problem.acknowledged_by.get_username() if problem.acknowledged_by else "–"
    if comment:
        return _("Already acknowledged by %(user)s. Your comment was added.") % {"user": name}
    return _("Already acknowledged by %(user)s.") % {"user": name}


def _keep(problem: Problem, user: Any, comment: str) -> None:
    """Add the comment that was in the form of another action."""
    if comment:
        problem.comment(by=user, comment=comment)
