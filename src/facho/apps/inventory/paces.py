"""Learned window of an OLT as text. See `engine/collect/flow.py`."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.inventory.formats import whole
from facho.brands import BRANDS
from facho.engine.brand import Manners
from facho.engine.collect.flow import Why
from facho.engine.collect.learned import Learned

HELP = (
    "Number of requests in flight that suits this OLT, as measured by its runs: one entry for optical "
    "values and one for other values. Empty until a run has measured it."
)
REASONS = ("admin_limit", "brand_limit", "no_gain", "lost", "slower", "untried")


def learned_pace(olt: Any) -> list[dict[str, Any]]:
    """Return window, rate and round trip of each kind of request, and the reason for the limit."""
    brand = BRANDS.get(olt.brand)
    limit = olt.max_in_flight or (brand.manners if brand else Manners()).max_in_flight
    learned = Learned(olt.learned if isinstance(olt.learned, dict) else {})
    entries = []
    for kind in ("cheap", "optical"):
        pace = learned.pace(kind, limit)
        if pace.measured is None:
            continue
        reason = str(pace.why)
        if pace.why is Why.LIMIT:
            reason = "admin_limit" if olt.max_in_flight else "brand_limit"
        sentences = {
            "admin_limit": _("The limit set for this OLT is %(limit)d."),
            "brand_limit": _("The automatic limit for this brand is %(limit)d. Set a limit on the OLT to allow more."),
            "no_gain": _("More requests in flight did not increase the values per second."),
            "lost": _("With more requests in flight, requests were lost."),
            "slower": _("With more requests in flight, the OLT answered more slowly."),
            "untried": _("A larger window has not been tried yet. The next runs will try it."),
        }
        entries.append(
            {
                "requests": kind,
                "window": pace.window,
                "limit": limit,
                "values_per_second": round(pace.measured.rate, 1),
                "round_trip": round(pace.measured.round_trip, 4),
                "reason": reason,
                "explanation": sentences[reason] % {"limit": limit},
            }
        )
    return entries


def describe_pace(entry: dict[str, Any]) -> str:
    """Return one learned window as a sentence."""
    what = _("Optical values") if entry["requests"] == "optical" else _("Other values")
    window = ngettext("%(n)d request in flight", "%(n)d requests in flight", entry["window"]) % {"n": entry["window"]}
    measured = _("%(rate)s values per second, round trip %(trip)d ms") % {
        "rate": whole(entry["values_per_second"]),
        "trip": round(entry["round_trip"] * 1000),
    }
    return f"{what}: {window}, {measured}. {entry['explanation']}"
