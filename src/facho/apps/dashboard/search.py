"""The page of the search, and the suggestions of the search box in the top bar."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from facho.apps.dashboard.views import page, show
from facho.apps.rest.filters import MOST_SEARCH_CHARACTERS, search_problem
from facho.apps.telemetry.search import Found, Search, exact, find

# Rows of each kind.
ON_PAGE = 25
SUGGESTED = 5


@page("telemetry.view_onu")
def search(request: HttpRequest) -> HttpResponse:
    """Show what a search finds. The form adds `go`, to open what it names exactly, or the only thing that it finds."""
    wanted = Search(_text(request))
    found = find(wanted, request.user, ON_PAGE)
    if "go" in request.GET:
        return redirect(_target(wanted, found))
    context = {
        "active": "search",
        "searched": wanted.text,
        "problem": search_problem(wanted.text),
        "found": found,
        "total": sum(each.count for each in found.values()),
    }
    return show(request, "search.html", context)


def _target(wanted: Search, found: dict[str, Found]) -> str:
    if onu := exact(wanted, found["onus"].rows):
        return reverse("dashboard:onu", args=[onu.pk])
    named = [olt for olt in found["olts"].rows if olt.pk in wanted.meant]
    if len(named) == 1:
        return reverse("dashboard:olt", args=[named[0].pk])
    onus, ports, olts = (found[kind] for kind in ("onus", "ports", "olts"))
    if ports.count == 1 and not named:
        [port] = ports.rows
        return reverse("dashboard:port", args=[port.olt_id, port.slot, port.port])
    if (onus.count, ports.count, olts.count) == (1, 0, 0):
        return reverse("dashboard:onu", args=[onus.rows[0].pk])
    # Without `go`: the page fetches its own address again for new data.
    return f"{reverse('dashboard:search')}?{urlencode({'q': wanted.text})}"


@page("telemetry.view_onu")
def suggestions(request: HttpRequest) -> HttpResponse:
    """Return the first results as HTML, for the list below the search box."""
    wanted = Search(_text(request))
    found = find(wanted, request.user, SUGGESTED)
    total = sum(each.count for each in found.values())
    context = {
        "searched": wanted.text,
        "problem": search_problem(wanted.text),
        "found": found,
        "total": total,
        "has_more": any(each.more or not each.is_counted for each in found.values()),
    }
    return render(request, "dashboard/_suggestions.html", context)


def _text(request: HttpRequest) -> str:
    # One more than the limit, so that a longer text is refused and not cut.
    return request.GET.get("q", "").strip()[: MOST_SEARCH_CHARACTERS + 1]
