"""Saved views of lists."""

from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Lower
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from facho.apps.changes.fields import differences
from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.inventory.models import Olt, Site, Tag
from facho.apps.inventory.scopes import restrict_labels, scope_of, visible_olts
from facho.apps.rest.names import validate_name

LONGEST_QUERY = 2000

# Parameters of an address that are not part of a view.
NOT_KEPT = ("page", "view", "before")

# Parameters with a text of one's choice.
SEARCHES = ("q", "serial")


def kept_query(text: str) -> str:
    """Return the part of a query string that a view keeps: filters, columns and order."""
    query = QueryDict(text.removeprefix("?"), mutable=True)
    for name in list(query):
        values = [value for value in query.getlist(name) if value]
        if name in NOT_KEPT or not values:
            del query[name]
        else:
            query.setlist(name, values)
    return query.urlencode()


class SavedView(models.Model):
    """Filters, columns and order of a list under a name. It has no rows: each reader sees those of the own scope."""

    class List(models.TextChoices):
        ONUS = "onus", _("ONUs")
        OLTS = "olts", _("OLTs")
        EXECUTIONS = "executions", _("Executions")

    list = models.CharField(_("list"), max_length=20, choices=List.choices)
    name = models.CharField(_("name"), max_length=60, validators=[validate_name])
    # As in the address of the page.
    query = models.CharField(_("filters"), max_length=LONGEST_QUERY, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views", verbose_name=_("owner")
    )
    is_shared = models.BooleanField(_("shared"), default=False)
    # Users whose page begins with this view; at most one view of a list each.
    default_of = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="default_views")

    SHARE_PERMISSION = "dashboard.share_savedview"
    # Columns in the change record.
    RECORDED = ("list", "name", "query", "is_shared")

    class Meta:
        db_table = "saved_views"
        ordering = ["name", "id"]
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        default_permissions = ()
        permissions = [("share_savedview", "Can share saved views")]
        constraints = [
            models.UniqueConstraint(
                "owner",
                "list",
                Lower("name"),
                name="saved_view_name_once",
                violation_error_message=_("You already have a view with this name."),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @transaction.atomic
    def save(self, *args: Any, **kwargs: Any) -> None:
        before = type(self).objects.filter(pk=self.pk).values(*self.RECORDED).first() if self.pk else None
        self.query = kept_query(self.query)
        super().save(*args, **kwargs)
        self._record(Change.Action.CHANGED if before else Change.Action.CREATED, before, self._values())

    @transaction.atomic
    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        self._record(Change.Action.DELETED, self._values(), None)
        return super().delete(*args, **kwargs)

    @classmethod
    def seen_by(cls, user: Any) -> QuerySet[Any]:
        """Return the user's own views and the shared ones, with `is_default` for the first view of the user's page.

        For a user with a scope, views of others that name something outside of it are left out.
        """
        mine = cls.default_of.through.objects.filter(savedview=OuterRef("pk"), user=user.pk)
        found = cls.objects.filter(Q(owner=user) | Q(is_shared=True)).select_related("owner")
        views: QuerySet[Any] = found.annotate(is_default=Exists(mine))
        if scope_of(user) is None:
            return views
        sites, tags = restrict_labels(Site.objects.all(), user), restrict_labels(Tag.objects.all(), user)
        names = {"site": _names(sites), "tag": _names(tags)}
        others = _names(Olt.objects.exclude(pk__in=visible_olts(user))) | _names(Site.objects.exclude(pk__in=sites))
        others |= _names(Tag.objects.exclude(pk__in=tags))
        hidden = [view.pk for view in views if view.owner_id != user.pk and view.names_others(names, others)]
        return views.exclude(pk__in=hidden)

    def names_others(self, names: dict[str, set[str]], others: set[str]) -> bool:
        """Return whether its filters name a site or tag that is not among these, or its name has one of the others.

        A search may be for anything, such as the name of a customer.
        """
        query = QueryDict(self.query)
        if any(query.get(name) for name in SEARCHES) or any(other in self.name.lower() for other in others):
            return True
        return any(value.lower() not in known for label, known in names.items() for value in query.getlist(label))

    def may_be_changed_by(self, user: Any) -> bool:
        return bool(self.owner_id == user.pk or (self.is_shared and user.is_superuser))

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.RECORDED}

    def _record(self, action: str, before: Any, after: Any) -> None:
        if fields := differences(type(self), before, after):
            record(action, self, fields)

    @transaction.atomic
    def set_default(self, user: Any, is_default: bool) -> None:
        """Make it the first view of its list for a user, instead of another one; or not any more."""
        through = SavedView.default_of.through.objects
        was_default = through.filter(user_id=user.pk, savedview=self).exists()
        through.filter(user_id=user.pk, savedview__list=self.list).delete()
        if is_default:
            self.default_of.add(user)
        if was_default != is_default:
            record(Change.Action.CHANGED, self, {"is_default": [was_default, is_default]})


def _names(rows: QuerySet[Any]) -> set[str]:
    return {name.lower() for name in rows.values_list("name", flat=True)}
