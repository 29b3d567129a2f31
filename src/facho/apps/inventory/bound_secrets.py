"""Secrets that are meant for one destination, and are not sent to another one."""

import copy
import logging
from collections.abc import Collection, Hashable, Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

logger = logging.getLogger(__name__)

WRITE_AGAIN = _("The address or port changed. Write this again: the stored one is not sent to another address.")


class BoundSecrets(models.Model):
    """A row with secrets for one destination. With another destination, they must be given again.

    Otherwise a user who may change an address, and not read a secret, could let Facho send it to a listener. A check of
    the row asks for the secrets that it uses; saving it drops all that were not given.
    """

    # Columns of the destinations.
    DESTINATION: frozenset[str] = frozenset()
    # Secrets that the last save has dropped.
    dropped_secrets: Collection[str] = ()

    class Meta:
        abstract = True

    @transaction.atomic
    def save(self, *args: Any, **kwargs: Any) -> None:
        columns = kwargs.get("update_fields")
        self.dropped_secrets = self._secrets_of_another(columns)
        for name in self.dropped_secrets:
            setattr(self, name, "")
        if self.dropped_secrets:
            logger.warning("%s: the address changed; dropped: %s", self, ", ".join(self.dropped_secrets))
            if columns is not None:
                kwargs["update_fields"] = {*columns, *self.dropped_secrets}
        super().save(*args, **kwargs)

    @property
    def dropped_note(self) -> str:
        """Return a sentence about the secrets that the last save has dropped, or nothing."""
        if not self.dropped_secrets:
            return ""
        fields = [field for field in self._meta.concrete_fields if field.name in self.dropped_secrets]
        said = gettext("The address or port changed, so stored secrets were deleted: %(names)s. Write them again.")
        return said % {"names": ", ".join(str(field.verbose_name) for field in fields)}

    def destinations(self) -> Mapping[str, Hashable]:
        """Return the destination of each secret."""
        raise NotImplementedError

    def used_secrets(self) -> Collection[str]:
        """Return the secrets that the row cannot do without."""
        raise NotImplementedError

    def ask_for_secrets(self) -> None:
        """Refuse a new destination without the secrets that the row uses."""
        missing = set(self.used_secrets()).intersection(self._secrets_of_another(None))
        if missing:
            raise ValidationError(dict.fromkeys(sorted(missing), WRITE_AGAIN))

    def _secrets_of_another(self, columns: Collection[str] | None) -> list[str]:
        """Return the stored secrets of another destination that saving these columns would keep.

        A secret that was given is told from a stored one by its ciphertext, which is new even for the same text.
        """
        if self._state.adding or (columns is not None and self.DESTINATION.isdisjoint(columns)):
            return []
        stored = type(self)._base_manager.filter(pk=self.pk).first()
        if stored is None:
            return []
        after = copy.copy(stored)
        for field in self._meta.concrete_fields:
            is_saved = columns is None or field.name in columns
            if is_saved and field.attname not in self.get_deferred_fields():
                setattr(after, field.attname, getattr(self, field.attname))
        before, now = stored.destinations(), after.destinations()
        return [
            name
            for name, kept in ((name, getattr(stored, name).token) for name in now)
            if kept and before[name] != now[name] and getattr(after, name).token == kept
        ]
