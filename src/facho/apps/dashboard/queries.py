"""Queries of the pages, a few for any number of rows."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from itertools import chain
from operator import attrgetter
from typing import Any

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet, Subquery, Sum

from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import OPEN_STATUSES, Execution, PollerStats
from facho.apps.polling.queries import with_chains
from facho.apps.telemetry.models import DARK_ONUS, RX_WEAK, Onu, OnuQuerySet, PonPort
from facho.apps.telemetry.queries import IS_MISSING, IS_WEAK
from facho.problems.models import Problem

# Pages do not read the secrets of an OLT.
SECRETS = ("community", "v3_auth_key", "v3_priv_key")

# Large columns of the engine that lists do not need.
ENGINES_OWN = ("extra", "learned")

# Columns of a row in a list of OLTs: a thousand rows with all columns would take twice as long.
OF_ROWS = (
    "name", "brand", "host", "port", "location", "site__name", "enabled", "reachability", "last_answer_at",
    "last_error", "suspect_since", "suspect_reason", "breaker_opened_at", "deleting_since",
)  # fmt: skip

# Worst first.
REACHABILITY_ORDER = {"unreachable": 0, "slow": 1, "unknown": 2, "reachable": 3, "disabled": 4}


@dataclass(frozen=True, slots=True)
class OnuCounts:
    """ONU counters of an OLT, a port or the whole fleet."""

    total: int = 0
    online: int = 0
    dark: int = 0
    weak: int = 0
    missing: int = 0
    held: int = 0
    read_at: datetime | None = None

    @classmethod
    def of(cls, port: PonPort) -> "OnuCounts":
        return cls(**{name: getattr(port, name) for name in NUMBERS}, read_at=port.read_at)

    @property
    def present(self) -> int:
        return self.total - self.missing

    @property
    def other(self) -> int:
        return self.present - self.online - self.dark


# Counters of `OnuCounts` on a port.
NUMBERS = {**{name: F(name) for name in ("total", "online", "weak", "missing", "held")}, "dark": DARK_ONUS}
SUMS: dict[str, Any] = {f"sum_of_{name}": Sum(number) for name, number in NUMBERS.items()}
NEWEST = Max("read_at")


@dataclass(frozen=True, slots=True)
class OltRow:
    """An OLT with its ONU counters."""

    olt: Olt
    onus: OnuCounts = field(default_factory=OnuCounts)


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node, its last result, and whether it is running."""

    node: WorkflowNode
    last: Execution | None
    now: Execution | None

    @property
    def scheduled(self) -> WorkflowNode:
        """Return the node whose grid applies: a chained node runs with its master."""
        return self.node.master or self.node

    @property
    def runs(self) -> bool:
        return self.node.enabled and self.scheduled.enabled and self.node.olt.enabled


def onu_counts(user: Any, olt_ids: Collection[int] | None = None) -> dict[int, OnuCounts]:
    """Return the ONU counters of each OLT that a user sees, or of some of them, unless it has no ports."""
    ports = restrict(PonPort.objects.order_by(), user)
    if olt_ids is not None:
        ports = ports.filter(olt_id__in=olt_ids)
    return {
        olt_id: OnuCounts(**dict(zip(NUMBERS, numbers, strict=True)), read_at=read_at)
        for olt_id, *numbers, read_at in ports.values_list("olt_id").annotate(**SUMS, newest=NEWEST)
    }


def onu_totals(user: Any) -> OnuCounts:
    """Return the sum of the ONU counters of all OLTs that a user sees."""
    sums = restrict(PonPort.objects.order_by(), user).aggregate(**SUMS, newest=NEWEST)
    return OnuCounts(**{name: sums[f"sum_of_{name}"] or 0 for name in NUMBERS}, read_at=sums["newest"])


def olt_rows(user: Any) -> list[OltRow]:
    """Return every OLT that a user sees with its ONU counters, the worst first."""
    counts = onu_counts(user)
    olts = visible_olts(user).select_related("site").only(*OF_ROWS)
    rows = [OltRow(olt, counts.get(olt.pk, OnuCounts())) for olt in olts]
    return sorted(rows, key=lambda row: (REACHABILITY_ORDER[row.olt.state], row.olt.name))


def total(counts: Iterable[OnuCounts]) -> OnuCounts:
    """Return the sum of all."""
    rows = list(counts)
    sums = {name: sum(map(attrgetter(name), rows)) for name in NUMBERS}
    return OnuCounts(**sums, read_at=max((each.read_at for each in rows if each.read_at), default=None))


def used_ports(olt_id: int) -> QuerySet[PonPort]:
    """Return the PON ports of an OLT that have ONUs."""
    return PonPort.objects.filter(olt_id=olt_id, total__gt=0).order_by("slot", "port")


def weakest_onus(user: Any, limit: int = 6) -> QuerySet[Onu]:
    """Return the ONUs with the lowest power that are not dark."""
    weak = restrict(Onu.objects.filter(IS_WEAK), user)
    return for_lists(weak).order_by("rx_level", "rx_dbm", "id")[:limit]


def latest_dark_onus(user: Any, limit: int = 6) -> list[Onu]:
    """Return the ONUs that went dark last. A query for each state finds them by its index."""
    dark = restrict(Onu.objects.filter(~IS_MISSING, state_since__isnull=False), user).order_by("-state_since", "-id")
    latest = chain(*(dark.filter(state=state).values_list("state_since", "pk")[:limit] for state in Onu.DARK))
    ids = [pk for _since, pk in nlargest(limit, latest)]
    return sorted(for_lists(Onu.objects.filter(pk__in=ids)), key=attrgetter("state_since", "id"), reverse=True)


def onus_of_problem(user: Any, problem: Problem) -> OnuQuerySet:
    """Return the ONUs of a problem as they are now."""
    if problem.kind == Problem.Kind.LOW_POWER:
        found = Onu.objects.below(RX_WEAK).filter(IS_WEAK, olt=problem.olt_id, slot=problem.slot, port=problem.port)
    else:
        found = Onu.objects.filter(pk__in=problem.onus)
    return restrict(found, user)


def for_lists(onus: OnuQuerySet) -> QuerySet[Onu]:
    """Read the OLT and the reading times with the ONUs, and no more columns than lists show."""
    return onus.with_freshness().select_related("olt", "replaced_by").only(
        "slot", "port", "onu", "index", "serial", "name", "description", "state", "state_since", "rx_dbm", "tx_dbm",
        "olt_rx_dbm", "distance_m", "last_rx_dbm", "last_rx_at", "last_distance_m", "last_distance_at", "last_down",
        "model", "missing_since",
        "moved_at", "moved_from", "olt__name", "replaced_by__name", "replaced_by__serial", "replaced_by__index",
    )  # fmt: skip


def number(text: str | None) -> int | None:
    """Return the number in an address, or None if it is invalid or too large for the database."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else None


def composites(
    user: Any, *, olt: int | None = None, status: str = "", before: int | None = None, limit: int = 25
) -> tuple[list[Execution], int | None]:
    """Return the last masters with their chains, and the id for the link to older ones.

    Counting millions of executions for page numbers would take too long, so there is only "older".
    """
    masters = (
        restrict(Execution.objects.filter(master_execution__isnull=True), user)
        .select_related("olt")
        .defer(*(f"olt__{name}" for name in (*SECRETS, *ENGINES_OWN)))
    )
    if olt is not None:
        masters = masters.filter(olt_id=olt)
    if status:
        links = Execution.objects.filter(master_execution=OuterRef("pk"), status=status)
        masters = masters.filter(Q(status=status) | Exists(links))
    if before is not None:
        masters = masters.filter(pk__lt=before)
    found = list(with_chains(masters.order_by("-pk"))[: limit + 1])
    return found[:limit], found[limit - 1].pk if len(found) > limit else None


def outcomes(since: datetime, user: Any) -> dict[str, int]:
    """Return the number of slots by result since a time. A skipped row may stand for several."""
    ended = restrict(Execution.objects.filter(slot__gte=since), user)
    rows = ended.order_by().values("status").annotate(slots=Sum("slots"))
    return {row["status"]: row["slots"] for row in rows}


def busy_minutes(since: datetime) -> list[tuple[datetime, float]]:
    """Return the load of the pool per minute."""
    minutes = PollerStats.objects.filter(timestamp__gte=since).order_by("timestamp")
    return list(minutes.values_list("timestamp", "busy_percentage"))


def node_rows(olt_id: int) -> list[NodeRow]:
    """Return the nodes of an OLT: each master, then its chain in running order."""
    ended = Execution.objects.filter(node=OuterRef("pk")).exclude(status__in=OPEN_STATUSES).order_by("-slot")
    nodes = list(
        WorkflowNode.objects.filter(olt_id=olt_id)
        .select_related("job", "olt", "master__job")
        .defer(*(f"olt__{name}" for name in (*SECRETS, *ENGINES_OWN)))
        .annotate(last_execution_id=Subquery(ended.values("pk")[:1]))
    )
    lasts = Execution.objects.in_bulk([node.last_execution_id for node in nodes if node.last_execution_id])
    running = {each.node_id: each for each in Execution.objects.filter(olt_id=olt_id, status__in=OPEN_STATUSES)}
    rows = [NodeRow(node, lasts.get(node.last_execution_id), running.get(node.pk)) for node in nodes]
    rows.sort(key=lambda row: (row.node.master_id is not None, -row.node.priority, row.node.pk))
    return sorted(rows, key=lambda row: (-row.scheduled.priority, row.scheduled.pk))
