"""Words for times and causes, shared by templates and scripts."""

from django.utils.translation import gettext as _

from facho.apps.coordinator.obstacles import waiting_for
from facho.apps.inventory import labels
from facho.apps.inventory.spans import units
from facho.apps.polling.models import CAUSE_CHOICES


def figures() -> list[tuple[str, str, str]]:
    """Return the charts of an OLT: name, title, and text of an empty chart."""
    nothing = _("Nothing ran in this period.")
    return [
        ("success", _("Successful runs (%)"), nothing),
        ("duration", _("Duration of runs (s)"), _("No run completed in this period.")),
        ("round_trip", _("Round trip (ms)"), _("The OLT did not answer in this period.")),
        ("retransmissions", _("Retransmitted requests"), nothing),
        ("retry_gap", _("Time between attempts (s)"), _("No run was retried in this period.")),
        ("lost", _("Lost slots by cause"), _("No slot was lost in this period.")),
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
        "waits": _("waiting for {what}"),
        "waitingFor": waiting_for(),
        "jobs": {name: str(label) for name, label in labels.JOBS.items()},
        "trigger": {"schedule": _("schedule"), "manual": _("manual")},
        "engine": {
            "live": _("Engine running"),
            "stale": _("Engine not reporting"),
            "saturated": _("Engine saturated"),
        },
        "connection": {
            "live": _("Connected"),
            "connecting": _("Connecting"),
            "lost": _("Disconnected"),
        },
        "banner": {
            "lost": _("The connection to Facho was lost {span} ago. Reconnecting; this page shows old data."),
            "stale": _("The engine has not reported for {span}: it may be down."),
            "never": _("The engine has not reported yet: it may be starting or down."),
        },
        "asked": _("Requested. The run starts as soon as the OLT and a poller are free."),
        "askedAlready": _("A run was already requested; it has not started yet."),
        "failed": _("The request failed ({status})."),
        "offline": _("Facho cannot be reached."),
        "noHistory": _("No power was read in this period."),
        "noTraffic": _("No traffic was read in this period."),
        "noTemperature": _("No temperature was read in this period."),
        "noPool": _("There is no data about the pollers for this period."),
        "busyOf": _("{n} of {m} busy"),
        "onHost": _("on {host}"),
        "figures": {
            "success_rate": _("successful runs"),
            "duration_mean": _("mean"),
            "duration_p95": _("95th percentile of runs"),
            "round_trip_p50": _("median"),
            "round_trip_p95": _("95th percentile"),
            "retransmissions": _("retransmitted requests"),
            "retry_gap_mean": _("mean"),
        },
        "causes": {cause: str(label) for cause, label in CAUSE_CHOICES},
        "chart": {
            "rx_dbm": _("ONU receives"),
            "olt_rx_dbm": _("OLT receives"),
            "tx_dbm": _("ONU sends"),
            "port_rx_dbm": _("mean of the port"),
            "in_octets": _("from the ONU"),
            "out_octets": _("to the ONU"),
            "temperature_c": _("temperature"),
            "busy": _("busy"),
            "busiest": _("busiest minute"),
            "dark": _("down"),
        },
        "timeline": {
            "online": _("online"),
            "dark": _("down"),
            "missing": _("missing"),
            "other": _("another state"),
            "unread": _("not read"),
            "marks": _("changes of users"),
            "maintenance": _("maintenance"),
            "titles": [_("From"), _("Duration"), _("State"), _("Cause")],
            "markTitles": [_("Time"), _("Change")],
            "period": _("{from} to {to}, time zone {zone}"),
        },
        "read": {
            "sending": _("Sending the request."),
            "done": _("Read at {time}: {what}."),
            "values": _("{n} values"),
            "unanswered": _("{n} not answered ({names})"),
            "other": _("Another ONU is at this place now; the values belong to it."),
        },
        "deleteNote": _("Delete this note?"),
    }
