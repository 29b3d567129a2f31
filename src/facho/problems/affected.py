"""ONUs that open problems affect now."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Q

from facho.apps.telemetry.models import OnuQuerySet
from facho.apps.telemetry.queries import IS_DARK, IS_WEAK
from facho.problems.models import Problem

# Ids of a statement.
BATCH = 500

# Their ONUs are affected as long as they are down.
OUTAGES = frozenset(
    {
        Problem.Kind.ONUS_DOWN,
        Problem.Kind.CARD_DOWN,
        Problem.Kind.PORT_DOWN,
        Problem.Kind.PORT_DEGRADED,
        Problem.Kind.POWER_CUT,
    }
)

Affected = tuple[list[int], tuple[Any, ...]]


def affected(onus: OnuQuerySet, problems: Iterable[Problem], *columns: str) -> Iterator[Affected]:
    """Yield ids of problems with the columns of each of these ONUs that they affect, some ONUs several times.

    A few queries for any number of problems. An unreachable OLT affects all of its ONUs.
    """
    down: dict[int, list[int]] = defaultdict(list)
    others: dict[int, list[int]] = defaultdict(list)
    olts: dict[Any, list[int]] = defaultdict(list)
    ports: dict[Any, list[int]] = defaultdict(list)
    for problem in problems:
        if problem.kind == Problem.Kind.OLT_DOWN:
            olts[problem.olt_id].append(problem.pk)
        elif problem.kind == Problem.Kind.LOW_POWER:
            ports[problem.olt_id, problem.slot, problem.port].append(problem.pk)
        else:
            found = down if problem.kind in OUTAGES else others
            for pk in problem.onus:
                found[pk].append(problem.pk)
    yield from _of_ids(onus.filter(IS_DARK), down, columns)
    yield from _of_ids(onus, others, columns)
    if olts:
        for olt, *values in onus.filter(olt__in=olts.keys()).values_list("olt_id", *columns):
            yield olts[olt], tuple(values)
    if ports:
        weak = onus.filter(IS_WEAK, olt__in={olt for olt, _slot, _port in ports})
        for olt, slot, port, *values in weak.values_list("olt_id", "slot", "port", *columns):
            if (olt, slot, port) in ports:
                yield ports[olt, slot, port], tuple(values)


def _of_ids(onus: OnuQuerySet, found: dict[int, list[int]], columns: tuple[str, ...]) -> Iterator[Affected]:
    ids = list(found)
    for start in range(0, len(ids), BATCH):
        wanted = Q(pk__in=ids[start : start + BATCH])
        for pk, *values in onus.filter(wanted).values_list("pk", *columns):
            yield found[pk], tuple(values)
