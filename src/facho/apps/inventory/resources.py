"""Import and export of OLTs. Secrets are never exported, and of all secrets only communities are imported."""

import logging
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from import_export.fields import Field
from import_export.resources import Diff, ModelResource
from import_export.results import Error
from import_export.widgets import ForeignKeyWidget, ManyToManyWidget

from facho.apps.changes.actor import Interface, acting_through
from facho.apps.inventory.changes import one_at_a_time
from facho.apps.inventory.models import SECRETS, Olt, Site, Tag, resolve_hosts
from facho.apps.inventory.scopes import check_place, restrict_labels, visible_ids, visible_olts


def label_named(model: Any, name: str, user: Any) -> Any:
    """Return the site or tag of this name. A user who may add them creates a missing one."""
    found = restrict_labels(model._default_manager.all(), user).filter(name__iexact=name).first()
    if found is not None:
        return found
    is_allowed = visible_ids(user) is None and user.has_perm(f"inventory.add_{model._meta.model_name}")
    if not is_allowed:
        said = _("The %(kind)s “%(name)s” does not exist, or is outside your scope. You cannot create it.")
        raise ValidationError(said % {"kind": model._meta.verbose_name, "name": name})
    new = model(name=name)
    new.full_clean()
    new.save()
    return new


class SiteWidget(ForeignKeyWidget):
    """The site of an OLT, by name."""

    user: Any = None

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> Any:
        name = str(value or "").strip()
        return label_named(Site, name, self.user) if name else None


class TagsWidget(ManyToManyWidget):
    """The tags of an OLT, by name, with commas between them."""

    user: Any = None

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> Any:
        names = filter(None, (name.strip() for name in str(value or "").split(self.separator)))
        return list({tag.pk: tag for tag in (label_named(Tag, name, self.user) for name in names)}.values())


logger = logging.getLogger(__name__)

COMMUNITY = "community"


class ImportProblem(Error):
    """A refusal in a sentence. The page shows the traceback of other errors, so it is only in the log."""

    def __init__(self, error: Exception, row: Any = None, number: int | None = None) -> None:
        if isinstance(error, ValidationError):
            sentence = " ".join(error.messages)
        else:
            logger.error("an OLT could not be imported", exc_info=error)
            sentence = _("The row could not be imported. The details are in the log of Facho.")
        super().__init__(sentence, row, number)

    @property
    def traceback(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value of a row that differs from the stored one. A new OLT has no stored ones."""

    name: str
    before: str
    after: str


class RowDifference(Diff):
    """What a row changes."""

    def as_html(self) -> list[ChangedValue]:
        """Return the changes, for a template."""
        names = OltResource._meta.fields
        values = zip(names, self.left, self.right, strict=True)
        return [
            ChangedValue(name, "" if self.new else str(before), str(after))
            for name, before, after in values
            if str(before) != str(after) or (self.new and str(after))
        ]


class OltResource(ModelResource):
    """An OLT is identified by its name. Each row passes the checks of a form."""

    site = Field(attribute="site", column_name="site", widget=SiteWidget(Site, "name"))
    tags = Field(attribute="tags", column_name="tags", widget=TagsWidget(Tag, ",", "name"))

    def __init__(self, community: str = "", user: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._community = community
        self._user = user
        for name in ("site", "tags"):
            self.fields[name].widget.user = user

    class Meta:
        model = Olt
        import_id_fields = ["name"]
        fields = [
            "name",
            "brand",
            "host",
            "port",
            "location",
            "site",
            "tags",
            "enabled",
            "version",
            "max_in_flight",
            "max_pdus_per_second",
        ]
        export_order = fields
        clean_model_instances = True
        skip_unchanged = True

    def import_data(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        # All names at once, and before the transaction, so that no DNS lookup holds the database lock.
        if "host" in (dataset.headers or ()):
            resolve_hosts([str(host) for host in dataset["host"]])
        with acting_through(Interface.IMPORT), one_at_a_time():
            return super().import_data(dataset, *args, **kwargs)

    def before_import(self, dataset: Any, **kwargs: Any) -> None:
        if problem := self._problem(dataset.headers or []):
            # No row is read.
            del dataset[:]
            raise ValidationError(problem)

    def _problem(self, headers: list[Any]) -> str:
        """Return why the columns of a file are refused; empty if they are not."""
        if keys := [name for name in SECRETS if name in headers and name != COMMUNITY]:
            said = _("Remove the column %(names)s: the keys of SNMPv3 are written in the settings of each OLT.")
            return said % {"names": ", ".join(keys)}
        known = [*self._meta.fields, COMMUNITY]
        columns = {"columns": ", ".join(known)}
        if unknown := [str(name) for name in headers if name not in known]:
            said = _("Unknown column “%(name)s”. The first row has the names of columns: %(columns)s.")
            return said % {"name": unknown[0][:100], **columns}
        if len(set(headers)) < len(headers):
            return _("A column occurs twice.")
        if "name" not in headers:
            return _("The column name is missing. The first row has the names of columns: %(columns)s.") % columns
        return ""

    @classmethod
    def get_diff_class(cls) -> type[Diff]:
        return RowDifference

    @classmethod
    def get_error_result_class(cls) -> type[Error]:
        return ImportProblem

    def get_queryset(self) -> QuerySet[Olt]:
        """Return the OLTs that a row can change."""
        olts = visible_olts(self._user) if self._user else super().get_queryset()
        return olts.filter(deleting_since=None)

    def import_instance(self, instance: Olt, row: Any, **kwargs: Any) -> None:
        before = instance.destinations()
        super().import_instance(instance, row, **kwargs)
        instance.readers_olts = visible_ids(self._user)
        if "tags" in row:
            tags = self.fields["tags"].clean(row)
        else:
            tags = [] if instance._state.adding else instance.tags.all()
        check_place(self._user, instance.site, tags)
        own = str(row.get(COMMUNITY) or "")
        is_moved = instance.destinations() != before
        if own or instance._state.adding or (is_moved and self._community):
            instance.community = own or self._community

    def skip_row(self, instance: Olt, original: Olt, row: Any, import_validation_errors: Any = None) -> bool:
        has_new_community = instance.community.reveal() != original.community.reveal()
        return not has_new_community and super().skip_row(instance, original, row, import_validation_errors)
