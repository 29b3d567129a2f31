"""The record of changes. Rows are only added; the database refuses updates too, by a trigger."""

from typing import Any, NoReturn

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.apps.changes.actor import Interface

# Stored instead of the values of a secret.
SECRET = "changed"  # noqa: S105 - a word, not a secret

LONGEST_NAME = 200


class AppendOnly(TypeError):
    """A row of the record was to be changed or deleted."""

    def __init__(self) -> None:
        super().__init__("The record of changes is append-only. Only retention deletes old rows.")


class ChangeQuerySet(models.QuerySet["Change"]):
    def update(self, **_columns: Any) -> NoReturn:
        raise AppendOnly

    def bulk_update(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise AppendOnly

    def delete(self) -> NoReturn:
        raise AppendOnly


class Change(models.Model):
    """A change of one object, or a login.

    Names are texts, and ids are no foreign keys: a row outlives the user and the object.
    """

    class Action(models.TextChoices):
        CREATED = "created", pgettext_lazy("change", "created")
        CHANGED = "changed", pgettext_lazy("change", "changed")
        DELETED = "deleted", pgettext_lazy("change", "deleted")
        RUN_REQUESTED = "run_requested", pgettext_lazy("change", "run requested")
        TRIED = "tried", pgettext_lazy("change", "job tried")
        READ = "read", pgettext_lazy("change", "ONU read")
        POSITIONS_SET = "positions_set", pgettext_lazy("change", "positions of ONUs set")
        BREAKER_OPENED = "breaker_opened", pgettext_lazy("change", "breaker opened")
        BREAKER_CLOSED = "breaker_closed", pgettext_lazy("change", "breaker closed")
        ACKNOWLEDGED = "acknowledged", pgettext_lazy("change", "acknowledged")
        TEST_REQUESTED = "test_requested", pgettext_lazy("change", "test requested")
        SENT_AGAIN = "sent_again", pgettext_lazy("change", "sent again")
        REVOKED = "revoked", pgettext_lazy("change", "revoked")
        LOGIN = "login", pgettext_lazy("change", "login")
        LOGIN_FAILED = "login_failed", pgettext_lazy("change", "login failed")
        LOCKED_OUT = "locked_out", pgettext_lazy("change", "locked out")
        LOGOUT = "logout", pgettext_lazy("change", "logout")
        UNLOCKED = "unlocked", pgettext_lazy("change", "unlocked")
        SESSIONS_ENDED = "sessions_ended", pgettext_lazy("change", "sessions ended")
        TWO_FACTOR_ON = "two_factor_on", pgettext_lazy("change", "two-factor authentication turned on")
        TWO_FACTOR_OFF = "two_factor_off", pgettext_lazy("change", "two-factor authentication turned off")
        RECOVERY_CODE_USED = "recovery_code_used", pgettext_lazy("change", "recovery code used")
        RECOVERY_CODES_NEW = "recovery_codes_new", pgettext_lazy("change", "new recovery codes")
        KEYS_ROTATED = "keys_rotated", pgettext_lazy("change", "keys rotated")

    at = models.DateTimeField(_("time"), default=timezone.now)
    actor = models.CharField(_("who"), max_length=LONGEST_NAME, blank=True)
    user_id = models.BigIntegerField(_("user"), null=True)
    token = models.CharField(_("token"), max_length=LONGEST_NAME, blank=True)
    address = models.CharField(_("address"), max_length=45, blank=True)
    interface = models.CharField(_("through"), max_length=10, choices=Interface.choices)
    action = models.CharField(_("action"), max_length=20, choices=Action.choices)
    # As in `inventory.olt`; empty if the change has no object.
    object_type = models.CharField(_("object type"), max_length=60, blank=True)
    object_id = models.BigIntegerField(_("object"), null=True)
    object_name = models.CharField(_("object"), max_length=LONGEST_NAME, blank=True)
    # Before and after of each changed field, or SECRET.
    fields = models.JSONField(_("fields"), default=dict)
    note = models.TextField(_("note"), blank=True)
    request_id = models.CharField(_("request"), max_length=64, blank=True)
    # The OLT itself, or the OLT of a node or alert.
    olt_id = models.BigIntegerField(_("OLT"), null=True)

    objects = ChangeQuerySet.as_manager()

    class Meta:
        db_table = "changes"
        ordering = ["-id"]
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        default_permissions = ("view",)
        indexes = [
            models.Index(name="change_by_time", fields=["at"]),
            models.Index(name="change_by_object", fields=["object_type", "object_id", "id"]),
            models.Index(name="change_by_actor", fields=["actor", "id"]),
            models.Index(name="change_by_olt", fields=["olt_id", "id"]),
            models.Index(name="change_by_interface", fields=["interface", "id"]),
        ]

    # It has the names and addresses of all users.
    VIEW_PERMISSION = "changes.view_change"

    def __str__(self) -> str:
        return f"{self.actor}: {self.get_action_display()} {self.object_name}".strip()

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly

    @property
    def values(self) -> list[tuple[str, Any, Any]]:
        """Return each field with the value before and after."""
        pairs = ((name, (None, SECRET) if pair == SECRET else pair) for name, pair in self.fields.items())
        return [(name, before, after) for name, (before, after) in pairs]
