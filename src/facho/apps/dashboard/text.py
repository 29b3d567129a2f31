"""Words for times and causes, shared by templates and scripts."""

from django.utils.translation import gettext as _

from facho.apps.coordinator.obstacles import waiting_for
from facho.apps.inventory.spans import exact, interval, span, units
from facho.apps.polling.models import CAUSE_CHOICES

__all__ = ["exact", "figures", "for_scripts", "interval", "span", "units", "waiting_for"]


def _health() -> dict[str, object]:
    """Return the texts of the connection state."""
    return {
        "engine": {
            "live": _("Engine live"),
            "stale": _("Engine silent"),
            "saturated": _("Engine saturated"),
        },
        "connection": {
            "live": _("Connected"),
            "connecting": _("Connecting"),
            "lost": _("Disconnected"),
        },
        "banner": {
            "lost": _("The connection to Facho was lost {span} ago. Trying again; what you see is from then."),
            "stale": _("News is {span} old: the engine may be down."),
            "never": _("The engine has said nothing yet: it may be starting, or down."),
        },
    }


def figures() -> list[tuple[str, str, str]]:
    """Return the charts of an OLT: name, title, and text of an empty chart."""
    nothing = _("Nothing ran in this time.")
    return [
        ("success", _("Successful runs (%)"), nothing),
        ("duration", _("Duration of runs (s)"), _("No run completed in this time.")),
        ("round_trip", _("Round trip (ms)"), _("The OLT answered nothing in this time.")),
        ("retransmissions", _("Repeated requests"), nothing),
        ("retry_gap", _("Time between attempts (s)"), _("No run was tried again in this time.")),
        ("lost", _("Lost slots by cause"), _("No slot was lost in this time.")),
    ]


def for_scripts() -> dict[str, object]:
    """Return all texts of the scripts."""
    return {
        "units": units(),
        "ago": _("{span} ago"),
        "ahead": _("in {span}"),
        "due": _("due now"),
        "late": _("{span} late"),
        "linkOf": _("link {n} of {m}"),
        "oneLink": _("1 link"),
        "links": _("{n} links"),
        "waits": _("waits for {what}"),
        "waitingFor": waiting_for(),
        "trigger": {"schedule": _("schedule"), "manual": _("by hand")},
        **_health(),
        "asked": _("Asked for. It starts as soon as its OLT and a poller are free."),
        "askedAlready": _("That was asked for already; it has not begun yet."),
        "failed": _("That did not work ({status})."),
        "offline": _("Facho cannot be reached."),
        "noHistory": _("No power was read in this time."),
        "noPool": _("Nothing is known of the pool in this time."),
        "busyOf": _("{n} of {m} busy"),
        "onHost": _("on {host}"),
        "figures": {
            "success_rate": _("successful runs"),
            "duration_mean": _("mean"),
            "duration_p95": _("95 % of runs at most"),
            "round_trip_p50": _("median"),
            "round_trip_p95": _("95 % at most"),
            "retransmissions": _("repeated requests"),
            "retry_gap_mean": _("mean"),
        },
        "causes": {cause: str(label) for cause, label in CAUSE_CHOICES},
        "chart": {
            "rx_dbm": _("ONU receives"),
            "olt_rx_dbm": _("OLT receives"),
            "tx_dbm": _("ONU sends"),
            "busy": _("busy"),
            "busiest": _("busiest minute"),
            "dark": _("dark"),
        },
    }
