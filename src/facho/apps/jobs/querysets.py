"""What can be done to many jobs or nodes at once."""

from typing import Any

from django.db import models, transaction

from facho.apps.inventory.models import Olt
from facho.apps.jobs import in_effect


class TouchingQuerySet(models.QuerySet[Any]):
    """Deleting rows tells the engine, also where nobody calls the rows' own `delete`."""

    @transaction.atomic
    def delete(self) -> tuple[int, dict[str, int]]:
        olt_ids = {olt_id for row in self for olt_id in row.olt_ids()}
        result = super().delete()
        Olt.touch(olt_ids)
        return result


class NodeQuerySet(TouchingQuerySet):
    """Nodes, by whether they are polled."""

    def polled(self) -> "NodeQuerySet":
        on: NodeQuerySet = self.alias(is_on=in_effect.enabled()).filter(is_on=True, olt__enabled=True)
        return on

    def forget_wishes(self) -> int:
        """Take back runs that were asked for on nodes that are not polled any more, and return how many.

        Who enables something weeks later wants it polled from then on, and not what somebody wished for once.
        """
        wishes = self.filter(run_requested_at__isnull=False)
        return wishes.exclude(pk__in=wishes.polled().values("pk")).update(run_requested_at=None)
