"""Where on a port a problem is, from the distances of its ONUs and from the ONUs that are not concerned."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from facho.engine.problems.model import FoundProblem, PortOnu, ProbableCause, ProblemKind
from facho.engine.problems.optics import NEARLY_ALL

# Causes on the way to the ONUs of one port.
ON_THE_WAY = frozenset(
    {ProbableCause.SPLITTER, ProbableCause.FEEDER, ProbableCause.FIBRE_CUT, ProbableCause.CABLE_CUT, ProbableCause.AREA}
)
OF_POWER = frozenset({ProblemKind.LOW_POWER, ProblemKind.POWER_DROP})

# Ranging has steps of some metres, and a single other ONU says little.
FEWEST_OTHERS, LEAST_GAP = 3, 20.0


def is_on_the_way(problem: FoundProblem) -> bool:
    """Return whether distances say more about a problem."""
    return problem.cause in ON_THE_WAY and problem.port is not None


def located(problem: FoundProblem, onus: Sequence[PortOnu], weak: float) -> FoundProblem:
    """Return a problem of a port with the distances of its ONUs and of the others. `weak`: the limit of low power."""
    ids = frozenset(problem.onus) or frozenset(each.id for each in onus if each.power is not None and each.power < weak)
    own = [each for each in onus if each.id in ids]
    others = [each for each in onus if each.id not in ids]
    cause = problem.cause
    if problem.kind in OF_POWER and cause is ProbableCause.SPLITTER:
        # ONUs whose power is not known cannot show that the fibre to the splitter is good.
        known = len(own) + sum(each.power is not None for each in others)
        cause = ProbableCause.FEEDER if len(own) >= NEARLY_ALL * known else cause
    return replace(problem, cause=cause, evidence={**problem.evidence, **_distances(own, others)})


def _distances(own: Collection[PortOnu], others: Collection[PortOnu]) -> dict[str, Any]:
    near, far = _range(own)
    if near is None:
        return {}
    others_near, others_far = _range(others)
    found: dict[str, Any] = {"near": near, "far": far}
    if others_near is None or others_far is None:
        return found
    found |= {"others_near": others_near, "others_far": others_far}
    is_known = all(each.distance for each in (*own, *others))
    if is_known and len(others) >= FEWEST_OTHERS and near - others_far >= LEAST_GAP:
        found["is_beyond"] = True
    return found


def _range(onus: Collection[PortOnu]) -> tuple[float | None, float | None]:
    """Return the nearest and the farthest; 0 is no distance."""
    known = [each.distance for each in onus if each.distance]
    return (min(known), max(known)) if known else (None, None)
