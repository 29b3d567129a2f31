"""Scope of a user: the OLTs that the user sees, by site or tag. Superusers and users without a scope see all.

Each query for a user passes through one of these: `restrict`, a `ScopedView` of the API, or a `ScopedAdmin`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from facho.apps.inventory.models import Olt, Scope, Site, Tag
from facho.apps.rest.strict import StrictView

Rows = TypeVar("Rows", bound=QuerySet[Any])


def scope_of(user: Any) -> Scope | None:
    """Return the scope of a user, or None if the user sees all OLTs."""
    return None if user.is_superuser else getattr(user, "scope", None)


def visible_ids(user: Any) -> frozenset[int] | None:
    """Return the ids of the OLTs that a user sees, or None for all. Read once per request."""
    if not user.is_authenticated:
        return frozenset()
    scope = scope_of(user)
    return None if scope is None else scope.olt_ids


def restrict(rows: Rows, user: Any, path: str = "olt") -> Rows:
    """Return the rows whose OLT the user sees. `path` leads to the OLT; it is "pk" for OLTs themselves."""
    ids = visible_ids(user)
    return rows if ids is None else rows.filter(**{f"{path}__in": ids})


def visible_olts(user: Any) -> QuerySet[Olt]:
    """Return the OLTs that a user sees."""
    return restrict(Olt.objects.all(), user, "pk")


def restrict_labels(labels: Rows, user: Any) -> Rows:
    """Return the sites or tags that a user sees: those of the scope, and those of visible OLTs."""
    scope = scope_of(user)
    if scope is None:
        return labels
    own, field = (scope.sites, "site") if labels.model is Site else (scope.tags, "tags")
    used = Olt.objects.filter(pk__in=scope.olt_ids).order_by()
    return labels.filter(Q(pk__in=own.values("pk")) | Q(pk__in=used.values(field)))


def restrict_related(rows: Rows, user: Any) -> Rows:
    """Return the choices of a user in a form: OLTs, sites and tags obey the scope."""
    if issubclass(rows.model, Olt):
        return restrict(rows, user, "pk")
    return restrict_labels(rows, user) if rows.model in (Site, Tag) else rows


def check_place(user: Any, site: Site | None, tags: Iterable[Tag]) -> None:
    """Refuse an OLT that its editor would not see."""
    scope = scope_of(user)
    if scope is None:
        return
    sites, names = list(scope.sites.all()), list(scope.tags.all())
    if site not in sites and not set(tags) & set(names):
        raise ValidationError(
            _("Give the OLT a site or tag of your scope. Sites: %(sites)s. Tags: %(tags)s.")
            % {"sites": ", ".join(map(str, sites)) or "-", "tags": ", ".join(map(str, names)) or "-"}
        )


class ScopedView(StrictView):
    """Rows of OLTs. A user with a scope gets those of visible OLTs; others do not exist for that user."""

    # Lookup from a row to its OLT.
    olt_path = "olt"

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()  # type: ignore[misc]  # of the generic view beside it
        return restrict(rows, self.request.user, self.olt_path)


class FleetView(StrictView):
    """A view about the whole installation: not for users with a scope."""

    # Methods that such users may use.
    scoped_methods: Sequence[str] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in self.scoped_methods and visible_ids(request.user) is not None:
            raise PermissionDenied(_("This concerns all OLTs. It needs a user without a scope."))


class SharedView(FleetView):
    """Rows that all users share: users with a scope may only read them."""

    scoped_methods = SAFE_METHODS


class OltChoice(serializers.PrimaryKeyRelatedField[Olt]):
    """The id of an OLT that the user sees. Secrets are not read."""

    def __init__(self, **kwargs: Any) -> None:
        if not kwargs.get("read_only"):
            kwargs.setdefault("queryset", Olt.objects.defer("community", "v3_auth_key", "v3_priv_key"))
        super().__init__(**kwargs)

    def get_queryset(self) -> QuerySet[Olt]:
        olts: Any = super().get_queryset()
        request = self.context.get("request")
        return olts if request is None else restrict(olts, request.user, "pk")
