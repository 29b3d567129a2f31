"""Queries on OLTs, shared by API and admin."""

from typing import Any

from django.apps import apps
from django.db.models import Aggregate, Count, Exists, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import visible_ids

# Columns of an OLT that lists do not need: its secrets, and large values of the engine.
OLT_HEAVY = ("olt__community", "olt__v3_auth_key", "olt__v3_priv_key", "olt__extra", "olt__learned")

# Whether another OLT has the same device.
SHARES_DEVICE = Exists(Olt.objects.filter(device=OuterRef("device")).exclude(pk=OuterRef("pk")).exclude(device=""))


def with_olt_counts(labels: QuerySet[Any], user: Any) -> QuerySet[Any]:
    """Add to sites or tags the number of their OLTs that the user sees. Sorted by name."""
    ids = visible_ids(user)
    seen = None if ids is None else Q(olts__in=ids)
    counted: QuerySet[Any] = labels.annotate(olts_total=Count("olts", filter=seen)).order_by("name")
    return counted


def with_sharing(olts: QuerySet[Olt]) -> QuerySet[Olt]:
    """Add whether another OLT has the same device, so that the others are queried only if needed."""
    return olts.annotate(shares_device=SHARES_DEVICE)


def with_onu_counts(olts: QuerySet[Olt]) -> QuerySet[Olt]:
    """Add the ONU counters of each OLT, and the time of the last reading.

    Subqueries are computed for the rows of one page only. A join would read the ports of all OLTs first.
    """
    # By name, because ports depend on OLTs.
    ports = apps.get_model("telemetry", "PonPort")._default_manager.filter(olt=OuterRef("pk")).order_by()
    return olts.annotate(
        onus_total=Coalesce(_one_number(ports, Sum("total")), 0),
        onus_online=Coalesce(_one_number(ports, Sum("online")), 0),
        onus_missing=Coalesce(_one_number(ports, Sum("missing")), 0),
        last_read_at=_one_number(ports, Max("read_at")),
    )


def _one_number(ports: QuerySet[Any], what: Aggregate) -> Subquery:
    return Subquery(ports.values("olt").annotate(number=what).values("number"))
