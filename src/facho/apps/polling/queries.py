"""Questions about executions that the API, the admin and the pages ask alike."""

from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from facho.apps.polling.models import Execution, ExecutionAttempt


def with_parts(executions: QuerySet[Execution]) -> QuerySet[Execution]:
    """Add how often an execution was tried, and what its master waited for: a link waited with it."""
    attempts = ExecutionAttempt.objects.filter(execution=OuterRef("pk")).order_by().values("execution")
    return executions.annotate(
        master_waits=F("master_execution__waits"),
        attempts_made=Coalesce(Subquery(attempts.annotate(number=Count("pk")).values("number")), 0),
    )
