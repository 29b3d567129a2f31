"""Queries of problems for pages and the API."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, Subquery
from django.utils import timezone
from django.utils.text import smart_split

from facho.apps.accounts.roles import Role, permissions_of
from facho.apps.inventory.scopes import restrict
from facho.apps.telemetry.models import RX_WEAK, Onu
from facho.problems.filters import SEARCHED
from facho.problems.models import CHANGE_PERMISSION, Problem, ProblemEntry, ProblemQuerySet

# Columns of OLTs and ONUs that lists of problems show.
SHOWN = ("olt__name", "olt__enabled", "onu__onu", "onu__name", "acknowledged_by__username", "assignee__username")
OWN = tuple(field.attname for field in Problem._meta.concrete_fields)

# Kinds that concern all ONUs of an OLT, and those that concern the ONUs that are down.
OF_OLT = {Problem.Kind.OLT_DOWN, Problem.Kind.OLT_SUSPECT}
OF_DARK_ONUS = {
    Problem.Kind.ONUS_DOWN,
    Problem.Kind.CARD_DOWN,
    Problem.Kind.PORT_DOWN,
    Problem.Kind.PORT_DEGRADED,
    Problem.Kind.POWER_CUT,
}
# Kinds that say nothing about the network.
OF_JOBS = {Problem.Kind.QUOTA_VIOLATED, Problem.Kind.JOB_LATE}

# Entries of the history that have a comment of a user.
COMMENTED = (ProblemEntry.Kind.ACKNOWLEDGED, ProblemEntry.Kind.COMMENTED)

# Users in the choice of an assignee.
MOST_USERS = 200


def with_comment(problems: ProblemQuerySet) -> ProblemQuerySet:
    """Add the last comment of a user, and who wrote it."""
    comments = ProblemEntry.objects.filter(problem=OuterRef("pk"), kind__in=COMMENTED).exclude(text="")
    last = comments.order_by("-at", "-id")
    return problems.annotate(
        last_comment=Subquery(last.values("text")[:1]), last_user=Subquery(last.values("user_name")[:1])
    )


def problems_of(user: Any) -> ProblemQuerySet:
    """Return the problems that a user sees, with what lists show of them."""
    related = ("olt", "onu", "acknowledged_by", "assignee")
    return restrict(with_comment(Problem.objects.select_related(*related).only(*OWN, *SHOWN)), user)


def searched(problems: ProblemQuerySet, words: str) -> ProblemQuerySet:
    """Return the problems that have all of these words, in any column; one with a slash may be a place."""
    for word in smart_split(words):
        any_of = Q(Exists(ProblemEntry.objects.filter(problem=OuterRef("pk"), text__icontains=word)))
        for column in SEARCHED:
            any_of |= Q(**{f"{column}__icontains": word})
        slot, slash, port = word.partition("/")
        if slash and all(part.isascii() and part.isdecimal() and len(part) < 6 for part in (slot, port)):
            any_of |= Q(slot=int(slot), port=int(port))
        problems = problems.filter(any_of)
    return problems


def open_problems(user: Any, limit: int) -> list[Problem]:
    """Return the worst open problems that a user sees, without snoozed ones."""
    return list(problems_of(user).shown(timezone.now()).worst_first()[:limit])


def count_open(user: Any) -> int:
    """Return the number of open problems that a user sees, without snoozed ones."""
    return restrict(Problem.objects.shown(timezone.now()), user).count()


def problems_at(user: Any, olt_id: int, slot: int | None, port: int | None) -> list[Problem]:
    """Return the open problems of a port, and those of its card and OLT that concern it."""
    here = Q(slot=slot, port=port) | Q(slot=slot, port__isnull=True) | Q(slot__isnull=True)
    rows = problems_of(user).open().filter(here, olt=olt_id).exclude(kind__in=OF_JOBS).worst_first()
    return [each for each in rows if each.port is not None or _has_port(each, f"{slot}/{port}")]


def _has_port(problem: Problem, name: str) -> bool:
    return name in problem.evidence.get("ports", [name])


def problems_with(user: Any, onu: Onu) -> list[Problem]:
    """Return the open problems that concern an ONU."""
    return [each for each in problems_at(user, onu.olt_id, onu.slot, onu.port) if _concerns(each, onu)]


def _concerns(problem: Problem, onu: Onu) -> bool:
    is_dark = onu.state in Onu.DARK and not onu.is_missing
    if problem.kind in OF_OLT:
        return True
    if problem.kind == Problem.Kind.LOW_POWER:
        return not is_dark and onu.rx_dbm is not None and onu.rx_dbm < RX_WEAK
    if problem.kind in OF_DARK_ONUS:
        # The list of ONUs ends at a limit; those beyond it went down in the same place.
        return is_dark and (onu.pk in problem.onus or len(problem.onus) < problem.peak)
    return onu.pk in problem.onus


def assignable_users() -> list[User]:
    """Return the users with a role that may act on problems."""
    roles = [role for role in Role if CHANGE_PERMISSION in permissions_of(role)]
    users = User.objects.filter(Q(is_superuser=True) | Q(groups__name__in=roles), is_active=True)
    return list(users.distinct().only("username").order_by("username")[:MOST_USERS])
