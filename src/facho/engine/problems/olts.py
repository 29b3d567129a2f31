"""OLTs that do not answer or are in doubt, violated quotas, and late jobs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from facho.engine.presence import Suspicion
from facho.engine.problems.model import (
    Confidence,
    FoundProblem,
    LateNode,
    OltState,
    ProbableCause,
    ProblemKind,
    ProblemSeverity,
    ViolatedQuota,
)

# OLTs of one site that stop answering within this time have a common cause. A breaker opens after three attempts
# two minutes apart, so the times of one failure differ by some minutes.
SAME_TIME = timedelta(minutes=10)

# A job is late if it has waited for this share of its interval, at least for this time.
LATE_SHARE, LATE_AFTER = 0.5, timedelta(minutes=1)

# More late jobs have a common cause: the pollers.
MANY_LATE = 10

SUSPICIONS: Mapping[str, ProbableCause] = {
    Suspicion.VANISHING: ProbableCause.MASS_DISAPPEARANCE,
    Suspicion.TOO_MANY: ProbableCause.TOO_MANY_ONUS,
}


def olts_down(olts: Sequence[OltState]) -> list[FoundProblem]:
    """Return the OLTs that do not answer."""
    found = []
    down = [(olt, olt.down_since) for olt in olts if olt.is_enabled and olt.down_since is not None]
    for olt, since in down:
        beside = [
            each.name
            for each, at in down
            if each is not olt and olt.site and each.site == olt.site and abs(at - since) <= SAME_TIME
        ]
        found.append(
            FoundProblem(
                ProblemKind.OLT_DOWN,
                f"olt/{olt.id}",
                ProblemSeverity.CRITICAL,
                since,
                ProbableCause.SITE if beside else ProbableCause.OLT_OR_UPLINK,
                Confidence.POSSIBLE,
                # Those that were up when it last answered.
                affected=sum(port.up for port in olt.ports),
                evidence={"error": olt.error, **({"site": olt.site, "others": len(beside)} if beside else {})},
                olt=olt.id,
            )
        )
    return found


def suspects(olts: Iterable[OltState]) -> list[FoundProblem]:
    """Return the OLTs whose ONUs are in doubt."""
    return [
        FoundProblem(
            ProblemKind.OLT_SUSPECT,
            f"suspect/{olt.id}",
            ProblemSeverity.MAJOR,
            olt.suspect_since,
            SUSPICIONS.get(olt.suspect_reason, ProbableCause.UNKNOWN),
            Confidence.PROBABLE,
            evidence={"onus": olt.onus},
            olt=olt.id,
        )
        for olt in olts
        if olt.is_enabled and olt.suspect_since is not None
    ]


def violations(quotas: Iterable[ViolatedQuota], olts: Mapping[int, OltState]) -> list[FoundProblem]:
    """Return the violated quotas of OLTs that answer: for others, the OLT is the problem."""
    return [
        FoundProblem(
            ProblemKind.QUOTA_VIOLATED,
            f"quota/{quota.olt}/{quota.task}",
            ProblemSeverity.MAJOR if quota.is_critical else ProblemSeverity.MINOR,
            quota.since,
            ProbableCause.UNKNOWN,
            Confidence.UNKNOWN,
            evidence={"task": quota.task, **quota.evidence},
            olt=quota.olt,
        )
        for quota in quotas
        if quota.olt in olts and olts[quota.olt].is_known
    ]


def late_jobs(nodes: Iterable[LateNode], olts: Mapping[int, OltState], now: datetime) -> list[FoundProblem]:
    """Return the jobs that do not start in time; one problem if there are many."""
    late = [
        node
        for node in nodes
        if node.olt in olts and olts[node.olt].is_known and now - node.due > max(LATE_AFTER, LATE_SHARE * node.interval)
    ]
    if len(late) > MANY_LATE:
        return [
            FoundProblem(
                ProblemKind.JOB_LATE,
                "late/many",
                ProblemSeverity.MAJOR,
                min(node.due for node in late),
                ProbableCause.POOL_BUSY,
                Confidence.POSSIBLE,
                evidence={"jobs": len(late)},
            )
        ]
    return [
        FoundProblem(
            ProblemKind.JOB_LATE,
            f"late/{node.node}",
            ProblemSeverity.MINOR,
            node.due,
            ProbableCause.UNKNOWN,
            Confidence.UNKNOWN,
            evidence={"task": node.task, "node": node.node},
            olt=node.olt,
        )
        for node in late
    ]
