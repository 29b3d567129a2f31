"""Level of a PON port: good, degraded, down or without ONUs. The only place that decides it, in Python and in SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from django.db.models import Case, CharField, F, IntegerField, Q, TextChoices, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual
from django.utils.translation import pgettext_lazy

if TYPE_CHECKING:
    from facho.apps.telemetry.models import PonPort


class Level(TextChoices):
    """From the worst to the best."""

    DARK = "dark", pgettext_lazy("port", "down")
    DEGRADED = "degraded", pgettext_lazy("port", "degraded")
    GOOD = "good", pgettext_lazy("port", "good")
    EMPTY = "empty", pgettext_lazy("port", "no ONUs")


# Counters of ONUs without light, and of all that do not work. `disabled` is intended, and `unknown` was not read.
DARK = ("offline", "los", "dying_gasp")
FAULTY = (*DARK, "auth_failed", "logging", "syncing", "degraded")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A port has the level from this number and this percentage of its ONUs on; both must be reached."""

    level: Level
    counters: Sequence[str]
    least: int
    percent: int


# The first one that is reached decides. ONUs that are missing do not count.
THRESHOLDS = (
    # Half of a port at the same time are not customers who turn off their ONUs: it is a fibre, a splitter or the power
    # of a street. One or two ONUs can be a coincidence.
    Threshold(Level.DARK, DARK, least=3, percent=50),
    # Nothing works, on a port with one or two ONUs, or with ONUs that do not get beyond logging in.
    Threshold(Level.DEGRADED, FAULTY, least=1, percent=100),
    # Up to 8 % of the ONUs of a port are usually off. A branch of 1:8 on a port of 45 is 18 %.
    Threshold(Level.DEGRADED, FAULTY, least=3, percent=15),
    # Low power is no habit of customers: a few percent are bad connectors, more are a splitter or a splice.
    Threshold(Level.DEGRADED, ("weak",), least=3, percent=10),
)

# A port with more of its capacity used is nearly full: time to plan another one.
NEARLY_FULL_PERCENT = 90


def level_of(port: "PonPort") -> Level:
    """Return the level of a port."""
    if port.present <= 0:
        return Level.EMPTY
    for each in THRESHOLDS:
        count = sum(getattr(port, name) for name in each.counters)
        if count >= each.least and 100 * count >= each.percent * port.present:
            return each.level
    return Level.GOOD


def present() -> Combinable:
    """Return the number of ONUs that are not missing, as an expression."""
    return Greatest(F("total") - F("missing"), 0, output_field=IntegerField())


def total_of(counters: Sequence[str]) -> Combinable:
    """Return the sum of some counters as an expression."""
    return reduce(add, map(F, counters))


def level() -> Case:
    """Return the level as an expression."""
    conditions = [When(Q(LessThanOrEqual(present(), 0)), then=Value(Level.EMPTY))]
    for each in THRESHOLDS:
        count = total_of(each.counters)
        enough = Q(GreaterThanOrEqual(count, each.least))
        share = Q(GreaterThanOrEqual(count * 100, present() * each.percent))
        conditions.append(When(enough & share, then=Value(each.level)))
    return Case(*conditions, default=Value(Level.GOOD), output_field=CharField())
