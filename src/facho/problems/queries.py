"""Queries of problems for pages and the API."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.text import smart_split

from facho.apps.accounts.roles import Role, permissions_of
from facho.apps.inventory.scopes import restrict
from facho.problems.filters import SEARCHED
from facho.problems.models import CHANGE_PERMISSION, Problem, ProblemEntry, ProblemQuerySet

# Columns of OLTs and ONUs that lists of problems show.
SHOWN = ("olt__name", "olt__enabled", "onu__onu", "onu__name", "acknowledged_by__username", "assignee__username")
OWN = tuple(field.attname for field in Problem._meta.concrete_fields)

# Users in the choice of an assignee.
MOST_USERS = 200


def problems_of(user: Any) -> ProblemQuerySet:
    """Return the problems that a user sees, with what lists show of them."""
    related = ("olt", "onu", "acknowledged_by", "assignee")
    return restrict(Problem.objects.select_related(*related).only(*OWN, *SHOWN), user)


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


def assignable_users() -> list[User]:
    """Return the users with a role that may act on problems."""
    roles = [role for role in Role if CHANGE_PERMISSION in permissions_of(role)]
    users = User.objects.filter(Q(is_superuser=True) | Q(groups__name__in=roles), is_active=True)
    return list(users.distinct().only("username").order_by("username")[:MOST_USERS])
