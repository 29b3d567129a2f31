"""Effective settings of a node: its own, or its job's, as query expressions.

`through` leads to the node from the queried table: "node__" from executions, empty from nodes.
"""

from django.apps import apps
from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Coalesce

from facho.apps.jobs.columns import READS_WHAT_IT_NAMES


def enabled(through: str = "") -> Case:
    """Return whether a node is scheduled. A node whose job reads nothing is not: it would fail in every slot."""
    job = f"{through}job"
    # By name, because the models import this module.
    oids = apps.get_model("jobs", "SnmpJobOid").objects.filter(job=OuterRef(f"{job}_id"))
    names_nothing = Q(**{f"{job}__kind__in": READS_WHAT_IT_NAMES, f"{job}__columns": []})
    own_or_jobs = Coalesce(f"{through}own_enabled", f"{job}__enabled")
    return Case(When(names_nothing & ~Exists(oids), then=Value(False)), default=own_or_jobs)


def interval_seconds(through: str = "") -> Coalesce:
    return Coalesce(f"{through}own_interval_seconds", f"{through}job__interval_seconds")


def priority(through: str = "") -> Coalesce:
    return Coalesce(f"{through}own_priority", f"{through}job__priority")


# The master first, then its chain in running order: by priority, then by id.
CHAIN_ORDER = (F("master_id").asc(nulls_first=True), priority().desc(), F("id").asc())
