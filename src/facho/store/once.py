"""Whether a harvest is in the database already.

A connection that breaks in the moment of a commit leaves us in doubt, and so
does a process that dies behind it. What is in doubt is brought again. Most of a
harvest would not mind; but a history would have each reading twice, and a
discovery that counts twice declares ONUs missing that it has missed once.
"""

from dataclasses import replace
from datetime import datetime

from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu
from facho.engine.model import Collected, JobKind
from facho.store.entries import Harvest


def is_kept(execution_id: int, olt_id: int, collected: Collected, now: datetime) -> bool:
    """Return whether a harvest has been written, told by one of its rows: a transaction leaves all of them or none.

    Nobody but its holder writes readings of an OLT, one harvest after the other, so the time tells them apart.
    Asked in the transaction that would write it: one that broke off may still be under way in the server, and has
    the execution until it is over.
    """
    if not collected.readings:
        return False
    list(Execution.objects.select_for_update().filter(pk=execution_id).values_list("pk"))
    return Onu.objects.filter(olt_id=olt_id, read_at=now).exists()


def repeatable(harvest: Harvest) -> Harvest:
    """Return a harvest that does no harm if it is written twice.

    A discovery without readings leaves no row by which it could be told. So it
    counts as any other run, and says of nobody that he is missing: the next
    discovery will, if it is so.
    """
    if harvest.collected.readings or harvest.node.kind is not JobKind.DISCOVERY:
        return harvest
    return replace(harvest, node=replace(harvest.node, kind=JobKind.TABLE))
