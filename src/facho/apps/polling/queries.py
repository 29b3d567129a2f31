"""Queries on executions and pollers, shared by API, admin and pages."""

from typing import Any

from django.db.models import Count, F, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce

from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt, Poller


def with_chains(executions: QuerySet[Execution]) -> QuerySet[Execution]:
    """Read the links of each master with it, in running order. Executions are sorted newest first."""
    return executions.prefetch_related(Prefetch("links", Execution.objects.order_by("pk")))


def with_parts(executions: QuerySet[Execution]) -> QuerySet[Execution]:
    """Add the number of attempts, and the waits of the master: a link waited with it."""
    attempts = ExecutionAttempt.objects.filter(execution=OuterRef("pk")).order_by().values("execution")
    return executions.annotate(
        master_waits=F("master_execution__waits"),
        attempts_made=Coalesce(Subquery(attempts.annotate(number=Count("pk")).values("number")), 0),
    )


def with_times(executions: QuerySet[Execution]) -> QuerySet[Execution]:
    """Allow an order by `lateness` and `duration`, which are computed."""
    # As a dictionary: the type checker takes keywords for attributes, which exist.
    times: Any = {"lateness": F("started_at") - F("slot"), "duration": F("ended_at") - F("started_at")}
    return executions.alias(**times)


def with_names(pollers: QuerySet[Poller], user: Any) -> QuerySet[Poller]:
    """Add the names of a poller's OLT and node, if the user sees the OLT."""
    olts = visible_olts(user).filter(pk=OuterRef("current_olt_id")).order_by()
    nodes = restrict(WorkflowNode.objects.filter(pk=OuterRef("current_node_id")).order_by(), user)
    return pollers.annotate(
        olt_name=Subquery(olts.values("name")[:1]), job_name=Subquery(nodes.values("job__name")[:1])
    )
