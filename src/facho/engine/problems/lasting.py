"""A problem that lasts: its cause is that of its peak."""

from collections.abc import Mapping
from dataclasses import replace

from facho.engine.problems.model import FoundProblem, OpenProblem, ProblemKind


def with_cause_of_peak(found: FoundProblem, open_: Mapping[str, OpenProblem]) -> FoundProblem:
    """Return a problem with the cause that it had when it was largest.

    ONUs come back one after another. The last ones of a cut fibre would otherwise look like a splitter, and those of a
    power cut, which cannot report it, like a cut fibre.
    """
    lasting = open_.get(found.key)
    if lasting is None or found.affected >= lasting.peak:
        return found
    kind = lasting.kind if ProblemKind.POWER_CUT in (found.kind, lasting.kind) else found.kind
    return replace(found, kind=kind, cause=lasting.cause, confidence=lasting.confidence)
