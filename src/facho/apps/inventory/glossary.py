"""Words of the trade and of Facho, each explained in one or two sentences.

Pages show the explanation beside the word (tag `term`), and the page of the glossary lists them all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


@dataclass(frozen=True, slots=True)
class Term:
    """A word and its meaning, in the user's language."""

    word: Any
    meaning: Any


GLOSSARY: Mapping[str, Term] = {
    "breaker": Term(
        _("breaker"),
        _(
            "A protection that Facho sets by itself. An OLT that did not answer several attempts in a row is no longer "
            "polled, only probed once a minute. When it answers, the breaker closes and polling resumes."
        ),
    ),
    "capacity": Term(_("capacity of a port"), _("The number of ONUs that a PON port can have.")),
    "chain": Term(
        _("chain"),
        _(
            "Jobs that run one after the other: the first one, the master, has the schedule, and the others follow it "
            "on the same OLT without a pause."
        ),
    ),
    "composite": Term(_("composite"), _("A master and its chain, which run as one unit in one poller.")),
    "coverage": Term(
        _("coverage"),
        _("How much of a port a run read: all, a part or nothing. Only a complete port proves that an ONU is missing."),
    ),
    "dying_gasp": Term(
        _("dying gasp"),
        _("The last message of an ONU that loses electrical power. The fibre is intact; the customer has no power."),
    ),
    "execution": Term(_("execution"), _("One run of a node in one slot, with its outcome.")),
    "floor": Term(
        _("floor"),
        _("The shortest interval at which a column can be read without overloading an OLT of its brand."),
    ),
    "interval": Term(
        _("interval"),
        _("The time from one slot to the next. Slots are fixed times: a late run does not move those after it."),
    ),
    "job": Term(_("job"), _("What is read from the OLTs of a brand, and how often.")),
    "lease": Term(
        _("lease"),
        _("The right to send requests to a device. Only one run can hold it, so an OLT never serves two at once."),
    ),
    "los": Term(
        _("LOS"),
        _("Loss of signal: the OLT receives no light from the ONU. Often a cut or bent fibre or a dirty connector."),
    ),
    "missing": Term(
        _("missing"),
        _("An ONU that is no longer in the list of its OLT, confirmed by several complete readings of its port."),
    ),
    "node": Term(_("node"), _("One job on one OLT. It can have an interval of its own.")),
    "plan": Term(
        _("plan of the hour"),
        _("What is due on an OLT in this hour, and when it will run, from the durations of earlier runs."),
    ),
    "poller": Term(
        _("poller"), _("A worker of the engine. It runs one composite at a time, and so reads one OLT at a time.")
    ),
    "problem": Term(
        _("problem"),
        _("A failure in the network that Facho found in the readings, with its evidence and the most likely cause."),
    ),
    "quota": Term(
        _("quota"),
        _(
            "The number of runs that a job owes to an hour: with an interval of 5 minutes it is 12. Each one is "
            "completed, failed, skipped or pending."
        ),
    ),
    "rx": Term(
        pgettext_lazy("glossary", "received power"),
        _("The light that arrives, in dBm. Below -27 dBm a service becomes unstable; below -30 dBm most ONUs go down."),
    ),
    "saturated": Term(
        _("saturated"),
        _(
            "The pollers were busy for more than 75 % of a minute, until that falls below 65 %. Runs start late then. "
            "Add pollers or lengthen intervals."
        ),
    ),
    "scope": Term(_("scope"), _("The sites and tags whose OLTs a user sees. Without a scope, a user sees all OLTs.")),
    "slot": Term(
        _("slot"),
        _("A fixed time at which a node is due. A slot that has not started when the next one is due is skipped."),
    ),
    "suspect": Term(
        _("ONUs in doubt"),
        _(
            "Too many ONUs disappeared at once, or there are more than an OLT can have. Facho keeps the known ones "
            "until the next discovery confirms it."
        ),
    ),
    "violation": Term(_("violation"), _("An hour in which less than 80 % of a quota was completed.")),
    "window": Term(_("window"), _("The number of requests that are sent to an OLT at once. Facho finds it by itself.")),
}
