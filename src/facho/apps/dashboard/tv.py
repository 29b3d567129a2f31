"""TV mode of the overview: large figures and panels in rotation, for a screen on the wall."""

from collections.abc import Sequence
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from facho import __version__
from facho.apps.dashboard.network import network_of
from facho.apps.dashboard.queries import latest_dark_onus, weakest_onus
from facho.apps.dashboard.views import show
from facho.problems.models import Problem
from facho.problems.queries import open_problems, problems_of

PROBLEMS_PER_PANEL = 5
MOST_PROBLEMS = 15
OLTS_PER_PANEL = 60
MOST_OLTS = 180
ONUS_PER_PANEL = 8

Item = TypeVar("Item")


def wall(request: HttpRequest) -> HttpResponse:
    """Show the overview for a screen on the wall."""
    now, user = timezone.now(), request.user
    session: Any = request.session
    network = network_of(user, MOST_OLTS)
    critical = problems_of(user).shown(now).filter(severity=Problem.Severity.CRITICAL)
    context = {
        "network": network,
        "problem_panels": pages(open_problems(user, MOST_PROBLEMS), PROBLEMS_PER_PANEL),
        "tile_panels": pages(network.tiles, OLTS_PER_PANEL),
        "critical": list(critical.values_list("pk", flat=True)),
        "dark": latest_dark_onus(user, ONUS_PER_PANEL),
        "weakest": weakest_onus(user, ONUS_PER_PANEL),
        "version": __version__,
        "session_end": session.row.expire_date,
    }
    return show(request, "tv.html", context)


def pages(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Return the items in pages, the first one even if there are none."""
    return [items[start : start + size] for start in range(0, max(len(items), 1), size)]
