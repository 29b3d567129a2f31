"""Pages of the dashboard. Each is plain HTML; its scripts fetch the page again after a notification."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from facho.apps.accounts.permissions import missing
from facho.apps.changes.models import Change
from facho.apps.coordinator import queries as coordination
from facho.apps.coordinator.advice import plan_advice
from facho.apps.coordinator.timeline import runs_of, timeline
from facho.apps.dashboard import queries, text
from facho.apps.dashboard.shown_changes import last_changes
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import visible_ids, visible_olts
from facho.apps.jobs.models import WorkflowNode
from facho.apps.jobs.raw_values import raw_values
from facho.apps.polling import live
from facho.apps.telemetry.models import Onu
from facho.apps.telemetry.pon_ports import ports_of
from facho.problems.queries import count_open, problems_of

# Ranges of an OLT's charts in hours, each with the step of a point: about 50 points.
FIGURE_RANGES = ((24, "30m"), (7 * 24, "3h"), (30 * 24, "12h"))

COMPOSITES_ON_PAGE = 12
PROBLEMS_ON_OLT = 20
ONUS_PER_PAGE = 50

View = Callable[..., HttpResponseBase]


def page_for_all(view: View) -> View:
    """Turn a view into a page: login required, not cached."""
    return never_cache(require_safe(login_required(view)))


def needs(permission: str) -> Callable[[View], View]:
    """Turn a view into one for users with this permission. Others are told which one is missing."""

    def decorated(view: View) -> View:
        @login_required
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.user.has_perm(permission):
                return view(request, *args, **kwargs)
            return refuse(request, missing(permission))

        return checked

    return decorated


def refuse(request: HttpRequest, said: str) -> HttpResponse:
    """Answer with the page of a refusal, which tells the reason."""
    return render(request, "403.html", {"exception": said}, status=403)


def back_to(request: HttpRequest, default: str) -> HttpResponse:
    """Return to the page of the form that was sent, if it is one of ours."""
    back = request.POST.get("back", "")
    is_own = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(back if is_own and back.startswith("/") else default)


def page(permission: str, *, has_form: bool = False) -> Callable[[View], View]:
    """Turn a view into a page for users with this permission, not cached; a page with a form also takes a POST."""
    methods = require_http_methods(["GET", "HEAD", "POST"]) if has_form else require_safe
    return lambda view: never_cache(methods(needs(permission)(view)))


def show(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Render a page with the context of its frame and scripts."""
    now = timezone.now()
    snapshot = live.snapshot_for(request.user, now)
    boot = {
        "now": now.isoformat(),
        "snapshot": snapshot if request.user.has_perm(live.POOL_PERMISSION) else live.without_pool(snapshot),
        "staleAfter": live.STALE_AFTER.total_seconds(),
        "text": text.for_scripts(),
        **context.pop("boot", {}),
    }
    return render(
        request,
        f"dashboard/{template}",
        {
            **context,
            "problem_count": _problem_count(request.user),
            "sees_all_olts": visible_ids(request.user) is None,
            "now": now,
            "zone": timezone.get_current_timezone_name(),
            "boot": boot,
        },
    )


def _problem_count(user: Any) -> int:
    """Return the number at the link to the problems."""
    return count_open(user) if user.has_perm("problems.view_problem") else 0


@page("inventory.view_olt")
def olt(request: HttpRequest, olt_id: int) -> HttpResponse:
    found = get_object_or_404(visible_olts(request.user).select_related("site"), pk=olt_id)
    found.readers_olts = visible_ids(request.user)
    now = timezone.now()
    ports = ports_of(olt_id)
    masters, older = queries.composites(request.user, olt=olt_id, limit=COMPOSITES_ON_PAGE)
    onus = queries.total(queries.OnuCounts.of(row.port) for row in ports)
    nodes = queries.node_rows(olt_id)
    raw = raw_values(olt_id, scalar=True)
    due = [row.node.next_run_at for row in nodes if row.runs and row.node.next_run_at]
    context = {
        "active": "olts",
        "olt": found,
        "units": {value.name: value.unit for value in raw},
        "raw_values": [value for value in raw if value.is_number],
        "raw_url": reverse("dashboard:olt-values", args=[olt_id]),
        "replacement": (replacement := found.replacements.first()),
        "unplaced": unplaced_onus(olt_id) if replacement else 0,
        "first_reading": None if onus.read_at else min(due, default=None),
        "tags": found.tags.all(),
        "problems": problems_of(request.user).filter(olt=olt_id).shown(now).worst_first()[:PROBLEMS_ON_OLT],
        "ports": ports,
        "onus": onus,
        "nodes": nodes,
        "composites": masters,
        "older": older,
        "strips": coordination.strips(olt_id, now),
        "plan": (plan := coordination.active_plans(olt_id, now).first()),
        "line": timeline(plan, runs_of(plan), now) if plan else None,
        "advice": plan_advice(plan.advice) if plan else [],
        "may_run": request.user.has_perm(WorkflowNode.RUN_PERMISSION),
        "may_operate": request.user.has_perm(Olt.OPERATE_PERMISSION),
        "figures": text.figures(),
        "figure_ranges": FIGURE_RANGES,
        "changes": last_changes(Change.objects.filter(olt_id=olt_id), request.user),
    }
    return show(request, "olt.html", context)


def unplaced_onus(olt_id: int) -> int:
    """Return the number of ONUs that were not found since the device of their OLT was replaced."""
    return Onu.objects.filter(olt=olt_id, place_taken=True, missing_since=None).count()
