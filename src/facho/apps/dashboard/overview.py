"""The overview: problems, OLTs and totals of the network first, then how Facho itself is doing."""

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from facho.apps.coordinator import queries as coordination
from facho.apps.dashboard import queries, tv
from facho.apps.dashboard.network import network_of
from facho.apps.dashboard.views import COMPOSITES_ON_PAGE, page_for_all, show
from facho.apps.inventory.spans import span
from facho.apps.polling import live
from facho.apps.polling.models import STATUS_CHOICES
from facho.apps.telemetry.models import RX_WEAK
from facho.engine.scheduling.pollers import SATURATED_ABOVE, SATURATED_UNTIL
from facho.problems.queries import open_problems

# Default range of the pool chart in minutes, and the other ranges in hours.
BUSY_MINUTES = 15
BUSY_RANGES = (24, 7 * 24, 30 * 24)

# Each shows a part of the overview.
PARTS = (
    "problems.view_problem",
    "inventory.view_olt",
    "telemetry.view_onu",
    live.POOL_PERMISSION,
    "polling.view_execution",
    "coordinator.view_quotatracker",
)
MOST_PROBLEMS = 6
# The worst ones; more would make the page slow. The others are in the list of OLTs.
MOST_OLTS = 60


@page_for_all
def overview(request: HttpRequest) -> HttpResponse:
    if not any(map(request.user.has_perm, PARTS)):
        return show(request, "no_role.html", {"active": "overview"})
    if "tv" in request.GET:
        return tv.wall(request)
    now = timezone.now()
    network = network_of(request.user, MOST_OLTS)
    masters, _older = queries.composites(request.user, limit=COMPOSITES_ON_PAGE)
    minutes = queries.busy_minutes(now - timedelta(minutes=BUSY_MINUTES))
    busy = {
        "minutes": [[round(at.timestamp() * 1000), percentage] for at, percentage in minutes],
        "span": BUSY_MINUTES * 60,
        "above": SATURATED_ABOVE,
        "until": SATURATED_UNTIL,
    }
    counts = queries.outcomes(now - timedelta(hours=1), request.user)
    outcomes = [(status, label, counts[status]) for status, label in STATUS_CHOICES if counts.get(status)]
    context = {
        "active": "overview",
        "problems": open_problems(request.user, MOST_PROBLEMS),
        "network": network,
        "tiles": network.tiles,
        "more_olts": network.other_olts,
        "outcomes": {"total": sum(counts.values()), "shown": outcomes},
        "composites": masters,
        "weakest": queries.weakest_onus(request.user),
        "dark": queries.latest_dark_onus(request.user),
        "hour": coordination.fleet_hour(now, request.user),
        "breakers": network.breakers,
        "violations": coordination.violations(now - timedelta(hours=24), request.user),
        "busy_span": span(BUSY_MINUTES * 60),
        "busy_ranges": BUSY_RANGES,
        "saturated_above": SATURATED_ABOVE,
        "saturated_until": SATURATED_UNTIL,
        "rx_weak": RX_WEAK,
        "boot": {"busy": busy},
    }
    return show(request, "overview.html", context)
