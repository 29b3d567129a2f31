"""Words for times and causes, used by the templates and handed to the scripts, so that both speak alike."""

from django.utils.translation import gettext as _

MINUTE, HOUR, DAY = 60, 3600, 86400


def units() -> dict[str, str]:
    """Return how a span of time is written, by its unit."""
    return {"s": _("{n} s"), "min": _("{n} min"), "h": _("{n} h"), "d": _("{n} d")}


def span(seconds: float) -> str:
    """Return a span of time in its largest unit, as pages show ages: 12 s, 5 min, 3 h, 2 d."""
    seconds = max(seconds, 0)
    if seconds < MINUTE:
        return units()["s"].format(n=int(seconds))
    if seconds < HOUR:
        return units()["min"].format(n=int(seconds // MINUTE))
    if seconds < 2 * DAY:
        return units()["h"].format(n=int(seconds // HOUR))
    return units()["d"].format(n=int(seconds // DAY))


def exact(seconds: float) -> str:
    """Return how long something took: 0.42 s, 12.3 s, 2 min 5 s."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"


def interval(seconds: int) -> str:
    """Return how often something happens: 300 is 5 min, 90 is 1 min 30 s."""
    whole, rest = divmod(seconds, MINUTE)
    return f"{whole} min {rest} s" if rest and 0 < whole < 60 else span(seconds)


def waiting_for() -> dict[str, str]:
    """Return what a composite in the queue is waiting for, by cause."""
    return {"olt_busy": _("its OLT to be free"), "no_free_poller": _("a free poller")}


def _health() -> dict[str, object]:
    """Return how it is said whether news comes in."""
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


def for_scripts() -> dict[str, object]:
    """Return every word that a script writes into a page."""
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
        "chart": {
            "rx_dbm": _("ONU receives"),
            "olt_rx_dbm": _("OLT receives"),
            "tx_dbm": _("ONU sends"),
            "busy": _("busy"),
            "dark": _("dark"),
        },
    }
