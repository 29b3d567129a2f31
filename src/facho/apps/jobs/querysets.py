"""Operations on many jobs or nodes."""

from typing import Any

from django.db import models, transaction

from facho.apps.inventory.models import Olt
from facho.apps.jobs import in_effect


class TouchingQuerySet(models.QuerySet[Any]):
    """Deleting rows raises revisions, even without the rows' own `delete`."""

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
        """Cancel requested runs of disabled nodes, and return their number.

        A node that is enabled weeks later should be polled from then on, without an old request.
        """
        wishes = self.filter(run_requested_at__isnull=False)
        return wishes.exclude(pk__in=wishes.polled().values("pk")).update(run_requested_at=None)
