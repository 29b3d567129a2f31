"""Users with their roles, sessions, tokens and failed logins. The form of a user is in the admin."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import django_filters
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from facho.apps.accounts.logins import counted_name, forget, lock_end, locked_names
from facho.apps.accounts.models import ApiToken, FailedLogin, UserSession, end_access
from facho.apps.accounts.roles import Role, role_of, users_within
from facho.apps.changes.models import Change
from facho.apps.dashboard import queries
from facho.apps.dashboard.list_pages import ListColumn, ListQuery, ListSpec, page_number, page_of
from facho.apps.dashboard.shown_changes import last_changes
from facho.apps.dashboard.views import needs, page, show
from facho.apps.inventory.models import Scope
from facho.apps.inventory.scopes import restrict
from facho.apps.rest.filters import FilterSet

MOST_FAILED_LOGINS = 50
MOST_TOKENS_SHOWN = 100


class UserFilter(FilterSet):
    """Filters of users."""

    role = django_filters.ChoiceFilter(
        method="by_role",
        choices=[*((role.value, role.value) for role in Role), ("superuser", "superuser")],
        label="role",
    )

    class Meta:
        model = User
        fields = ("is_active",)

    def by_role(self, users: QuerySet[User], name: str, value: str) -> QuerySet[User]:
        return users.filter(is_superuser=True) if value == "superuser" else users.filter(groups__name=value)


def _role_name(value: str, _request: Any = None) -> str:
    return Role(value).label if value in set(Role) else gettext("Superuser")


USERS = ListSpec(
    name="users",
    filters=UserFilter,
    columns=(
        ListColumn("name", _("User"), ("username",)),
        ListColumn("state", _("State")),
        ListColumn("role", _("Role")),
        ListColumn("scope", _("Scope")),
        ListColumn("last_login", _("Last login"), ("last_login",), is_number=True),
        ListColumn("sessions", _("Sessions"), is_number=True),
        ListColumn("tokens", _("Tokens"), is_number=True),
    ),
    sentences={"q": _("Search: %(value)s"), "role": _("Role: %(value)s"), "is_active": _("Enabled: %(value)s")},
    words={"role": _role_name},
)


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user with what the list shows."""

    user: User
    sessions: int
    tokens: int
    is_locked: bool

    @property
    def name(self) -> str:
        return self.user.get_full_name()

    @property
    def role(self) -> str:
        if self.user.is_superuser:
            return gettext("Superuser")
        role = role_of(self.user)
        return role.label if role else ""

    @property
    def scope(self) -> list[str]:
        """Return the sites and tags to which the user is limited; empty: the user sees all OLTs."""
        scope: Scope | None = None if self.user.is_superuser else getattr(self.user, "scope", None)
        return [] if scope is None else [str(each) for each in (*scope.sites.all(), *scope.tags.all())]

    @property
    def is_limited(self) -> bool:
        return not self.user.is_superuser and hasattr(self.user, "scope")

    @property
    def has_two_factor(self) -> bool:
        return hasattr(self.user, "two_factor") and self.user.two_factor.confirmed_at is not None

    @property
    def login_server(self) -> str:
        return self.user.external_identity.server if hasattr(self.user, "external_identity") else ""


def rows_of(ids: Iterable[int]) -> list[UserRow]:
    """Return these users in this order, with a few queries for any number."""
    ids = list(ids)
    related = User.objects.select_related("scope", "two_factor", "external_identity")
    found = related.prefetch_related("groups", "scope__sites", "scope__tags").in_bulk(ids)
    open_sessions = UserSession.objects.filter(user__in=ids, expire_date__gt=timezone.now()).order_by()
    sessions = dict(open_sessions.values_list("user").annotate(Count("pk")))
    tokens = dict(ApiToken.objects.filter(user__in=ids).valid().order_by().values_list("user").annotate(Count("pk")))
    locked = locked_names()
    return [
        UserRow(
            found[pk],
            sessions.get(pk, 0),
            tokens.get(pk, 0),
            counted_name(None, {"username": found[pk].get_username()}) in locked,
        )
        for pk in ids
        if pk in found
    ]


@page("auth.view_user")
def users(request: HttpRequest) -> HttpResponse:
    wanted = ListQuery(request, USERS)
    found = wanted.narrowed(User.objects.all())
    if text := wanted.text:
        names = ("username", "first_name", "last_name", "email")
        found = found.filter(Q(*((f"{name}__icontains", text) for name in names), _connector=Q.OR))
    found = found.order_by(*wanted.order_by) if wanted.sort else found.order_by("username")
    shown = page_of(found, page_number(request.GET.get("page")), rows_of)
    context = {
        "active": "users",
        "users": shown.object_list,
        "page": shown,
        "roles": [*((role.value, role.label) for role in Role), ("superuser", gettext("Superuser"))],
        "failed_logins": _failed(request.user, FailedLogin.objects.all()),
        "may_unlock": request.user.has_perm("accounts.delete_failedlogin"),
    }
    return show(request, "users.html", {**context, **wanted.context()})


def _failed(user: Any, rows: QuerySet[FailedLogin]) -> list[tuple[FailedLogin, Any]]:
    """Return the last failed logins, each with the end of its lock."""
    if not user.has_perm("accounts.view_failedlogin"):
        return []
    return [(each, lock_end(each)) for each in rows.order_by("-attempt_time", "-pk")[:MOST_FAILED_LOGINS]]


@page("auth.view_user")
def user(request: HttpRequest, user_id: int) -> HttpResponse:
    """Show a user: role, scope, sessions, tokens, failed logins, and what the user changed."""
    found = get_object_or_404(User, pk=user_id)
    [row] = rows_of([found.pk])
    name = counted_name(None, {"username": found.get_username()})
    own = restrict(Change.objects.filter(user_id=found.pk), request.user, "olt_id")
    sees_changes = request.user.has_perm(Change.VIEW_PERMISSION)
    sees_tokens = request.user.has_perm("accounts.view_apitoken")
    tokens = ApiToken.objects.filter(user=found).select_related("role")
    context = {
        "active": "users",
        "row": row,
        "shown_user": found,
        "sessions": UserSession.of(found),
        "tokens": tokens[:MOST_TOKENS_SHOWN] if sees_tokens else None,
        "failed_logins": _failed(request.user, FailedLogin.objects.filter(username=name)),
        "may_unlock": request.user.has_perm("accounts.delete_failedlogin"),
        "may_end": _may_end(request.user, found),
        "may_revoke": _may_revoke(request.user, found),
        "changes": last_changes(own, request.user) if sees_changes else None,
    }
    return show(request, "user.html", context)


def _may_end(user: Any, other: User) -> bool:
    return user.has_perm("auth.change_user") and users_within(user).filter(pk=other.pk).exists()


def _may_revoke(user: Any, other: User) -> bool:
    return user.has_perm("accounts.delete_apitoken") and users_within(user).filter(pk=other.pk).exists()


@require_POST
@needs("auth.change_user")
def act(request: HttpRequest, user_id: int) -> HttpResponse:
    """End the sessions of a user, or revoke one of the tokens."""
    found = get_object_or_404(User, pk=user_id)
    try:
        messages.success(request, _act(request, found))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    # Who ends the own sessions has to log in again.
    return redirect("dashboard:user", found.pk)


def _act(request: HttpRequest, found: User) -> str:
    beyond = ValidationError(gettext("This user has more permissions than you."))
    match request.POST.get("action"):
        case "end":
            if not _may_end(request.user, found):
                raise beyond
            end_access(found)
            return gettext("All sessions were ended and all tokens revoked.")
        case "revoke":
            if not _may_revoke(request.user, found):
                raise beyond
            token = ApiToken.objects.filter(user=found, pk=queries.number(request.POST.get("token")) or 0).first()
            if token is None or not token.revoke():
                raise ValidationError(gettext("This token was revoked or deleted before."))
            return gettext("The token was revoked.")
    raise ValidationError(gettext("Unknown action."))


@require_POST
@needs("accounts.delete_failedlogin")
def unlock(request: HttpRequest) -> HttpResponse:
    """Forget failed logins of a user at an address, which ends their lock."""
    chosen = FailedLogin.objects.filter(pk=queries.number(request.POST.get("failed")) or 0)
    if forget(chosen):
        messages.success(request, gettext("Unlocked."))
    else:
        messages.info(request, gettext("There was no lock any more."))
    user_id = queries.number(request.POST.get("user"))
    return redirect("dashboard:user", user_id) if user_id else redirect("dashboard:users")
